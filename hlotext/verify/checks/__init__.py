"""What verify looks at beyond single instructions, one file for each family; those stand in `hlotext.semantics`."""
