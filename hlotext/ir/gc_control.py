"""The garbage collector, kept from walking through large modules, and called when they have become garbage themselves."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "HLOTEXT_GC"
"""Environment variable that says no before anything is imported: `HLOTEXT_GC=untouched`."""

UNTOUCHED = "untouched"
"""Its one value."""

_allowed = os.environ.get(VARIABLE) != UNTOUCHED


def allow(is_allowed: bool) -> None:
    """Sets whether the garbage collector of this process may be paused. Without pauses, parsing takes up to 50%
    longer.
    """
    global _allowed
    _allowed = is_allowed


LEAST = 500_000
"""Objects that are made before the collector is called: a hundred megabytes or less."""

FROZEN_BY_PYTHON = 1_000
"""More frozen objects than an interpreter starts with: 375 in CPython 3.12.1, none in 3.11 and 3.13. `gc.freeze` takes all
objects there are, some 5,000 in a program that has imported nothing, so that a program's own call is well above."""


@contextmanager
def gc_paused(*, collect_first: bool = True) -> Iterator[None]:
    """Context manager that pauses garbage collection, for work whose objects are kept or freed by reference counts.

    Collection would take a third of the time of parsing a large file. With `collect_first`, a collection that earlier
    pauses left out is made up for before the block; pass False for queries of a module that was just parsed, where it
    finds nothing.
    """
    was_on = gc.isenabled() and _allowed
    if not was_on:
        yield
        return
    if collect_first:
        _debt.pay()
    before = gc.get_count()[0]
    gc.disable()
    try:
        yield
    finally:
        # The new objects are not garbage, so the collector need not walk through it at once: freezing and unfreezing
        # moves it to the oldest generation. (A program that has frozen objects itself is left alone.)
        if not _debt.finds_frozen():
            _debt.made += max(0, gc.get_count()[0] - before)
            gc.freeze()
            gc.unfreeze()
        gc.enable()


class _Debt:
    """Objects created while the collector was paused. It counts what reaches the oldest generation, and does not see this."""

    def __init__(self) -> None:
        self.made = 0
        """Objects since the last full collection."""
        self.alive = 0
        """Objects after the last one that was called from here."""
        self.collections = 0
        """Full collections so far, whoever called for them."""
        self.has_frozen = False
        """True once the program has frozen objects; then they are not counted again, since that takes time."""

    def finds_frozen(self) -> bool:
        """True if the program itself has frozen objects, now or earlier."""
        self.has_frozen = self.has_frozen or gc.get_freeze_count() > FROZEN_BY_PYTHON
        return self.has_frozen

    def pay(self) -> None:
        """Collects when a quarter of what was alive has been made since the last time: Python's own rule."""
        if _collections() == self.collections:
            if self.made <= max(LEAST, self.alive // 4):
                return
            gc.collect()
            self.alive = len(gc.get_objects())
        self.made, self.collections = 0, _collections()


def _collections() -> int:
    return int(gc.get_stats()[2]["collections"])


_debt = _Debt()
