"""Passes that transform collectives and shardings."""
