"""Summary statistics of a module, as JSON-serializable values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.entries import aliases_of
from hlotext.analysis.sizes import Total, arrays_of, total_of
from hlotext.analysis.summary.arrays import (
    ArrayGroup,
    MemorySpace,
    PaddedShape,
    Transfer,
    array_groups,
    memory_spaces,
    most_padded,
    transfers,
)
from hlotext.analysis.summary.collector import SummaryCollector, survey
from hlotext.analysis.summary.communication import Collective, CollectiveGroup, collective, collective_groups
from hlotext.analysis.summary.computations import ComputationUse, computation_uses
from hlotext.analysis.summary.loops import Loop, loop
from hlotext.analysis.summary.sources import SourceFile, SourceLine, source_files, source_lines
from hlotext.ir import gc_control
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.raw_value import value_text
from hlotext.ir.values.shape import Shape


@attrs.frozen
class OpcodeCount:
    """Number of instructions with one label, such as an opcode."""

    opcode: str
    """With the kind of a fusion: `fusion kLoop`; with the target of a custom call; `async all-to-all`."""
    count: int
    in_fusions: int
    """Number of these in fusions, reducers and comparators, which write to no memory."""
    written_bytes: int
    """Allocated bytes that the others write, each once."""


@attrs.frozen
class CustomCall:
    """The calls of one custom-call target."""

    target: str
    count: int
    name: str
    """The first one."""


@attrs.frozen
class Configs:
    """Number of instructions with text that only the compiler or the profiler reads, such as metadata."""

    backend_configs: int
    backend_config_bytes: int
    metadata: int
    shardings: int
    frontend_attributes: int


@attrs.frozen
class Summary:
    """Statistics of a module, created by `summarize`."""

    name: str
    attributes: dict[str, str]
    """Header attributes as text, by name."""
    is_scheduled: bool
    is_tiled: bool
    """True if layouts have tiles, as on TPU."""
    replica_count: int
    num_partitions: int
    entry: str
    instructions: int
    arguments: Total
    results: Total
    aliased_results: Total
    """Results aliased to arguments."""
    constants: Total
    computations: tuple[ComputationUse, ...]
    opcodes: tuple[OpcodeCount, ...]
    memory_spaces: tuple[MemorySpace, ...]
    transfers: tuple[Transfer, ...]
    largest_arrays: tuple[ArrayGroup, ...]
    most_padded: tuple[PaddedShape, ...]
    loops: tuple[Loop, ...]
    collective_groups: tuple[CollectiveGroup, ...]
    collectives: tuple[Collective, ...]
    custom_calls: tuple[CustomCall, ...]
    source_files: tuple[SourceFile, ...]
    source_lines: tuple[SourceLine, ...]
    configs: Configs


def summarize(module: Module) -> Summary:
    """Collects statistics of a module: opcodes, array sizes, loops, collectives and source lines.

    Lazily loaded computations are not kept in memory. Raises ValueError for a module without computations.
    """
    expect_module(module)
    # What is made here stays, or is let go by reference counts.
    with gc_control.gc_paused(collect_first=False):
        return _summary(*survey(module))


def _summary(survey: SummaryCollector, graph: CallGraph) -> Summary:
    module = graph.module
    arrays = survey.arrays()
    groups = array_groups(arrays)
    found = tuple(collective(graph, survey.starts, one) for one in survey.collectives.values())
    by_label, by_place = survey.written_bytes()
    lines = source_lines(survey.places(), by_place)
    return Summary(
        name=module.name,
        attributes={name: value_text(value, name) for name, value in module.attributes.items()},
        is_scheduled=module.is_scheduled,
        is_tiled=any("T(" in group.shape for group in groups),
        replica_count=module.attributes.get("replica_count", 1),
        num_partitions=module.attributes.get("num_partitions", 1),
        entry=module.entry.name,
        instructions=sum(survey.sizes.values()),
        arguments=total_of(Shape.tuple(survey.argument_shapes)),
        results=total_of(survey.result_shape),
        aliased_results=_aliased(module, survey.result_shape),
        constants=_constants(survey.constants),
        computations=computation_uses(graph, survey.sizes),
        opcodes=tuple(
            OpcodeCount(label, count, in_fusions, by_label.get(label, 0))
            for label, (count, in_fusions) in _most_first(survey.labels)
        ),
        memory_spaces=memory_spaces(arrays),
        transfers=transfers(survey.moved),
        largest_arrays=groups,
        most_padded=most_padded(arrays),
        loops=tuple(loop(graph, survey.sizes, one) for one in survey.loops),
        collective_groups=collective_groups(found, graph),
        collectives=found,
        custom_calls=tuple(
            CustomCall(target, count, name) for target, (count, name) in _most_first(survey.custom_calls)
        ),
        source_files=source_files(lines),
        source_lines=lines,
        configs=Configs(
            survey.with_attribute["backend_config"],
            survey.backend_config_bytes,
            survey.with_attribute["metadata"],
            survey.with_attribute["sharding"],
            survey.with_attribute["frontend_attributes"],
        ),
    )


def _most_first(rows: Mapping[str, list[Any]]) -> list[tuple[str, list[Any]]]:
    """Rows that begin with a count, the largest first."""
    return sorted(rows.items(), key=lambda row: -row[1][0])


def _aliased(module: Module, result: Shape | None) -> Total:
    outputs = {entry.output_index for entry in aliases_of(module)}
    total = Total()
    for index, array in arrays_of(result):
        if index in outputs:
            total = total.plus(array)
    return total


def _constants(shapes: Mapping[Shape, int]) -> Total:
    total = Total()
    for shape, count in shapes.items():
        for _, array in arrays_of(shape):
            total = total.plus(array, count)
    return total
