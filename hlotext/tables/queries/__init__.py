"""Built-in queries, one per file `NAME.sql`.

The first comment of a file describes the query. The following comments give its parameters with default values:
`-- $opcode = all-gather: which opcode`.
"""

from __future__ import annotations

import re
from pathlib import Path

import attrs

from hlotext.ir.caches import lazy_regex
from hlotext.ir.spelling import did_you_mean

FOLDER = Path(__file__).parent
_PARAMETER = lazy_regex(r"-- \$(?P<name>\w+) = (?P<default>\S*): (?P<doc>.*)")


@attrs.frozen
class Parameter:
    """A parameter of a query."""

    name: str
    default: str | None
    """None for nothing, which is SQL's null."""
    doc: str


@attrs.frozen
class Query:
    """A predefined query."""

    name: str
    title: str
    """Question that it answers."""
    parameters: tuple[Parameter, ...]
    sql: str


def names() -> list[str]:
    """Returns the names of the predefined queries."""
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


def query(name: str) -> Query:
    """Returns a predefined query. Raises LookupError for an unknown name."""
    path = FOLDER / f"{name}.sql"
    if not re.fullmatch(r"[\w-]+", name) or not path.is_file():
        meant = did_you_mean(name, names()) or f"there are {', '.join(names())}"
        raise LookupError(f"no predefined query {name!r}; {meant}")
    text = path.read_text("utf-8")
    head = [line for line in text.splitlines() if line.startswith("--")]
    found = [match for line in head[1:] if (match := _PARAMETER().fullmatch(line))]
    parameters = tuple(Parameter(one["name"], one["default"] or None, one["doc"]) for one in found)
    return Query(name, head[0].removeprefix("--").strip(), parameters, text)
