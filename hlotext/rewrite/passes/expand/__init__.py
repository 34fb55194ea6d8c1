"""Passes that take an operation apart into simpler ones."""
