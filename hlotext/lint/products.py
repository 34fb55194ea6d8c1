"""Matrix products seen through fusions and library calls: their sizes, what they multiply, what reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, entered, source

SAME = frozenset({"bitcast", "copy", "convert", "reshape", "transpose"})
"""Opcodes behind which a matrix is still that matrix, perhaps turned."""


@attrs.frozen(eq=False)
class Product:
    """One product of two arrays."""

    dot: Instruction
    whole: Instruction
    """The fusion that it stands in, or itself."""
    operands: tuple[Value, Value]
    batch: int
    """Elements of the dimensions that both operands have and that are not summed."""
    rows: int
    summed: int
    columns: int

    @property
    def value(self) -> Value:
        return Value(self.dot, (self.whole,) if self.whole is not self.dot else ())


def products(context: Context) -> Iterator[Product]:
    """Every product of two arrays that is a `dot` or a convolution without a window, in the order of the text."""
    for opcode in ("dot", "convolution"):
        for dot in context.census.by_opcode.get(opcode, ()):
            found = _product(dot, context)
            if found is not None:
                yield found


def _product(dot: Instruction, context: Context) -> Product | None:
    fusions: list[Instruction] = []
    home = dot.computation
    while home is not None and home not in context.graph.stepped:
        caller = context.graph.caller(home)
        if caller is None or caller.opcode != "fusion":
            return None
        fusions.insert(0, caller)
        home = caller.computation
    if len(dot.operands) < 2:
        return None
    shapes = [operand.shape for operand in dot.operands[:2]]
    left, right, result = shapes[0], shapes[1], dot.shape
    if (
        left is None
        or right is None
        or result is None
        or not (left.is_array and right.is_array and result.is_array)
    ):
        return None
    sizes = _dot_sizes(dot) if dot.opcode == "dot" else _convolution_sizes(dot)
    if sizes is None:
        return None
    operands = Value(dot.operands[0], tuple(fusions)), Value(dot.operands[1], tuple(fusions))
    return Product(dot, fusions[0] if fusions else dot, operands, *sizes)


def _dot_sizes(dot: Instruction) -> tuple[int, int, int, int] | None:
    left, right = (operand.shape for operand in dot.operands[:2])
    attributes = dot.attributes
    assert left is not None
    assert right is not None
    batched, contracted = attributes.get("lhs_batch_dims", ()), attributes.get("lhs_contracting_dims", ())
    if any(d >= len(left.dimensions) for d in (*batched, *contracted)):
        return None  # verify says so
    batch = math.prod(left.dimensions[d] for d in batched)
    summed = math.prod(left.dimensions[d] for d in contracted)
    if not batch or not summed:
        return None
    rows = (left.element_count or 0) // (batch * summed)
    columns = (right.element_count or 0) // (batch * summed)
    return batch, rows, summed, columns


def _convolution_sizes(dot: Instruction) -> tuple[int, int, int, int] | None:
    """The TPU compiler writes products as convolutions, some with a window along a batch dimension."""
    left, right, result = dot.operands[0].shape, dot.operands[1].shape, dot.shape
    assert left is not None
    assert right is not None
    assert result is not None
    window = dot.attributes.get("window")
    if window is not None and any(one.size != 1 for one in window.dimensions):
        return None
    a, b, c = (shape.element_count or 0 for shape in (left, right, result))
    # Rows x summed, summed x columns, rows x columns.
    if not a or not b or not c:
        return None
    square = a * b / c
    summed = math.isqrt(round(square))
    if summed * summed != round(square) or a % summed or b % summed:
        return None
    return 1, a // summed, summed, b // summed


def product_behind(
    value: Value, found: dict[tuple[Instruction, tuple[Instruction, ...]], Product]
) -> Product | None:
    """The product that a value is, perhaps turned or narrowed; None for any other value."""
    made = source(entered(value), SAME)
    return found.get((made.instruction, made.fusions))
