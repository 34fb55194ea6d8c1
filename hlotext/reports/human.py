"""Reports for people: the line of the source with a caret, in colour on a terminal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.reports.entry import Entry

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_LINE = re.compile(r"(?P<gutter>  +\d* ?\| )(?P<rest>.*)")


def caret(entry: Entry) -> str:
    """The report of one finding as plain text, several lines."""
    place = f"{entry.file}:{entry.line}:{entry.column}"
    return escape.lines(entry.text or f"{place}: {entry.severity.value}[{entry.code}]: {entry.message}")


def rich_caret(entry: Entry) -> Text:
    """The same, coloured: severity, place, caret and help."""
    from rich.text import Text

    style = _STYLES[entry.severity]
    mark = f"{entry.severity.value}[{entry.code}]"
    first, *others = caret(entry).split("\n")
    place, found, message = first.partition(mark)
    text = Text.assemble((place, "dim"), (mark, style), (message, "bold")) if found else Text(first, "bold")
    for line in others:
        match = _LINE.fullmatch(line)
        if match is not None:
            is_caret = not match["rest"].strip("^ ")
            text.append(f"\n{match['gutter']}", "dim")
            text.append(match["rest"], style if is_caret else "")
        elif line.startswith("  help: "):
            text.append("\n  help: ", "green")
            text.append(line.removeprefix("  help: "))
        else:
            text.append(f"\n{line}", "dim")
    return text


def summary(entries: Iterable[Entry], files: int) -> str:
    """One line that counts: `2 errors, 1 note in 3 files`."""
    counts = Counter(entry.severity for entry in entries)
    parts = [_plural(counts[severity], severity.value) for severity in Severity if counts[severity]]
    return f"{', '.join(parts) or 'nothing found'} in {_plural(files, 'file')}"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
