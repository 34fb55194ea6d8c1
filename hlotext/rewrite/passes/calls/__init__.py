"""Passes over calls and the computations that are called."""
