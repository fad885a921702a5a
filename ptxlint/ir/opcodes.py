"""Contract of the opcode table (rows live in `ptxlint.ir.opcode_rows`)."""
