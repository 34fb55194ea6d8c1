"""Reductions over devices in a wider type."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.builder import Builder, retyped
from hlotext.rewrite.kit.facts import shape_of, type_of
from hlotext.rewrite.kit.rules import Result, Rewrite, pattern
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class AllReducePromotion(Pass):
    """Promotes all-reduces of narrow types to a type the compiler supports (XLA's `AllReducePromotion`).

    By default bf16 becomes f32, as in the CPU compiler; the GPU compiler promotes 16-bit integers to 32 bits.

    >>> import hlotext as hlo
    >>> m = hlo.parse("s { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }"
    ...     "  ENTRY e { x = bf16[4] parameter(0)  ROOT r = bf16[4] all-reduce(x), replica_groups={}, to_apply=s }")
    >>> AllReducePromotion().run(m).statistics
    {'reductions': 1}
    >>> print(m.entry.root.operands[0])
    r.1 = f32[4] all-reduce(convert), replica_groups={}, to_apply=s_promoted
    """

    name: ClassVar[str] = "all-reduce-promotion"
    summary: ClassVar[str] = "Promotes all-reduces of narrow types to a type the compiler supports."
    preserves_results: ClassVar[bool] = False

    whole_numbers: bool = False
    """Promotes u16 and s16 instead of bf16, as for GPU."""

    def run(self, module: Module) -> PassResult:
        return PassResult.of(apply_rules(module, [promote], driver="once", options=self))


@pattern(("all-reduce", "reduce-scatter"), name="reductions")
def promote(r: Rewrite) -> Result:
    """`ExpandInstruction`"""
    i = r.instruction
    if not _matches(r):
        return None
    wide = _target(r, type_of(i.operands[0]))
    assert wide is not None
    operands = [r.create("convert", retyped(shape_of(o), wide), (o,)) for o in i.operands]
    new = r.clone(i, operands, retyped(shape_of(i), wide))
    promoted = _promoted(r, i, wide)
    new.change(attributes={**new.attributes, "to_apply": promoted}, typed=False)
    return new if type_of(i) is wide else r.create("convert", shape_of(i), (new,))


def _matches(r: Rewrite) -> bool:
    i = r.instruction
    if not shape_of(i).is_array or not i.operands:
        return False
    callees = i.called_computations
    if len(callees) != 1 or len(callees[0].root.operands) != 2:
        return False
    types = {type_of(o) for o in i.operands if shape_of(o).is_array}
    return len(types) == 1 and _target(r, types.pop()) is not None


def _target(r: Rewrite, type_: ElementType) -> ElementType | None:
    names = {"u16": "u32", "s16": "s32"} if r.options.whole_numbers else {"bf16": "f32"}
    return ELEMENT_TYPES[names[type_.name]] if type_.name in names else None


def _promoted(r: Rewrite, i: Instruction, type_: ElementType) -> Computation:
    """The computation of a reduction in another type (`CloneAllReduce`)."""
    callee = i.called_computations[0]
    b = Builder.new(r.module, f"{callee.name}_promoted", (), before=i.computation)
    x, y = (b.parameter(Shape(type_), name) for name in ("x", "y"))
    return b.finish(b.op(callee.root.opcode, (x, y), shape=Shape(type_)))
