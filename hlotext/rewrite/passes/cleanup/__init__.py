"""Passes that take out what is not needed: dead code, repetitions, names, notes."""
