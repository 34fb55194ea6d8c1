"""`hlotext graph`: the graph of a module as a page to walk in, or the neighbourhood of an operation as a picture."""

from __future__ import annotations

import click

import hlotext as hlo
from hlotext.cli.common import NotFound, Unreadable, read
from hlotext.cli.output import emit_report
from hlotext.cli.report import write_page
from hlotext.findings import escape
from hlotext.syntax.source.inputs import several
from hlotext.view import graph

_HOPS = 3


@click.command()
@click.argument("file", metavar="FILE")
@click.option("-i", "--instruction", "name", metavar="NAME", help="The operation to begin with.")
@click.option(
    "--hops", type=click.IntRange(1, 12), default=_HOPS, show_default=True, help="How far around it."
)
@click.option(
    "--most",
    type=click.IntRange(5, 2000),
    default=graph.MOST,
    show_default=True,
    help="Operations of a picture at most.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["html", "svg", "dot"]),
    default="html",
    show_default=True,
    help="A page; a picture; text for graphviz.",
)
@click.option(
    "-o",
    "--output",
    "place",
    metavar="FILE",
    default="-",
    show_default=True,
    help="The file; - for standard output.",
)
def command(file: str, name: str | None, hops: int, most: int, output_format: str, place: str) -> None:
    """The graph of FILE as one page that works offline: the neighbourhood of an operation, search by name, opcode, op_name or
    file:line, fusions opened in place, scopes, op lines and layouts. `#name` behind its address is a link.

    What only takes values apart, together or elsewhere (get-tuple-element, tuple, bitcast, copies) is folded into the edges,
    which are as wide as their bytes are many. With --format svg or dot the neighbourhood alone, without a script.

    \b
    Examples:
      hlotext graph module_0001.jit_step.after_optimizations.txt -o graph.html
      hlotext graph dump.txt -i fusion.3 --hops 2 --format svg -o fusion.svg

    Exit status: 0 fine, 1 nothing has that name, 2 wrong usage or unreadable input.
    """
    modules = read(file).modules
    if len(modules) > 1:
        raise Unreadable(several(file, [one.name for one in modules]))
    module = modules[0]
    try:
        if output_format == "html":
            text = graph.graph_page(module, around=name, hops=hops)
        else:
            found = graph.neighbourhood(module, name, hops=hops, most=most)
            text = graph.as_svg(found) if output_format == "svg" else graph.as_dot(found)
    except LookupError as error:
        raise NotFound(str(error.args[0])) from None
    except (ValueError, hlo.InputError, hlo.HloSyntaxError) as error:
        raise Unreadable(f"{file}: {escape.line(str(error).splitlines()[0])}") from None
    if place == "-":
        emit_report(text)
    else:
        write_page(place, text)
