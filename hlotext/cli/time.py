"""`hlotext time`: the least time of modules on a chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs
import click

import hlotext as hlo
from hlotext import cost
from hlotext.analysis import (
    Backend,
    ChipChoice,
    DeviceMesh,
    SourceLocation,
    backend_of,
    choose_chip,
    is_optimized,
    parse_mesh,
    places,
)
from hlotext.analysis.chips import CHIPS, Chip
from hlotext.analysis.quantities import counted
from hlotext.cli.common import FILES, FORMAT, TRIPS, Inputs, limit_option, trips_of, write_json
from hlotext.cli.figures import (
    COSTS,
    amount,
    chip_of,
    choice_json,
    costs_of,
    line_cell,
    seconds,
    share,
    told,
    with_set,
)
from hlotext.cli.listing import Listing, Shown
from hlotext.cli.output import Output, output
from hlotext.dumps.texts import compilation_beside

_LIMIT = 10
Lines: TypeAlias = Mapping[hlo.Instruction, tuple[SourceLocation, object]]


@click.command()
@FILES
@click.option(
    "--chip",
    metavar="NAME|FILE.toml",
    help=f"The chip, where the folder does not name it: {', '.join(CHIPS)}, or one's own.",
)
@click.option(
    "--set",
    "figures",
    metavar="NAME=NUMBER",
    multiple=True,
    help="Another figure: bandwidth=8e11, bf16=2e14.",
)
@click.option("--mesh", metavar="NAME=SIZE,...", help="The mesh, the most major axis first: dp=2,tp=4.")
@TRIPS
@COSTS
@limit_option(_LIMIT)
@FORMAT
def command(
    files: tuple[str, ...],
    chip: str | None,
    figures: tuple[str, ...],
    mesh: str | None,
    trips: tuple[str, ...],
    costs: str | None,
    limit: int,
    output_format: str,
) -> None:
    """The least time that each FILE takes on a chip: a bound from sizes and rates, not a prediction.

    Each instruction takes as long as its operations at the chip's peak, or its bytes at its bandwidth, whichever is more.
    The schedule is walked through with one clock for the core and a queue for each link, so it tells what transfers are
    waited for. What starting a kernel and sending a message cost is not known and not counted. Of a text before optimization
    it is an estimate and no bound: producers that the compiler will fuse are charged for what they write.

    \b
    Examples:
      hlotext time module_0001.jit_step.after_optimizations.txt --chip v5e
      hlotext time dump.txt --chip h100 --set bandwidth=3e12
      hlotext time dump.txt --chip h100 --trips body.12=100
    """
    given_chip = chip_of(chip) if chip is not None else None
    rounds = trips_of(trips)
    targets = costs_of(costs)
    given: DeviceMesh | None = told(lambda: parse_mesh(mesh)) if mesh is not None else None
    inputs = Inputs(files)
    documents = []
    report = output()
    texts = {text.label: text for text in inputs.texts if not isinstance(text, str)}
    for place, result in inputs:
        compilation = texts[place].compilation if place in texts else compilation_beside(place)
        for module in result.modules:
            choice = choose_chip(module, given_chip, compilation.chip if compilation is not None else None)
            if choice is None:
                raise click.UsageError(f"{place} does not tell the chip: set --chip ({', '.join(CHIPS)})")
            row = with_set(choice.chip, figures)
            found = told(
                lambda module=module, row=row: cost.estimate(
                    module, row, given, trips=rounds or None, costs=targets
                )  # type: ignore[misc]
            )
            if output_format == "json":
                documents.append(_json(place, found, choice))
                continue
            report.heading(f"{place}: {module.name} on {row.name}")
            _show(report, found, choice, limit)
    if output_format == "json":
        write_json({"modules": documents})
    inputs.finish()


def _show(report: Output, found: cost.Estimate, choice: ChipChoice, limit: int) -> None:
    chip = [] if choice.source == "given" else [("chip", str(choice))]
    report.facts([*chip, *_facts(found)])
    lines = places(found.module)
    _show_instructions(report, found, limit, lines)
    report.table(_transfers(lines).table("Transfers (all runs)", found.transfers, limit))
    _show_path(report, found, limit, lines)


def _facts(found: cost.Estimate) -> list[tuple[str, str]]:
    mark = "at least " if found.unknown_calls else ""
    least = f"{mark}{seconds(found.seconds)} (estimated; starting kernels and latencies are not in it)"
    facts = [("least time", least) if found.is_bound else ("estimate", _no_bound(found))]
    bounds = found.by_bound
    core = sum(bounds.values())
    if core:
        parts = [
            f"{_BOUNDS.get(bound, bound.value)} {share(time, core)}" for bound, time in bounds.items() if time
        ]
        facts.append(("core bound by", ", ".join(parts)))
    busy = [f"{queue} {seconds(time)}" for queue, time in found.busy.items() if time]
    facts.append(("busy", ", ".join(busy[:6]) or "nothing"))
    if found.transfers:
        facts.append(
            ("waiting", f"{seconds(found.exposed)} for transfers, {share(found.exposed, found.seconds)}")
        )
    if found.roofline_seconds is not None:
        facts.append(("XLA's way", f"{seconds(found.roofline_seconds)}: loops once, nothing overlaps"))
    own = found.compiler
    if own is not None:
        facts.append(("compiler's estimate", f"{seconds(own.seconds)} {own.coverage} (its cycles, all runs)"))
    facts.append(("rates", _rates(found.chip)))
    if not found.is_scheduled:
        facts.append(("schedule", "none in the text: its order is taken for one"))
    if found.unknown_loops:
        facts.append(("loops of unknown count", f"{len(found.unknown_loops)}, each counted once"))
    if found.unknown_calls:
        targets = dict.fromkeys(str(c.attributes.get("custom_call_target", "")) for c in found.unknown_calls)
        listed = ", ".join(list(targets)[:3]) + (", ..." if len(targets) > 3 else "")
        calls = counted(len(found.unknown_calls), "call")
        facts.append(("at least", f"{calls} of unknown cost, of which only the bytes count: {listed}"))
    unknown = sum(not one.is_known for one in found.transfers)
    if unknown:
        facts.append(("unknown transfers", f"{unknown} without a known size or rate, taken for nothing"))
    backend = backend_of(found.module)
    if backend not in (None, found.chip.backend) and isinstance(backend, Backend):
        facts.append(("compiled for", f"{backend.name}, not for this chip"))
    return facts


def _no_bound(found: cost.Estimate) -> str:
    if not is_optimized(found.module):
        why = "before optimization no bound: what will be fused is charged for its bytes"
    else:
        names = ", ".join(one.name for one in found.at_most_calls[:3])
        more = ", ..." if len(found.at_most_calls) > 3 else ""
        why = f"no bound: all branches of kernels count: {names}{more}"
    return f"{seconds(found.seconds)} ({why})"


_BOUNDS = {
    cost.Bound.OVERHEAD: "less than 5 us each, where starting them likely takes more and is not counted,"
}
"""Bounds that one word would not tell."""


def _rates(chip: Chip) -> str:
    rates = chip.rates
    parts = [f"{name} {amount(figure.value)}FLOP/s" for name, figure in rates.peaks.items()]
    if rates.bandwidth is not None:
        parts.append(f"memory {amount(rates.bandwidth.value)}B/s")
    if rates.axis_bandwidth is not None:
        parts.append(f"links {amount(rates.axis_bandwidth)}B/s along an axis")
    return ", ".join(parts) or "not known of this chip"


def _instructions(lines: Lines) -> Listing[cost.InstructionTime]:
    return Listing(
        "time.instructions",
        lambda one: (
            one.name, one.seconds, one.runs, one.bound.value, one.least.flops, one.least.flops * one.runs,
            one.least.bytes, one.least.fast_bytes, one.weight, Shown(one.cycles, _cycles(one)), one.cycle_seconds,
            _line(lines, one.instruction),
        ),
    )  # fmt: skip


def _show_instructions(report: Output, found: cost.Estimate, limit: int, lines: Lines) -> None:
    shown = found.instructions[: limit or None]
    without = () if any(one.weight > one.seconds for one in shown) else ("with VMEM",)
    table = _instructions(lines).table("Core (all runs)", found.instructions, limit, without=without)
    report.table(table)


def _cycles(one: cost.InstructionTime) -> str:
    """What the compiler expects of all runs, in seconds or else in cycles."""
    if one.cycles is None:
        return ""
    if one.cycle_seconds is None:
        return f"{amount(one.cycles * one.runs)} cycles"
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
    table = _steps(lines, found.seconds).table("Critical path: its longest steps, in order", shown)
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


def _json(place: str, found: cost.Estimate, choice: ChipChoice) -> dict[str, Any]:
    lines = places(found.module)
    return {
        "file": place,
        "module": found.module.name,
        **choice_json(choice),
        "is_estimate": True,
        "is_bound": found.is_bound,
        "seconds": found.seconds,
        "roofline_seconds": found.roofline_seconds,
        "compiler_estimate": None if found.compiler is None else attrs.asdict(found.compiler),
        "exposed_seconds": found.exposed,
        "is_scheduled": found.is_scheduled,
        "busy": dict(found.busy),
        "bounds": {bound.value: time for bound, time in found.by_bound.items()},
        "unknown_loops": [one.name for one in found.unknown_loops],
        "unknown_calls": [one.name for one in found.unknown_calls],
        "at_most_calls": [one.name for one in found.at_most_calls],
        "instructions": _instructions(lines).json(found.instructions),
        "transfers": _transfers(lines).json(found.transfers),
        "critical_path": _steps(lines, found.seconds).json(found.critical_path),
    }
