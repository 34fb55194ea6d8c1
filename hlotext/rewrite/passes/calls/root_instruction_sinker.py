"""Roots brought to the end of schedules."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.edit.structure import set_root
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.ordering import move_after
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor


@attrs.frozen
class RootInstructionSinker(Pass):
    """Makes the root the last instruction of each scheduled computation (XLA's `RootInstructionSinker`).

    An earlier root is recreated at the end as a tuple of its elements, or a bitcast. Unscheduled modules are not changed.

    >>> import hlotext as hlo
    >>> m = hlo.parse("HloModule m, is_scheduled=true  ENTRY e { p = f32[] parameter(0)  ROOT x = f32[] parameter(1)"
    ...     "  y = f32[] sine(p) }")
    >>> RootInstructionSinker().run(m).statistics
    {'roots': 1}
    >>> print(m.entry.root)
    ROOT bitcast = f32[] bitcast(x)
    """

    name: ClassVar[str] = "root-instruction-sinker"
    summary: ClassVar[str] = "Moves the root to the end of each scheduled computation."

    def run(self, module: Module) -> PassResult:
        if not module.is_scheduled:
            return PassResult.of({})
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        count = 0
        for computation in nonfusion_computations(module):
            if not len(computation) or computation.instructions[-1] is computation.root:
                continue
            root, shape = computation.root, computation.root.shape
            if shape is None:
                continue
            last = computation.instructions[-1]
            if shape.is_tuple:
                elements = editor.elements(root)
                made = [*elements, editor.tuple(elements, computation)]
            else:
                made = [editor.create("bitcast", shape, (root,))]
            new = made[-1]
            if computation.order[new] < computation.order[last]:
                move_after(new, last)  # what is added stands behind its operands
            for element in made[:-1]:
                element.move_before(new)
            set_root(computation, new)
            count += 1
        return PassResult.of({"roots": count})
