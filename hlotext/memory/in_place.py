"""Operands that are overwritten with a result: pairs that must share memory (`AliasInfo::GetInPlaceInputOutputPairs`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.aliasing import OutputToOperandAliasing
from hlotext.ir.values.shape import Shape
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.value_sets import shape_of, writes_in_place


class Pair(NamedTuple):
    """A subshape of an operand that shares memory with a subshape of the result."""

    operand_number: int
    operand_index: ShapeIndex
    output_index: ShapeIndex


NO_OPS = frozenset({"bitcast"})
"""Opcodes inside a fusion that leave the memory as it is, on every platform."""

GPU_NO_OPS = NO_OPS | {"reshape"}
"""Those on GPU (`GpuAliasInfo::IsNoOpForAliasAnalysis`)."""

_NVSHMEM = "NVSHMEM"
"""The GPU collectives' library whose all-reduce-start writes to memory of its own (`GpuAliasInfo`)."""


class InPlacePairs:
    """Finds the operands that instructions update in place."""

    def __init__(self, no_ops: frozenset[str] = NO_OPS) -> None:
        self._no_ops = no_ops
        self._inside: dict[Instruction, tuple[Pair, ...]] = {}
        self._of: dict[Instruction, tuple[Pair, ...]] = {}
        """The pairs of fusions."""
        # Of an attribute that is stated in one text, as of each layer, there is one value, which is kept with its pairs.
        self._stated: dict[int, tuple[OutputToOperandAliasing, tuple[Pair, ...]]] = {}

    def of(self, instruction: Instruction) -> tuple[Pair, ...]:
        """Returns the in-place pairs of an instruction, those of `output_to_operand_aliasing` last."""
        opcode = instruction._head.opcode
        rule = _RULES.get(opcode)
        if rule is not None:
            return rule(instruction)
        if opcode != "fusion":
            return ()
        found = self._of.get(instruction)
        if found is None:
            inside, said = self._of_fusion(instruction), self._said(instruction)
            found = self._of[instruction] = inside + said if inside and said else inside or said
        return found

    def _said(self, fusion: Instruction) -> tuple[Pair, ...]:
        """The pairs that the text states of a fusion."""
        aliasing = fusion._attributes.get("output_to_operand_aliasing")
        if aliasing is None:
            return ()
        known = self._stated.get(id(aliasing))
        if known is None:
            known = self._stated[id(aliasing)] = aliasing, _said(fusion)
        return known[1]

    def _of_fusion(self, fusion: Instruction) -> tuple[Pair, ...]:
        """Pairs that the body of a fusion makes: from each leaf of its root back to an operation in place.

        Bodies nest no deeper than the text allows, and each is asked once, innermost first.
        """
        known = self._inside.get(fusion)
        if known is not None:
            return known
        if self._root_in_place(fusion) is None:
            return ()  # as of most fusions, which need not be looked into
        fusions, writes = _inside(fusion)
        if not writes:
            return self._inside.setdefault(fusion, ())
        for inner in fusions:
            if inner not in self._inside:
                self._inside[inner] = self._pairs_of_body(inner)
        return self._inside[fusion]

    def _pairs_of_body(self, fusion: Instruction) -> tuple[Pair, ...]:
        root = self._root_in_place(fusion)
        if root is None:
            return ()
        found = []
        for index, leaf in shape_of(fusion).leaves():
            if leaf.is_token:
                continue
            source, output = self._follow(root, index)
            if source.opcode not in WRITES_IN_PLACE:
                continue
            for pair in self._inside.get(source, ()) if source.opcode == "fusion" else self.of(source):
                if pair.output_index != output or pair.operand_number >= len(source.operands):
                    continue
                given, inner = self._follow(source.operands[pair.operand_number], pair.operand_index)
                if given.opcode == "fusion":
                    nested = (*self._inside.get(given, ()), *self._said(given))
                    for other in nested:
                        if other.output_index == inner and other.operand_number < len(given.operands):
                            given, inner = self._follow(
                                given.operands[other.operand_number], other.operand_index
                            )
                            break
                if given.opcode == "parameter" and given.parameter_number is not None:
                    found.append(Pair(given.parameter_number, inner, index))
                break
        return tuple(found)

    def _root_in_place(self, fusion: Instruction) -> Instruction | None:
        """The root of a fusion's body, if the way back from it may end in an operation in place."""
        callees = fusion.called_computations
        if not callees or not len(callees[0]):
            return None
        root = callees[0].root
        opcode = root._head.opcode
        return root if opcode in _MAY_LEAD or opcode in self._no_ops else None

    def _follow(self, instruction: Instruction, index: ShapeIndex) -> tuple[Instruction, ShapeIndex]:
        """Back through tuples, then get-tuple-elements, then what leaves memory as it is."""
        while index and instruction._head.opcode == "tuple" and index[0] < len(instruction._operands):
            instruction, index = instruction._operands[index[0]], index[1:]
        while instruction._head.opcode == "get-tuple-element" and instruction._operands:
            index = (instruction._attributes["index"], *index)
            instruction = instruction._operands[0]
        while not index and instruction._head.opcode in self._no_ops and instruction._operands:
            instruction = instruction._operands[0]
        return instruction, index


def _inside(fusion: Instruction) -> tuple[list[Instruction], bool]:
    """A fusion and the fusions of its body, inner ones first, each once; and whether anything in them may write in place."""
    found: list[Instruction] = []
    writes = False
    entered: set[Instruction] = set()
    stack = [(fusion, False)]
    while stack:
        outer, leaving = stack.pop()
        if leaving:
            found.append(outer)
        elif outer not in entered:
            entered.add(outer)
            stack.append((outer, True))
            for callee in outer.called_computations:
                for inner in callee._instructions:
                    opcode = inner._head.opcode
                    if opcode == "fusion":
                        stack.append((inner, False))
                    elif opcode in _RULES:
                        writes = True
    return found, writes


def _said(instruction: Instruction) -> tuple[Pair, ...]:
    """The pairs that the text states."""
    aliasing = instruction._attributes.get("output_to_operand_aliasing")
    if not isinstance(aliasing, OutputToOperandAliasing):
        return ()
    return tuple(
        Pair(alias.operand_index, alias.operand_shape_index, alias.output_shape_index)
        for alias in aliasing.aliases
    )


_FIRST = (Pair(0, (), ()),)


def _first_operand(_: Instruction) -> tuple[Pair, ...]:
    return _FIRST


def _each(count: int) -> tuple[Pair, ...]:
    return _FIRST if count == 1 else tuple(Pair(number, (), (number,)) for number in range(count))


def _async_start(start: Instruction) -> tuple[Pair, ...]:
    """As the text states; but not what updates bind later."""
    result = shape_of(start).tuple_shapes[1:2]
    return () if result and result[0] == _NOTHING else _said(start)


_NOTHING = Shape.tuple(())


def _async_done(done: Instruction) -> tuple[Pair, ...]:
    """As the start states of the result, whichever of the operation bound it."""
    chain = done.async_chain
    pairs = _said(chain[0]) if chain and chain[0].opcode == "async-start" else ()
    return tuple(
        Pair(0, (0, pair.operand_number, *pair.operand_index), pair.output_index[1:])
        for pair in pairs
        if pair.output_index[:1] == (1,)
    )


def _scatter(scatter: Instruction) -> tuple[Pair, ...]:
    # N arrays, one array of indices, N arrays of updates.
    return _each(len(scatter.operands) // 2)


def _all_reduce_start(start: Instruction) -> tuple[Pair, ...]:
    config = start.backend_config
    if config is not None and _NVSHMEM in str(config):
        return ()
    return _each(len(start.operands))


def _permute(permute: Instruction, before: ShapeIndex = ()) -> tuple[Pair, ...]:
    if not writes_in_place(permute):
        return ()
    target = shape_of(permute.operands[1])
    parts = range(len(target.tuple_shapes)) if target.is_tuple else ()
    return (Pair(1, (), before), *(Pair(1, (number,), (*before, number)) for number in parts))


def _permute_start(permute: Instruction) -> tuple[Pair, ...]:
    return _permute(permute, (1,))


def _ragged_all_to_all(_: Instruction) -> tuple[Pair, ...]:
    return (Pair(1, (), ()),)


_RULES: dict[str, Callable[[Instruction], tuple[Pair, ...]]] = {
    "all-reduce-start": _all_reduce_start,
    "async-done": _async_done,
    "async-start": _async_start,
    "collective-permute": _permute,
    "collective-permute-start": _permute_start,
    "custom-call": _said,
    "dynamic-update-slice": _first_operand,
    "ragged-all-to-all": _ragged_all_to_all,
    "scatter": _scatter,
    "set-dimension-size": _first_operand,
}
"""In-place pairs of each opcode; a fusion inherits those of its body."""

WRITES_IN_PLACE = frozenset({*_RULES, "fusion"})
"""Opcodes that may have pairs."""

_MAY_LEAD = WRITES_IN_PLACE | traits.TUPLES
"""Opcodes of a body's root from which the way back may end in an operation in place."""
