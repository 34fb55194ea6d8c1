"""`hlotext cost`: FLOPs, bytes and lower bounds on run time."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs
import click

import hlotext as hlo
from hlotext import cost
from hlotext.analysis import (
    ChipChoice,
    Phase,
    backend_of,
    byte_text,
    called_lines,
    choose_chip,
    source_locations,
)
from hlotext.analysis.chips import CHIPS
from hlotext.analysis.formatting import pluralize
from hlotext.cli import cost_time
from hlotext.cli.chip_options import (
    COSTS,
    chip_of,
    choice_json,
    costs_of,
    format_count,
    format_percent,
    line_cell,
    seconds,
    told,
    xla_json,
)
from hlotext.cli.common import FILES, FORMAT, TRIPS, Inputs, age_json, limit_option, write_json
from hlotext.cli.cost_time import estimated, loops_told, rates_of
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, output
from hlotext.cost.analysis import line_name
from hlotext.dumps.texts import compilation_beside
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.usage import memory_space_name

_BAR = 12
_LIMIT = 12
_DEPTH = 3
_BY = {"scope": "cost.by_scope", "line": "cost.by_line"}


@click.command()
@FILES
@click.option("--by", type=click.Choice(cost.KEYS), help="Group by this instead of the tree of scopes.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    help=f"Levels of the tree of scopes, or names of a scope with --by scope.  [default: {_DEPTH}, or all]",
)
@click.option("--as-xla", is_flag=True, help="XLA's cost analysis: loop bodies once, unknown calls -1.")
@click.option("--time", "is_timed", is_flag=True, help="Lower bound on run time; implied by --chip.")
@click.option("--chip", metavar="NAME|FILE.toml", help=f"Chip: {', '.join(CHIPS)}, or a file.")
@click.option(
    "--set",
    "figures",
    metavar="NAME=NUMBER",
    multiple=True,
    help="Override a rate of the chip: bandwidth=8e11, bf16=2e14.",
)
@click.option("--mesh", metavar="NAME=SIZE,...", help="Device mesh, major axis first: dp=2,tp=4.")
@TRIPS
@click.option("--padded", is_flag=True, help="Also show bytes including layout padding.")
@click.option("--no-fold", is_flag=True, help="Do not fold repeated layers.")
@COSTS
@limit_option(_LIMIT)
@FORMAT
def command(
    files: tuple[str, ...],
    by: cost.Key | None,
    depth: int | None,
    as_xla: bool,
    is_timed: bool,
    chip: str | None,
    figures: tuple[str, ...],
    mesh: str | None,
    trips: tuple[str, ...],
    costs: str | None,
    padded: bool,
    no_fold: bool,
    limit: int,
    output_format: str,
) -> None:
    """FLOPs and bytes of one run of each FILE. Loop bodies count once per iteration, asynchronous operations once.

    FLOPs follow XLA's cost analysis and include integer operations and comparisons; an FFT of n points counts 5 n
    log2 n, or half of that if one side is real (XLA counts far more for several dimensions). Bytes are what
    instructions read and write, in any memory space; a fusion that slices, gathers or updates in place counts only
    the part it touches.

    With --chip or --time: a lower bound on run time. Each instruction takes the longer of FLOPs at the chip's peak and
    bytes at its bandwidth; the schedule is simulated with one clock for the core and a queue for each link, which shows
    stalls on transfers. On GPU each kernel also takes 1 us and each collective 5 us to launch, as XLA assumes;
    elsewhere launch overhead is not counted, nor is message latency. A kernel bound by `overhead` takes less than 5 us
    without its launch, so fixed costs likely dominate; on TPU one program runs all steps. On CPU a module whose peak
    memory fits the last-level cache (32 MiB, 200 GB/s) is assumed to keep its arrays there. Before optimization it is
    an estimate, not a bound.

    \b
    Examples:
      hlotext cost module_0001.jit_step.after_optimizations.txt
      hlotext cost dump.txt --by line --limit 30
      hlotext cost dump.txt --by scope --depth 1 --chip v5e
      hlotext cost dump.txt --chip v5e
      hlotext cost dump.txt --trips body.12=100
      hlotext cost dump.txt --chip h100 --trips body.12=100
      hlotext cost dump.txt --as-xla
      hlotext cost dump.txt --costs kernels.toml

    \b The schedule with these times as a trace for Perfetto: hlotext convert FILE --to trace-events --chip NAME -o
    OUT.json.gz Every operation as a table or CSV: hlotext sql --query costs FILE --format csv -o OUT.csv
    """
    rates = rates_of(chip_of(chip) if chip is not None else None, figures, mesh, trips, costs_of(costs))
    if depth is not None and (by not in (None, "scope") or as_xla):
        raise click.UsageError("--depth is for scopes: the tree of them, or --by scope")
    is_timed = not as_xla and (is_timed or chip is not None or bool(figures or mesh))
    if is_timed and by is None and depth is not None:
        raise click.UsageError("--depth with times needs --by scope")
    inputs = Inputs(files, is_whole=True)
    texts = {text.label: text for text in inputs.texts if not isinstance(text, str)}
    documents = []
    report = output()
    for place, result in inputs:
        for module in result.modules:
            compilation = texts[place].compilation if place in texts else compilation_beside(place)
            choice = choose_chip(module, rates.chip, compilation.chip if compilation is not None else None)
            timed = estimated(module, place, choice, rates, compilation) if is_timed else None
            age = compilation.age if compilation is not None else None
            found = told(partial(cost.analyze, module, age=age, costs=rates.costs, trips=rates.trips))
            try:
                xla = _xla(found, choice)
            except ValueError as error:
                if timed is None:
                    raise click.UsageError(str(error)) from None
                xla = _xla(found, None)  # a time on a chip that the text was not compiled for
            if output_format == "json":
                more = cost_time.as_json(timed[0]) if timed is not None else {}
                times = (
                    timed[0].seconds_by(by or "scope", depth=depth if by else None)
                    if timed is not None
                    else None
                )
                documents.append(
                    {**_json(place, found, xla, choice, by, padded, times, depth if by else None), **more}
                )
                continue
            report.heading(f"{place}: {module.name}" + (f" on {timed[0].chip.name}" if timed else ""))
            if as_xla:
                report.facts(_as_xla(found, xla, choice))
                continue
            work = _work(found, xla, choice, padded)
            if timed is None:
                report.facts([*work, *_open(found.run), _untimed(choice)])
            else:
                own = choose_chip(module, None, compilation.chip if compilation is not None else None)
                work = [one for one in work if one[0] not in ("chip", "XLA cost model")]
                cost_time.show(report, *timed, own, work, limit)
            if by is not None:
                times = timed[0].seconds_by(by, depth=depth) if timed is not None else None
                _show_parts(report, found, by, limit, times, depth)
            elif timed is None:
                _show_tree(report, found, depth or _DEPTH, limit, fold=not no_fold)
                if depth is None:
                    _show_instructions(report, found, limit)
    if output_format == "json":
        write_json({"modules": documents})
    inputs.finish()


def _untimed(choice: ChipChoice | None) -> tuple[str, str]:
    option = "--time" if choice is not None and choice.is_known else "--chip NAME"
    return "minimum time", f"use {option} for an estimate, in total and by instruction"


def _xla(found: cost.Analysis, choice: ChipChoice | None) -> cost.Cost | cost.TpuCost:
    """XLA's own figures, those of a module for TPU for the chip that is given, named or assumed."""
    return found.as_xla(choice.chip if choice is not None else None)


def _as_xla(
    found: cost.Analysis, xla: cost.Cost | cost.TpuCost, choice: ChipChoice | None
) -> Iterator[tuple[str, str]]:
    """XLA's own figures: on TPU those of its own analysis, else those of the open one."""
    yield "flops", f"{xla.flops:.0f}"
    yield "transcendentals", f"{xla.transcendentals:.0f}"
    about = "about " if isinstance(xla, cost.TpuCost) and xla.carried else ""
    yield "bytes accessed", f"{about}{xla.bytes_accessed:.0f}"
    if isinstance(xla, cost.TpuCost):
        yield "optimal seconds", f"{'at least ' if xla.unknown_calls else ''}{xla.least_seconds:.6g}"
        if xla.unknown_calls:
            yield "calls of unknown cost", f"{xla.unknown_calls}, -1 each in XLA's analysis"
        yield "chip", _chip_text(choice)
    if found.age.is_known:
        yield "age", str(found.age)


def _chip_text(choice: ChipChoice | None) -> str:
    """The chip; of one that is assumed also what depends on it."""
    if choice is None or choice.is_known:
        return str(choice)
    return f"{choice}; times and tuple sizes depend on it"


def _work(
    found: cost.Analysis, xla: cost.Cost | cost.TpuCost, choice: ChipChoice | None, padded: bool
) -> list[tuple[str, str]]:
    """FLOPs and bytes as facts."""
    run = found.run
    bound = f"{run.bound} " if run.bound else ""
    least = "at least " if run.is_at_least else ""
    moved = f"{xla.moved} with padding" if isinstance(xla, cost.TpuCost) else byte_text(xla.bytes_accessed)
    facts = [
        *([("age", str(found.age))] if found.age.is_known else []),
        ("flops", f"{bound}{format_count(run.flops)} (XLA: {_xla_flops(found, xla)})"),
        ("transcendentals", format_count(run.transcendentals)),
        (
            "bytes",
            f"{least}{byte_text(run.bytes_accessed)} (XLA: {moved})",
        ),
    ]
    if run.bytes_accessed:
        facts.append(("flops per byte", f"{run.flops / run.bytes_accessed:.3g}"))
    spaces = found.bytes_by_memory_space
    if set(spaces) - {0}:
        facts.append(("by memory", _spaces(found, spaces)))
    if padded:
        facts.append(("with padding", _spaces(found, found.padded_bytes_by_memory_space)))
    if isinstance(xla, cost.TpuCost):
        calls = f" without {pluralize(xla.left_out, 'call')} of unknown cost" if xla.left_out else ""
        bound = "at least " if xla.left_out else ""
        once = ", loop bodies once" if found.counts_loops_again else ""
        facts.append(("XLA cost model", f"{bound}{seconds(xla.least_seconds)}{once}{calls}"))
        facts.append(("chip", _chip_text(choice)))
    return facts


def _xla_flops(found: cost.Analysis, xla: cost.Cost | cost.TpuCost) -> str:
    """XLA's own count, with what it leaves out where it differs from that of a run."""
    count = format_count(xla.flops)
    return count if count == format_count(found.run.flops) else ", ".join((count, *found.xla_omissions))


def _spaces(found: cost.Analysis, spaces: Mapping[int, float]) -> str:
    backend = backend_of(found.module)
    return ", ".join(f"{memory_space_name(backend, n)} {byte_text(size)}" for n, size in spaces.items())


def _open(run: cost.RunCost) -> list[tuple[str, str]]:
    """Facts about work of unknown size, one per kind."""
    facts = []
    if run.unknown_loops:
        facts.append(("unknown trip counts", loops_told(run.unknown_loops)))
    if run.conditionals:
        names = _names([one.name for one in run.conditionals])
        facts.append(("conditionals", f"{len(run.conditionals)}, counted as the costliest branch: {names}"))
    if run.unknown_calls:
        targets = dict.fromkeys(str(c.attributes.get("custom_call_target", "")) for c in run.unknown_calls)
        facts.append(
            (
                "calls of unknown cost",
                f"{len(run.unknown_calls)}, counted by bytes only: {_names(list(targets))}",
            )
        )
    if run.kernel_error:
        facts.append(("kernels", run.kernel_error))
    if run.at_most_calls:
        names = _names([one.name for one in run.at_most_calls])
        facts.append(("upper bounds", f"{len(run.at_most_calls)} kernels with all branches counted: {names}"))
    if run.uncounted:
        name, why = run.uncounted[0][0].name, run.uncounted[0][1]
        facts.append(("not fully counted", f"{len(run.uncounted)}, such as {name}: {why}"))
    if run.has_unsized:
        facts.append(("unknown sizes", "counted as 0"))
    return facts


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def _bar(part: float, whole: float) -> str:
    """A bar of eighths, as long as the part of the whole."""
    eighths = round(8 * _BAR * part / whole) if whole > 0 else 0
    full, rest = divmod(max(0, min(eighths, 8 * _BAR)), 8)
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower()
    if not encoding.startswith("utf"):
        return "#" * (full + (rest >= 4))
    return "█" * full + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[rest]


def _show_tree(report: Output, found: cost.Analysis, depth: int, limit: int, *, fold: bool) -> None:
    root = cost.scope_tree(found, fold=fold)
    rows = list(root.walk(depth))
    shown = rows
    if limit and len(rows) > limit:
        # The largest ones; what is shown keeps its parents, which are at least as large.
        least = sorted((max(_weight(node, root), 0.0) for _, node in rows), reverse=True)[limit - 1]
        shown = [row for row in rows if _weight(row[1], root) >= least][: 2 * limit]

    def row(place: tuple[int, cost.ScopeCost]) -> Row:
        level, node = place
        name = "  " * level + node.name
        return name, *_cells(node, root), _phases(node)

    table = Listing("cost.scopes", row).table("By scope (one run)", shown)
    report.table(attrs.evolve(table, left_out=len(rows) - len(shown)))


def _cells(one: cost.Cost | cost.ScopeCost, whole: cost.Cost | cost.ScopeCost) -> Row:
    bar = _bar(one.flops, whole.flops)
    return format_percent(one.flops, whole.flops), bar, one.flops, one.bytes_accessed


def _weight(node: cost.ScopeCost, root: cost.ScopeCost) -> float:
    """The larger of a scope's shares of operations and of bytes."""
    flops = node.flops / root.flops if root.flops else 0.0
    return max(flops, node.bytes_accessed / root.bytes_accessed if root.bytes_accessed else 0.0)


def _phases(node: cost.ScopeCost) -> str:
    parts = [node.phases.get(phase, 0) for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED)]
    if not any(parts) or not node.flops:
        return ""
    return "/".join(f"{100 * part / node.flops:.0f}" for part in parts)


def _show_instructions(report: Output, found: cost.Analysis, limit: int) -> None:
    """The instructions that move the most bytes: without a chip nothing says which take longer."""
    lines, runs = source_locations(found.module), found.runs

    def row(part: tuple[Instruction, cost.Cost]) -> Row:
        one, own = part
        place = lines.get(one)
        often = runs.get(one.computation) if one.computation is not None else None
        return (
            one.name,
            own.flops,
            own.bytes_accessed,
            often,
            line_cell(place[0] if place is not None else None),
        )

    parts = sorted(found.by_instruction().items(), key=lambda part: -part[1].bytes_accessed)
    title = "Instructions (all runs), sorted by bytes"
    report.table(Listing("cost.instructions", row).table(title, parts, limit))


def _show_parts(
    report: Output,
    found: cost.Analysis,
    by: cost.Key,
    limit: int,
    times: Mapping[str, float] | None,
    depth: int | None,
) -> None:
    """Costs by scope, line, ...; with the least times of units that overlap, and the longest first, where these are known."""
    listing: Listing[tuple[str, cost.Cost]] = Listing(
        _BY.get(by, "cost.parts"),
        lambda part: (part[0], *_cells(part[1], found.run), (times or {}).get(part[0])),
        {"by": by},
    )
    parts = list(_parts(found, by, times, depth).items())
    if by == "line" and parts and (several := _several_callers(found, parts[0][0])):
        report.facts([("called from", several)])
    note = "; busy: core, links and copies, which overlap" if times is not None else ""
    report.table(listing.table(f"By {by} (one run{note})", parts, limit))


def _several_callers(found: cost.Analysis, line: str) -> str:
    """That the costliest line is called from several, as that of a helper is; "" where it is not."""
    callers = {
        str(place.caller)
        for place, _ in called_lines(found.module).values()
        if place.caller is not None and line_name(place.line) == line
    }
    return (
        f"{len(callers)} lines call the costliest one; --by caller shows them separately"
        if len(callers) > 1
        else ""
    )


def _parts(
    found: cost.Analysis, by: cost.Key, times: Mapping[str, float] | None, depth: int | None
) -> dict[str, cost.Cost]:
    parts = found.by(by, depth=depth)
    if times is None:
        return parts
    nothing = cost.Cost(0, 0, 0)
    names = sorted(dict.fromkeys((*parts, *times)), key=lambda name: -times.get(name, 0.0))
    return {name: parts.get(name, nothing) for name in names}


def _json(
    place: str,
    found: cost.Analysis,
    xla: cost.Cost | cost.TpuCost,
    choice: ChipChoice | None,
    by: cost.Key | None,
    padded: bool,
    times: Mapping[str, float] | None,
    depth: int | None,
) -> dict[str, Any]:
    run, module = found.run, found.module
    document: dict[str, Any] = {
        "file": place,
        "module": module.name,
        "age": age_json(found.age),
        **choice_json(choice),
        "xla": xla_json(xla),
        "run": {
            **_figures(run),
            "is_exact": run.is_exact,
            "is_at_least": run.is_at_least,
            "unknown_loops": _names_of(run.unknown_loops),
            "conditionals": _names_of(run.conditionals),
            "unknown_calls": _names_of(run.unknown_calls),
            "uncounted": [{"name": one.name, "why": why} for one, why in run.uncounted],
            "has_unsized": run.has_unsized,
            "at_most_calls": _names_of(run.at_most_calls),
            "kernel_error": run.kernel_error,
        },
        "bytes_by_memory_space": {str(n): size for n, size in found.bytes_by_memory_space.items()},
    }
    if padded:
        spaces = found.padded_bytes_by_memory_space
        document["padded_bytes_by_memory_space"] = {str(n): size for n, size in spaces.items()}
    document["by"] = by or "scope"
    document["parts"] = [
        {"name": name, **_figures(one), **({} if times is None else {"seconds": times.get(name, 0.0)})}
        for name, one in _parts(found, by or "scope", times, depth).items()
    ]
    return document


def _figures(one: cost.Cost | cost.TpuCost) -> dict[str, float]:
    return {
        "flops": one.flops,
        "transcendentals": one.transcendentals,
        "bytes_accessed": one.bytes_accessed,
    }


def _names_of(instructions: tuple[hlo.Instruction, ...]) -> list[str]:
    return [one.name for one in instructions]
