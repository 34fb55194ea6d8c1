"""Passes that change layouts."""
