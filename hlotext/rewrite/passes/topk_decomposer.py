"""The largest elements taken from a sort."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import attrs
import numpy as np

from hlotext.analysis.age import age_for
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.ir.values.window import SliceDimension, SliceDimensions
from hlotext.rewrite.builder import Builder, retyped
from hlotext.rewrite.passes.algebra.engine import (
    AlgebraicSimplifierOptions,
    Simplifier,
    shape_of,
    sizes,
    type_of,
)
from hlotext.rewrite.passes.base import Age, is_age
from hlotext.rewrite.passes.op_expander import Expander

S32, F32, PRED = (ELEMENT_TYPES[word] for word in ("s32", "f32", "pred"))
_UNSTABLE = re.compile(r"is_stable\s*=\s*false", re.IGNORECASE)
LOW = (1 << 16) - 1
"""The bits that hold a place beside the bits of a bf16."""


@attrs.frozen
class TopkDecomposer(Expander):
    """Sorts elements with their places, and takes the first ones (XLA's `TopkDecomposer`).

    Where only the values are used they are sorted alone. Largest elements of bf16 are sorted as whole numbers that hold value
    and place. Custom calls of `TopK` are sorted by the computation that they call.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4,9] parameter(0)  ROOT t = (f32[4,2], s32[4,2]) topk(x), k=2, largest=true }")
    >>> TopkDecomposer().run(m).statistics
    {'topks': 1}
    >>> print(m.entry.root.operands[0])
    slice = f32[4,2] slice(get-tuple-element), slice={[0:4], [0:2]}
    """

    name: ClassVar[str] = "topk-decomposer"
    summary: ClassVar[str] = "Replaces topk with a sort and slices."
    counted: ClassVar[str] = "topks"

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age whose words for the order of floats are written."""

    def options(self, module: Module) -> AlgebraicSimplifierOptions:
        return AlgebraicSimplifierOptions(age=age_for(module, self.age or None))

    def matches(self, i: Instruction) -> bool:
        is_call = i.attributes.get("custom_call_target") == "TopK" and len(i.called_computations) == 1
        if not (i.opcode == "topk" or is_call) or len(i.operands) != 1 or not shape_of(i).is_tuple:
            return False
        return len(shape_of(i).tuple_shapes) == 2 and bool(sizes(i.operands[0]))

    def expand(self, s: Simplifier, i: Instruction) -> Instruction | None:
        x = i.operands[0]
        values, places = shape_of(i).tuple_shapes
        last = len(sizes(x)) - 1
        only_values = len(i.users) == 1 and not i.is_root and _takes_values(i.users[0])
        largest = bool(i.attributes.get("largest", False))
        given = i.called_computations[0] if i.called_computations else None
        if (
            given is None
            and largest
            and type_of(x).name == "bf16"
            and not only_values
            and sizes(x)[last] <= LOW
        ):
            return _packed(s, x, values, places)
        stable: dict[str, Any] = {"is_stable": True} if _is_stable(i) else {}
        if only_values and (given is None or len(given.parameters) == 2):
            to_apply = given or _comparator(s, [type_of(x)], largest)
            new = s.create_like(i, "sort", shape_of(x), (x,), dimensions=(last,), to_apply=to_apply, **stable)
            user = i.users[0]
            s.replace(user, _first(s, i, new, values))
            return i
        to_apply = given or _comparator(s, [type_of(x), S32], largest)
        counted = retyped(shape_of(x), S32)
        iota = s.create_like(i, "iota", counted, iota_dimension=last)
        both = Shape.tuple((shape_of(x), counted))
        new = s.create_like(i, "sort", both, (x, iota), dimensions=(last,), to_apply=to_apply, **stable)
        parts = [
            _first(s, i, s.create_like(i, "get-tuple-element", part, (new,), index=n), wanted)
            for n, (part, wanted) in enumerate(zip(both.tuple_shapes, (values, places), strict=True))
        ]
        return s.create_like(i, "tuple", shape_of(i), parts)


def _is_stable(i: Instruction) -> bool:
    """`HloTopKInstruction::is_stable`, `IsTopKStable`."""
    if i.opcode == "topk":
        return bool(i.attributes.get("is_stable", True))
    config = i.backend_config
    return config is None or _UNSTABLE.search(config.text) is None


def _takes_values(user: Instruction) -> bool:
    return user.opcode == "get-tuple-element" and user.attributes["index"] == 0


def _first(s: Simplifier, like: Instruction, x: Instruction, shape: Shape) -> Instruction:
    """The first elements of an array."""
    ranges = tuple(SliceDimension(0, size, 1) for size in shape.dimensions)
    return s.create_like(like, "slice", shape, (x,), slice=SliceDimensions(ranges))


def _comparator(s: Simplifier, types: list[ElementType], greater: bool) -> Computation:
    """A computation that compares the first of several pairs (`CreateScalarGtComputation`)."""
    word = "greater" if greater else "less"
    b = Builder.new(s.module, f"compare-{word}-than", (), before=s.place.computation if s.place else None)
    pairs = [
        b.parameter(Shape(type_), f"p.{n}.{side}") for n, type_ in enumerate(types) for side in ("lhs", "rhs")
    ]
    direction = ComparisonDirection.GT if greater else ComparisonDirection.LT
    order: dict[str, Any] = {}
    if types[0].is_floating:
        order = {"order": "TOTAL"} if s.has(xla_changes.COMPARISON_ORDER) else {"type": "TOTALORDER"}
    return b.finish(b.compare(pairs[0], pairs[1], direction, shape=Shape(PRED), **order))


def _packed(s: Simplifier, x: Instruction, values: Shape, places: Shape) -> Instruction:
    """Values and places of the largest elements of bf16, from one sort (`DecomposeTopKWithSorting`)."""
    last = len(sizes(x)) - 1
    shape = retyped(shape_of(x), S32)

    def number(value: int, shape: Shape) -> Instruction:
        literal = Literal.from_array(np.asarray(value, np.int32), Shape(S32))
        return s.create(
            "broadcast", shape, (s.create("constant", Shape(S32), literal=literal),), dimensions=()
        )

    def ordered(bits: Instruction) -> Instruction:
        """The bits of floats as whole numbers in their order, or back."""
        own = shape_of(bits)
        rest = s.create("and", own, (bits, number(0x7FFFFFFF, own)))
        sign = s.create("shift-right-arithmetic", own, (bits, number(31, own)))
        return s.create("xor", own, (rest, sign))

    wide = s.create("convert", retyped(shape_of(x), F32), (x,))
    filled = s.create("or", shape, (ordered(s.create("bitcast-convert", shape, (wide,))), number(LOW, shape)))
    packed = s.create("xor", shape, (filled, s.create("iota", shape, iota_dimension=last)))
    to_apply = _comparator(s, [S32], greater=True)
    both = s.create("sort", shape, (packed,), dimensions=(last,), to_apply=to_apply)
    ranges = tuple(SliceDimension(0, size, 1) for size in places.dimensions)
    first = s.create("slice", places, (both,), slice=SliceDimensions(ranges))
    high = s.create("and", places, (ordered(first), number(~LOW, places)))
    floats = s.create("bitcast-convert", retyped(places, F32), (high,))
    taken = s.create("convert", values, (floats,))
    turned = s.create("xor", places, (first, number(LOW, places)))
    indices = s.create("and", places, (turned, number(LOW, places)))
    return s.create("tuple", Shape.tuple((values, places)), (taken, indices))
