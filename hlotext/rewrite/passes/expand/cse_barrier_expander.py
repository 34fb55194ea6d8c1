"""Optimization barriers taken out when they have done their work."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.control import replace_uses_and_control
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations


@attrs.frozen
class CseBarrierExpander(Pass):
    """Removes optimization barriers by forwarding their operands (XLA's `OptimizationBarrierExpander`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  b = f32[] opt-barrier(x)  ROOT y = f32[] sine(b) }")
    >>> CseBarrierExpander().run(m).statistics
    {'barriers': 1}
    >>> print(m.entry.root)
    ROOT y = f32[] sine(x)
    """

    name: ClassVar[str] = "cse-barrier-expander"
    summary: ClassVar[str] = "Removes optimization barriers."

    def run(self, module: Module) -> PassResult:
        count = 0
        for computation in nonfusion_computations(module):
            for i in computation.instructions:
                if i.opcode == "opt-barrier" and len(i.operands) == 1:
                    replace_uses_and_control(i, i.operands[0])
                    computation.remove(i)
                    count += 1
        return PassResult.of({"barriers": count})
