"""`hlotext help schema`: the JSON Schema of what a command writes with `--format json`."""

from __future__ import annotations

import click

from hlotext import schemas
from hlotext.cli.output import echo
from hlotext.findings import escape
from hlotext.ir.spelling import did_you_mean


@click.command("schema")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
def command(words: tuple[str, ...]) -> None:
    """Print the JSON Schema (2020-12) of `hlotext COMMAND --format json`; without a COMMAND, list the schemas.

    Within one version no field is removed or changed; new fields may be added. Every document contains `version`, and
    `errors` if anything went wrong.

    \b
    Examples:
      hlotext help schema
      hlotext help schema show
      hlotext help schema dump list > dump-list.schema.json

    Exit status: 0 success, 2 no such schema.
    """
    if not words:
        for name in schemas.commands():
            echo(f"{name:16} version {schemas.version(name)}")
        return
    try:
        echo(escape.json(schemas.schema(" ".join(words))))
    except LookupError as error:
        meant = did_you_mean(" ".join(words), schemas.commands()) or "`hlotext help schema` lists all"
        raise click.UsageError(f"{error.args[0]}; {meant}") from None
