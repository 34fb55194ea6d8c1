"""Number of times a producer's code would be emitted inside a fusion (`FusionNodeIndexingEvaluation`).

The emitter writes an operation once for each index at which it is read. A member that hands on its own index (same sizes and
layout, or a transpose) lets its operands share the code; every other makes an index of its own.
"""

from __future__ import annotations

from hlotext.compiler.fusion_graph import Body, Member, Node
from hlotext.ir.values.shape import Shape

MOST = 15
"""Copies of a producer's code that are allowed (`kAllowedCodeDuplication`)."""

ONCE = frozenset({"concatenate", "dot", "dynamic-update-slice", "pad", "reduce", "reduce-window"})
"""Opcodes whose code is not kept from one use to the next (`ElementalIrEmitter::OpInvalidatesCache`)."""

_OUTSIDE = None
"""Reader of the root."""


def same_place(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes are equal except for the element type (`Shape::Equal().IgnoreElementType()`)."""
    if a.is_tuple or b.is_tuple:
        return a == b
    return (
        a.dimensions == b.dimensions and a.layout == b.layout and a.dynamic_dimensions == b.dynamic_dimensions
    )


class Duplication:
    """The indices at which members and operands of a fusion are read, to count code duplication."""

    def __init__(self, body: Body) -> None:
        self._indexers: dict[Member | Node, set[Member | None]] = {body.root: {_OUTSIDE}}
        self._counts: dict[Member | None, int] = {_OUTSIDE: 1}
        for member in reversed(list(body.in_order())):
            self._count(member)

    def _count(self, member: Member) -> None:
        own = self._indexers.setdefault(member, set())
        self._counts[member] = sum(self._counts[reader] for reader in own)
        for operand in member.operands:
            if member.opcode == "transpose" or same_place(operand.shape, member.shape):
                self._indexers.setdefault(operand, set()).update(own)
            else:
                self._indexers.setdefault(operand, set()).add(member)

    def of(self, operand: Node) -> int:
        """Returns how many times an operand's code would be emitted."""
        return sum(self._counts[reader] for reader in self._indexers.get(operand, ()))

    def is_too_high(self, producer: Node) -> bool:
        """Returns True if code duplication forbids fusing a producer (`CodeDuplicationTooHigh`); False for broadcasts."""
        if producer.opcode == "broadcast":
            return False
        count = self.of(producer)
        return count > MOST or (producer.opcode in ONCE and (count > 1 or readers(producer) > 1))

    def fused(self, producer: Node, member: Member) -> None:
        """Updates the counts for an operand that became a member (`UpdateEvaluationCache`)."""
        self._indexers[member] = self._indexers.pop(producer, set())
        self._count(member)


def readers(node: Node) -> int:
    """Returns the number of reads of a value, counting those inside fusions (`UserCount`)."""
    return sum(user.readers_of(node) for user in node.users)
