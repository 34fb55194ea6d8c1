"""Errors of the memory model."""

from __future__ import annotations


class MemoryModelError(ValueError):
    """Memory cannot be determined from a module or from XLA's files. `str()` is a one-line message with the reason."""
