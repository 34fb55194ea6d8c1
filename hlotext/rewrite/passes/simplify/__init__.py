"""Simplification passes: algebra, tuples, gathers, sorts, constants."""
