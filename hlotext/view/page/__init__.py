"""Shared parts of HTML pages: packed data, script hashes, colors."""
