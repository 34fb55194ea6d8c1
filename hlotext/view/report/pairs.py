"""The sections of two modules as pairs: what both say stands once, and each chart and table beside its other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import attrs

from hlotext.view.report.parts import Chart, PageTable, Section


class _Named(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_Named)


@attrs.frozen
class SectionPair:
    """The same section of both sides; None for a side that lacks it."""

    sections: tuple[Section | None, Section | None]

    @property
    def lead(self) -> str:
        """The introduction, if it is the same or only one side has one; else empty, and each side has its own."""
        leads = {one.lead for one in self._given}
        return leads.pop() if len(leads) == 1 else ""

    @property
    def has_sides(self) -> bool:
        """True if there is text specific to a side before charts and tables."""
        return not self.lead or None in self.sections or any(one.facts for one in self._given)

    @property
    def charts(self) -> Iterator[tuple[Chart | None, Chart | None]]:
        """Charts of both sides, paired by id."""
        return _paired(*((one.charts if one is not None else ()) for one in self.sections))

    @property
    def tables(self) -> Iterator[tuple[PageTable | None, PageTable | None]]:
        """Tables of both sides, paired by id."""
        return _paired(*((one.tables if one is not None else ()) for one in self.sections))

    @property
    def notes(self) -> Sequence[tuple[str, str]]:
        """Notes, each with its side: `a`, `b`, or empty for both."""
        own = [list(one.notes) if one is not None else [] for one in self.sections]
        both = [note for note in own[0] if note in own[1]]
        apart = [
            (key, note) for key, notes in zip("ab", own, strict=True) for note in notes if note not in both
        ]
        return [*(("", note) for note in both), *apart]

    @property
    def _given(self) -> list[Section]:
        return [one for one in self.sections if one is not None]


def _paired(before: Iterable[T], after: Iterable[T]) -> Iterator[tuple[T | None, T | None]]:
    first, second = ({one.id: one for one in side} for side in (before, after))
    yield from ((first.get(id), second.get(id)) for id in dict.fromkeys((*first, *second)))
