"""One walk over a module that keeps only names, numbers and frozen values.

So the memory of a summary does not grow with the file, and every instruction is visited once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from hlotext.analysis.call_graph import ASYNC, SEQUENTIAL_USES, CallGraph, Calls
from hlotext.analysis.communication import KINDS, chain_of
from hlotext.analysis.origins import SourceLocation, SourceLocations
from hlotext.analysis.sizes import array_bytes, arrays_of, written_arrays
from hlotext.analysis.summary.arrays import COPIES, LABELLED, Arrays, moved_arrays, opcode_label
from hlotext.analysis.summary.communication import Begun, Named, begun, named
from hlotext.analysis.summary.loops import While, while_loop
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.shape import Shape

Origin: TypeAlias = int | tuple[str, int] | None
"""Key of a source location: number of the stack frame, or file and line; None if the text has none."""


@attrs.define(eq=False)
class SummaryCollector:
    """Statistics collected in one walk over a module. Dictionaries are in text order.

    Visits computations backwards: XLA prints callers after callees, so the use of each computation is known when it is
    visited.
    """

    module: Module
    stepped: set[Computation] = attrs.field(factory=set)
    """The computations whose instructions were taken to run one by one (`CallGraph.stepped`)."""
    origins: SourceLocations = attrs.field(factory=SourceLocations)
    sizes: dict[Computation, int] = attrs.field(factory=dict)
    """The number of instructions of each computation."""
    labels: dict[str, list[int]] = attrs.field(factory=dict)
    """Number of instructions with each label, and of these in fusions and reducers."""
    arguments: dict[tuple[str, Shape, Origin], Arrays] = attrs.field(factory=dict)
    """The arrays of the entry's parameters."""
    written: dict[tuple[str, Shape, Origin], Arrays] = attrs.field(factory=dict)
    """The arrays that are written, outside fusions."""
    argument_shapes: tuple[Shape, ...] = ()
    result_shape: Shape | None = None
    constants: Counter[Shape] = attrs.field(factory=Counter)
    custom_calls: dict[str, list[Any]] = attrs.field(factory=dict)
    """By target: how many, and the name of the first."""
    moved: dict[tuple[int, int], tuple[int, int]] = attrs.field(factory=dict)
    """From one memory space to another: arrays and bytes."""
    loops: list[While] = attrs.field(factory=list)
    collectives: dict[object, Begun] = attrs.field(factory=dict)
    starts: dict[tuple[Computation, int], Named] = attrs.field(factory=dict)
    """Every `async-start` by position."""
    with_attribute: Counter[str] = attrs.field(factory=Counter)
    """Number of instructions with each counted attribute."""
    backend_config_bytes: int = 0
    _origins_of: dict[Origin, list[Any]] = attrs.field(factory=dict)
    """The place of each origin, and how many instructions have it."""

    def walk(self, calls: Calls | None) -> None:
        """Visits every instruction once. Derives `stepped` from the calls added to `calls`, unless given."""
        module, entry = self.module, self.module.entry
        following: set[Computation] = {entry}
        asynchronous: set[Computation] = set()
        for computation in module.walk(reversed(module.computations)):
            self.sizes[computation] = len(computation)
            if calls is not None:
                edges = calls.add(computation)
                is_body = computation in asynchronous
                if computation in following:
                    self.stepped.add(computation)
                    asynchronous.update(edge.callee for edge in edges if edge.use == ASYNC)
                    is_body = True
                if is_body:
                    following.update(edge.callee for edge in edges if edge.use in SEQUENTIAL_USES)
            self._count(computation, computation in self.stepped)
            if computation is entry:
                self._count_arguments(entry)
        tables: tuple[dict[Any, Any], ...] = (
            self.labels, self.arguments, self.written, self.custom_calls, self.collectives, self._origins_of
        )  # fmt: skip
        for table in tables:
            _turn(table)
        self.loops.reverse()

    # ---- what was found

    def arrays(self) -> dict[tuple[str, Shape, SourceLocation | None], Arrays]:
        """Returns all arrays with memory of their own: the arguments of the entry, and results of instructions."""
        found: dict[tuple[str, Shape, SourceLocation | None], Arrays] = {}
        for rows in (self.arguments, self.written):
            for (label, array, origin), row in rows.items():
                key = label, array, self._place(origin)
                if key in found:
                    found[key].count += row.count
                else:
                    found[key] = attrs.evolve(row)
        return found

    def written_bytes(self) -> tuple[dict[str, int], dict[SourceLocation | None, int]]:
        """Returns the allocated bytes of arrays written outside fusions, by label and by source location."""
        labels: Counter[str] = Counter()
        places: Counter[SourceLocation | None] = Counter()
        for (label, array, origin), row in self.written.items():
            size = (array_bytes(array) or (0, 0))[0] * row.count
            labels[label] += size
            places[self._place(origin)] += size
        return labels, places

    def places(self) -> dict[SourceLocation, int]:
        """Returns the number of instructions by source location, including those in fusions."""
        counts: Counter[SourceLocation] = Counter()
        for place, count in self._origins_of.values():
            if place is not None:
                counts[place] += count
        return counts

    def _place(self, origin: Origin) -> SourceLocation | None:
        place: SourceLocation | None = self._origins_of[origin][0] if origin is not None else None
        return place

    # ---- looking at instructions

    def _count(self, computation: Computation, is_stepped: bool) -> None:
        """Counts the instructions of a computation."""
        labels, origins_of, special = self.labels, self._origins_of, _SPECIAL
        in_fusion = not is_stepped
        metadata_count = 0
        instructions = computation._instructions
        for place in range(len(instructions) - 1, -1, -1):
            instruction = instructions[place]
            opcode, attributes = instruction.opcode, instruction._attributes
            label = opcode if opcode not in LABELLED else opcode_label(instruction)
            row = labels[label] = labels.pop(label, [0, 0])
            row[0] += 1
            row[1] += in_fusion
            origin: Origin = None
            if attributes:
                metadata = attributes.get("metadata")
                if metadata is not None:
                    metadata_count += 1
                    origin = _origin(metadata)
                    if origin is not None:
                        known = origins_of.pop(origin, None)
                        if known is None:
                            known = [self.origins.place(instruction), 0]
                        origins_of[origin] = known
                        known[1] += 1
                if "backend_config" in attributes:
                    self.with_attribute["backend_config"] += 1
                    text = attributes["backend_config"].text
                    self.backend_config_bytes += (
                        len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))
                    )
                if "sharding" in attributes:
                    self.with_attribute["sharding"] += 1
                if "frontend_attributes" in attributes:
                    self.with_attribute["frontend_attributes"] += 1
            if is_stepped:
                for index, array in reversed(written_arrays(instruction)):
                    self._add(self.written, (label, array, origin), instruction, index)
            if opcode in special:
                special[opcode](self, computation, place, instruction)
        self.with_attribute["metadata"] += metadata_count

    def _add(
        self,
        rows: dict[tuple[str, Shape, Origin], Arrays],
        key: tuple[str, Shape, Origin],
        instruction: Instruction,
        index: tuple[int, ...],
    ) -> None:
        row = rows.pop(key, None)
        if row is None:
            row = Arrays()
        rows[key] = row
        row.count += 1
        row.first, row.shape_index, row.metadata = instruction.name, index, instruction.metadata

    def _count_arguments(self, entry: Computation) -> None:
        parameters = entry.parameters
        self.argument_shapes = tuple(p.shape for p in parameters if p.shape is not None)
        self.result_shape = entry.root.shape
        for parameter in reversed(parameters):
            origin = _origin(parameter.metadata) if parameter.metadata is not None else None
            for index, array in reversed(arrays_of(parameter.shape)):
                self._add(self.arguments, ("parameter", array, origin), parameter, index)

    def _constant(self, computation: Computation, place: int, constant: Instruction) -> None:
        if constant.shape is not None:
            self.constants[constant.shape] += 1

    def _custom_call(self, computation: Computation, place: int, call: Instruction) -> None:
        target = str(call.attributes.get("custom_call_target", ""))
        row = self.custom_calls[target] = self.custom_calls.pop(target, [0, ""])
        row[0] += 1
        row[1] = call.name

    def _copy(self, computation: Computation, place: int, copy: Instruction) -> None:
        if computation in self.stepped:
            for way, array in moved_arrays(copy):
                count, size = self.moved.get(way, (0, 0))
                self.moved[way] = count + 1, size + (array_bytes(array) or (0, 0))[0]

    def _start(self, computation: Computation, place: int, start: Instruction) -> None:
        self.starts[computation, place] = named(self.origins, start)
        self._copy(computation, place, start)

    def _loop(self, computation: Computation, place: int, instruction: Instruction) -> None:
        found = while_loop(self.origins, computation, place, instruction)
        if found is not None:
            self.loops.append(found)

    def _communication(self, computation: Computation, place: int, instruction: Instruction) -> None:
        key = chain_of(instruction) or (computation, place)
        known = self.collectives.pop(key, None)
        if known is None or not known.is_first:  # a chain is named by the last one that starts it
            known = begun(self.origins, computation, instruction)
        self.collectives[key] = known


def survey(module: Module) -> tuple[SummaryCollector, CallGraph]:
    """Collects the statistics of a module and its call graph."""
    found, calls = SummaryCollector(module), Calls(module)
    found.walk(calls)
    graph = calls.graph()
    if found.stepped != graph.stepped:
        # Something is called by what stands before it, so its use was not known in time. Now it is.
        found = SummaryCollector(module, set(graph.stepped))
        found.walk(None)
    return found, graph


def _origin(metadata: Metadata) -> Origin:
    if metadata.stack_frame_id:
        return metadata.stack_frame_id
    return (metadata.source_file, metadata.source_line) if metadata.source_file else None


def _turn(table: dict[Any, Any]) -> None:
    """Turns the order of a dictionary round."""
    rows = list(table.items())
    table.clear()
    table.update(reversed(rows))


_SPECIAL: dict[str, Callable[[SummaryCollector, Computation, int, Instruction], None]] = {
    "constant": SummaryCollector._constant,
    "custom-call": SummaryCollector._custom_call,
    "while": SummaryCollector._loop,
    "async-start": SummaryCollector._start,
    **dict.fromkeys(COPIES, SummaryCollector._copy),
    **dict.fromkeys(KINDS, SummaryCollector._communication),
}
"""Additional collection by opcode."""
