"""What is raised where memory cannot be told."""

from __future__ import annotations


class MemoryModelError(ValueError):
    """A module, or a file of XLA's, whose memory cannot be told; `str()` is one line that says why."""
