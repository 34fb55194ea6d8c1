"""Finds the item that makes a command fail: by bisection, as `git bisect run` does, then sets of several."""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

T = TypeVar("T")


class Verdict(enum.Enum):
    """Verdict of one run of the command, by its exit status."""

    GOOD = "good"
    """0."""
    BAD = "bad"
    """1 to 124, 126, 127, and a signal."""
    SKIP = "skip"
    """125: unknown, because compilation failed."""

    @classmethod
    def of(cls, status: int) -> Verdict:
        """Returns the verdict of an exit status; a negative status is a signal, as in `subprocess`."""
        return cls.GOOD if status == 0 else cls.SKIP if status == 125 else cls.BAD


@attrs.frozen
class Narrowed:
    """A smallest set, and how it was found."""

    chosen: tuple[int, ...]
    """Numbers of its members: without any one of them the verdict changes or is unknown."""
    tests: int
    skipped: int
    """Runs with unknown verdict; the set may be larger than necessary."""


def smallest(count: int, verdict: Callable[[tuple[int, ...]], Verdict], wanted: Verdict) -> Narrowed:
    """Finds a minimal subset of `count` items that yields a verdict which the empty set does not, with Zeller's ddmin.

    Zeller's ddmin: halves, then their complements, then ever smaller parts; what was tried is not tried again.

    Args:
        count: Number of items; all of them together yield the wanted verdict.
        verdict: Verdict of a set.
        wanted: The verdict to look for.

    Returns:
        A set of which no part that was tried gives that verdict.

    >>> smallest(8, lambda some: Verdict.BAD if {2, 5} <= set(some) else Verdict.GOOD, Verdict.BAD).chosen
    (2, 5)
    """
    known: dict[tuple[int, ...], Verdict] = {}

    def is_it(some: tuple[int, ...]) -> bool:
        if some not in known:
            known[some] = verdict(some)
        return known[some] is wanted

    chosen = tuple(range(count))
    parts = 2
    while len(chosen) > 1:
        pieces = _cut(chosen, min(parts, len(chosen)))
        found = next((piece for piece in pieces if is_it(piece)), None)
        if found is not None:
            chosen, parts = found, 2
            continue
        rests = [tuple(one for one in chosen if one not in set(piece)) for piece in pieces]
        found = next((rest for rest in rests if is_it(rest)), None) if len(pieces) > 2 else None
        if found is not None:
            chosen, parts = found, max(parts - 1, 2)
        elif len(pieces) < len(chosen):
            parts = min(2 * parts, len(chosen))
        else:
            break
    return Narrowed(chosen, len(known), sum(one is Verdict.SKIP for one in known.values()))


def _cut(some: tuple[int, ...], parts: int) -> list[tuple[int, ...]]:
    ends = [len(some) * number // parts for number in range(parts + 1)]
    return [some[start:end] for start, end in itertools.pairwise(ends)]


@attrs.frozen
class FirstBad:
    """Between which neighbours things went bad."""

    good: int
    bad: int
    """The first bad item. Those between the two are unknown."""
    tests: int


def first_bad(things: Sequence[T], verdict: Callable[[T], Verdict]) -> FirstBad:
    """Finds the first bad item, by bisection, of a sequence that begins with a good one and ends with a bad one.

    Raises ValueError if the first is not good or the last not bad.

    >>> first_bad([1, 2, 3, 4, 5], lambda n: Verdict.BAD if n > 3 else Verdict.GOOD)
    FirstBad(good=2, bad=3, tests=4)
    """
    known: dict[int, Verdict] = {}

    def of(number: int) -> Verdict:
        if number not in known:
            known[number] = verdict(things[number])
        return known[number]

    good, bad = 0, len(things) - 1
    if of(good) is not Verdict.GOOD or of(bad) is not Verdict.BAD or good == bad:
        raise ValueError(
            f"the first is {of(good).value} and the last {of(bad).value}, but they must be good and bad"
        )
    while True:
        middle = (good + bad) // 2
        inside = sorted(
            (number for number in range(good + 1, bad) if known.get(number) is not Verdict.SKIP),
            key=lambda number: abs(number - middle),
        )
        if not inside:
            return FirstBad(good, bad, len(known))
        found = of(inside[0])
        if found is Verdict.GOOD:
            good = inside[0]
        elif found is Verdict.BAD:
            bad = inside[0]
