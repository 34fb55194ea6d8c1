"""Mutation tests of hand-made policy: `python -m tests.mutants` changes the sources and asks which tests notice."""
