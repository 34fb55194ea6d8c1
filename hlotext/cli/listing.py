"""The tables of commands, as text and as JSON from the same rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from hlotext.cli.output import Kind, TerminalColumn, TerminalTable
from hlotext.cli.table_options import asked, number_of
from hlotext.schemas import columns as described

T = TypeVar("T")
Shown = described.Shown
Row = Sequence[described.Cell]


def _sortable(cell: described.Cell) -> Any:
    if not isinstance(cell, Shown):
        return cell
    return cell.value if isinstance(cell.value, int | float) else number_of(cell.text)


@attrs.frozen
class Listing(Generic[T]):
    """A table whose columns are described by `hlotext.schemas.columns`.

    `row` returns the cells of an item; None: the columns' keys are attribute paths.
    """

    name: str
    row: Callable[[T], Row] | None = None
    titles: Mapping[str, str] = attrs.field(factory=dict)
    """Other titles of columns, by the described ones."""

    def _cells(self, thing: T) -> Row:
        if self.row is not None:
            return self.row(thing)
        return [column.of(thing) for column in described.columns(self.name)]

    def table(
        self,
        title: str,
        things: Sequence[T],
        limit: int | None = 0,
        *,
        without: Collection[str] = (),
    ) -> TerminalTable:
        """Returns the items as a text table with the first `limit` rows; all for 0 or None.

        `without` are titles of columns to leave out.
        """
        columns = described.columns(self.name)
        places = [n for n, one in enumerate(columns) if one.title is not None and one.title not in without]
        places.sort(key=lambda n: columns[n].options.get("order", 0))
        options = asked()
        names = [(self.titles.get(one.title or "", one.title or ""), one.key) for one in columns]
        chosen = options.chosen(names)
        place = options.sort_column(names)
        if place is not None:
            things = options.in_order(things, lambda thing: _sortable(self._cells(thing)[place]))
        if chosen is not None:
            places = chosen
        shown = things[: limit or None] if places else ()
        rows = [[columns[n].text(row[n]) for n in places] for row in map(self._cells, shown)]
        used = [
            place
            for place, n in enumerate(places)
            if chosen is not None or not columns[n].options.get("optional") or any(row[place] for row in rows)
        ]
        return TerminalTable(
            title,
            [self._terminal(columns[places[place]]) for place in used],
            [[row[place] for place in used] for row in rows],
            len(things) - len(shown),
            is_arranged=True,
        )

    def json(self, things: Iterable[T]) -> list[dict[str, Any]]:
        """Returns the items as JSON objects."""
        columns = described.columns(self.name)
        return [described.record(columns, self._cells(one)) for one in things]

    def _terminal(self, column: described.Column) -> TerminalColumn:
        title = column.title or column.key
        kind = (
            None
            if column.is_number or column.kind in ("", "text", "flag", "list", "index")
            else Kind(column.kind)
        )
        rank = column.options.get("rank")
        return TerminalColumn(
            self.titles.get(title, title),
            column.options.get("style", ""),
            column.is_number,
            kind,
            int(rank) if rank is not None else None,
            int(column.options.get("least", 0)),
        )
