"""Bridges to other software; each needs an extra of its own."""
