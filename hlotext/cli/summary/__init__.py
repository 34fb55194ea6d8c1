"""The facts of a module that `hlotext show` shows, as values that JSON can hold."""

from __future__ import annotations

from collections import Counter

import attrs

from hlotext.analysis.call_graph import CallGraph, ComputationUse, call_graph, computation_uses
from hlotext.analysis.origins import Origins
from hlotext.analysis.sizes import Total, arrays_of, total_of, written_bytes
from hlotext.cli.summary.arrays import (
    ArrayGroup,
    MemorySpace,
    PaddedShape,
    Transfer,
    array_groups,
    memory_spaces,
    most_padded,
    opcode_label,
    transfers,
)
from hlotext.cli.summary.communication import Collective, CollectiveGroup, collective_groups, collectives
from hlotext.cli.summary.loops import Loop, loops
from hlotext.cli.summary.sources import SourceFile, SourceLine, source_files, source_lines
from hlotext.ir.module import Module
from hlotext.ir.shape import Shape
from hlotext.ir.values import value_text


@attrs.frozen
class OpcodeCount:
    """How often one kind of instruction occurs."""

    opcode: str
    """With the kind of a fusion: `fusion kLoop`; with the target of a custom call; `async all-to-all`."""
    count: int
    in_fusions: int
    """How many of these stand in fusions, reducers and comparators, and so write to no memory."""
    written_bytes: int
    """Allocated bytes that the others write, each once."""


@attrs.frozen
class CustomCall:
    """The calls of one target."""

    target: str
    count: int
    name: str
    """The first one."""


@attrs.frozen
class Configs:
    """How many instructions carry texts that only the compiler or the profiler reads."""

    backend_configs: int
    backend_config_bytes: int
    metadata: int
    shardings: int
    frontend_attributes: int


@attrs.frozen
class Summary:
    """The facts of one module."""

    name: str
    attributes: dict[str, str]
    """The header's attributes as text."""
    is_scheduled: bool
    is_tiled: bool
    """Whether layouts have tiles, as those for TPU do."""
    replica_count: int
    num_partitions: int
    entry: str
    instructions: int
    arguments: Total
    results: Total
    aliased_results: Total
    """Those results that lie in the memory of arguments."""
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
    """The facts of a module with at least one computation."""
    graph, origins = call_graph(module), Origins()
    groups = array_groups(graph, origins)
    found = collectives(graph, origins)
    lines = source_lines(graph, origins)
    result = module.entry.root.shape
    return Summary(
        name=module.name,
        attributes={name: value_text(value, name) for name, value in module.attributes.items()},
        is_scheduled=module.is_scheduled,
        is_tiled=any("T(" in group.shape for group in groups),
        replica_count=module.attributes.get("replica_count", 1),
        num_partitions=module.attributes.get("num_partitions", 1),
        entry=module.entry.name,
        instructions=sum(map(len, module.computations)),
        arguments=total_of(
            Shape.tuple(tuple(p.shape for p in module.entry.parameters if p.shape is not None))
        ),
        results=total_of(result),
        aliased_results=_aliased(module, result),
        constants=_constants(graph),
        computations=computation_uses(graph),
        opcodes=_opcodes(graph),
        memory_spaces=memory_spaces(graph),
        transfers=transfers(graph),
        largest_arrays=groups,
        most_padded=most_padded(graph),
        loops=loops(graph, origins),
        collective_groups=collective_groups(found, graph),
        collectives=found,
        custom_calls=_custom_calls(module),
        source_files=source_files(lines),
        source_lines=lines,
        configs=_configs(module),
    )


def _aliased(module: Module, result: Shape | None) -> Total:
    config = module.attributes.get("input_output_alias")
    outputs = {entry.output_index for entry in config.entries} if config is not None else set()
    total = Total()
    for index, array in arrays_of(result):
        if index in outputs:
            total = total.plus(array)
    return total


def _constants(graph: CallGraph) -> Total:
    total = Total()
    for instruction in graph.module.instructions():
        if instruction.opcode == "constant":
            for _, array in arrays_of(instruction.shape):
                total = total.plus(array)
    return total


def _opcodes(graph: CallGraph) -> tuple[OpcodeCount, ...]:
    counts: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for computation in graph.module.computations:
        is_stepped = computation in graph.stepped
        for instruction in computation:
            label = opcode_label(instruction)
            counts[label] += 1
            if is_stepped:
                written[label] += written_bytes(instruction)
            else:
                inside[label] += 1
    return tuple(
        OpcodeCount(label, count, inside[label], written[label]) for label, count in counts.most_common()
    )


def _custom_calls(module: Module) -> tuple[CustomCall, ...]:
    counts: Counter[str] = Counter()
    first: dict[str, str] = {}
    for instruction in module.instructions():
        if instruction.opcode == "custom-call":
            target = str(instruction.attributes.get("custom_call_target", ""))
            counts[target] += 1
            first.setdefault(target, instruction.name)
    return tuple(CustomCall(target, count, first[target]) for target, count in counts.most_common())


def _configs(module: Module) -> Configs:
    given = [instruction._attributes for instruction in module.instructions()]
    texts = [attributes["backend_config"].text for attributes in given if "backend_config" in attributes]
    return Configs(
        len(texts),
        sum(len(text.encode("utf-8", "surrogateescape")) for text in texts),
        *(
            sum(name in attributes for attributes in given)
            for name in ("metadata", "sharding", "frontend_attributes")
        ),
    )
