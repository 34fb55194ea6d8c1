"""Passes over while loops, and what they share."""
