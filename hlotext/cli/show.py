"""`hlotext show`: what is in a module, or one instruction of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import click

from hlotext.analysis.call_graph import call_graph
from hlotext.cli.common import FILES, FORMAT, Inputs, one_line, write_json
from hlotext.cli.output import output
from hlotext.cli.show_name import show_details, show_name
from hlotext.cli.show_summary import show_summary
from hlotext.cli.summary import summarize
from hlotext.cli.summary.details import instruction_details
from hlotext.ir.module import Module

_DEFAULT_LIMIT = 10
_LISTS = frozenset(
    {
        "opcodes", "largest_arrays", "most_padded", "loops", "collective_groups", "collectives",
        "custom_calls", "source_files", "source_lines",
    }
)  # fmt: skip
"""What `--limit` cuts in JSON."""


@click.command()
@FILES
@click.option(
    "-i", "--instruction", "name", metavar="NAME", help="Show one instruction or computation instead."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Rows in each table; 0 for all.  [default: {_DEFAULT_LIMIT}; in json: all]",
)
@FORMAT
def command(files: tuple[str, ...], name: str | None, limit: int | None, output_format: str) -> None:
    """What is in each FILE: header, computations, opcodes, loops, the largest arrays, memory spaces and
    padding, collectives with their groups, custom calls, and the lines of Python that it comes from.

    Bytes are those that the layouts ask for, padding included. Memory is counted by what is written: arrays
    that follow each other in the same place count both, views and what stands in fusions count nothing.
    A FILE that is a single op line is shown as with -i.

    \b
    Examples:
      hlotext show module_0001.jit_step.after_optimizations.txt
      hlotext show dump.txt.gz -i fusion.3
      hlotext show --format json dump.txt | jq '.modules[0].collective_groups'

    Exit status: 0 fine, 1 there is no instruction of that NAME, 2 unreadable input.
    """
    inputs = Inputs(files)
    if name is not None:
        show_name(inputs, name, limit, output_format)
    elif output_format == "json":
        modules = [_json(place, module, notes, limit) for place, module, notes in _modules(inputs)]
        write_json({"modules": modules})
    else:
        _show(inputs, limit)
    inputs.finish()


def _show(inputs: Inputs, limit: int | None) -> None:
    report = output()
    rows = _DEFAULT_LIMIT if limit is None else limit or None
    for place, module, notes in _modules(inputs):
        if module.entry.is_implicit:
            show_details(report, place, instruction_details(call_graph(module), module.entry.root), limit)
        else:
            show_summary(report, place, summarize(module), notes, rows)


def _modules(inputs: Inputs) -> Iterator[tuple[str, Module, list[str]]]:
    """Every module of every file, with what this release does not know in the file."""
    for place, result in inputs:
        notes = [one_line(note) for note in result.diagnostics]
        for module in result.modules:
            yield place, module, notes
            notes = []


def _json(place: str, module: Module, notes: list[str], limit: int | None) -> dict[str, Any]:
    facts = attrs.asdict(summarize(module))
    if limit:
        facts = {name: value[:limit] if name in _LISTS else value for name, value in facts.items()}
    return {"file": place, "notes": notes, **facts}
