"""Common subexpression elimination."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.effects import fixed
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class CommonSubexpressionElimination(Pass):
    """Keeps the first of several instructions that compute the same (`HloCSE`).

    The same are opcode, shape, operands (in any order where it does not matter), attributes except notes such as metadata,
    and the value of a constant to the bit; a value that the text leaves out is like no other. What has an effect, is random,
    asynchronous or has control dependencies stays, as in XLA. Calls count as the same where they call the same computation.

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
        kept = fixed(module)
        merged = sum(self._merge(c, kept) for c in module.computations if not c.is_implicit)
        return PassResult.of({"instructions": merged})

    def _merge(self, computation: Computation, kept: set[Instruction]) -> int:
        """Keeps the first of equal instructions; how many others there were.

        Only what shares opcode and operands is looked at more closely, which little does.
        """
        alone: dict[Any, Instruction | None] = {}
        alike: dict[Any, Instruction] = {}
        gone: list[Instruction] = []
        for i in tuple(computation._instructions):
            if i._opcode in _KEPT or i in kept:
                continue
            rough = _rough_key(i)
            other = alone.setdefault(rough, i)
            if other is i:
                continue
            if other is not None:
                alone[rough] = None
                alike[rough, self._key(other)] = other
            first = alike.setdefault((rough, self._key(i)), i)
            if first is not i and _replaced(i, first):
                gone.append(i)
        if gone:
            computation.remove_all(gone)
        return len(gone)

    def _key(self, i: Instruction) -> Any:
        """Equal for instructions with equal rough keys that compute the same."""
        shape = i._shape
        attributes = tuple(sorted((n, v) for n, v in i._attributes.items() if n not in _NOTES))
        is_known = i.literal is None or not i.literal.is_partly_elided
        return (
            shape if self.is_layout_sensitive or shape is None else shape.text_without_layout(),
            i._argument if is_known else i,
            attributes,
        )


def _rough_key(i: Instruction) -> Any:
    """What tells most instructions apart: opcode and operands, and of those without operands the value or the shape."""
    opcode, operands = i._opcode, i._operands
    if opcode == "get-tuple-element":
        return operands, i._attributes["index"]
    if opcode in _COMMUTATIVE:
        return opcode, frozenset(operands)
    return opcode, operands or i._argument or i._shape


def _replaced(i: Instruction, first: Instruction) -> bool:
    """Whether all uses of one instruction could become uses of another; a user may need the very layout."""
    try:
        i.replace_all_uses_with(first)
    except EditError:
        return False
    return True


_NOTES = frozenset({"metadata", "backend_config", "frontend_attributes", "origin", "statistics"})
_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
_KEPT = ROLES.keys() | {
    *("parameter", "rng", "rng-bit-generator", "after-all", "opt-barrier", "domain", "add-dependency"),
    *("partition-id", "replica-id", "custom-call"),
}
"""What is never taken for a repetition."""
