"""Bytes that a fusion reads of its operands and writes of its results: the elements that its body accesses, not the whole
arrays.

XLA's analysis charges a fusion the whole operand as soon as its body uses it by anything but a slice, however few elements
a later gather or slice needs. Here the need for elements goes back from the results through the body: an elementwise
operation needs as many of its operands as are needed of its result, a slice or a gather what it takes, an update in place
only the update. What several slices take is added up, up to the whole; what comes elementwise is taken once.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlotext.cost.sizes import Body, ShapeSizes, elements
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcode import Family
from hlotext.ir.tables.opcodes import OPCODES

_POINTWISE = frozenset(
    name
    for name, row in OPCODES.items()
    if row.family
    in (
        Family.ELEMENTWISE_UNARY,
        Family.ELEMENTWISE_BINARY,
        Family.ELEMENTWISE_TERNARY,
        Family.DATA_MOVEMENT,
    )
)
"""Of each operand no more elements are needed than of the result."""
_TAKING = frozenset(
    name for name, row in OPCODES.items() if row.cost_rule in ("slice", "dynamic_slice", "gather")
)
"""Of operand 0 as many elements are needed as of the result, whichever these are."""
_UPDATING = frozenset(
    name for name, row in OPCODES.items() if row.cost_rule in ("dynamic_update_slice", "scatter")
)
_HANDED_ON = frozenset({"AssumeGatherIndicesInBound", "LayoutConstraint", "Sharding"})
"""Targets of custom calls that give their operand as it is."""
SELECTIVE = _TAKING | _UPDATING | {name for name, row in OPCODES.items() if row.cost_rule == "fusion"}
"""Where none of these is in a body, each parameter that it uses is read as a whole."""

Touched = tuple[tuple[int, ...], tuple[int, ...]]
"""Bytes written by leaf of the result, and read by operand."""


def touched(fusion: Instruction, body: Computation, sizes: ShapeSizes) -> Touched:
    """Returns the bytes that a fusion writes and reads, counting only the update for a result that updates an operand.

    As in XLA's analysis, such a result is assumed to share the operand's buffer, which buffer assignment decides.
    """
    chains = _Chains(body, sizes)
    written = list(sizes.leaves(fusion.shape))
    leaves = fusion.shape.leaves() if fusion.shape is not None else ()
    for place, (index, _) in enumerate(leaves):
        chains.follow(index)
        if index in chains.updates:
            written[place] = min(written[place], chains.updates[index][1])
    reads = in_place = _Needs(body, sizes, None).reads()
    if chains.updates:
        in_place = _Needs(body, sizes, chains).reads()
    sizes.bodies[body] = Body(reads, in_place, chains.updates)
    return tuple(written), in_place


class _Chains:
    """The ways from results back to the parameters that they are updates of."""

    def __init__(self, body: Computation, sizes: ShapeSizes) -> None:
        self._root = body.root
        self._sizes = sizes
        self._seen: set[Instruction] = set()
        self._numbers = {parameter: number for number, parameter in enumerate(body.parameters)}
        self.updates: dict[tuple[int, ...], tuple[int, int]] = {}
        self.steps: set[tuple[Instruction | None, Instruction]] = set()
        """User and operand, the root's user being None, where nothing is read because the buffer is handed on."""
        self.updating: set[Instruction] = set()
        """The instructions that do the updates."""

    def follow(self, leaf: tuple[int, ...]) -> None:
        """Finds out whether a leaf of the result is an update of a parameter. A value is only one result's buffer."""
        user: Instruction | None = None
        source, index, size = self._root, leaf, 0
        steps: list[tuple[Instruction | None, Instruction]] = []
        updating: list[Instruction] = []
        while True:
            steps.append((user, source))
            if source.shape is None or not source.shape.is_tuple:
                if source in self._seen:
                    return
                self._seen.add(source)
            if source.opcode == "parameter":
                break
            before = self._before(source, index)
            if before is None:
                return
            new, index, replaced = before
            if replaced is not None:
                updating.append(source)
                size += replaced
            user, source = source, new
        if updating:
            self.updates[leaf] = self._numbers[source], size
            self.steps.update(steps)
            self.updating.update(updating)

    def _before(
        self, source: Instruction, index: tuple[int, ...]
    ) -> tuple[Instruction, tuple[int, ...], int | None] | None:
        """The operand that a value lies in, its place in there, and the bytes that are replaced, None if nothing is."""
        opcode, operands = source.opcode, source.operands
        if opcode == "tuple" and index and index[0] < len(operands):
            return operands[index[0]], index[1:], None
        if opcode == "get-tuple-element" and operands:
            number = source.attributes.get("index")
            return (operands[0], (number, *index), None) if isinstance(number, int) else None
        if opcode == "bitcast" and operands:
            return operands[0], index, None
        if opcode in _UPDATING:
            arrays, updates, _ = _parts(source)
            place = index[0] if index else 0
            if place < min(len(arrays), len(updates)):
                return arrays[place], (), self._sizes.operand(updates[place])
        if opcode == "fusion" and source.called_computations:
            inner = self._sizes.bodies.get(self._sizes.counted(source.called_computations[0]))
            if inner is not None and index in inner.updates:
                number, size = inner.updates[index]
                return (operands[number], (), size) if number < len(operands) else None
        return None


class _Needs:
    """Number of elements needed of each instruction of a body, users before their operands."""

    def __init__(self, body: Computation, sizes: ShapeSizes, chains: _Chains | None) -> None:
        self._body = body
        self._sizes = sizes
        self._steps = chains.steps if chains is not None else set()
        self._updating = chains.updating if chains is not None else set()
        self._once: dict[Instruction, int] = {}
        """The most that one elementwise user needs."""
        self._added: dict[Instruction, int] = {}
        """Sum over the other users."""
        self._in_tuples: dict[Instruction, int] = {}
        """Bytes needed of the elements of a tuple."""
        if (None, body.root) not in self._steps or body.root.opcode == "tuple":
            self._once[body.root] = _count(body.root)
        for instruction in reversed(body.instructions):
            need = self._of(instruction)
            if need or instruction in self._updating or instruction in self._in_tuples:
                self._go_back(instruction, need)

    def reads(self) -> tuple[int, ...]:
        """Bytes read of each parameter."""
        return tuple([self._bytes(parameter) for parameter in self._body.parameters])

    def _of(self, instruction: Instruction) -> int:
        """Elements needed, all of them at most; 1 stands for all of what is no array."""
        return min(_count(instruction), self._once.get(instruction, 0) + self._added.get(instruction, 0))

    def _bytes(self, value: Instruction) -> int:
        need = self._of(value)
        if value.shape is not None and value.shape.is_tuple:
            whole = sum(self._sizes.leaves(value.shape))
            return whole if need else min(whole, self._in_tuples.get(value, 0))
        return _part(self._sizes.of(value.shape), need, _count(value))

    def _go_back(self, instruction: Instruction, need: int) -> None:
        opcode, operands = instruction.opcode, instruction.operands
        if opcode in _TAKING and operands:
            self._add(operands[0], need)
            self._whole(operands[1:])
        elif opcode in _POINTWISE or (
            opcode == "custom-call" and instruction.attributes.get("custom_call_target") in _HANDED_ON
        ):
            for operand in operands:
                if (instruction, operand) not in self._steps:
                    self._once[operand] = max(self._once.get(operand, 0), _same(instruction, operand, need))
        elif opcode in _UPDATING:
            self._update(instruction, need)
        elif opcode == "get-tuple-element" and operands:
            source = operands[0]
            if (instruction, source) in self._steps:
                return
            if source.opcode in ("parameter", "get-tuple-element"):
                self._in_tuples[source] = self._in_tuples.get(source, 0) + self._bytes(instruction)
            else:
                self._whole(operands)
        elif opcode == "fusion":
            self._nest(instruction, need)
        elif opcode == "reduce":
            arrays, rest = operands[: len(operands) // 2], operands[len(operands) // 2 :]
            for array in arrays:
                self._add(array, _part(_count(array), need, _count(instruction)))
            self._whole(rest)
        else:
            self._whole([operand for operand in operands if (instruction, operand) not in self._steps])

    def _add(self, operand: Instruction, need: int) -> None:
        self._added[operand] = self._added.get(operand, 0) + need

    def _whole(self, operands: Iterable[Instruction]) -> None:
        for operand in operands:
            self._add(operand, _count(operand))

    def _update(self, instruction: Instruction, need: int) -> None:
        """Of the array as much as is needed and not replaced. A scatter in place reads what it combines the updates with."""
        arrays, updates, rest = _parts(instruction)
        is_scatter = instruction.opcode == "scatter"
        for array, update in zip(arrays, updates, strict=False):
            size = _count(update)
            if is_scatter:
                self._add(array, _count(array) if need else size)
            else:
                self._add(array, max(0, need - size))
            self._add(update, size)
        self._whole(rest)

    def _nest(self, fusion: Instruction, need: int) -> None:
        """Elements that a nested fusion reads, whichever part of its result is needed."""
        callees = fusion.called_computations
        inner = self._sizes.bodies.get(self._sizes.counted(callees[0])) if callees else None
        if inner is None:
            self._whole(fusion.operands)
            return
        for operand, read in zip(
            fusion.operands, inner.reads if need else inner.reads_in_place, strict=False
        ):
            shape = operand.shape
            if shape is not None and shape.is_tuple:
                self._in_tuples[operand] = self._in_tuples.get(operand, 0) + read
            else:
                self._add(operand, _part(_count(operand), read, self._sizes.of(shape)))


def _count(instruction: Instruction) -> int:
    """Elements of a value; 1 of what is no array."""
    shape = instruction.shape
    return elements(shape) if shape is not None and shape.is_array else 1


def _same(instruction: Instruction, operand: Instruction, need: int) -> int:
    """Elements of an operand behind so many of an elementwise result; all for all, also where bits are regrouped."""
    whole, size = _count(instruction), _count(operand)
    if need >= whole or instruction.opcode in ("bitcast", "bitcast-convert"):
        return _part(size, need, whole)
    return min(size, need)


def _part(size: int, need: int, count: int) -> int:
    """So many of the elements, of something of this size."""
    return size if need >= count else -(-size * need // count)


def _parts(
    instruction: Instruction,
) -> tuple[tuple[Instruction, ...], tuple[Instruction, ...], tuple[Instruction, ...]]:
    """The arrays that are updated, the updates, and the indices."""
    operands = instruction.operands
    if instruction.opcode == "scatter":
        count = (len(operands) - 1) // 2
        return operands[:count], operands[count + 1 :], operands[count : count + 1]
    return operands[:1], operands[1:2], operands[2:]
