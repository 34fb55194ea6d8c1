"""Reductions over devices in a wider type."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.rewrite.builder import Builder, retyped
from hlotext.rewrite.passes.algebra.engine import Simplifier, shape_of, type_of
from hlotext.rewrite.passes.op_expander import Expander


@attrs.frozen
class AllReducePromotion(Expander):
    """Reduces over devices in a wider type what is too narrow for the compiler (XLA's `AllReducePromotion`).

    By default bf16 in f32, as the CPU compiler does; the GPU compiler promotes whole numbers of 16 bits to 32.

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
    counted: ClassVar[str] = "reductions"
    preserves_results: ClassVar[bool] = False

    whole_numbers: bool = False
    """Promotes u16 and s16 instead of bf16, as for GPU."""

    def _target(self, type_: ElementType) -> ElementType | None:
        names = {"u16": "u32", "s16": "s32"} if self.whole_numbers else {"bf16": "f32"}
        return ELEMENT_TYPES[names[type_.name]] if type_.name in names else None

    def matches(self, i: Instruction) -> bool:
        if i.opcode not in ("all-reduce", "reduce-scatter") or not shape_of(i).is_array or not i.operands:
            return False
        callees = i.called_computations
        if len(callees) != 1 or len(callees[0].root.operands) != 2:
            return False
        types = {type_of(o) for o in i.operands if shape_of(o).is_array}
        return len(types) == 1 and self._target(types.pop()) is not None

    def expand(self, s: Simplifier, i: Instruction) -> Instruction | None:
        wide = self._target(type_of(i.operands[0]))
        assert wide is not None
        operands = [s.create("convert", retyped(shape_of(o), wide), (o,)) for o in i.operands]
        new = s.clone(i, operands, retyped(shape_of(i), wide))
        promoted = _promoted(s, i, wide)
        new.change(attributes={**new.attributes, "to_apply": promoted}, typed=False)
        return new if type_of(i) is wide else s.create("convert", shape_of(i), (new,))


def _promoted(s: Simplifier, i: Instruction, type_: ElementType) -> Computation:
    """The computation of a reduction in another type (`CloneAllReduce`)."""
    callee = i.called_computations[0]
    b = Builder.new(s.module, f"{callee.name}_promoted", (), before=i.computation)
    x, y = (b.parameter(Shape(type_), name) for name in ("x", "y"))
    return b.finish(b.op(callee.root.opcode, (x, y), shape=Shape(type_)))
