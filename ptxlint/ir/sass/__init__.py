"""SASS in the types of the IR: its opcodes, what they read and write, and in how many registers.

Machine registers are `Register`s like any other; a value of 64 bits is a `Vector` of two of them.
`RZ`, `URZ`, `PT`, `UPT` and the `SR_` registers are `SpecialRegister`s.
"""
