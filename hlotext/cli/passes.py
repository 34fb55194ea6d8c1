"""`hlotext passes`: what passes there are."""

from __future__ import annotations

import inspect

import attrs
import click

from hlotext.cli.common import FORMAT, NotFound, write_json
from hlotext.cli.output import Column, Table, output
from hlotext.rewrite.passes import PASSES, Pass


@click.command()
@click.argument("name", required=False)
@FORMAT
def command(name: str | None, output_format: str) -> None:
    """List the passes of `hlotext rewrite`, or say all about one.

    \b
    Examples:
      hlotext passes
      hlotext passes algsimp

    Exit status: 0 fine, 1 there is no such pass, 2 wrong usage.
    """
    if name is not None and name not in PASSES:
        raise NotFound(f"there is no pass {name}; there are {', '.join(PASSES)}")
    if output_format == "json":
        write_json({"passes": [_as_json(kind) for kind in PASSES.values() if name in (None, kind.name)]})
    elif name is None:
        rows = [(kind.name, kind.summary) for kind in PASSES.values()]
        output().table(Table("passes", (Column("name", "cyan"), Column("what it does")), tuple(rows)))
    else:
        _explain(PASSES[name])


def _as_json(kind: type[Pass]) -> dict[str, object]:
    return {
        "name": kind.name,
        "summary": kind.summary,
        "options": {field.name: field.default for field in attrs.fields(kind)},
        "requires": [str(needed) for needed in kind.requires],
        "ensures": [str(promise) for promise in kind.ensures],
        "preserves_results": kind.preserves_results,
    }


def _explain(kind: type[Pass]) -> None:
    click.echo(f"{kind.name}\n\n{inspect.getdoc(kind)}")
    for field in attrs.fields(kind):
        click.echo(f"\noption {field.name}={str(field.default).lower()}")
    for word, properties in (("requires", kind.requires), ("ensures", kind.ensures)):
        for item in properties:
            click.echo(f"\n{word}: {item}")
