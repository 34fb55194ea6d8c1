"""Texts and what is said about them: bytes from files, limits, codes of diagnostics, the reporter.

Must not know the language.
"""
