"""Measured agreement of answers with XLA: the table of the documentation and of reports.

`python -m tests.accuracy` makes it from what the acceptance checks print.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "assets" / "accuracy.json"


class Row(NamedTuple):
    """Accuracy of one answer on one platform, compared with one release of XLA."""

    answer: str
    platform: str
    """`cpu`, `gpu`, `tpu`; `all` for what was measured on all together."""
    release: str
    """Release of jaxlib."""
    right: int
    """Number of answers that agree with XLA's."""
    of: int
    """Number of answers compared."""

    @property
    def share(self) -> str:
        """Percentage that agrees with XLA's, and the number compared."""
        text = "100" if self.right == self.of else f"{min(100 * self.right / self.of, 99.9):.1f}"
        return f"{text}% of {self.of:,}"

    @property
    def anchor(self) -> str:
        """HTML anchor of the answer's row."""
        return anchor(self.answer)


def rows() -> tuple[Row, ...]:
    """Returns all measurements, by answer, platform and release; none if the file is missing."""
    if not FILE.exists():
        return ()
    return tuple(Row(*row) for row in json.loads(FILE.read_text(encoding="utf-8")))


def anchor(answer: str) -> str:
    """Returns the HTML anchor of an answer's row."""
    return "accuracy-" + "".join(c if c.isalnum() else "-" for c in answer.lower()).replace("--", "-")


def table(found: Iterable[Row]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns column titles and rows of a table, with a row per answer and platform and a column per release."""
    listed = tuple(found)
    releases = sorted({row.release for row in listed}, key=lambda name: tuple(map(int, name.split("."))))
    cells = {(row.answer, row.platform, row.release): row for row in listed}
    lines = []
    for answer, platform in dict.fromkeys((row.answer, row.platform) for row in listed):
        shares = (cells.get((answer, platform, release)) for release in releases)
        lines.append((answer, platform, *(_share(row) for row in shares)))
    return ("answer", "platform", *(f"jaxlib {release}" for release in releases)), lines


def measured(answers: Iterable[str], platforms: Iterable[str | None]) -> tuple[Row, ...]:
    """Returns the measurements of these answers on these platforms or on all together, the newest release first."""
    wanted, places = set(answers), {*platforms, "all"}
    found = [row for row in rows() if row.answer in wanted and row.platform in places]
    return tuple(sorted(found, key=lambda row: tuple(map(int, row.release.split("."))), reverse=True))


def _share(row: Row | None) -> str:
    if row is None:
        return "-"
    return row.share
