"""Dead code elimination."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.computation import Computation, post_order
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.rewrite.effects import effectful, has_own_effect
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class DeadCodeElimination(Pass):
    """Takes out instructions that nothing uses and that have no effect, and computations that nothing calls (`HloDCE`).

    Parameters stay, as do instructions with control dependencies. One walk over each computation from its end, so the time
    is proportional to the module.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] negate(x)  z = f32[] sine(y)  ROOT r = f32[] cosine(x) }")
    >>> DeadCodeElimination().run(m).statistics
    {'instructions': 2}
    """

    name: ClassVar[str] = "dce"
    summary: ClassVar[str] = "Takes out what nothing uses, computations too."

    computations: bool = True
    """Also takes out computations that the entry does not reach."""

    def run(self, module: Module) -> PassResult:
        effects = effectful(module.computations)
        instructions = sum(self._sweep(computation, effects) for computation in module.computations)
        computations = self._unreached(module) if self.computations else 0
        return PassResult.of({"instructions": instructions, "computations": computations})

    def _sweep(self, computation: Computation, effects: frozenset[Computation]) -> int:
        """Takes the dead instructions of a computation out at once."""
        if computation.is_implicit or not len(computation):
            return 0
        needed: set[Instruction] = {computation.root}
        dead: list[Instruction] = []
        controls = {p for i in computation for p in i.control_predecessors}
        for i in reversed(computation.instructions):
            lives = (
                i in needed
                or i._opcode == "parameter"
                or i in controls
                or bool(i.control_predecessors)
                or has_own_effect(i)
                or any(callee in effects for callee in i.called_computations)
            )
            if lives:
                needed.update(i._operands)
            else:
                dead.append(i)
        if dead:
            computation.remove_all(dead)
        return len(dead)

    def _unreached(self, module: Module) -> int:
        reached = set(post_order([module.entry]))
        dead = [c for c in module.computations if c not in reached]
        if dead:
            module.remove_all(dead)
        return len(dead)
