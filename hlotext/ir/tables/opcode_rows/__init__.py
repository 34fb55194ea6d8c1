"""The rows of the opcode table, by family."""
