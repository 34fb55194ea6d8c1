"""Pages read back: what stands in their tables and in the packed data of their charts."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Iterator
from typing import Any

import attrs

from hlotext.view.page.packing import unpacked

Cell = str | float | None


@attrs.define
class PageTable:
    """A table of a page: the keys of its columns, and rows of numbers (exact ones) and texts."""

    keys: list[str] = attrs.field(factory=list)
    rows: list[list[Cell]] = attrs.field(factory=list)
    feet: list[list[Cell]] = attrs.field(factory=list)
    """Rows below the others."""

    def records(self) -> list[dict[str, Cell]]:
        """The rows by key."""
        return [dict(zip(self.keys, row, strict=True)) for row in self.rows]


@attrs.define
class Page(html.parser.HTMLParser):
    """What a page consists of, as a browser reads it."""

    text: str
    tables: dict[str, PageTable] = attrs.field(factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = attrs.field(factory=list)
    _table: PageTable | None = None
    _cell: list[str] | None = None
    _value: float | None = None
    _is_number: bool = False
    _is_foot: bool = False
    _full: str | None = None

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def __attrs_post_init__(self) -> None:
        self.feed(self.text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.tags.append((tag, found))
        if tag == "table" and found.get("id"):
            self._table = self.tables[str(found["id"])] = PageTable()
        elif tag == "th" and self._table is not None and "data-key" in found:
            self._table.keys.append(str(found["data-key"]))
        elif tag == "tfoot":
            self._is_foot = True
        elif tag == "tr" and self._table is not None:
            (self._table.feet if self._is_foot else self._table.rows).append([])
        elif tag == "td" or (tag == "th" and found.get("scope") == "row"):
            value = found.get("data-v")
            self._value = float(value) if value is not None else None
            self._is_number = str(found.get("class") or "").split(" ")[0] == "n"
            self._full = found.get("data-full") or found.get("data-name")
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._table is not None and self._cell is not None:
            cell = self._value if self._is_number else self._full or "".join(self._cell)
            (self._table.feet if self._is_foot else self._table.rows)[-1].append(cell)
            self._cell = None
        elif tag == "tfoot":
            self._is_foot = False
        elif tag == "table" and self._table is not None:
            self._table.rows = [row for row in self._table.rows if row]
            self._table = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def charts(self) -> Iterator[tuple[str, Any]]:
        """The packed data of each chart by the name of its figure."""
        names = [
            str(found["id"])
            for tag, found in self.tags
            if tag == "figure" and found.get("class") == "chart" and "id" in found
        ]
        blobs = re.findall(
            r'<script type="application/octet-stream" class="data">([^<]*)</script>', self.text
        )
        for name, blob in zip(names, blobs, strict=True):
            yield name, unpacked(blob)
