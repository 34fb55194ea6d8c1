"""JSON on standard output: one document for each run of a command, with what went wrong in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hlotext import schemas
from hlotext.findings import escape

_ERRORS, _IS_WRITTEN, _WANTED = (f"{__name__}.{name}" for name in ("errors", "is_written", "wanted"))


def note_format(ctx: click.Context, arguments: Sequence[str]) -> None:
    """Stores whether JSON is requested, and for which command, for errors in the command line."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    if any(first == "--format=json" or (first == "--format" and second == "json") for first, second in pairs):
        known = schemas.commands()
        names = (" ".join(arguments[:count]) for count in (2, 1))
        ctx.meta[_WANTED] = next((name for name in names if name in known), "")


def note_error(kind: str, message: str, where: Mapping[str, Any] | None = None) -> None:
    """Adds an error to `errors` of the JSON document. `where` has file, line, column and code, as far as known."""
    ctx = click.get_current_context(silent=True)
    if ctx is not None:
        error = {"kind": kind, "message": message, **(where or {})}
        errors = ctx.meta.setdefault(_ERRORS, [])
        if error not in errors:
            errors.append(error)


def json_text(value: Mapping[str, Any]) -> str:
    """Returns the JSON document of the running command: schema version, `value`, and errors so far."""
    ctx = click.get_current_context()
    ctx.meta[_IS_WRITTEN] = True
    return _text(ctx, ctx.command_path.partition(" ")[2], value)


def write_json(value: Mapping[str, Any]) -> None:
    """Prints the JSON document of the running command."""
    click.echo(json_text(value))


def write_failure(ctx: click.Context) -> None:
    """Prints a JSON document with the errors, if JSON is requested and none was printed."""
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
