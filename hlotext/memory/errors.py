"""Errors of the memory model."""

from __future__ import annotations


class MemoryModelError(ValueError):
    """A module, or a file of XLA's, whose memory cannot be told; `str()` is one line that says why."""
