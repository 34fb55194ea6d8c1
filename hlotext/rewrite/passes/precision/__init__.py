"""Passes that compute in another floating-point type."""
