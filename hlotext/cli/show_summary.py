"""The facts of a module as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from hlotext.analysis import ChipChoice, XlaAge
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.sizes import Total, byte_text
from hlotext.analysis.summary import CustomCall, OpcodeCount
from hlotext.analysis.summary.arrays import ArrayGroup, MemorySpace, PaddedShape, Transfer
from hlotext.analysis.summary.communication import CollectiveGroup
from hlotext.analysis.summary.loops import Loop
from hlotext.analysis.summary.sources import SourceLine
from hlotext.cli.chip_options import format_count, seconds
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, TerminalTable
from hlotext.cli.run_totals import AgeFacts, CompilerFigures, ModuleFacts, RunFigures
from hlotext.ir.tables import traits


def show_summary(
    report: Output, place: str, summary: ModuleFacts, notes: Sequence[str], limit: int | None
) -> None:
    """Prints everything about a module; at most `limit` rows per table, None prints all."""
    report.heading(f"{place}: {summary.name}")
    report.facts(_facts(summary))
    for table in _tables(summary, limit):
        report.table(table)
    unknown: Listing[str] = Listing("show.notes", lambda note: (note,))
    report.table(unknown.table("Unknown to this release", notes))


# ---- facts


_PLURALS = {
    "fusion body": "fusion bodies",
    "loop body": "loop bodies",
    "loop condition": "loop conditions",
    "branch": "branches",
    "async body": "async bodies",
    "called by custom call": "called by custom calls",
    "applied": "reducers",
}
"""Uses of several computations."""
_SINGULARS = {"applied": "reducer"}
"""Uses of one computation, where the name of the use is not a noun."""
_SHOWN_FILES = 5


def _facts(summary: ModuleFacts) -> Iterator[tuple[str, str]]:
    yield "schedule", "scheduled" if summary.is_scheduled else "not scheduled"
    replicas, partitions = summary.replica_count, summary.num_partitions
    if replicas * partitions > 1:
        yield "devices", f"{pluralize(replicas, 'replica')} × {pluralize(partitions, 'partition')}"
    if summary.age is not None:
        yield "age", _age_text(summary.age)
    yield "entry", summary.entry
    yield "arguments", _total_text(summary.arguments)
    yield "results", _total_text(summary.results)
    aliased = summary.aliased_results
    if aliased.arrays:
        yield (
            "",
            f"{aliased.arrays:,} of them, {byte_text(aliased.allocated_bytes)}, reuse donated argument buffers",
        )
    if summary.constants.arrays:
        yield "constants", _total_text(summary.constants)
    if summary.run is not None:
        yield from _run_facts(summary.run)
    if summary.compiler is not None:
        yield "compiler-internal", _compiler_text(summary.compiler)
    if summary.chip is not None and summary.chip_source is not None:
        choice = ChipChoice(chip_named(summary.chip), summary.chip_source, summary.chip_candidates)
        yield "chip", choice.text
    if summary.peak_memory is not None:
        peak = summary.peak_memory
        yield "peak memory", f"{byte_text(peak.bytes)} at {peak.name} (details: hlotext memory)"
    yield "computations", ", ".join(_uses(summary))
    inside = sum(count.in_fusions for count in summary.opcodes)
    yield (
        "instructions",
        f"{summary.instructions:,}" + (f", {inside:,} of them in fusions and reducers" if inside else ""),
    )
    configs = summary.configs
    if configs.backend_configs:
        size = byte_text(configs.backend_config_bytes)
        yield "backend configs", f"on {pluralize(configs.backend_configs, 'instruction')}, {size} of text"
    if configs.metadata:
        yield "metadata", f"on {pluralize(configs.metadata, 'instruction')}"
    if configs.shardings:
        yield "shardings", f"on {pluralize(configs.shardings, 'instruction')}"
    files = [file.file for file in summary.source_files]
    if files:
        more = f" and {len(files) - _SHOWN_FILES:,} more" if len(files) > _SHOWN_FILES else ""
        yield "Python files", ", ".join(files[:_SHOWN_FILES]) + more


def _age_text(age: AgeFacts) -> str:
    since, until = (date.fromisoformat(day) if day else None for day in (age.since, age.until))
    return str(XlaAge(since, until))


def _run_facts(run: RunFigures) -> Iterator[tuple[str, str]]:
    bound = f"{run.bound} " if run.bound else ""
    yield "one run", f"{bound}{format_count(run.flops)} flops, {bound}{byte_text(run.bytes_accessed)} moved"
    if run.unknown_loops:
        yield "", f"{pluralize(run.unknown_loops, 'loop')} with unknown trip count, counted once"
    if run.unknown_calls:
        yield (
            "",
            f"{pluralize(run.unknown_calls, 'custom call')} of unknown cost, counted by bytes only",
        )


def _compiler_text(figures: CompilerFigures) -> str:
    calls = (
        pluralize(figures.unknown_calls, "call") + " of unknown cost excluded"
        if figures.unknown_calls
        else ""
    )
    parts = [
        f"{format_count(figures.flops)} flops",
        f"{'about ' if figures.is_estimate else ''}{byte_text(figures.bytes_accessed)} moved with padding",
        f"{'at least ' if calls else ''}{seconds(figures.least_seconds)}",
        *(["loop bodies once"] if figures.is_loop_once else []),
        *([calls] if calls else []),
    ]
    return ", ".join(parts)


def _uses(summary: ModuleFacts) -> Iterator[str]:
    yield f"{sum(use.computations for use in summary.computations):,}: the entry"
    for use in summary.computations:
        if use.use != "entry":
            name = (
                _SINGULARS.get(use.use, use.use) if use.computations == 1 else _PLURALS.get(use.use, use.use)
            )
            yield f"{use.computations:,} {name}"


def _total_text(total: Total) -> str:
    if not total.arrays:
        return "none"
    text = f"{pluralize(total.arrays, 'array')}, {byte_text(total.allocated_bytes)}"
    if total.allocated_bytes != total.unpadded_bytes:
        text += f" ({_padding(total.allocated_bytes, total.unpadded_bytes)} of it padding)"
    return text + (f", {total.unsized} of unknown size" if total.unsized else "")


def _padding(allocated: int, unpadded: int) -> str:
    return f"{100 * (allocated - unpadded) / allocated:.0f}%" if allocated else "0%"


def _some_padding(allocated: int, unpadded: int) -> str:
    """The same, empty for none."""
    return _padding(allocated, unpadded) if allocated != unpadded else ""


# ---- tables

_SPACES = {0: "default", 5: "S(5) host"}
_TILED_SPACES = {0: "default (HBM)", 1: "S(1) VMEM"}


def _space_text(space: int, is_tiled: bool) -> str:
    """A memory space in words; tiled layouts are those of TPU, where more numbers have a known meaning."""
    known = _TILED_SPACES.get(space) if is_tiled else None
    return known or _SPACES.get(space) or f"S({space})"


def _array_name(group: ArrayGroup) -> str:
    return group.name + (f" {{{','.join(map(str, group.shape_index))}}}" if group.shape_index else "")


def _source(row: ArrayGroup | Loop) -> str:
    return str(row.place) if row.place is not None else row.op_name


def _array(row: ArrayGroup) -> Row:
    padding = _some_padding(row.allocated_bytes, row.unpadded_bytes)
    return row.allocated_bytes, row.count, padding, row.shape, row.opcode, _array_name(row), _source(row)


def _padded(row: PaddedShape) -> Row:
    factor = f"{row.allocated_bytes / row.unpadded_bytes:.3g}" if row.unpadded_bytes else ""
    sizes = row.padding_bytes, row.count, row.unpadded_bytes, row.allocated_bytes
    return *sizes, factor, row.shape, row.name


def _groups_text(row: CollectiveGroup) -> str:
    if row.group_count is None:
        return "" if row.kind.split()[-1] in _POINT_TO_POINT else "all devices"
    if "permute" in row.kind:
        return pluralize(row.group_count, "pair")
    return f"{row.group_count:,} × {'different sizes' if row.group_size is None else f'{row.group_size:,}'}"


_POINT_TO_POINT = traits.HOST_QUEUES | {"send", "recv"}


def _where(row: CollectiveGroup) -> str:
    places = []
    for count, what in ((row.in_loops, "loops"), (row.in_fusions, "fusions")):
        if count:
            places.append(f"in {what}" if count == row.count else f"{count:,} in {what}")
    return ", ".join(places)


def _collective(row: CollectiveGroup) -> Row:
    return (
        row.kind + (" async" if row.is_async else ""), _groups_text(row), row.groups, row.count, row.runs,
        row.operand_bytes, row.result_bytes, row.largest_bytes, row.name, _where(row),
    )  # fmt: skip


def _loop(row: Loop) -> Row:
    state = row.state.arrays, row.state.allocated_bytes
    return row.name, row.trip_count, row.runs, row.body_instructions, *state, row.inside, _source(row)


def _tables(summary: ModuleFacts, limit: int | None) -> Iterator[TerminalTable]:
    def space(number: int) -> str:
        return _space_text(number, summary.is_tiled)

    def memory(row: MemorySpace) -> Row:
        one = row.written
        padding = _padding(one.allocated_bytes, one.unpadded_bytes)
        return space(row.memory_space), one.arrays, one.allocated_bytes, padding, one.largest_bytes

    def transfer(row: Transfer) -> Row:
        return space(row.source), space(row.target), row.copies, row.allocated_bytes

    written = "Bytes written per memory space"
    yield Listing("show.memory_spaces", memory).table(written, summary.memory_spaces)
    yield Listing("show.transfers", transfer).table("Copies between memory spaces", summary.transfers)
    yield Listing("show.arrays", _array).table("Largest arrays", summary.largest_arrays, limit)
    yield Listing("show.padded", _padded).table("Most padding by shape", summary.most_padded, limit)
    title = "Collectives and transfers: bytes on each device"
    yield Listing("show.collectives", _collective).table(title, summary.collective_groups, limit)
    yield Listing("show.loops", _loop).table("Loops", summary.loops, limit)
    yield Listing[CustomCall]("show.custom_calls").table("Custom calls", summary.custom_calls, limit)
    yield Listing[OpcodeCount]("show.opcodes").table("Opcodes", summary.opcodes, limit)
    yield Listing[SourceLine]("show.source_lines").table("Python", summary.source_lines, limit)
