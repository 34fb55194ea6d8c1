"""Passes that expand operations into simpler ones."""
