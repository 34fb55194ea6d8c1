"""`hlotext schema`: the JSON Schema of what a command writes with `--format json`."""

from __future__ import annotations

import click

from hlotext import schemas
from hlotext.cli.common import NotFound
from hlotext.cli.output import echo
from hlotext.findings import escape


@click.command()
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
def command(words: tuple[str, ...]) -> None:
    """Print the JSON Schema (2020-12) of what `hlotext COMMAND --format json` writes; without a COMMAND, list the schemas.

    A field of a schema stays as long as its version, which stands in every document, stays; new fields may come. What went
    wrong stands in `errors` of the document, and on standard error as always.

    \b
    Examples:
      hlotext schema
      hlotext schema show
      hlotext schema dump list > dump-list.schema.json

    Exit status: 0 fine, 1 there is no such schema.
    """
    if not words:
        for name in schemas.commands():
            echo(f"{name:16} version {schemas.version(name)}")
        return
    try:
        echo(escape.json(schemas.schema(" ".join(words))))
    except LookupError as error:
        raise NotFound(f"{error.args[0]}; there are: {', '.join(schemas.commands())}") from None
