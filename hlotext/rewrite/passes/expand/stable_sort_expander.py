"""Stable sorts as sorts that compare places where values are equal."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.edit.cloning import clone_computation
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import ComparisonDirection
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.facts import dims, shape_of, sizes, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult

S32 = ELEMENT_TYPES["s32"]
PRED = Shape(ELEMENT_TYPES["pred"])


@attrs.frozen
class StableSortExpander(Pass):
    """Expands stable sorts into unstable ones that also compare indices (XLA's `StableSortExpander`).

    The indices are an iota among the operands, or an added one. The comparator is evaluated a second time with each pair
    swapped: if both results agree, the values are equal and the indices decide.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }"
    ...     "  ENTRY e { x = f32[8] parameter(0)  ROOT s = f32[8] sort(x), dimensions={0}, is_stable=true, to_apply=f }")
    >>> StableSortExpander().run(m).statistics
    {'sorts': 1}
    >>> print(m.entry.root.operands[0])
    s.1 = (f32[8], s32[8]) sort(x, iota), dimensions={0}, to_apply=f.clone
    """

    name: ClassVar[str] = "stable-sort-expander"
    summary: ClassVar[str] = (
        "Expands stable sorts into unstable ones that compare indices where values are equal."
    )

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [expand], driver="once"))


@pattern("sort", name="sorts")
def expand(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(i):
        return None
    place = next((n for n, o in enumerate(i.operands) if _is_places(o, dims(i)[0])), None)
    if place is not None:
        comparator = i.called_computations[0]
        if len(comparator.callers) > 1:
            comparator = clone_computation(comparator)
        own = {k: v for k, v in i.attributes.items() if k != "is_stable"}
        i.change(attributes={**own, "to_apply": comparator}, typed=False)
        _break_ties(r, comparator, place)
        return i
    if sizes(i.operands[0])[dims(i)[0]] >= 1 << 31:
        return None
    return _with_places(r, i)


def _matches(i: Instruction) -> bool:
    if not i.attributes.get("is_stable") or len(dims(i)) != 1:
        return False
    callees = i.called_computations
    whole = len(callees) == 1 and len(callees[0].parameters) == 2 * len(i.operands) > 0
    return whole and all(o.shape is not None and o.shape.is_array for o in i.operands)


def _is_places(i: Instruction, dimension: int) -> bool:
    """`IotaOperandIndexForStableSort`."""
    return i.opcode == "iota" and i.attributes.get("iota_dimension") == dimension and type_of(i) is S32


def _with_places(r: Rewrite, i: Instruction) -> Instruction:
    """The sort with an iota as its last operand, and the old results of it (`AddIotaAndExpand`)."""
    count = len(i.operands)
    shape = retyped(shape_of(i.operands[0]), S32)
    iota = r.create("iota", shape, iota_dimension=dims(i)[0])
    comparator = clone_computation(i.called_computations[0])
    outside, r.place = r.place, None
    for n, side in enumerate(("lhs", "rhs")):
        r.create(
            "parameter", Shape(S32), argument=2 * count + n, computation=comparator, name=f"p.{count}.{side}"
        )
    r.place = outside
    parts = (shape_of(i),) if count == 1 else shape_of(i).tuple_shapes
    new = r.clone(i, (*i.operands, iota), Shape.tuple((*parts, shape)))
    own = {k: v for k, v in new.attributes.items() if k != "is_stable"}
    new.change(attributes={**own, "to_apply": comparator}, typed=False)
    _break_ties(r, comparator, count)
    elements = [r.create("get-tuple-element", shape_of(o), (new,), index=n) for n, o in enumerate(i.operands)]
    if count == 1:
        return elements[0]
    return r.create("tuple", Shape.tuple(tuple(map(shape_of, elements))), elements)


def _break_ties(r: Rewrite, comparator: Computation, place: int) -> None:
    """Makes a comparator compare the operand of that number where it says the same of swapped pairs."""
    parameters = comparator.parameters
    swapped = {p: parameters[n ^ 1] for n, p in enumerate(parameters)}
    root = comparator.root
    outside, r.place = r.place, None
    for i in instruction_post_order(comparator):
        if i.operands:
            swapped[i] = r.clone(i, [swapped.get(o, o) for o in i.operands])
    other = swapped.get(root, root)
    same = r.create("compare", PRED, (root, other), direction=ComparisonDirection.EQ)
    first = r.create("compare", PRED, parameters[2 * place : 2 * place + 2], direction=ComparisonDirection.LT)
    comparator.root = r.create("select", PRED, (same, first, root))
    r.place = outside
