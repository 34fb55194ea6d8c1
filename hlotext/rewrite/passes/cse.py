"""Common subexpression elimination."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.rewrite.effects import effectful, has_own_effect
from hlotext.rewrite.passes.base import Pass, PassResult

_NOTES = frozenset({"metadata", "backend_config", "frontend_attributes", "origin", "statistics"})
_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@attrs.frozen
class CommonSubexpressionElimination(Pass):
    """Keeps the first of several instructions that compute the same (`HloCSE`).

    The same are opcode, shape, operands (in any order where it does not matter), attributes except notes such as metadata,
    and the value of a constant to the bit. What has an effect, is random, asynchronous or has control dependencies stays,
    as in XLA. Calls count as the same where they call the same computation.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  b = f32[] sine(x)  ROOT r = f32[] add(a, b) }")
    >>> CommonSubexpressionElimination().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root)
    ROOT r = f32[] add(a, a)
    """

    name: ClassVar[str] = "cse"
    summary: ClassVar[str] = "Keeps one of several instructions that compute the same."

    is_layout_sensitive: bool = True
    """Whether instructions with other layouts are others (`HloCSE`'s option of that name)."""

    def run(self, module: Module) -> PassResult:
        effects = effectful(module.computations)
        return PassResult.of({"instructions": sum(self._merge(c, effects) for c in module.computations)})

    def _merge(self, computation: Computation, effects: frozenset[Computation]) -> int:
        if computation.is_implicit:
            return 0
        seen: dict[Any, Instruction] = {}
        gone: list[Instruction] = []
        controls = {p for i in computation for p in i.control_predecessors}
        for i in computation.instructions:
            if (
                i._opcode in _KEPT
                or i.control_predecessors
                or i in controls
                or has_own_effect(i)
                or any(callee in effects for callee in i.called_computations)
            ):
                continue
            first = seen.setdefault(self._key(i), i)
            if first is not i:
                i.replace_all_uses_with(first)
                gone.append(i)
        if gone:
            computation.remove_all(gone)
        return len(gone)

    def _key(self, i: Instruction) -> Any:
        """A value that is equal for instructions that compute the same."""
        shape = i._shape
        key = shape if self.is_layout_sensitive or shape is None else shape.text_without_layout()
        operands: Any = i._operands
        if i._opcode in _COMMUTATIVE:
            operands = frozenset(operands)
        attributes: Any = None
        if i._attributes:
            attributes = tuple((n, v) for n, v in sorted(i._attributes.items()) if n not in _NOTES)
        return i._opcode, key, operands, attributes, i._argument


_KEPT = frozenset(
    {
        *("parameter", "rng", "rng-bit-generator", "after-all", "opt-barrier", "domain", "add-dependency"),
        *(
            "async-start",
            "async-update",
            "async-done",
            "copy-start",
            "copy-done",
            "partition-id",
            "replica-id",
        ),
        *("all-gather-start", "all-gather-done", "all-reduce-start", "all-reduce-done", "custom-call"),
        *("collective-permute-start", "collective-permute-done"),
    }
)
"""What is never taken for a repetition."""
