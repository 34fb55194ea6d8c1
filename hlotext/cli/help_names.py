"""`hlotext help NAME`: what a name means, over every kind of thing that has one."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence

import click

import hlotext as hlo
from hlotext import schemas
from hlotext.analysis import byte_text
from hlotext.analysis.chips import CHIPS
from hlotext.analysis.formatting import pluralize
from hlotext.cli import COMMANDS, CommandGroup, current
from hlotext.cli.command_line import options_of
from hlotext.cli.output import echo, output
from hlotext.ir.spelling import codes_meant, is_slip, nearest, slip_of, with_article
from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.rewrite.passes import all_passes
from hlotext.schemas import columns
from hlotext.tables import queries
from hlotext.tables.schema import TABLES

COMMAND = "command"
_COLUMN = "column"
_RULE = "rule"
_PAGES = frozenset({"opcode", "pass", _RULE})
"""Kinds with a page of their own, `hlotext help KIND NAME`."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explains a name: the page of the first kind that has it, then, of what is no command, what else it is."""
    name, *more = sorted(words, key=lambda word: word.startswith("-"))
    kinds = kinds_of(name)
    assert ctx.parent is not None
    listed = _kind_of_word(name)
    if listed and more:  # `help chip h100`
        name, more, kinds = more[0], more[1:], [listed] if listed in kinds_of(more[0]) else []
        if not kinds:
            every = f"`hlotext help {listed.replace(' ', '-')}s` lists all"
            ctx.parent.fail(f"no {listed} {name}; {meant(name) or every}")
    elif listed == COMMAND:
        click.echo(ctx.find_root().get_help())
        return
    elif listed:
        for kind in kinds:
            output().heading(f"{name} ({kind})")
            output().facts(_FACTS[kind](name))
        output().heading(f"{pluralize(len(_NAMES[listed]()), listed)}")
        echo(f"  {', '.join(_NAMES[listed]())}")
        return
    if not kinds:
        codes = _CODES if _CODE.fullmatch(name) else ""
        ctx.parent.fail(
            f"nothing is named {name!r}; {meant(name) or _option(name, ctx.find_root()) or codes or _ALL}"
        )
    if COMMAND in kinds:
        more = [word for word in more if not word.startswith("-")]
        _show_command(ctx, [*_command_names()[name].split(), *more])
    pages = [kind for kind in kinds if kind in _PAGES]
    if pages and COMMAND not in kinds:
        page: click.Command = importlib.import_module(f"hlotext.cli.help_{pages.pop(0)}").command
        with page.make_context(f"help {page.name}", list(words), parent=ctx.find_root()) as own:
            page.invoke(own)
    elif more and COMMAND not in kinds:
        ctx.parent.fail(f"too many arguments after {name}, {with_article(kinds[0])}: {' '.join(more)}")
    if more:
        return
    for kind in pages:
        click.echo(f"\n{name} is also {with_article(kind)}: hlotext help {kind} {name}")
    for kind in kinds:
        if kind in _FACTS and COMMAND not in kinds:
            output().heading(f"{name} ({kind})")
            output().facts(_FACTS[kind](name))


_CODES = "`hlotext help rule` lists the codes"
_ALL = "`hlotext help --help` lists the kinds of names"


def meant(word: str) -> str:
    """Returns a suggestion for a word that names something else or nearly names something; empty if there is none."""
    known = [name for kind, names in _NAMES.items() if kind not in (_COLUMN, _RULE) for name in names()]
    names = [word] if kinds_of(word) else codes_meant(word, _NAMES[_RULE]()) if _CODE.fullmatch(word) else []
    names = names or [one for one in nearest(word, known) if is_slip(word.lower(), one.lower())]
    names = names or slip_of(word, _NAMES[_COLUMN]())
    shown = " or ".join(f"`hlotext help {name}` ({kinds_of(name)[0]})" for name in dict.fromkeys(names))
    return f"did you mean {shown}?" if shown else ""


_CODE = re.compile(r"[A-Za-z][\dOIlo]{2,4}")
"""A code of a finding, or nearly one."""


def _kind_of_word(word: str) -> str:
    """The kind without a page that a word names, in the singular or plural: `chips`; empty for others."""
    plain = word.lower().replace("-", " ").replace("_", " ")
    plain = _OTHER_KINDS.get(plain, plain)
    kinds = [kind for kind in (*_FACTS, COMMAND) if kind != _COLUMN]
    return next((kind for kind in kinds if plain in (kind, f"{kind}s", f"{kind[:-1]}ies")), "")


_OTHER_KINDS = {
    "type": "element type",
    "types": "element type",
    "dtypes": "element type",
    "queries": "SQL query",
}


def _option(word: str, root: click.Context) -> str:
    """The commands that have an option of that name, as advice; empty if there are none."""
    group = root.command
    assert isinstance(group, click.Group)
    commands = ((name, group.get_command(root, name)) for name in COMMANDS)
    option = f"--{word.lstrip('-')}"
    having = [name for name, one in commands if one is not None and option in options_of(one)]
    shown = " or ".join(f"`hlotext help {name}` (its option {option})" for name in having[:_MOST_HAVING])
    return f"did you mean {shown}?" if having else ""


_MOST_HAVING = 2
"""Commands that are named for an option that several have."""


def has_page(word: str) -> bool:
    """True for a name with a help page of its own."""
    return not _PAGES.isdisjoint(kinds_of(word))


def kinds_of(word: str) -> list[str]:
    """Returns the kinds of things with a name, those with pages first."""
    return [kind for kind, names in _NAMES.items() if (word.upper() if kind == _RULE else word) in names()]


def _show_command(ctx: click.Context, path: Sequence[str]) -> None:
    """Prints the help of a command, or of one inside of it."""
    outer = ctx.find_root()
    found = outer.command
    for word in path:
        if not isinstance(found, click.Group):
            told = f"; {meant(word)}" if kinds_of(word) else ""
            outer.fail(f"{outer.command_path} has no command {word}{told}")
        inner = found.get_command(outer, word)
        if inner is None:
            outer.fail(
                found.unknown(outer, word) if isinstance(found, CommandGroup) else f"no command {word!r}"
            )
        found, outer = inner, click.Context(inner, info_name=word, parent=outer)
    click.echo(found.get_help(outer))


# ---- names


@functools.cache
def _command_names() -> dict[str, str]:
    """Commands, and those of `hlotext dump` by their last word, as they are typed."""
    dump = importlib.import_module("hlotext.cli.dump").command
    inner = {name: f"dump {name}" for name in dump.list_commands(click.Context(dump))}
    return {**inner, **{name: name for name in COMMANDS}}


@functools.cache
def _columns() -> dict[str, dict[str, list[str]]]:
    """Names of columns of text tables, by title and JSON field, with what they mean and the commands that show them."""
    meanings = schemas.fields()
    found: dict[str, dict[str, list[str]]] = {}
    for name in columns.commands():
        for column in (one for table in columns.tables(name).values() for one in table):
            meaning = meanings.get(column.key, "")
            for word in filter(None, {column.title, column.key}):
                shown = found.setdefault(word, {}).setdefault(meaning, [])
                spelled = f"`hlotext {' '.join(current([name]))}`"
                if spelled not in shown:
                    shown.append(spelled)
    return found


@functools.cache
def _sql_columns() -> dict[str, dict[str, list[str]]]:
    """Names of columns of the SQL tables, with what they mean and the tables that have them."""
    found: dict[str, dict[str, list[str]]] = {}
    for table in TABLES.values():
        for column in table.columns:
            found.setdefault(column.name, {}).setdefault(column.doc, []).append(table.name)
    return found


_NAMES: dict[str, Callable[[], Collection[str]]] = {
    COMMAND: _command_names,
    "opcode": lambda: OPCODES,
    "pass": all_passes,
    _RULE: lambda: hlo.lint.every_code().keys() | hlo.lint.registry.past_codes(),
    "attribute": lambda: ATTRIBUTES.keys() | HEADER_ATTRIBUTES.keys(),
    "element type": lambda: ELEMENT_TYPES,
    "chip": lambda: CHIPS,
    "SQL query": queries.names,
    "SQL table": lambda: TABLES,
    _COLUMN: lambda: _columns().keys() | _sql_columns().keys(),
}


# ---- what is said of those without a page


def _attribute(name: str) -> Iterator[tuple[str, str]]:
    for place, table in (("", ATTRIBUTES), (" in the header", HEADER_ATTRIBUTES)):
        if (row := table.get(name)) is not None:
            yield f"meaning{place}", f"{row.doc}; {row.value}, printed {row.printed}"
    if name in ATTRIBUTES:
        opcodes = ATTRIBUTES[name].opcodes
        yield "opcodes", "all" if opcodes is None else ", ".join(opcodes)


def _element_type(name: str) -> Iterator[tuple[str, str]]:
    row = ELEMENT_TYPES[name]
    yield "kind", row.kind.value
    if row.bits:
        yield "width", pluralize(row.bits, "bit")
    if row.dtype_name:
        yield "numpy", row.dtype_name


def _chip(name: str) -> Iterator[tuple[str, str]]:
    row = CHIPS[name]
    yield "platform", row.backend.value
    if row.aliases:
        yield "also named", ", ".join(row.aliases)
    if row.memory_bytes is not None:
        yield "memory", f"{byte_text(row.memory_bytes)} ({row.source})"
    if row.rates.bandwidth is not None:
        yield (
            "memory bandwidth",
            f"{row.rates.bandwidth.value / 1e9:,.0f} GB/s ({row.rates.bandwidth.source})",
        )
    for kind, figure in row.rates.peaks.items():
        yield f"peak, {kind}", f"{figure.value / 1e12:,.4g} TFLOP/s ({figure.source})"


def _query(name: str) -> Iterator[tuple[str, str]]:
    yield "answers", queries.query(name).title
    yield "use", f"hlotext sql --query {name} FILE|DIR"


def _table(name: str) -> Iterator[tuple[str, str]]:
    yield "a row", TABLES[name].doc
    yield "columns", ", ".join(TABLES[name].names)


def _column(name: str) -> Iterator[tuple[str, str]]:
    for meaning, shown in _columns().get(name, {}).items():
        yield f"of {', '.join(shown)}", meaning or "a column of its tables"
    for meaning, tables in _sql_columns().get(name, {}).items():
        yield f"SQL, {', '.join(tables)}", meaning


_FACTS: dict[str, Callable[[str], Iterator[tuple[str, str]]]] = {
    "attribute": _attribute,
    "element type": _element_type,
    "chip": _chip,
    "SQL query": _query,
    "SQL table": _table,
    "column": _column,
}
