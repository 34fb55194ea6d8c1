"""Errors of DuckDB as one short sentence: the word of the query that is wrong, and the name or form to write."""

from __future__ import annotations

import itertools
import re
from typing import Any

from hlotext.ir.caches import lazy_regex
from hlotext.ir.spelling import did_you_mean
from hlotext.tables.schema import TABLES

_FIRST = "operations"
"""The view that most questions are about."""
_NO_TABLE = lazy_regex(r"Table with name (\S+) does not exist")
_NO_COLUMN = lazy_regex(r"(?:Referenced|does not have a) column (?:named )?\"([^\"]+)\"")
_NO_FUNCTION = lazy_regex(r"Function with name (\S+) does not exist")
_UNKNOWN_PARAMETERS = lazy_regex(
    r"Values were not provided for the following (?:prepared statement )?parameters: (.*)"
)
_UNGROUPED = lazy_regex(r"column \"([^\"]+)\" must appear in the GROUP BY clause")
_FILE = lazy_regex(r"Cannot access (?:file|directory) \"([^\"]*)\"|file system operations are disabled")
_SYNTAX = lazy_regex(r"syntax error at or near \"([^\"]+)\"")
_KIND = lazy_regex(r"\A(?:[A-Z]\w+ )+Error: ")
_COLUMNS = "select table_name, column_name from information_schema.columns order by all"
_FUNCTIONS = "select distinct function_name from duckdb_functions()"
_WORDS = (
    "select", "from", "where", "group", "by", "order", "having", "limit", "offset", "join", "left", "inner",
    "on", "using", "as", "and", "or", "not", "in", "like", "is", "null", "case", "when", "then", "else",
    "end", "distinct", "with", "union", "all", "asc", "desc", "between", "cast", "describe", "summarize",
    "qualify",
)  # fmt: skip
_READ = lazy_regex(r"\b(?:from|join|describe|summarize|table|pivot)\s+\"?(\w+)", re.IGNORECASE)
"""A table that a query reads; not every form of it."""


def read_tables(query: str) -> set[str]:
    """Returns the tables that a query names after `from` and the like, in lower case."""
    return {name.lower() for name in _READ().findall(query)}


def explained(error: Exception, query: str, connection: Any = None) -> str:
    """Returns the message for a DuckDB error; with a connection, it suggests names from its tables."""
    message = str(error).partition("\n\nStack Trace")[0]
    if (column := _NO_COLUMN().search(message)) is not None and connection is not None:
        return _no_column(column[1], query, connection)
    if (table := _NO_TABLE().search(message)) is not None and connection is not None:
        names = sorted(_columns(connection), key=lambda name: name != _FIRST)
        word = table[1].strip('"')
        return f"there is no table {word}; {did_you_mean(word, names) or 'there are ' + ', '.join(names)}"
    if (function := _NO_FUNCTION().search(message)) is not None and connection is not None:
        known = [name for (name,) in connection.execute(_FUNCTIONS).fetchall()]
        meant = did_you_mean(function[1], known)
        return f"there is no function {function[1]}" + (f"; {meant}" if meant else "")
    if (parameters := _UNKNOWN_PARAMETERS().search(message)) is not None:
        names = [name.strip() for name in parameters[1].split(",")]
        return f"${names[0]} has no value; set it with -p {names[0]}=VALUE"
    if (ungrouped := _UNGROUPED().search(message)) is not None:
        name = ungrouped[1]
        return f"{name} is neither grouped nor aggregated; write `group by {name}`, or any_value({name})"
    if _FILE().search(message) is not None:
        return "a query cannot read or write files; it reads the tables of DATASET|FILE|DIR, such as `operations`"
    said = _KIND().sub("", _with_place(message)).partition(" Candidate functions:")[0]
    said = said.partition("\n\tCandidate functions")[0].partition("\nCandidate")[0]
    if (syntax := _SYNTAX().search(message)) is not None:
        meant = "" if syntax[1].lower() in _WORDS else did_you_mean(syntax[1].lower(), _WORDS)
        return said + (f"; {meant}" if meant else "")
    return said


def _no_column(word: str, query: str, connection: Any) -> str:
    """The answer to a column that no table of the query has; a word that is compared may be a string."""
    said = f"no column is named {word}"
    quoted = re.escape(word)
    if re.search(rf'(?:=|>|\blike|\bin\s*\()\s*"{quoted}"', query, re.IGNORECASE) is not None:
        return f"{said}; strings take single quotes: '{word}'"
    columns = _columns(connection)
    asked = read_tables(query)
    own = [name for table in asked for name in columns.get(table, ())]
    having = sorted((name for name in columns if word in columns[name]), key=lambda name: name != _FIRST)
    begun = [f"`{name}`" for name in own if len(word) >= _LONG and name.startswith(word[:-1])]
    near = did_you_mean(word, own) or (f"did you mean {' or '.join(begun[:_MOST])}?" if begun else "")
    if having:
        return f"{said} here; {word} is a column of {', '.join(having)}"
    if not near and re.search(rf"(?:=|<>|\blike|\bin\s*\()\s*{quoted}\b", query, re.IGNORECASE) is not None:
        return f"{said}; strings take single quotes: '{word}'"
    table = next((name for name in asked if name in columns), _FIRST)
    every = {name for names in columns.values() for name in names}
    return f"{said}; {near or _by_words(word) or did_you_mean(word, every) or f'`describe {table}` lists the columns'}"


def _columns(connection: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, column in connection.execute(_COLUMNS).fetchall():
        found.setdefault(table, []).append(column)
    return found


_LONG = 4
"""Letters of a word whose beginning says enough."""
_MOST = 3
"""Columns that a message suggests."""
_LETTERS = lazy_regex(r"[a-z]+")


def _by_words(word: str) -> str:
    """The columns whose name and description have every word of a name, in whatever form: `sent_bytes` is `wire_bytes`."""
    asked = _LETTERS().findall(word.lower())
    found = [
        f"`{table.name}.{one.name}`"
        for table in TABLES.values()
        for one in table.columns
        for own in [_LETTERS().findall(f"{one.name} {one.doc}".lower())]
        if asked and all(any(_is_form(each, other) for other in own) for each in asked)
    ]
    return f"did you mean {' or '.join(found[:_MOST])}?" if found else ""


def _is_form(one: str, other: str) -> bool:
    """True for forms of one word: they differ in their endings, as sent and sends."""
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return one == other or (same >= 3 and same >= max(len(one), len(other)) - 2)


def _with_place(text: str) -> str:
    """The message on one line, with line and column instead of a caret."""
    place = re.search(r"\n+LINE (\d+): .*\n( *)\^+\s*$", text)
    if place is None:
        return text
    column = len(place[2]) - len(f"LINE {place[1]}: ") + 1
    return f"{text[: place.start()]} (line {place[1]}, column {column})"
