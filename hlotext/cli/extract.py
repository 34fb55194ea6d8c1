"""`hlotext extract`: a small module around one instruction."""

from __future__ import annotations

import click

import hlotext as hlo
from hlotext.analysis.meant import NamesMeant
from hlotext.cli.common import Inputs, NotFound, Unreadable, is_given, write_file
from hlotext.cli.output import emit
from hlotext.rewrite.extraction import extract
from hlotext.syntax.source.inputs import several

_DEPTH = 3
"""Operands that stay by default: what a real module computes a result from is most of it."""


@click.command()
@click.argument("file")
@click.option(
    "-i",
    "--instruction",
    "name",
    required=True,
    metavar="NAME",
    help="The instruction to compute, or a whole computation.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    default=_DEPTH,
    show_default=True,
    help="Operands further away become parameters.",
)
@click.option("--whole", is_flag=True, help="Include all operands, without a limit of depth.")
@click.option("-o", "--output", "place", metavar="FILE", help="Output file.  [default: standard output]")
def command(file: str, name: str, depth: int, whole: bool, place: str | None) -> None:
    """Extract an instruction of FILE with the operations that compute it, or a computation such as a loop body.

    \b
    Example:
      hlotext extract dump.txt -i dot.5 --depth 2 > dot.hlo
      hlotext extract dump.txt -i dot.5 --whole > dot.hlo
      hlotext extract dump.txt -i region_0.4 > body.hlo

    Exit status: 0 success, 1 no such instruction, 2 usage error or unreadable input.
    """
    if whole and is_given("depth"):
        raise click.UsageError("--whole includes all operands, so it takes no --depth; leave one of them out")
    inputs, hints = Inputs([file]), NamesMeant(name)
    for _, result in inputs:
        found = [(module.name, node) for module in result.modules if (node := module.find(name)) is not None]
        if len(found) > 1:
            raise Unreadable(several(file, [module for module, _ in found]))
        for _, node in found:
            is_whole = whole or isinstance(node, hlo.Computation)
            try:
                text = str(
                    extract(
                        node.root if isinstance(node, hlo.Computation) else node, None if is_whole else depth
                    )
                )
            except hlo.EditError as error:
                raise Unreadable(str(error)) from None
            _write(text, place)
            return
        for module in result.modules:
            hints.add(module)
    inputs.finish()
    raise NotFound(f"no instruction is named {name.removeprefix('%')} in {file}{hints}")


def _write(text: str, place: str | None) -> None:
    if place is None or place == "-":
        emit(text)
        return
    write_file(place, text)
