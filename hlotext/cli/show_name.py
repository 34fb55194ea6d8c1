"""One instruction or computation, found by name, and all that is around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import attrs
import click

from hlotext.analysis.call_graph import call_graph
from hlotext.analysis.entries import program_name
from hlotext.analysis.meant import NamesMeant
from hlotext.analysis.sizes import byte_text
from hlotext.analysis.summary.details import (
    Callee,
    ComputationDetails,
    InstructionDetails,
    Neighbour,
    computation_details,
    instruction_details,
)
from hlotext.cli.common import NOT_FOUND, Inputs, NotFound, say, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import Output, output
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.frames import StackFrame

_NOTES = 3
"""Misspelled names of a text that are said beside an instruction."""
Details: TypeAlias = InstructionDetails | ComputationDetails


def show_name(inputs: Inputs, name: str, limit: int | None, output_format: str) -> None:
    """Prints everything with a name in the files. Ends the command with an error if there is nothing."""
    wanted = name.removeprefix("%")
    found: list[tuple[str, Details]] = []
    hints = NamesMeant(wanted)
    places = []

    def look(modules: tuple[Module, ...]) -> list[Details]:
        details = [one for module in modules for one in _details(module, wanted)]
        if not (found or details):
            for module in modules:
                hints.add(module)
        return details

    for place, (here, notes) in inputs.used(look):
        places.append(place)
        for note in [one for one in notes if "(did you mean" in one][:_NOTES]:
            say(note)
        found += ((place, one) for one in here)
    if not found:
        if places:
            missing = NotFound(f"no instruction or computation {wanted} in {', '.join(places)}{hints}")
            missing.show()
        inputs.finish()
        raise click.exceptions.Exit(NOT_FOUND)
    if output_format == "json":
        write_json({"found": [{"file": place, **attrs.asdict(details)} for place, details in found]})
        return
    report = output()
    for place, details in found:
        show_details(report, place, details, limit)


def show_details(report: Output, place: str, details: Details, limit: int | None) -> None:
    """Prints everything about an instruction or computation; at most `limit` rows per table (0, None: all)."""
    if isinstance(details, InstructionDetails):
        _show_instruction(report, place, details, limit)
    else:
        _show_computation(report, place, details, limit)


def _details(module: Module, name: str) -> Iterator[Details]:
    named = tuple(module.find_all(name)) or tuple(
        p for p in module.entry.parameters if program_name(p) == name
    )
    for found in named:
        graph = call_graph(module)
        if isinstance(found, Computation):
            yield computation_details(graph, found)
        else:
            yield instruction_details(graph, found)


def _runs(runs: int | None) -> str:
    if runs is None:
        return "trip count depends on run-time values"
    return {0: "never runs", 1: "runs once"}.get(runs, f"runs {runs:,} times")


def _show_instruction(report: Output, place: str, details: InstructionDetails, limit: int | None) -> None:
    where = f":{details.position.line}:{details.position.column}" if details.position is not None else ""
    report.heading(f"{place}{where}: {details.name}")
    report.facts(_instruction_facts(details))
    report.text("Text", details.text)
    neighbours = Listing[Neighbour]("show.neighbours")
    report.table(neighbours.table(f"Operands ({len(details.operands):,})", details.operands, limit))
    report.table(
        Listing[Neighbour]("show.users").table(f"Users ({len(details.users):,})", details.users, limit)
    )
    attributes = Listing[tuple[str, str]]("show.attributes", tuple)
    report.table(attributes.table("Attributes", list(details.attributes.items())))
    called = Listing[Callee]("show.called")
    report.table(called.table("Called computations", details.called_computations, limit))
    report.table(neighbours.table("Asynchronous operation", details.async_chain, limit))
    if details.async_wrapped is not None:
        report.text("It runs", details.async_wrapped)
    frames: Listing[StackFrame] = Listing(
        "show.frames", lambda one: (f"{one.file}:{one.line}:{one.column}", one.function)
    )
    report.table(frames.table("Python frames, innermost first", details.frames, limit))
    for body in details.bodies:
        report.text("Body, without metadata and backend configs", body)
    if details.kernel is not None:
        report.text("Kernel, as MLIR", details.kernel)
    if details.kernel_error is not None:
        report.text("Kernel", details.kernel_error)


def _instruction_facts(details: InstructionDetails) -> Iterator[tuple[str, str]]:
    yield "opcode", details.opcode
    if not (details.shape or "").startswith(
        "("
    ):  # that of a tuple may fill the screen, and the text below has it
        yield "shape", details.shape or "omitted in the text"
    size = details.size
    if size.arrays:
        padding = size.allocated_bytes - size.unpadded_bytes
        arrays = f", {size.arrays:,} arrays" if size.arrays > 1 else ""
        yield (
            "bytes",
            byte_text(size.allocated_bytes) + arrays + (f", {byte_text(padding)} padding" if padding else ""),
        )
    use = f"{details.computation_use}, {_runs(details.runs)}"
    yield "computation", f"{details.computation} ({use})" + (", the root" if details.is_root else "")
    if details.opcode == "while":
        trips = details.trip_count
        yield "trip count", "depends on run-time values" if trips is None else f"{trips:,}"
    if (near := details.inferred_frame) is not None:
        yield "line", f"{near.file}:{near.line} {near.function}".rstrip() + " (inferred from its neighbors)"
    if details.control_predecessors:
        yield "runs after", ", ".join(details.control_predecessors)
    if details.control_successors:
        yield "runs before", ", ".join(details.control_successors)


def _show_computation(report: Output, place: str, details: ComputationDetails, limit: int | None) -> None:
    where = f":{details.position.line}:{details.position.column}" if details.position is not None else ""
    report.heading(f"{place}{where}: {details.name}")
    report.facts(
        [
            ("use", f"{details.use}, {_runs(details.runs)}"),
            ("thread", details.execution_thread),
            ("instructions", f"{details.instructions:,}"),
            ("opcodes", ", ".join(f"{count:,} {opcode}" for opcode, count in details.opcodes.items())),
            ("result", f"{details.root.shape or '(shape omitted)'} {details.root.opcode}"),
        ]
    )
    neighbours = Listing[Neighbour]("show.neighbours")
    report.table(neighbours.table("Callers", details.callers, limit))
    report.table(neighbours.table("Parameters", details.parameters, limit))
    report.text("Text, without metadata and backend configs", details.text)
