"""Rows of tables for tests and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from hlotext.findings import escape


class Rows(Sequence[Mapping[str, Any]]):
    """Rows as mappings from column to value, displayed as a table and accepted by `pandas.DataFrame`."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = tuple(dict(row) for row in rows)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self._rows:
            return "no rows"
        lines = [list(self._rows[0]), *([_cell(value) for value in row.values()] for row in self._rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def _cell(value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return escape.line(f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
