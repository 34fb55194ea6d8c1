"""Passes that remove dead code, duplicates, names and metadata."""
