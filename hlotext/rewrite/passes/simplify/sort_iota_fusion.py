"""Sorts fused with the places that they sort along."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.enums import FusionKind
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.control import CONTROL
from hlotext.rewrite.kit.facts import is_typed
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor


@attrs.frozen
class SortIotaFusion(Pass):
    """Fuses sorts with their iota operands (XLA's `SortIotaFusion`, for GPU).

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { a = f32[] parameter(0)  b = f32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)"
    ...     "  ROOT l = pred[] compare(a, b), direction=LT }  ENTRY e { x = f32[8] parameter(0)"
    ...     "  i = s32[8] iota(), iota_dimension=0  ROOT s = (f32[8], s32[8]) sort(x, i), dimensions={0}, to_apply=f }")
    >>> SortIotaFusion().run(m).statistics
    {'sorts': 1}
    >>> print(m.entry.root)
    ROOT fusion = (f32[8], s32[8]) fusion(x), kind=kCustom, calls=fused_computation
    """

    name: ClassVar[str] = "sort-iota-fusion"
    summary: ClassVar[str] = "Fuses sorts with their iota operands."

    def run(self, module: Module) -> PassResult:
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        found = [
            i
            for computation in nonfusion_computations(module)
            for i in computation.instructions
            if i.opcode == "sort" and is_typed(i) and any(o.opcode == "iota" for o in i.operands)
        ]
        return PassResult.of({"sorts": sum(_fuse(editor, sort) for sort in found)})


def _fuse(editor: LoopEditor, sort: Instruction) -> bool:
    home = sort.computation
    if home is None or sort.control_predecessors or sort.control_successors:
        return False
    if any(caller.opcode == "async-start" for caller in home.callers):
        return False
    b = Builder.new(editor.module, "fused_computation", (), before=home)
    inside: dict[Instruction, Instruction] = {}
    for o in sort.operands:
        assert o.shape is not None
        if o not in inside and o.opcode != "iota":
            inside[o] = b.parameter(o.shape, f"param_{len(inside)}")
    given = list(inside)
    for o in sort.operands:
        if o.opcode == "iota" and o not in inside:
            inside[o] = b.op(
                "iota", shape=o.shape, iota_dimension=o.attributes["iota_dimension"], name=o.name
            )
    own = {k: v for k, v in sort.attributes.items() if k != CONTROL}
    assert sort.shape is not None
    root = editor.create(
        "sort",
        sort.shape,
        [inside[o] for o in sort.operands],
        **own,
        computation=b.computation,
        name=sort.name,
    )
    body = b.finish(root)
    editor.place = sort
    fusion = editor.create("fusion", sort.shape, given, kind=FusionKind.CUSTOM, calls=body, like=sort)
    return editor.replace(sort, fusion)
