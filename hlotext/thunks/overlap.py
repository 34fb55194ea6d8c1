"""Thunks that run while an asynchronous operation is in flight."""

from __future__ import annotations

import attrs

from hlotext.thunks.sequence import Thunks
from hlotext.thunks.thunk import Thunk, sequences


@attrs.frozen(kw_only=True)
class Overlap:
    """An asynchronous operation, with the thunks between its start and its done."""

    start: Thunk
    done: Thunk | None
    """The done, or None if it is in another sequence, as in a pipelined loop."""
    between: tuple[Thunk, ...]
    """Thunks between the start and the done, or until the end of the sequence."""


def overlaps(thunks: Thunks) -> tuple[Overlap, ...]:
    """Finds the asynchronous operations of all sequences, each with the thunks between its start and done.

    Results are in the order of their starts. Takes time linear in the number of thunks and the size of the result.
    """
    found = []
    for _, _, sequence in sequences(thunks.thunks):
        ends = {t.facts.get("start"): place for place, t in enumerate(sequence) if _is_done(t)}
        for place, thunk in enumerate(sequence):
            if thunk.kind in ("kAsyncStart", "kHostExecuteStart"):
                end = ends.get(thunk.number)
                between = sequence[place + 1 : end]
                found.append(
                    Overlap(start=thunk, done=sequence[end] if end is not None else None, between=between)
                )
    return tuple(sorted(found, key=lambda overlap: overlap.start.number or 0))


def _is_done(thunk: Thunk) -> bool:
    return thunk.kind in ("kAsyncDone", "kHostExecuteDone")
