"""`hlotext help pass`: the passes of `hlotext rewrite`."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap

import attrs
import click

from hlotext.cli.common import FORMAT, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import output
from hlotext.cli.usage import named_elsewhere
from hlotext.rewrite.passes import Pass, all_passes, pass_meant
from hlotext.rewrite.passes.agreement import AGREEMENT, DATE, NEWEST, NEWEST_AGREEMENT, NEWEST_DATE, Agreement


@click.command("pass")
@click.argument("name", required=False)
@FORMAT
def command(name: str | None, output_format: str) -> None:
    """Explain a pass of `hlotext rewrite`; without a NAME, list all.

    Counterparts of XLA passes report the number of recorded XLA steps they reproduce, and when that was measured. Models that
    need more than the module are not passes: `hlotext dump pass` replays XLA's log of priority fusion on GPU.

    \b
    Examples:
      hlotext help pass
      hlotext help pass algsimp

    Exit status: 0 success, 2 no such pass.
    """
    passes = all_passes()
    if name is not None and name not in passes:
        meant = named_elsewhere(name) or pass_meant(name)
        raise click.UsageError(f"no pass {name}; {meant}")
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
    """Number of recorded XLA steps, number reproduced, and date."""
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
        "newest": _newest(kind.name),
    }


def _newest(name: str) -> dict[str, object] | None:
    """Comparison with the newest recorded release; None if no step of the pass was recorded."""
    found = NEWEST_AGREEMENT.get(name)
    if found is None:
        return None
    return {
        **attrs.asdict(found),
        "date": NEWEST_DATE,
        "release": NEWEST,
        "keeps_up": found.keeps_up,
    }


def _steps(found: Agreement) -> str:
    return (
        f"{found.changed_equal} of {found.changed} recorded steps with changes and {found.unchanged_equal} of "
        f"{found.unchanged} without"
    )


def _documented(kind: type[Pass]) -> dict[str, str]:
    """Docstrings of the options of a pass, which only its source has; nothing where that is not there."""
    try:
        (top,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    return {
        field.target.id: " ".join(told.value.value.split())
        for field, told in itertools.pairwise(top.body if isinstance(top, ast.ClassDef) else ())
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(told, ast.Expr)
        and isinstance(told.value, ast.Constant)
        and isinstance(told.value.value, str)
    }


def _explain(kind: type[Pass]) -> None:
    click.echo(f"{kind.name}\n\n{inspect.getdoc(kind)}")
    found = AGREEMENT.get(kind.name)
    if found is not None:
        click.echo(f"\nReproduces XLA's {found.xla} in {_steps(found)} (JAX 0.10, {DATE})")
        newest = NEWEST_AGREEMENT.get(kind.name)
        if newest is None:
            click.echo(f"Not compared with JAX {NEWEST}: no step recorded")
        else:
            mark = "" if newest.keeps_up else "; too few to rely on the pass for this release"
            click.echo(f"With JAX {NEWEST} in {_steps(newest)} ({NEWEST_DATE}){mark}")
    told = _documented(kind)
    for field in attrs.fields(kind):
        default = str(field.default).lower()
        option = f"option {field.name}" + (f"={default}" if default else "")
        click.echo(f"\n{option}" + (f": {told[field.name]}" if field.name in told else ""))
    for word, properties in (("requires", kind.requires), ("ensures", kind.ensures)):
        for item in properties:
            click.echo(f"\n{word}: {item}")
