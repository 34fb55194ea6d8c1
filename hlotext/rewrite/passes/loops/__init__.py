"""Passes that transform while loops, and their shared utilities."""
