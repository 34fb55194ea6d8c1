"""`hlotext sql`: questions to the tables of modules, in SQL."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from hlotext import tables
from hlotext.analysis.formatting import pluralize
from hlotext.cli import UNREADABLE
from hlotext.cli.common import Unreadable, say, terminable, which_option, write_file
from hlotext.cli.json_output import json_text
from hlotext.cli.output import (
    Kind,
    TerminalColumn,
    TerminalTable,
    WorkBar,
    emit,
    emit_report,
    output,
    printable,
)
from hlotext.cli.table import BUILD, JOBS
from hlotext.dumps.texts import Which
from hlotext.syntax.source.inputs import InputError
from hlotext.tables.errors import QueryError

if TYPE_CHECKING:
    from hlotext.tables.dataset import Dataset
    from hlotext.tables.sql import Result

_ROWS = 50
"""Rows that people are shown without asking for more."""


@click.command()
@click.argument("words", nargs=-1, metavar="[QUERY] DATASET|FILE|DIR|URL...")
@click.option("-q", "--query", "name", metavar="NAME", help="Predefined query to run.")
@click.option("--list", "is_list", is_flag=True, help="List the predefined queries, then exit.")
@click.option("--show", is_flag=True, help="Print the SQL of the predefined query, then exit.")
@click.option(
    "-p", "--param", "given", multiple=True, metavar="NAME=VALUE", help="Value of $NAME in the query."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "csv", "json", "parquet"]),
    default="text",
    show_default=True,
    help="Output format. Text may change between releases; use json in scripts.",
)
@click.option("-o", "--output", "place", metavar="FILE", help="Output file.  [default: standard output]")
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(min=1),
    default=_ROWS,
    show_default=True,
    help="Maximum number of rows in text output.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time limit.",
)
@click.option("--memory", metavar="SIZE", help="Memory limit: 4GB.  [default: 80% of memory]")
@BUILD
@which_option("last")
@JOBS
def command(
    words: tuple[str, ...],
    name: str | None,
    is_list: bool,
    show: bool,
    given: tuple[str, ...],
    output_format: str,
    place: str | None,
    rows: int,
    timeout: float | None,
    memory: str | None,
    build: str | None,
    which: Which,
    jobs: int | None,
) -> None:
    """Run a QUERY over the tables of a dataset, or of modules read on the fly: `operations`, `instructions`,
    `modules` and others (docs/tables.md).

    `operations` has the cost of each operation in one run: `flops`, `bytes_accessed`, minimum `seconds`. `bytes` is the
    size of a result (for a tuple or loop, of all its arrays); `written_bytes` counts the bytes that the instruction
    itself writes.

    DuckDB runs it without access to files, network or settings, so untrusted queries are safe.
    `newest()` and `before(build)` return builds, which are ordered by name. Needs the extra `hlotext[sql]`.

    \b
    Examples:
      hlotext sql --list
      hlotext sql --query bytes-by-opcode tables/
      hlotext sql --query since -p opcode=all-gather s3://bucket/tables
      hlotext sql "select name, bytes_accessed, line from operations order by 2 desc" dump/
      hlotext sql "select opcode, count(*) from instructions group by all" dump/
      hlotext sql --query appeared tables/ --format csv -o appeared.csv

    Exit status: 0 success, 2 usage error, invalid query, or unreadable input.
    """
    if is_list:
        _list(output_format)
        return
    try:
        ready = None if name is None else tables.queries.query(name)
    except LookupError as error:
        raise click.UsageError(str(error.args[0])) from None
    if show:
        if ready is None:
            raise click.UsageError("--show needs --query NAME")
        emit(ready.sql)
        return
    if ready is None and not words:
        raise click.UsageError("missing query: SQL in quotes, or --query NAME (see --list)")
    if ready is None and os.path.exists(words[0]):
        raise click.UsageError(f'QUERY comes first: hlotext sql "select ..." {words[0]}')
    if ready is None and len(words) > 2 and words[0].isalpha():  # no query is one word
        raise click.UsageError(f'the query goes in quotes: hlotext sql "{words[0]} ..." {words[-1]}')
    if ready is None and words[0].replace("-", "").replace("_", "").isalpha():
        is_ready = words[0] in tables.queries.names()
        more = f"give a ready query with --query {words[0]}" if is_ready else "--list shows ready queries"
        raise click.UsageError(f"{words[0]} is not SQL; {more}")
    text, places = (ready.sql, words) if ready is not None else (words[0], words[1:])
    if not places:
        query = f"--query {ready.name}" if ready is not None else shlex.quote(text)
        raise click.UsageError(f"missing argument DATASET|FILE|DIR: `hlotext sql {query} FILE`")
    if output_format == "parquet" and place is None:
        raise click.UsageError("parquet needs -o FILE")
    parameters = {one.name: one.default for one in ready.parameters} if ready is not None else {}
    parameters |= _parameters(given, None if ready is None else set(parameters))
    title = ""
    try:
        tables.sql.check_installed()
        tables.sql.check_syntax(text)
        with terminable(), ExitStack() as stack:
            dataset, has_failed = _dataset(places, text, build, which, jobs, stack)
            if ready is not None:
                tables.asked.check_parameters(ready, dataset, parameters)
                title = _title(ready, dataset, parameters)
                _say_unread(tables.asked.unread(ready, dataset, parameters), parameters)
            result = tables.sql.run(text, dataset, parameters, timeout=timeout, memory=memory)
            defaults = [] if ready is None else [p for p in ready.parameters if p.default is not None]
            taken = {p.name: parameters.get(p.name) for p in defaults}
            _write(result, output_format, place, rows, title, taken)
            if result.lacking:
                tell = "table was" if len(result.lacking) == 1 else "tables were"
                say(
                    f"{', '.join(result.lacking)}: {tell} not built for all modules, so rows and columns are missing; to "
                    f"build: hlotext table INPUTS -o {places[0]} --append --tables {','.join(result.lacking)}"
                )
    except QueryError as error:
        raise click.UsageError(f"query error: {error}") from None
    except (InputError, ImportError) as error:
        raise Unreadable(str(error)) from None
    if has_failed:
        raise click.exceptions.Exit(UNREADABLE)


def _title(ready: tables.queries.Query, dataset: Dataset, parameters: Mapping[str, Any]) -> str:
    """The title of a query's answer with the builds that it is about; the others are said."""
    read, others = tables.asked.builds(ready, dataset, parameters)
    if others and parameters["build"] is None:
        listed = ", ".join(others[:3]) + (f" and {len(others) - 3:,} more" if len(others) > 3 else "")
        say(f"builds not shown: {listed} (-p build=NAME selects one)")
    return f"{ready.title} ({' against '.join(read)})" if read else ready.title


def _say_unread(unread: Sequence[tuple[str, str]], parameters: Mapping[str, Any]) -> None:
    """That inputs of the builds in question could not be read, so that their modules are missing or older."""
    for build in dict.fromkeys(build for build, _ in unread):
        paths = [path for other, path in unread if other == build]
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")
        what = "compared as of the last readable build" if "old" in parameters else "not counted"
        say(f"build {build}: {shown} could not be read; their modules are {what}")


def _list(output_format: str) -> None:
    """Lists the ready-made queries."""
    found = [tables.queries.query(name) for name in tables.queries.names()]
    if output_format == "json":
        emit_report(
            json_text(
                {
                    "queries": [
                        {
                            "name": one.name,
                            "title": one.title,
                            "parameters": {
                                p.name: {"default": p.default, "doc": p.doc} for p in one.parameters
                            },
                        }
                        for one in found
                    ]
                }
            )
        )
        return
    columns = [
        TerminalColumn("name", "bold"),
        TerminalColumn("answers", kind=Kind.PROSE),
        TerminalColumn("parameters", kind=Kind.PROSE),
    ]
    cells = [
        (
            one.name,
            one.title,
            ", ".join(p.name + (f"={p.default}" if p.default is not None else "") for p in one.parameters),
        )
        for one in found
    ]
    output().table(
        TerminalTable(
            "Predefined queries: hlotext sql --query NAME [-p PARAMETER=VALUE] DATASET", columns, cells
        )
    )


def _parameters(given: Sequence[str], known: set[str] | None) -> dict[str, str]:
    """The parameters of the command line. Raises UsageError for what is none."""
    found = {}
    for one in given:
        name, mark, value = one.partition("=")
        if not mark:
            raise click.UsageError(f"-p takes NAME=VALUE, not {one}")
        if known is not None and name not in known:
            raise click.UsageError(f"the query has no parameter {name}; it has {', '.join(known) or 'none'}")
        found[name] = value
    return found


def _dataset(
    places: Sequence[str], query: str, build: str | None, which: Which, jobs: int | None, stack: ExitStack
) -> tuple[Dataset, bool]:
    """The dataset that is asked, and whether an input could not be read. Of modules one is made, that goes with `stack`."""
    if len(places) == 1 and tables.dataset.is_dataset(places[0]):
        return tables.dataset.Dataset.of(places[0]), False
    wanted = tables.sql.used_tables(query)
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hlotext-"))
    planned = tables.batch.plan(
        tables.batch_inputs.find_inputs(places, build=build, which=which), folder, wanted
    )
    has_failed = False
    with WorkBar("reading", len(planned.todo)) as bar:
        for status in bar.each(tables.batch.run(planned, jobs=jobs or os.cpu_count() or 1)):
            if status.status != "ok":
                has_failed = True
                Unreadable(status.error, where={"file": status.input.path}).show()
    return planned.dataset, has_failed


# ---- what comes of it


def _write(
    result: Result, output_format: str, place: str | None, rows: int, title: str, taken: Mapping[str, Any]
) -> None:
    if output_format == "parquet":
        assert place is not None
        _to_file(place, bytes(tables.parquet.encoded(result.arrow)))
        return
    if output_format == "text":
        found = result.rows()
        if place is None:
            if not found:
                given = ", ".join(f"{name}={value}" for name, value in taken.items())
                say(f"no rows for {given}; -p NAME=VALUE sets another value" if given else "no rows")
                return
            _show(result, found[:rows], len(found) - rows, title or pluralize(len(found), "row"))
            return
        raise click.UsageError("text output cannot be written with -o; use csv, json or parquet")
    text = _csv(result, is_shown=place is None) if output_format == "csv" else _json(result) + "\n"
    if place is not None:
        _to_file(place, text.encode("utf-8", "surrogateescape"))
    elif output_format == "csv":
        emit(text)
    else:
        emit_report(text)


def _to_file(place: str, data: bytes) -> None:
    write_file(place, data)
    say(f"wrote {place}, {len(data) / 1e6:.1f} MB")


def _show(result: Result, rows: Sequence[Sequence[Any]], left_out: int, title: str) -> None:
    if not rows:
        say("no rows")
        return
    columns = [
        TerminalColumn(title, is_number=is_number)
        for title, is_number in zip(result.columns, result.is_number, strict=True)
    ]
    cells = [
        [
            _cell(value, is_number and title not in _NO_QUANTITIES)
            for value, is_number, title in zip(row, result.is_number, result.columns, strict=True)
        ]
        for row in rows
    ]
    output().table(TerminalTable(title, columns, cells, max(left_out, 0)))


_NO_QUANTITIES = frozenset({"line", "id", "text_line", "step", "ordinal"})
"""Columns of numbers that are names: nothing parts their thousands."""


_EXACT = 2**53
"""Whole numbers below it are exact as floats."""


def _cell(value: Any, is_quantity: bool) -> str:
    if value is None:
        return ""
    if is_quantity and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        if not isinstance(value, float):
            return f"{value:,}"
        return f"{value:,.0f}" if value.is_integer() and abs(value) < _EXACT else f"{value:,.6g}"
    return value if isinstance(value, str) else _word(_plain(value))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv(result: Result, is_shown: bool) -> str:
    """By RFC 4180, but with the line ends of this system's files; lists as JSON. What is shown may be a log, in which no text
    acts; in a file texts stand as they are, but for those that a spreadsheet would run, which begin with `'`."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(map(_inert, result.columns))
    for row in result.rows():
        plain = map(_plain, row)
        words = ["" if one is None else _inert(one) if isinstance(one, str) else _word(one) for one in plain]
        writer.writerow([printable(word) for word in words] if is_shown else words)
    return file.getvalue()


def _inert(text: str) -> str:
    """The text, which no spreadsheet takes for a formula: https://owasp.org/www-community/attacks/CSV_Injection."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _json(result: Result) -> str:
    columns = [{"name": name, "type": kind} for name, kind in zip(result.columns, result.types, strict=True)]
    return json_text({"columns": columns, "rows": [[_plain(one) for one in row] for row in result.rows()]})


def _plain(value: Any) -> Any:
    """A value as JSON has it: numbers that are none are null, what JSON does not know is a string."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
