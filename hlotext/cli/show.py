"""`hlotext show`: what is in a module, or one instruction of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
import click

from hlotext.analysis.backend import backend_of
from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.devices import devices_of
from hlotext.analysis.entries import arguments
from hlotext.cli.common import FORMAT, Inputs, refuse_missing, which_option, write_json
from hlotext.cli.output import Output, output
from hlotext.cli.run_totals import ModuleFacts, module_facts
from hlotext.cli.show_modules import Machine, Signature, recompiled, show_modules
from hlotext.cli.show_summary import show_summary
from hlotext.cli.show_trace import show_trace, trace_json, trace_of
from hlotext.cli.usage import missing_argument
from hlotext.ir.nodes.module import Module
from hlotext.syntax.language.grammar import shipped

if TYPE_CHECKING:
    from hlotext.analysis.summary.details import InstructionDetails
    from hlotext.dumps.texts import Which

_SAMPLE = "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
_DEFAULT_LIMIT = 10
_DEFAULT_ROWS = 40
_LISTS = frozenset(
    {
        "opcodes", "largest_arrays", "most_padded", "loops", "collective_groups", "collectives",
        "custom_calls", "source_files", "source_lines",
    }
)  # fmt: skip
"""Lists of the JSON that `--limit` shortens."""


@click.command()
@click.argument("files", nargs=-1, metavar="FILE|DIR...")
@click.option(
    "--sample", is_flag=True, help="Show the sample shipped with hlotext: a training step on 4 TPUs (v5e)."
)
@click.option(
    "-i",
    "--instruction",
    "name",
    metavar="NAME",
    help="Show one instruction or computation, or an argument by its name in the program.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Maximum number of rows per table (0 for no limit).  [default: {_DEFAULT_LIMIT}; json: all]",
)
@click.option(
    "--arguments",
    is_flag=True,
    help="Show arguments and results: shapes, layouts, shardings, bytes, donation, aliases.",
)
@click.option("--full", is_flag=True, help="For a DIR, show each module in full, not as one row.")
@which_option("last")
@FORMAT
def command(
    files: tuple[str, ...],
    sample: bool,
    name: str | None,
    limit: int | None,
    arguments: bool,
    full: bool,
    which: Which,
    output_format: str,
) -> None:
    """Summarize each FILE: header, computations, opcodes, loops, the largest arrays, memory spaces and
    padding, collectives with their groups, custom calls, and Python source lines.

    Bytes include layout padding. Memory spaces count bytes written: arrays that reuse the same buffer
    count each time; views and instructions inside fusions do not count.
    A FILE with a single op line is shown as with -i; a DIR with several modules as one table. For a profiler trace
    (.xplane.pb), show modules, number of runs, and measured times of operations.

    \b
    Examples:
      hlotext show --sample
      hlotext show module_0001.jit_step.after_optimizations.txt
      hlotext show dump.txt.gz -i fusion.3
      hlotext show dumps/ --limit 0
      hlotext show dump.txt --arguments
      hlotext show trace.xplane.pb
      hlotext show --format json dump.txt | jq '.modules[0].collective_groups'

    Exit status: 0 success, 1 no instruction with that name, 2 unreadable input.
    """
    if sample:
        files = (*files, _sample_path())
    elif not files:
        raise missing_argument("FILE|DIR...")
    refuse_missing(files)
    traces = {place: trace for place in files if name is None and (trace := trace_of(place)) is not None}
    inputs = Inputs([place for place in files if place not in traces], which=which)
    if name is not None:
        from hlotext.cli.show_name import show_name  # it loads the printer, like the next

        show_name(inputs, name, limit, output_format)
    elif arguments:
        from hlotext.cli.show_arguments import show_arguments

        show_arguments(inputs, limit or None, output_format)
    elif output_format == "json":
        found_traces = [trace_json(place, trace, limit) for place, trace in traces.items()]
        modules = [facts for place in inputs.used(_summaries) for facts in _json(*place, limit)]
        write_json({"modules": modules, **({"traces": found_traces} if found_traces else {})})
    elif inputs.has_folders and len(inputs.texts) > 1 and not full:
        rows, unknown = [], []
        signatures = []
        for place, (summaries, notes) in inputs.used(_signed):
            rows += [(place, summary) for summary, *_ in summaries]
            signatures += [(summary.name, machine, signature) for summary, machine, signature in summaries]
            unknown += notes
        shown = _DEFAULT_ROWS if limit is None else limit or None
        show_modules(output(), ", ".join(files), rows, [*map(str, recompiled(signatures))], unknown, shown)
    else:
        report = output()
        for place, trace in traces.items():
            show_trace(report, place, trace, _DEFAULT_LIMIT if limit is None else limit or None)
        for place, (found, notes) in inputs.used(_facts):
            _show(report, place, found, notes, limit)
    inputs.finish()


def _sample_path() -> str:
    """The path of a data-parallel training step, compiled for four TPUs (v5e); relative where it lies below this folder."""
    path, here = shipped(_SAMPLE), os.path.join(os.getcwd(), "")
    return path.removeprefix(here)


def _summaries(modules: tuple[Module, ...]) -> list[ModuleFacts]:
    return list(map(module_facts, modules))


def _signed(modules: tuple[Module, ...]) -> list[tuple[ModuleFacts, Machine, Signature]]:
    return [
        (module_facts(one), _machine(one), tuple((a.label, a.shape) for a in arguments(one)))
        for one in modules
    ]


def _machine(module: Module) -> Machine:
    backend = backend_of(module)
    return backend.value if backend is not None else "", devices_of(module).total


def _facts(modules: tuple[Module, ...]) -> list[ModuleFacts | InstructionDetails]:
    """Facts of the modules of a file, as values that keep no nodes alive."""
    found: list[ModuleFacts | InstructionDetails] = []
    for module in modules:
        if module.entry.is_sugared:
            from hlotext.analysis.summary.details import instruction_details

            found.append(instruction_details(call_graph(module), module.entry.root))
        else:
            found.append(module_facts(module))
    return found


def _show(
    report: Output,
    place: str,
    found: list[ModuleFacts | InstructionDetails],
    notes: list[str],
    limit: int | None,
) -> None:
    rows = _DEFAULT_LIMIT if limit is None else limit or None
    for facts in found:
        if isinstance(facts, ModuleFacts):
            show_summary(report, place, facts, notes, rows)
            notes = []  # those of the whole file stand behind the first module
        else:
            from hlotext.cli.show_name import show_details

            show_details(report, place, facts, limit)


def _json(
    place: str, found: tuple[list[ModuleFacts], list[str]], limit: int | None
) -> Iterator[dict[str, Any]]:
    summaries, notes = found
    for summary in summaries:
        facts = attrs.asdict(summary)
        if limit:
            facts = {name: value[:limit] if name in _LISTS else value for name, value in facts.items()}
        yield {"file": place, "notes": notes, **facts}
        notes = []
