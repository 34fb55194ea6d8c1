"""Passes that change the floating-point type of operations."""
