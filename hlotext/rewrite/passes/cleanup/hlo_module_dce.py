"""Removes dead elements of loop state, with everything computed for them."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.cleanup.liveness import Liveness
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor, body_of, is_whole, parameter_of
from hlotext.rewrite.passes.loops.while_loop_simplifier import WhileLoopSimplifier
from hlotext.rewrite.passes.simplify.tuple_simplifier import TupleSimplifier


@attrs.frozen
class HloModuleDCE(Pass):
    """Removes loop elements that nothing in the module needs (XLA's `HloModuleDCE`).

    Liveness is propagated through tuples, loops and calls. Dead elements are forwarded unchanged, so that the passes for
    loops, tuples and dead code, which run next, remove them.

    >>> import hlotext as hlo
    >>> m = hlo.parse('''
    ... body { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0
    ...   x = f32[] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
    ...   y = f32[] sine(x)  ROOT t = (s32[], f32[]) tuple(j, y) }
    ... cond { s = (s32[], f32[]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
    ...   ROOT lt = pred[] compare(i, n), direction=LT }
    ... ENTRY e { x = f32[] parameter(0)  zero = s32[] constant(0)  t = (s32[], f32[]) tuple(zero, x)
    ...   w = (s32[], f32[]) while(t), condition=cond, body=body  ROOT i = s32[] get-tuple-element(w), index=0 }''')
    >>> HloModuleDCE().run(m).statistics["elements"]
    1
    >>> print(m.entry.root.operands[0].shape)
    (s32[])
    """

    name: ClassVar[str] = "hlo-module-dce"
    summary: ClassVar[str] = "Removes loop elements that nothing in the module uses."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        live = Liveness.of(module)
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        count = 0
        for loop in [i for i in module.instructions() if i.opcode == "while"]:
            shape = loop.shape
            if (
                shape is None
                or not shape.is_tuple
                or not is_whole(loop)
                or body_of(loop).root.opcode != "tuple"
            ):
                continue
            body = body_of(loop)
            for n in range(len(shape.tuple_shapes)):
                if live.is_live(loop, (n,)):
                    continue
                operands = list(body.root.operands)
                editor.place = body.root
                operands[n] = editor.element(parameter_of(body), n)
                body.root.change(operands=operands, typed=False)
                count += 1
        statistics = {"elements": count}
        for name, number in (
            item
            for step in (WhileLoopSimplifier(), TupleSimplifier(), DeadCodeElimination())
            for item in step.run(module).statistics.items()
        ):
            statistics[name] = statistics.get(name, 0) + number
        return PassResult.of(statistics)
