"""Errors of the memory model."""

from __future__ import annotations


class MemoryModelError(ValueError):
    """The memory of a module, or of one of XLA's files, cannot be determined; `str()` is one line with the reason."""
