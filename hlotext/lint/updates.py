"""Which results of a module are new values of its arguments: parameters after a step, a cache with a row more."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import attrs

from hlotext.analysis import arrays_of
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.shape import Shape
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value

_MOST_STEPS = 3000
"""How many instructions are looked at on the way back from one result."""
_IN_PLACE = frozenset({"dynamic-update-slice", "scatter"})
_VIEWS = VIEWS | {"transpose"}


class _Change(enum.IntEnum):
    """What lies between an argument and a result."""

    NONE = 0
    ALL = 1
    """Each element is computed anew."""
    PART = 2
    """Some elements are, the others stay."""


@attrs.frozen
class Update:
    """A result that is the new value of an argument of its shape, in whose memory it does not lie."""

    parameter: Instruction
    array: Shape
    is_in_place: bool
    """Whether only a part of it changes, as a row of a cache does."""


def updates(context: Context) -> Iterator[Update]:
    """The results that are computed from an argument element by element, or by changing a part of it, and alias none.

    Each argument and each result once.
    """
    entry = context.module.entry
    config = context.module.attributes.get("input_output_alias")
    entries = config.entries if config is not None else ()
    aliased = {alias.output_index for alias in entries}
    taken = {(alias.parameter_number, alias.parameter_index) for alias in entries}
    for index, array in arrays_of(entry.root.shape):
        if index in aliased or not array.rank:
            continue
        found = _origin(entry.root, index, array)
        if found is not None and (found[0].parameter_number, found[1]) not in taken:
            taken.add((found[0].parameter_number, found[1]))
            yield Update(found[0], array, found[2])


def _origin(
    root: Instruction, index: tuple[int, ...], array: Shape
) -> tuple[Instruction, tuple[int, ...], bool] | None:
    """The argument that an element of the result is the new value of, the part of it, and whether only a part changes.

    Nearest first, so that of several the one that the fewest operations lie between counts.
    """
    entry = root.computation
    level = [(Value(root), index, _Change.NONE)]
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    steps = 0
    while level and steps < _MOST_STEPS:
        following: list[tuple[Value, tuple[int, ...], _Change]] = []
        for value, part, change in level:
            steps += 1
            instruction = value.instruction
            if (instruction, part) in seen:
                continue
            seen.add((instruction, part))
            if instruction.opcode == "parameter" and not value.fusions and instruction.computation is entry:
                shape = _part(instruction.shape, part)
                if shape is not None and shape.without_layout() == array.without_layout():
                    # What is given on unchanged is no update.
                    return None if change is _Change.NONE else (instruction, part, change is _Change.PART)
                continue
            following += [(v, p, max(change, now)) for v, p, now in _before(value, part, array)]
        level = following
    return None


def _part(shape: Shape | None, index: tuple[int, ...]) -> Shape | None:
    for number in index:
        if shape is None or number >= len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[number]
    return shape


def _before(
    value: Value, part: tuple[int, ...], array: Shape
) -> Iterator[tuple[Value, tuple[int, ...], _Change]]:
    """What a part of a value has its elements from, and whether others come in between."""
    instruction, fusions = value.instruction, value.fusions
    opcode, operands = instruction.opcode, instruction.operands
    if opcode == "tuple":
        if part and part[0] < len(operands):
            yield Value(operands[part[0]], fusions), part[1:], _Change.NONE
    elif opcode == "get-tuple-element":
        index = instruction.attributes.get("index")
        if isinstance(index, int):
            yield Value(operands[0], fusions), (index, *part), _Change.NONE
    elif opcode in ("fusion", "call") and instruction.called_computations:
        callee = instruction.called_computations[0]
        if len(callee):
            yield Value(callee.root, (*fusions, instruction)), part, _Change.NONE
    elif opcode == "parameter" and fusions:
        number, handed = instruction.parameter_number, fusions[-1].operands
        if number is not None and number < len(handed):
            yield Value(handed[number], fusions[:-1]), part, _Change.NONE
    elif opcode == "while":
        # What comes out of a loop is what went in, changed by its rounds.
        body = instruction.attributes.get("body")
        changes = isinstance(body, Computation) and len(body) and _changes_part(body.root, part, array)
        yield Value(operands[0], fusions), part, _Change.PART if changes else _Change.ALL
    elif opcode in _IN_PLACE and operands:
        yield Value(operands[0], fusions), part, _Change.PART
    elif opcode == "custom-call" and instruction.attributes.get("custom_call_target") == "ConcatBitcast":
        # The TPU compiler fetches large arrays in slices, side by side.
        yield Value(operands[0], fusions), (), _Change.NONE
    elif opcode == "async-done" and operands:
        inner = instruction.async_wrapped_instruction
        if inner is not None and inner.opcode in ("slice", "copy") and instruction.async_chain[0].operands:
            yield Value(instruction.async_chain[0].operands[0], fusions), (), _Change.NONE
    elif opcode in _VIEWS and operands:
        if _same(operands[0], array, opcode):
            yield Value(operands[0], fusions), () if opcode == "copy-start" else part, _Change.NONE
    elif opcode in ELEMENTWISE:
        # Compilers turn the kernels of convolutions, and with them what updates them.
        now = instruction.shape.dimensions if instruction.shape is not None else ()
        for operand in operands:
            if (
                operand.shape is not None
                and operand.shape.dimensions == now
                and _same(operand, array, opcode)
            ):
                yield Value(operand, fusions), part, _Change.ALL


def _same(operand: Instruction, array: Shape, opcode: str) -> bool:
    shape = operand.shape
    if opcode in ("copy-done", "copy-start", "opt-barrier") or shape is None or not shape.is_array:
        return True
    return shape.element_count == array.element_count


def _changes_part(root: Instruction, part: tuple[int, ...], array: Shape) -> bool:
    """Whether a round of a loop changes a part of an element of the state in place."""
    level: list[tuple[Value, tuple[int, ...]]] = [(Value(root), part)]
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    while level and len(seen) < 200:
        value, index = level.pop()
        if (value.instruction, index) in seen:
            continue
        seen.add((value.instruction, index))
        for before, there, now in _before(value, index, array):
            if now is _Change.PART:
                return True
            level.append((before, there))
    return False
