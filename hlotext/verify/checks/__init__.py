"""Checks beyond single instructions, one file for each family; checks of one instruction are in `hlotext.semantics`."""
