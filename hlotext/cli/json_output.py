"""JSON on standard output: one document for each run of a command, with what went wrong in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hlotext import schemas
from hlotext.findings import escape

_ERRORS, _IS_WRITTEN, _WANTED = (f"{__name__}.{name}" for name in ("errors", "is_written", "wanted"))


def note_format(ctx: click.Context, arguments: Sequence[str]) -> None:
    """Remembers whether JSON is asked for, and of which command: a refused command line is never parsed to its end."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    if any(first == "--format=json" or (first == "--format" and second == "json") for first, second in pairs):
        known = schemas.commands()
        names = (" ".join(arguments[:count]) for count in (2, 1))
        ctx.meta[_WANTED] = next((name for name in names if name in known), "")


def note_error(kind: str, message: str, where: Mapping[str, Any] | None = None) -> None:
    """Something went wrong that `errors` of the document tells. `where`: file, line, column, code, where they are known."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        error = {"kind": kind, "message": message, **(where or {})}
        errors = ctx.meta.setdefault(_ERRORS, [])
        if error not in errors:
            errors.append(error)


def json_text(value: Mapping[str, Any]) -> str:
    """The document of the running command: the version of its schema, `value`, and what went wrong so far."""
    ctx = click.get_current_context()
    ctx.meta[_IS_WRITTEN] = True
    return _text(ctx, ctx.command_path.partition(" ")[2], value)


def write_json(value: Mapping[str, Any]) -> None:
    """The same on standard output."""
    click.echo(json_text(value))


def write_failure(ctx: click.Context) -> None:
    """Where JSON is asked for and none was written, a document that only says what went wrong, if anything did."""
    if _WANTED in ctx.meta and not ctx.meta.get(_IS_WRITTEN) and ctx.meta.get(_ERRORS):
        click.echo(_text(ctx, ctx.meta[_WANTED], {}))


def _text(ctx: click.Context, command: str, value: Mapping[str, Any]) -> str:
    errors = ctx.meta.get(_ERRORS)
    try:
        version = schemas.version(command)
    except LookupError:
        version = 1  # a command that is being written; a test asks for its schema
    rest = {name: part for name, part in value.items() if name != "version"}
    return escape.json({"version": version, **rest, **({"errors": errors} if errors else {})})
