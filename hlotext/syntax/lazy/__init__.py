"""Modules of large files, whose computations are read when they are touched. Must not know texts that are in error."""
