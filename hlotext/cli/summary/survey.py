"""One walk over a module, of which nothing stays but names, numbers and frozen values.

So the summary of a large file takes no more memory than what it says, and that of a small one looks at every
instruction once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from hlotext.analysis.call_graph import CallGraph
from hlotext.analysis.communication import KINDS, chain_of, communication, is_started, wrapper
from hlotext.analysis.origins import Origins, Place
from hlotext.analysis.sizes import array_bytes, arrays_of, written_arrays
from hlotext.cli.summary.arrays import COPIES, LABELLED, Arrays, moved_arrays, opcode_label
from hlotext.cli.summary.communication import Collective, collective
from hlotext.cli.summary.loops import Loop, loop
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.shape import Shape

Origin: TypeAlias = int | tuple[str, int] | None
"""What tells a place: the number of the stack frame, or file and line; None where the text has none."""


@attrs.define(eq=False)
class Survey:
    """What is counted on the walk. Dictionaries are in the order of the text."""

    graph: CallGraph
    origins: Origins = attrs.field(factory=Origins)
    sizes: dict[Computation, int] = attrs.field(factory=dict)
    """The number of instructions of each computation."""
    labels: dict[str, list[int]] = attrs.field(factory=dict)
    """How many instructions have each label, and how many of these are in fusions and reducers."""
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
    loops: list[Loop] = attrs.field(factory=list)
    with_attribute: Counter[str] = attrs.field(factory=Counter)
    """How many instructions have each of the attributes that are counted."""
    backend_config_bytes: int = 0
    _origins_of: dict[Origin, list[Any]] = attrs.field(factory=dict)
    """The place of each origin, and how many instructions have it."""
    _collectives: dict[object, Collective | tuple[Computation, int]] = attrs.field(factory=dict)
    """Of those that an `async-start` names, which stands elsewhere, where they stand themselves."""
    _wrapped: dict[Computation, list[object]] = attrs.field(factory=dict)
    """The keys of these, by the computation of the start."""

    def walk(self) -> None:
        """Looks at every instruction once (and at wrapped collectives with their starts again)."""
        module, entry = self.graph.module, self.graph.module.entry
        for computation in module.walk():
            self.sizes[computation] = len(computation)
            self._count(computation, computation in self.graph.stepped)
            if computation is entry:
                self._count_arguments(entry)
        for home in module.walk(self._wrapped):
            for key in self._wrapped[home]:
                found = self._collectives[key]
                if isinstance(found, tuple):
                    body, place = found
                    one = communication(self.graph, body._instructions[place])
                    self._collectives[key] = collective(self.origins, one)

    # ---- what was found

    @property
    def collectives(self) -> tuple[Collective, ...]:
        """Every communication; one that a chain of fusions carries out counts once."""
        return tuple(one for one in self._collectives.values() if isinstance(one, Collective))

    def arrays(self) -> dict[tuple[str, Shape, Place | None], Arrays]:
        """All arrays that are memory of their own: the arguments of the entry, and what instructions write."""
        found: dict[tuple[str, Shape, Place | None], Arrays] = {}
        for rows in (self.arguments, self.written):
            for (label, array, origin), row in rows.items():
                known = found.setdefault(
                    (label, array, self._place(origin)), Arrays(row.name, row.shape_index, row.op_name)
                )
                known.count += row.count
        return found

    def written_bytes(self) -> tuple[dict[str, int], dict[Place | None, int]]:
        """Allocated bytes of the arrays that are written outside fusions, by label and by place."""
        labels: Counter[str] = Counter()
        places: Counter[Place | None] = Counter()
        for (label, array, origin), row in self.written.items():
            size = (array_bytes(array) or (0, 0))[0] * row.count
            labels[label] += size
            places[self._place(origin)] += size
        return labels, places

    def places(self) -> dict[Place, int]:
        """How many instructions come from each place, those in fusions included."""
        counts: Counter[Place] = Counter()
        for place, count in self._origins_of.values():
            if place is not None:
                counts[place] += count
        return counts

    def _place(self, origin: Origin) -> Place | None:
        place: Place | None = self._origins_of[origin][0] if origin is not None else None
        return place

    # ---- looking at instructions

    def _count(self, computation: Computation, is_stepped: bool) -> None:
        """Counts the instructions of a computation."""
        labels, origins_of, special = self.labels, self._origins_of, _SPECIAL
        in_fusion = not is_stepped
        metadata_count = 0
        for place, instruction in enumerate(computation._instructions):
            opcode, attributes = instruction._opcode, instruction._attributes
            label = opcode if opcode not in LABELLED else opcode_label(instruction)
            row = labels.get(label)
            if row is None:
                row = labels[label] = [0, 0]
            row[0] += 1
            row[1] += in_fusion
            origin: Origin = None
            metadata = None
            if attributes:
                metadata = attributes.get("metadata")
                if metadata is not None:
                    metadata_count += 1
                    origin = metadata.stack_frame_id
                    if not origin and metadata.source_file:
                        origin = metadata.source_file, metadata.source_line
                    if origin:
                        known = origins_of.get(origin)
                        if known is None:
                            known = origins_of[origin] = [self.origins.place(instruction), 0]
                        known[1] += 1
                    else:
                        origin = None
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
                for index, array in written_arrays(instruction):
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
        row = rows.get(key)
        if row is None:
            metadata = instruction.metadata
            row = rows[key] = Arrays(
                instruction._name, index, metadata.op_name if metadata is not None else ""
            )
        row.count += 1

    def _count_arguments(self, entry: Computation) -> None:
        parameters = entry.parameters
        self.argument_shapes = tuple(p.shape for p in parameters if p.shape is not None)
        self.result_shape = entry.root.shape
        for parameter in parameters:
            metadata = parameter.metadata
            origin: Origin = None
            if metadata is not None:
                origin = metadata.stack_frame_id or None
                if origin is None and metadata.source_file:
                    origin = metadata.source_file, metadata.source_line
            for index, array in arrays_of(parameter.shape):
                self._add(self.arguments, ("parameter", array, origin), parameter, index)

    def _constant(self, computation: Computation, place: int, constant: Instruction) -> None:
        if constant.shape is not None:
            self.constants[constant.shape] += 1

    def _custom_call(self, computation: Computation, place: int, call: Instruction) -> None:
        row = self.custom_calls.setdefault(str(call.attributes.get("custom_call_target", "")), [0, call.name])
        row[0] += 1

    def _copy(self, computation: Computation, place: int, copy: Instruction) -> None:
        if computation in self.graph.stepped:
            for way, array in moved_arrays(copy):
                count, size = self.moved.get(way, (0, 0))
                self.moved[way] = count + 1, size + (array_bytes(array) or (0, 0))[0]

    def _loop(self, computation: Computation, place: int, instruction: Instruction) -> None:
        found = loop(self.graph, self.origins, self.sizes, instruction, place)
        if found is not None:
            self.loops.append(found)

    def _communication(self, computation: Computation, place: int, instruction: Instruction) -> None:
        key = chain_of(instruction) or (computation, place)
        if key in self._collectives and not is_started(instruction):
            return
        call = wrapper(self.graph, instruction)
        if call is None:
            self._collectives[key] = collective(self.origins, communication(self.graph, instruction))
        else:
            self._collectives[key] = computation, place
            self._wrapped.setdefault(call.computation, []).append(key)


_SPECIAL: dict[str, Callable[[Survey, Computation, int, Instruction], None]] = {
    "constant": Survey._constant,
    "custom-call": Survey._custom_call,
    "while": Survey._loop,
    "async-start": Survey._copy,
    **dict.fromkeys(COPIES, Survey._copy),
    **dict.fromkeys(KINDS, Survey._communication),
}
"""What else is to be looked at, by opcode."""
