"""Immutable values of node properties, compared by content and printed as by XLA."""
