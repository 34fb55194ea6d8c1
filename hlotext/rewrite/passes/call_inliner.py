"""Calls replaced by what they call."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import post_order
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.outlining import inline
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class CallInliner(Pass):
    """Puts the instructions of called computations in the place of each `call` (XLA's `CallInliner`).

    Callees first, so that one walk suffices. Composite calls stay (they mean more than their body), as do calls on other
    execution threads. The computations themselves stay for DCE.

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { p = f32[] parameter(0)  ROOT n = f32[] sine(p) }  ENTRY e { x = f32[] parameter(0)"
    ...     "  ROOT c = f32[] call(x), to_apply=f }")
    >>> CallInliner().run(m).statistics
    {'calls': 1}
    >>> print(m.entry.root)
    ROOT n.1 = f32[] sine(x)
    """

    name: ClassVar[str] = "call-inliner"
    summary: ClassVar[str] = "Replaces calls by the instructions of what they call."

    single_call_site: bool = False
    """Only what is called in one place."""

    def run(self, module: Module) -> PassResult:
        count = 0
        for computation in post_order(module.computations):
            for call in computation.instructions:
                if call.opcode != "call" or call.attributes.get("is_composite"):
                    continue
                callee = call.called_computations[0]
                if callee.execution_thread != computation.execution_thread:
                    continue
                if self.single_call_site and len(callee.callers) != 1:
                    continue
                inline(call)
                count += 1
        return PassResult.of({"calls": count})
