"""`hlotext passes`: what passes there are."""

from __future__ import annotations

import inspect

import attrs
import click

from hlotext.cli.common import FORMAT, NotFound, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import output
from hlotext.rewrite.passes import Pass, all_passes
from hlotext.rewrite.passes.agreement import AGREEMENT, DATE


@click.command()
@click.argument("name", required=False)
@FORMAT
def command(name: str | None, output_format: str) -> None:
    """List the passes of `hlotext rewrite`, or say all about one.

    Those that do the work of a pass of XLA's say on how many steps that XLA recorded they leave the same module, and when
    that was measured. Models that need more than the module are not passes: `hlotext explain` replays XLA's log of priority
    fusion on GPU.

    \b
    Examples:
      hlotext passes
      hlotext passes algsimp

    Exit status: 0 fine, 1 there is no such pass, 2 wrong usage.
    """
    passes = all_passes()
    if name is not None and name not in passes:
        raise NotFound(f"there is no pass {name}; there are {', '.join(passes)}")
    if output_format == "json":
        write_json({"passes": [_as_json(kind) for kind in passes.values() if name in (None, kind.name)]})
    elif name is None:
        listing: Listing[type[Pass]] = Listing(
            "passes.passes", lambda kind: (kind.name, *_agreement(kind.name), kind.summary)
        )
        output().table(listing.table("passes", list(passes.values())))
    else:
        _explain(passes[name])


def _agreement(name: str) -> tuple[str, str, str]:
    """How many steps of XLA's were tried, how many ended in the same module, and when."""
    found = AGREEMENT.get(name)
    if found is None:
        return "", "", ""
    return str(found.changed + found.unchanged), str(found.changed_equal + found.unchanged_equal), DATE


def _as_json(kind: type[Pass]) -> dict[str, object]:
    return {
        "name": kind.name,
        "summary": kind.summary,
        "options": {field.name: field.default for field in attrs.fields(kind)},
        "requires": [str(needed) for needed in kind.requires],
        "ensures": [str(promise) for promise in kind.ensures],
        "preserves_results": kind.preserves_results,
        "agreement": {**attrs.asdict(AGREEMENT[kind.name]), "date": DATE} if kind.name in AGREEMENT else None,
    }


def _explain(kind: type[Pass]) -> None:
    click.echo(f"{kind.name}\n\n{inspect.getdoc(kind)}")
    found = AGREEMENT.get(kind.name)
    if found is not None:
        click.echo(
            f"\nXLA's {found.xla}: the same module in {found.changed_equal} of {found.changed} recorded steps that change "
            f"something and {found.unchanged_equal} of {found.unchanged} that do not ({DATE})"
        )
    for field in attrs.fields(kind):
        click.echo(f"\noption {field.name}={str(field.default).lower()}")
    for word, properties in (("requires", kind.requires), ("ensures", kind.ensures)):
        for item in properties:
            click.echo(f"\n{word}: {item}")
