"""Differences between thunks that were predicted and thunks that XLA listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

import attrs

from hlotext.thunks.sequence import Thunks
from hlotext.thunks.thunk import Thunk

MADE_BY_PASSES = frozenset({"kCommandBuffer", "kSequential"})
"""Kinds whose names are of the passes' making, or empty."""


@attrs.frozen(kw_only=True)
class ThunkDifference:
    """A difference between a predicted thunk and the one in XLA's file."""

    place: int
    """Position in the text of XLA, counted from 0 over all thunks."""
    what: str
    """"missing", "surplus", "kind", "number", "nesting", "name", "previous", "next" or "target"."""
    expected: str
    """Text in XLA's file; "" for a surplus thunk."""
    found: str
    """Predicted text; "" for a missing thunk."""

    def __str__(self) -> str:
        if not self.found:
            return f"thunk {self.place}: {self.expected} was not predicted"
        if not self.expected:
            return f"thunk {self.place}: {self.found} was predicted but is missing"
        return f"thunk {self.place}: {self.what} is {self.expected}, but {self.found} was predicted"


def differences(
    read: Thunks, predicted: Thunks, names: Mapping[int, str] | None = None
) -> tuple[ThunkDifference, ...]:
    """Returns the differences between a thunk file of XLA and a prediction, in the order of the file; empty if they
    agree.

    Compares kinds, numbers, nesting, where buffers are known the nearest conflicting thunks, and names where the file
    or `names` (by number, from `thunk_metadata.txt`) gives them. After the first thunk without counterpart, the rest is
    not compared.
    """
    found: list[ThunkDifference] = []
    pairs = zip_longest(read.with_depth(), predicted.with_depth())
    for place, (theirs, ours) in enumerate(pairs):
        if theirs is None or ours is None:
            thunk = (theirs or ours or (0, None, None))[2]
            text = described(thunk) if thunk is not None else ""
            what, expected, ours_text = ("missing", text, "") if ours is None else ("surplus", "", text)
            found.append(ThunkDifference(place=place, what=what, expected=expected, found=ours_text))
            break
        clash = next(_clashes(place, theirs, ours), None)
        if clash is not None:
            found.append(clash)
            break
        found += _details(
            place, theirs[2], ours[2], names or {}, has_neighbours=_has_neighbours(read, predicted)
        )
    return tuple(found)


def _has_neighbours(read: Thunks, predicted: Thunks) -> bool:
    known = predicted.buffers is not None and predicted.buffers.is_known
    return known and read.shows_neighbours


def _clashes(
    place: int, theirs: tuple[int, str | None, Thunk], ours: tuple[int, str | None, Thunk]
) -> Iterator[ThunkDifference]:
    for what, a, b in (
        ("kind", theirs[2].kind, ours[2].kind),
        ("nesting", f"level {theirs[0]}", f"level {ours[0]}"),
        ("number", str(theirs[2].number), str(ours[2].number)),
    ):
        if a != b and not (what == "number" and None in (theirs[2].number, ours[2].number)):
            yield ThunkDifference(
                place=place, what=what, expected=_full(a, what, theirs[2]), found=_full(b, what, ours[2])
            )


def _full(text: str, what: str, thunk: Thunk) -> str:
    return described(thunk) if what == "kind" else text


def _details(
    place: int, theirs: Thunk, ours: Thunk, names: Mapping[int, str], *, has_neighbours: bool
) -> Iterator[ThunkDifference]:
    name = theirs.name or (names.get(theirs.number) if theirs.number else None)
    if name is not None and ours.kind not in MADE_BY_PASSES and name != ours.name:
        yield ThunkDifference(place=place, what="name", expected=name, found=str(ours.name))
    for what in ("target", "trip_count"):
        if what in theirs.facts and what in ours.facts and theirs.facts[what] != ours.facts[what]:
            yield ThunkDifference(
                place=place, what=what, expected=str(theirs.facts[what]), found=str(ours.facts[what])
            )
    if has_neighbours:
        for what, shown, mine in (
            ("previous", theirs.shown_previous, ours.previous),
            ("next", theirs.shown_next, ours.next),
        ):
            number = mine.number if mine is not None else None
            if shown != number and ours.number is not None:
                yield ThunkDifference(place=place, what=what, expected=str(shown), found=str(number))


def described(thunk: Thunk) -> str:
    """Returns kind, number and name of a thunk, as far as known."""
    return " ".join(str(part) for part in (thunk.kind, thunk.number, thunk.name) if part not in (None, ""))
