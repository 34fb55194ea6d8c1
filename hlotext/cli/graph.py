"""`hlotext graph`: the graph of a module as a page to walk in, or the neighbourhood of an operation as a picture."""

from __future__ import annotations

import click

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import parse_mesh
from hlotext.cli.chip_options import told
from hlotext.cli.common import NotFound, Unreadable, format_of, is_folder, not_found, read, write_page
from hlotext.cli.folders import asked, chosen
from hlotext.dumps.texts import compilation_of
from hlotext.findings.errors import brief
from hlotext.syntax.source.inputs import several
from hlotext.view import graph

_HOPS = 3
_ENDINGS = {"html": (".html", ".htm"), "svg": (".svg",), "dot": (".dot", ".gv")}


@click.command()
@click.argument("file", metavar="FILE|DIR")
@click.option("-i", "--instruction", "name", metavar="NAME", help="Initial operation.")
@click.option(
    "--hops", type=click.IntRange(1, 12), default=_HOPS, show_default=True, help="Radius of the neighborhood."
)
@click.option(
    "-m", "--module", "chosen_name", metavar="NAME|NUMBER", help="Compilation to use, if there are several."
)
@click.option("--mesh", metavar="NAME=SIZE,...", help="Device mesh, major axis first: dp=2,tp=4.")
@click.option(
    "--most",
    type=click.IntRange(5, 2000),
    default=graph.MOST,
    show_default=True,
    help="Maximum number of operations in a picture.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(_ENDINGS)),
    help="HTML page, picture, or Graphviz text.  [default: by the ending of FILE, else html]",
)
@click.option(
    "-o",
    "--output",
    "place",
    metavar="FILE",
    default="-",
    show_default=True,
    help="Output file; - for standard output.",
)
def command(
    file: str,
    name: str | None,
    hops: int,
    chosen_name: str | None,
    mesh: str | None,
    most: int,
    output_format: str | None,
    place: str,
) -> None:
    """Interactive graph of FILE, or of the final HLO of a dump folder, as one offline HTML page: the neighborhood of
    an operation, search by name, opcode, op_name or file:line, expandable fusions, scopes, op lines and layouts.
    Append `#name` to its URL to link to an operation.

    Instructions that only forward or move values (get-tuple-element, tuple, bitcast, copies) are folded into the edges,
    whose width shows bytes. Formats svg and dot draw the neighborhood only.

    Collectives show their cause and an annotation that would avoid them; for a DIR, every operation shows the
    pass that inserted it, and later changes.

    \b
    Examples:
      hlotext graph module_0001.jit_step.after_optimizations.txt -o graph.html
      hlotext graph dumps/ -o graph.html
      hlotext graph dump.txt -i fusion.3 --hops 2 -o fusion.svg

    Exit status: 0 success, 1 no such name, 2 usage error or unreadable input.
    """
    output_format = format_of(place, output_format, _ENDINGS)
    given = told(lambda: parse_mesh(mesh)) if mesh is not None else None
    module, compilation, is_whole = _meant(file, chosen_name)
    try:
        if output_format == "html":
            why = told(lambda: asked(lambda: graph.origins(module, compilation, given, is_whole=is_whole)))
            text = graph.graph_page(module, around=name, hops=hops, why=why)
        else:
            found = graph.neighbourhood(module, name, hops=hops, most=most)
            text = graph.as_svg(found) if output_format == "svg" else graph.as_dot(found)
    except LookupError as error:
        raise not_found(error) from None
    except (ValueError, hlo.InputError, hlo.HloSyntaxError) as error:
        raise Unreadable(f"{file}: {brief(error)}") from None
    write_page(place, text)


def _meant(file: str, name: str | None) -> tuple[hlo.Module, dumps.Compilation | None, bool]:
    """The module, the compilation whose final HLO it is, and whether that was named, not only lies around."""
    if is_folder(file):
        compilation = chosen(file, name)
        module = asked(lambda: compilation.after)
        if module is None:
            raise Unreadable(f"{compilation.name} has no final HLO")
        return module, compilation, True
    if name is not None:
        raise NotFound(f"{file} is one module: -m needs a folder")
    modules = read(file).modules
    if len(modules) > 1:
        raise Unreadable(several(file, [one.name for one in modules]))
    return modules[0], compilation_of(file), False
