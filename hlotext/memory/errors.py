"""Errors of the memory model."""

from __future__ import annotations


class MemoryModelError(ValueError):
    """Raised if memory cannot be determined from a module or from XLA's files. `str()` is the reason, on one line."""
