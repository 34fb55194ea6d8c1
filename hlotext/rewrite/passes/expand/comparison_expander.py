"""Comparisons of floats in their total order as comparisons of whole numbers."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.comparison import order_of
from hlotext.ir.values.enums import ComparisonDirection, ComparisonOrder
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import shape_of, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult

NO_NEGATIVE_ZERO = ("fnuz",)
"""Ends of names of types in which the bits of a negative zero mean NaN."""


@attrs.frozen
class ComparisonExpander(Pass):
    """Expands total-order comparisons of floats into comparisons of their bits (XLA's `ComparisonExpander`).

    The bits of a float as an integer, with all but the sign flipped for negative ones, have the order -NaN, -inf, ... -0, 0,
    ... inf, NaN. Unsigned elements are compared directly. Types narrower than 8 bits are kept.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)"
    ...     "  ROOT c = pred[4] compare(x, y), direction=LT, type=TOTALORDER }")
    >>> ComparisonExpander().run(m).statistics
    {'comparisons': 1}
    >>> print(m.entry.root)
    ROOT c = pred[4] compare(select, select.1), direction=LT
    """

    name: ClassVar[str] = "comparison-expander"
    summary: ClassVar[str] = "Expands total-order comparisons of floats into comparisons of integers."

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [compare_bits], driver="once"))


@pattern("compare", name="comparisons")
def compare_bits(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    x, y = i.operands
    if type_of(x).name == "f8e8m0fnu":
        shape = retyped(shape_of(x), ELEMENT_TYPES["u8"])
        sides = [r.create("bitcast-convert", shape, (side,)) for side in (x, y)]
    else:
        signed = ELEMENT_TYPES[f"s{type_of(x).bits}"]
        shape = retyped(shape_of(x), signed)
        limits = np.iinfo(signed.dtype)
        zero, low, high = (_everywhere(r, shape, n) for n in (0, int(limits.min), int(limits.max)))
        sides = [_ordered(r, side, shape, zero, low, high) for side in (x, y)]
    return r.create("compare", shape_of(i), sides, direction=i.attributes["direction"])


def _matches(i: Instruction) -> bool:
    if len(i.operands) != 2:
        return False
    type_ = type_of(i.operands[0])
    if order_of(i.attributes, type_) is not ComparisonOrder.TOTAL:
        return False
    return shape_of(i.operands[0]).is_array and type_.is_floating and type_.bits in (8, 16, 32, 64)


def _everywhere(r: Rewrite, shape: Shape, value: int) -> Instruction:
    type_: ElementType = shape.element_type
    literal = Literal.from_array(np.asarray(value).astype(type_.dtype), Shape(type_))
    number = r.create("constant", Shape(type_), argument=literal)
    return r.create("broadcast", shape, (number,), dimensions=())


def _ordered(
    r: Rewrite, value: Instruction, shape: Shape, zero: Instruction, low: Instruction, high: Instruction
) -> Instruction:
    """A float's bits as a whole number with its order (`BitcastConvertFloatingPointToIntegral`)."""
    bits = r.create("bitcast-convert", shape, (value,))
    truth = retyped(shape, ELEMENT_TYPES["pred"])
    if type_of(value).name.endswith(NO_NEGATIVE_ZERO):
        flipped = r.create("subtract", shape, (low, bits))
        is_nan = r.create("compare", truth, (bits, low), direction=ComparisonDirection.EQ)
        flipped = r.create("select", shape, (is_nan, low, flipped))
    else:
        flipped = r.create("xor", shape, (high, bits))
    negative = r.create("compare", truth, (bits, zero), direction=ComparisonDirection.LT)
    return r.create("select", shape, (negative, flipped, bits))
