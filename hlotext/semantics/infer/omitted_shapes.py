"""The shape of an op line that states none, with the layout that XLA's reader gives it.

`ShapeInference` begins most results as a copy of an operand's shape, layout included, and the others as a new shape, whose
layout is then the default one. Which are which is written here as tables; measured with jaxlib 0.10.2.
"""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.opcode import Family
from hlotext.ir.values.shape import Shape

_AS_OPERAND = {
    "add-dependency": 0, "batch-norm-inference": 0, "cholesky": 0, "clamp": 1, "copy": 0, "domain": 0, "fft": 0,
    "reverse": 0, "scatter": 0, "select": 1, "select-and-scatter": 0, "set-dimension-size": 0, "shuffle": 0, "sort": 0,
    "triangular-solve": 1, "while": 0,
}  # fmt: skip
"""The operand whose shape the result's is made from, besides the elementwise operations of one or two operands: 0."""
_EACH_AS_OPERAND = frozenset({"scatter", "sort", "tuple"})
"""Opcodes whose results, where they are a tuple, are made from one operand each."""
_FIRST_AS_OPERAND = frozenset({"batch-norm-grad", "batch-norm-training"})
"""Opcodes whose result is a tuple of which the first is made from operand 0."""
_ELEMENTWISE = (Family.ELEMENTWISE_UNARY, Family.ELEMENTWISE_BINARY)


def with_layouts(instruction: Instruction, shape: Shape) -> Shape:
    """Returns the inferred shape of an instruction with the layouts that XLA's parser infers, unless these are the
    default ones.
    """
    opcode, operands = instruction.opcode, [operand.shape for operand in instruction.operands]
    if opcode == "get-tuple-element" and operands and operands[0] is not None:
        index = instruction.attributes.get("index")
        elements = operands[0].tuple_shapes
        return _like(shape, elements[index]) if isinstance(index, int) and index < len(elements) else shape
    if opcode in ("call", "conditional"):
        callees = instruction.called_computations
        return _like(shape, callees[0].shape) if callees else shape
    if opcode == "while":
        return _like(shape, operands[0]) if operands else shape
    if shape.is_tuple:
        if opcode in _EACH_AS_OPERAND:
            like = operands[: len(shape.tuple_shapes)]
        else:
            like = operands[:1] if opcode in _FIRST_AS_OPERAND else []
        like += [None] * (len(shape.tuple_shapes) - len(like))
        parts = zip(shape.tuple_shapes, like, strict=True)
        return Shape.tuple(tuple(_like(part, other) for part, other in parts))
    if opcode == "transpose":
        return _transposed(instruction, shape)
    row = opcodes.opcode(opcode)
    number = 0 if row is not None and row.family in _ELEMENTWISE else _AS_OPERAND.get(opcode)
    return _like(shape, operands[number]) if number is not None and number < len(operands) else shape


def _like(shape: Shape, other: Shape | None) -> Shape:
    """A shape with the layouts of another one, where that has as many dimensions."""
    if other is None:
        return shape
    if shape.is_tuple and len(shape.tuple_shapes) == len(other.tuple_shapes):
        pairs = zip(shape.tuple_shapes, other.tuple_shapes, strict=True)
        return Shape.tuple(tuple(_like(part, like) for part, like in pairs))
    if not shape.is_array or not other.is_array or shape.rank != other.rank:
        return shape
    return shape.with_layout(other.layout)


def _transposed(instruction: Instruction, shape: Shape) -> Shape:
    """The layout with which a transpose moves nothing in memory (`ShapeUtil::PermuteDimensions`)."""
    operand = instruction.operands[0].shape
    permutation = instruction.attributes.get("dimensions")
    if operand is None or not shape.is_array or not isinstance(permutation, tuple):
        return shape
    layout = operand.with_default_layout().layout
    if layout is None or sorted(layout.minor_to_major) != sorted(permutation):
        return shape
    place = {dimension: number for number, dimension in enumerate(permutation)}
    order = tuple(place[dimension] for dimension in layout.minor_to_major)
    return shape.with_layout(attrs.evolve(layout, minor_to_major=order))
