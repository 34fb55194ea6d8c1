"""Shared parts of pages: packed data, hashes of their scripts, colours."""
