"""The dynamic half of ptxlint: what static analysis leaves open is decided by running it.

The package sits on top of `ptxlint.engine`; nothing below may import it.
"""
