"""Builders of tables from a module: one file, or a few similar ones, for each."""
