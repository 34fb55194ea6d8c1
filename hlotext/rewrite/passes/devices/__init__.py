"""Passes over collectives and shardings."""
