"""Tables of knowledge: a row for each opcode and for each attribute."""
