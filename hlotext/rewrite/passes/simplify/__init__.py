"""Passes that compute the same with less: algebra, tuples, gathers, sorts, constants."""
