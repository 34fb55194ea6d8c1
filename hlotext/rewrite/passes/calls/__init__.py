"""Passes that transform calls and called computations."""
