"""Lower bounds on run time for `hlotext cost`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import click

import hlotext as hlo
from hlotext import cost, dumps
from hlotext.analysis import (
    ChipChoice,
    DeviceMesh,
    SourceLocation,
    backend_of,
    byte_text,
    census,
    is_optimized,
    parse_mesh,
    source_locations,
)
from hlotext.analysis.chips import CHIPS, Chip
from hlotext.analysis.formatting import pluralize
from hlotext.cli.chip_options import format_count, format_percent, line_cell, seconds, told, with_set
from hlotext.cli.common import say, trips_of
from hlotext.cli.listing import Listing, Shown
from hlotext.cli.output import Output

Lines: TypeAlias = Mapping[hlo.Instruction, tuple[SourceLocation, object]]


@attrs.frozen
class TimeOptions:
    """Chip, mesh, trip counts and custom-call costs from the command line."""

    chip: Chip | None
    figures: tuple[str, ...]
    mesh: DeviceMesh | None
    trips: Mapping[str, int]
    costs: cost.TargetCosts | None


def rates_of(
    chip: Chip | None,
    figures: tuple[str, ...],
    mesh: str | None,
    trips: tuple[str, ...],
    costs: cost.TargetCosts | None,
) -> TimeOptions:
    """Returns command-line options as values. Raises UsageError."""
    given: DeviceMesh | None = told(lambda: parse_mesh(mesh)) if mesh is not None else None
    return TimeOptions(chip, figures, given, trips_of(trips), costs)


def estimated(
    module: hlo.Module,
    place: str,
    choice: ChipChoice | None,
    rates: TimeOptions,
    compilation: dumps.Compilation | None,
) -> tuple[cost.Estimate, ChipChoice]:
    """Lower bound on a module's run time, and the chip. Raises UsageError if the chip is unknown."""
    if choice is None:
        raise click.UsageError(f"{place}: chip unknown; set --chip ({', '.join(CHIPS)})")
    row = with_set(choice.chip, rates.figures)
    mesh = rates.mesh or mesh_named(module, compilation)
    found = told(lambda: cost.estimate(module, row, mesh, trips=rates.trips or None, costs=rates.costs))
    return found, choice


def mesh_named(module: hlo.Module, compilation: dumps.Compilation | None) -> DeviceMesh | None:
    """Returns the mesh whose axes the program before optimization names; None if there is none."""
    found = dumps.collectives.named_mesh(compilation, module) if compilation is not None else None
    return found.mesh if found is not None else None


def show(
    report: Output,
    found: cost.Estimate,
    choice: ChipChoice,
    compiled_for: ChipChoice | None,
    work: list[tuple[str, str]],
    limit: int,
) -> None:
    """Prints a lower bound on run time.

    `work` has facts about operations and bytes; `compiled_for` is the chip according to text and folder, regardless of
    a given one.
    """
    chip = [] if choice.source == "given" else [("chip", str(choice))]
    if found.compiled_for:
        own = [one.name for one in CHIPS.values() if one.backend is backend_of(found.module)]
        say(
            f"the module was compiled for {found.compiled_for}, but {found.chip.name} is a "
            f"{found.chip.backend.name}, so this is only a rough comparison; for {found.compiled_for}, set --chip "
            f"({', '.join(own)})"
        )
    report.facts([*chip, *_facts(found, compiled_for), *work])
    lines = source_locations(found.module)
    _show_instructions(report, found, limit, lines)
    report.table(_transfers(lines).table("Transfers (all runs)", found.transfers, limit))
    _show_path(report, found, limit, lines)


def _facts(found: cost.Estimate, compiled_for: ChipChoice | None) -> list[tuple[str, str]]:
    mark = "at least " if found.unknown_calls or found.scatters else ""
    least = f"{mark}{seconds(found.seconds)} (estimate; {found.counted})"
    facts = [("minimum time", least) if found.is_bound else ("estimated time", _no_bound(found))]
    bounds = found.by_bound
    core = sum(bounds.values())
    if core:
        parts = [
            f"{bound.value} {format_percent(time, core)}{_REMARKS.get(bound, '')}"
            for bound, time in bounds.items()
            if time
        ]
        of = " (of the counted time)" if mark else ""
        facts.append(("core bound by", ", ".join(parts) + of))
    if (used := found.utilization) is not None:
        facts.append(("utilization", _utilization(found, used)))
    busy = [f"{queue} {seconds(time)}" for queue, time in found.busy.items() if time]
    facts.append(("busy", ", ".join(busy[:6]) or "nothing"))
    if found.transfers:
        facts.append(
            (
                "stalled",
                f"{seconds(found.exposed)} on transfers, {format_percent(found.exposed, found.seconds)}",
            )
        )
    if any(one.communication is None and one.hidden for one in found.transfers):
        facts.append(("not counted", _SHARED))
    if found.roofline_seconds is not None:
        once = "loop bodies once, " if cost.analyze(found.module).counts_loops_again else ""
        facts.append(("XLA cost model", f"{seconds(found.roofline_seconds)} ({once}no overlap)"))
    own = found.compiler
    if own is not None:
        clock = _clock(found.chip, compiled_for)
        facts.append(
            (
                "compiler estimate",
                f"{seconds(own.seconds)} {own.coverage} (from its cycle counts, all runs{clock})",
            )
        )
    facts.append(("peak rates", _rates(found)))
    if len(found.chip.rates.peaks) > 1 and found.product_rates:
        facts.append(("matmuls at", _product_rates(found)))
    if found.cached_bytes is not None and (cache := found.chip.rates.cache_bytes) is not None:
        facts.append(
            (
                "working set",
                f"{byte_text(found.cached_bytes)}, assumed to stay in a cache of {byte_text(cache.value)} "
                "(--set cache_bytes=N)",
            )
        )
    if not found.is_scheduled:
        facts.append(("schedule", "none; assuming text order"))
    if found.unknown_loops:
        facts.append(("unknown trip counts", loops_told(found.unknown_loops)))
    if found.unknown_calls:
        targets = dict.fromkeys(str(c.attributes.get("custom_call_target", "")) for c in found.unknown_calls)
        listed = ", ".join(list(targets)[:3]) + (", ..." if len(targets) > 3 else "")
        calls = pluralize(len(found.unknown_calls), "call")
        facts.append(("at least", f"{calls} of unknown cost, counted by bytes only: {listed}"))
    if found.scatters:
        facts.append(("at least", scatters_told(found)))
    unknown = sum(not one.is_known for one in found.transfers)
    if unknown:
        facts.append(("unknown transfers", f"{unknown} without a known size or rate, counted as 0"))
    if found.compiled_for:
        facts.append(("compiled for", f"{found.compiled_for}, not for this chip"))
    return facts


_LOOPS = 3


def loops_told(loops: Sequence[hlo.Instruction]) -> str:
    """Returns a message that loops are counted once, with the options that set their trip counts."""
    options = " ".join(f"--trips {shlex.quote(one.name)}=N" for one in loops[:_LOOPS])
    more = f" and {len(loops) - _LOOPS:,} more" if len(loops) > _LOOPS else ""
    each = "each " if len(loops) > 1 else ""
    return f"{pluralize(len(loops), 'loop')}, {each}counted once (set {options}{more})"


def scatters_told(found: cost.Estimate) -> str:
    """Returns a message that scatters can take far longer than counted, with the time of XLA's model if that is longer."""
    rows = f"{pluralize(len(found.scatters), 'scatter')} of {pluralize(sum(found.scatters.values()), 'row')} in all runs"
    told = f"{rows}, counted by bytes only: writing rows one by one can take far longer"
    model = found.roofline_seconds
    return f"{told} (XLA's cost model: {seconds(model)})" if model and model > found.seconds else told


def _utilization(found: cost.Estimate, used: float) -> str:
    """The most of the peak that the minimum time leaves room for, with the part that model FLOPs do not count."""
    peak = found.utilized_peak
    rate = f" of {format_count(peak.value)}FLOP/s" if peak is not None else ""
    again = cost.analyze(found.module).recomputed
    more = f", FLOPs recomputed for the backward pass ({format_percent(again, 1)}) included" if again else ""
    return f"at most {format_percent(used, 1)}{rate}{more}"


def _clock(chip: Chip, compiled_for: ChipChoice | None) -> str:
    """A remark that cycles are of another chip than the one that was given, or may be."""
    names = compiled_for.candidates if compiled_for is not None else ()
    if not names or names == (chip.name,):
        return ""
    which = f"compiled for {names[0]}" if len(names) == 1 else f"compiled for one of {', '.join(names)}"
    return f", at the clock rate of {chip.name}; {which}"


_SHARED = (
    "core and copies share the memory bandwidth, but each is modeled with all of it, so an overlapped copy "
    "may still cost time"
)


def _no_bound(found: cost.Estimate) -> str:
    if not is_optimized(found.module):
        why = "not a lower bound: nothing is fused before optimization"
    else:
        names = ", ".join(one.name for one in found.at_most_calls[:3])
        more = ", ..." if len(found.at_most_calls) > 3 else ""
        why = f"not a lower bound: all branches of kernels are counted: {names}{more}"
    return f"{seconds(found.seconds)} ({why})"


_REMARKS = {cost.Bound.OVERHEAD: " (kernels under 5 us)"}
"""Remarks on bounds whose name does not say enough."""


def _rates(found: cost.Estimate) -> str:
    rates = found.chip.rates
    names = {name: name for name in rates.peaks}
    if len(names) == 1:  # the rate of products of all types
        names = dict.fromkeys(names, " and ".join(_types_of_products(found.module)) or "all types")
    parts = [f"{names[name]} {format_count(figure.value)}FLOP/s" for name, figure in rates.peaks.items()]
    if rates.bandwidth is not None:
        memory = "memory" if found.cached_bytes is None else "cache"
        parts.append(f"{memory} {format_count(rates.bandwidth.value)}B/s")
    if rates.axis_bandwidth is not None:
        parts.append(f"links {format_count(rates.axis_bandwidth)}B/s along an axis")
    return ", ".join(parts) or "unknown"


def _product_rates(found: cost.Estimate) -> str:
    """The peaks that matmuls and convolutions are divided by, with the part of their FLOPs that each is used for."""
    rates, whole = found.chip.rates, sum(found.product_rates.values())
    parts: list[str] = []
    for name, amount in found.product_rates.items():
        if (peak := rates.peak(name)) is not None:
            share = format_percent(amount, whole) + ("" if parts else " of their FLOPs")
            part = f" ({share})" if len(found.product_rates) > 1 else ""
            parts.append(f"{name} {format_count(peak.value)}FLOP/s{part}")
    return ", ".join(parts)


def _types_of_products(module: hlo.Module) -> list[str]:
    """The element types that the products of a module compute with, as its text has them."""
    products = (one for opcode in ("dot", "convolution") for one in census(module).by_opcode.get(opcode, ()))
    return sorted(
        {
            one.operands[0].shape.element_type.name
            for one in products
            if one.operands and one.operands[0].shape is not None and one.operands[0].shape.is_array
        }
    )


def _instructions(lines: Lines) -> Listing[cost.InstructionTime]:
    return Listing(
        "time.instructions",
        lambda one: (
            one.name, one.seconds, one.runs, one.bound.value, list(one.least.products), one.least.flops,
            one.least.flops * one.runs, one.least.bytes, one.least.fast_bytes, one.weight,
            Shown(one.cycles, _cycles(one)), one.cycle_seconds,
            _line(lines, one.instruction),
        ),
    )  # fmt: skip


def _show_instructions(report: Output, found: cost.Estimate, limit: int, lines: Lines) -> None:
    shown = found.instructions[: limit or None]
    is_weighed = any(one.weight > one.seconds for one in shown)
    title = "Core (all runs), sorted by time with VMEM" if is_weighed else "Core (all runs)"
    without = () if is_weighed else ("with VMEM",)
    table = _instructions(lines).table(title, found.instructions, limit, without=without)
    report.table(table)


def _cycles(one: cost.InstructionTime) -> str:
    """The compiler's estimate for all executions, in seconds or else in cycles."""
    if one.cycles is None:
        return ""
    if one.cycle_seconds is None:
        return f"{format_count(one.cycles * one.runs)} cycles"
    return seconds(one.cycle_seconds * one.runs)


def _transfers(lines: Lines) -> Listing[cost.TransferTime]:
    return Listing(
        "time.transfers",
        lambda one: (
            one.start.name,
            one.communication.kind if one.communication is not None else "copy",
            list(one.queues),
            one.seconds if one.is_known else None,
            one.exposed,
            one.hidden if one.seconds else Shown(one.hidden, ""),
            one.runs,
            _line(lines, one.start),
        ),
    )


def _show_path(report: Output, found: cost.Estimate, limit: int, lines: Lines) -> None:
    """The steps that weigh most, in the order of the schedule."""
    path = found.critical_path
    if limit and len(path) > limit:
        least = sorted((step.seconds for step in path), reverse=True)[limit - 1]
        shown = [step for step in path if step.seconds >= least][:limit]
    else:
        shown = list(path)
    table = _steps(lines, found.seconds).table("Critical path: longest steps, in schedule order", shown)
    report.table(attrs.evolve(table, left_out=len(path) - len(shown)))


def _steps(lines: Lines, whole: float) -> Listing[cost.PathStep]:
    return Listing(
        "time.critical_path",
        lambda one: (
            one.instruction.name,
            one.seconds,
            one.seconds / whole if whole else None,
            one.resource,
            _line(lines, one.instruction),
        ),
    )


def _line(lines: Lines, instruction: hlo.Instruction) -> Shown:
    return line_cell((lines.get(instruction) or (None,))[0])


def as_json(found: cost.Estimate) -> dict[str, Any]:
    """Returns a lower bound on run time as JSON values."""
    lines = source_locations(found.module)
    return {
        "is_estimate": True,
        "is_bound": found.is_bound,
        "seconds": found.seconds,
        "roofline_seconds": found.roofline_seconds,
        "compiler_estimate": None if found.compiler is None else attrs.asdict(found.compiler),
        "exposed_seconds": found.exposed,
        "product_rates": dict(found.product_rates),
        "cached_bytes": found.cached_bytes,
        "is_scheduled": found.is_scheduled,
        "busy": dict(found.busy),
        "bounds": {bound.value: time for bound, time in found.by_bound.items()},
        "unknown_loops": [one.name for one in found.unknown_loops],
        "unknown_calls": [one.name for one in found.unknown_calls],
        "at_most_calls": [one.name for one in found.at_most_calls],
        "scatters": {one.name: rows for one, rows in found.scatters.items()},
        "instructions": _instructions(lines).json(found.instructions),
        "transfers": _transfers(lines).json(found.transfers),
        "critical_path": _steps(lines, found.seconds).json(found.critical_path),
    }
