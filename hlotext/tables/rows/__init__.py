"""How each table is made of a module: one file, or a few alike, for each."""
