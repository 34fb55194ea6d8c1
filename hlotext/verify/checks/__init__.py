"""Checks beyond single instructions, with one file per family. Instructions are checked in `hlotext.semantics`."""
