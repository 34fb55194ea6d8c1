"""Errors of the memory model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hlotext.layout import LayoutError


class MemoryModelError(ValueError):
    """The memory of a module, or of one of XLA's files, cannot be determined; `str()` is one line with the reason."""


@contextmanager
def known_layouts() -> Iterator[None]:
    """Raises MemoryModelError for an ill-formed layout, also one inside a fusion, whose size nobody asks for."""
    try:
        yield
    except LayoutError as error:
        raise MemoryModelError(str(error)) from None
