"""The intermediate representation: modules, functions, instructions, operands, opcode table."""
