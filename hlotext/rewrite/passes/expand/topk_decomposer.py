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
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import Builder, retyped
from hlotext.rewrite.kit.facts import shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age

S32, F32, PRED = (ELEMENT_TYPES[word] for word in ("s32", "f32", "pred"))
_UNSTABLE = re.compile(r"is_stable\s*=\s*false", re.IGNORECASE)
LOW = (1 << 16) - 1
"""The bits that hold a place beside the bits of a bf16."""


@attrs.frozen
class TopkDecomposer(Pass):
    """Replaces topk with a sort of elements and indices, and slices (XLA's `TopkDecomposer`).

    If only the values are used, they are sorted alone. The largest bf16 elements are sorted as integers that hold value and
    index. Custom calls of `TopK` are sorted with the computation that they call.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4,9] parameter(0)  ROOT t = (f32[4,2], s32[4,2]) topk(x), k=2, largest=true }")
    >>> TopkDecomposer().run(m).statistics
    {'topks': 1}
    >>> print(m.entry.root.operands[0])
    slice = f32[4,2] slice(get-tuple-element), slice={[0:4], [0:2]}
    """

    name: ClassVar[str] = "topk-decomposer"
    summary: ClassVar[str] = "Replaces topk with a sort and slices."

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age whose words for the order of floats are written."""

    def run(self, module: Module) -> PassResult:
        return PassResult.of(
            apply_rules(
                module,
                [decompose],
                driver="once",
                options=age_for(module, self.age or None),
            )
        )


@pattern(("topk", "custom-call"), name="topks")
def decompose(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    x = i.operands[0]
    values, places = shape_of(i).tuple_shapes
    last = len(sizes(x)) - 1
    only_values = len(i.users) == 1 and not i.is_root and _takes_values(i.users[0])
    largest = bool(i.attributes.get("largest", False))
    given = i.called_computations[0] if i.called_computations else None
    if given is None and largest and type_of(x).name == "bf16" and not only_values and sizes(x)[last] <= LOW:
        return _packed(r, x, values, places)
    stable: dict[str, Any] = {"is_stable": True} if _is_stable(i) else {}
    if only_values and (given is None or len(given.parameters) == 2):
        to_apply = given or _comparator(r, [type_of(x)], largest)
        new = r.create_like(i, "sort", shape_of(x), (x,), dimensions=(last,), to_apply=to_apply, **stable)
        user = i.users[0]
        r.replace(user, _first(r, i, new, values))
        return i
    to_apply = given or _comparator(r, [type_of(x), S32], largest)
    counted = retyped(shape_of(x), S32)
    iota = r.create_like(i, "iota", counted, iota_dimension=last)
    both = Shape.tuple((shape_of(x), counted))
    new = r.create_like(i, "sort", both, (x, iota), dimensions=(last,), to_apply=to_apply, **stable)
    parts = [
        _first(r, i, r.create_like(i, "get-tuple-element", part, (new,), index=n), wanted)
        for n, (part, wanted) in enumerate(zip(both.tuple_shapes, (values, places), strict=True))
    ]
    return r.create_like(i, "tuple", shape_of(i), parts)


def _matches(i: Instruction) -> bool:
    is_call = i.attributes.get("custom_call_target") == "TopK" and len(i.called_computations) == 1
    if not (i.opcode == "topk" or is_call) or len(i.operands) != 1 or not shape_of(i).is_tuple:
        return False
    return len(shape_of(i).tuple_shapes) == 2 and bool(sizes(i.operands[0]))


def _is_stable(i: Instruction) -> bool:
    """`HloTopKInstruction::is_stable`, `IsTopKStable`."""
    if i.opcode == "topk":
        return bool(i.attributes.get("is_stable", True))
    config = i.backend_config
    return config is None or _UNSTABLE.search(config.text) is None


def _takes_values(user: Instruction) -> bool:
    return user.opcode == "get-tuple-element" and user.attributes["index"] == 0


def _first(r: Rewrite, like: Instruction, x: Instruction, shape: Shape) -> Instruction:
    """The first elements of an array."""
    ranges = tuple(SliceDimension(0, size, 1) for size in shape.dimensions)
    return r.create_like(like, "slice", shape, (x,), slice=SliceDimensions(ranges))


def _comparator(r: Rewrite, types: list[ElementType], greater: bool) -> Computation:
    """A computation that compares the first of several pairs (`CreateScalarGtComputation`)."""
    word = "greater" if greater else "less"
    b = Builder.new(r.module, f"compare-{word}-than", (), before=r.place.computation if r.place else None)
    pairs = [
        b.parameter(Shape(type_), f"p.{n}.{side}") for n, type_ in enumerate(types) for side in ("lhs", "rhs")
    ]
    direction = ComparisonDirection.GT if greater else ComparisonDirection.LT
    order: dict[str, Any] = {}
    if types[0].is_floating:
        order = {"order": "TOTAL"} if r.options.has(xla_changes.COMPARISON_ORDER) else {"type": "TOTALORDER"}
    return b.finish(b.compare(pairs[0], pairs[1], direction, shape=Shape(PRED), **order))


def _packed(r: Rewrite, x: Instruction, values: Shape, places: Shape) -> Instruction:
    """Values and places of the largest elements of bf16, from one sort (`DecomposeTopKWithSorting`)."""
    last = len(sizes(x)) - 1
    shape = retyped(shape_of(x), S32)

    def number(value: int, shape: Shape) -> Instruction:
        literal = Literal.from_array(np.asarray(value, np.int32), Shape(S32))
        return r.create(
            "broadcast", shape, (r.create("constant", Shape(S32), argument=literal),), dimensions=()
        )

    def ordered(bits: Instruction) -> Instruction:
        """The bits of floats as whole numbers in their order, or back."""
        own = shape_of(bits)
        rest = r.create("and", own, (bits, number(0x7FFFFFFF, own)))
        sign = r.create("shift-right-arithmetic", own, (bits, number(31, own)))
        return r.create("xor", own, (rest, sign))

    wide = r.create("convert", retyped(shape_of(x), F32), (x,))
    filled = r.create("or", shape, (ordered(r.create("bitcast-convert", shape, (wide,))), number(LOW, shape)))
    packed = r.create("xor", shape, (filled, r.create("iota", shape, iota_dimension=last)))
    to_apply = _comparator(r, [S32], greater=True)
    both = r.create("sort", shape, (packed,), dimensions=(last,), to_apply=to_apply)
    ranges = tuple(SliceDimension(0, size, 1) for size in places.dimensions)
    first = r.create("slice", places, (both,), slice=SliceDimensions(ranges))
    high = r.create("and", places, (ordered(first), number(~LOW, places)))
    floats = r.create("bitcast-convert", retyped(places, F32), (high,))
    taken = r.create("convert", values, (floats,))
    turned = r.create("xor", places, (first, number(LOW, places)))
    indices = r.create("and", places, (turned, number(LOW, places)))
    return r.create("tuple", Shape.tuple((values, places)), (taken, indices))
