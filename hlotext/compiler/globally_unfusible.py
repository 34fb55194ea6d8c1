"""Producers that fusion keeps whole, because some user on some path cannot take them in."""

from __future__ import annotations

from collections.abc import Callable

from hlotext.compiler.fusion_graph import Graph, Node
from hlotext.compiler.fusion_rules import is_effective_scalar
from hlotext.ir.values.shape import Shape
from hlotext.memory.elementwise import Elementwise

Refusal = tuple[str, str]
"""A rule and its reason; None if fusion is allowed."""

MOST_STEPS = 64
"""Steps of the search for paths, for each instruction of a computation and beyond a million; XLA has no such limit, but a
table of who reaches whom. What would take more is kept whole."""


class GloballyUnfusible:
    """Finds nodes that read more than they write and cannot be fused into all users (`ComputeGloballyUnfusible`)."""

    def __init__(
        self,
        graph: Graph,
        should_fuse: Callable[[Node, Node], Refusal | None],
        is_fusible: Callable[[Node], bool],
    ) -> None:
        self._graph = graph
        self._should_fuse = should_fuse
        self._is_fusible = is_fusible
        self._answers: dict[tuple[Node, Node], Refusal | None] = {}
        self._kept: dict[Node, str] = {}
        self._steps = 1_000_000 + MOST_STEPS * len(graph.nodes)

    def nodes(self) -> dict[Node, str]:
        """Returns the nodes, each with the reason."""
        for node in reversed(self._graph.nodes.values()):
            if _is_at_most_unary(node) or _read_elements(node) <= _elements(node.shape):
                continue
            if not self._is_fusible(node):
                self._kept[node] = f"{node.name} has opcode {node.opcode}, which is never fused"
                continue
            blocked = self._blocked(node)
            if blocked is not None:
                self._kept[node] = (
                    f"{node.name} reads more than it produces, so every user must fuse it, but {blocked}"
                )
        return self._kept

    def _blocked(self, producer: Node) -> str | None:
        """Reason why a producer cannot be fused into all users on all paths (`CanFuseOnAllPaths`); None if it can."""
        reached = self._reached(producer)
        if reached is None:
            return "there are too many paths to follow"
        seen: set[Node] = set()
        pending = list(producer.users)
        while pending:
            consumer = pending.pop()
            if consumer in seen:
                continue
            seen.add(consumer)
            if not self._is_fusible(consumer):
                return f"{consumer.name} has opcode {consumer.opcode}, which is never fused"
            for operand in dict.fromkeys(consumer.own):
                if operand is not producer and operand not in reached:
                    continue
                if operand in self._kept:
                    return f"{operand.name} must not be duplicated either"
                refusal = self._answer(operand, consumer)
                if refusal is not None:
                    return refusal[1]
                if operand is not producer:
                    pending.append(operand)
        return None

    def _answer(self, producer: Node, consumer: Node) -> Refusal | None:
        pair = producer, consumer
        if pair not in self._answers:
            self._answers[pair] = self._should_fuse(producer, consumer)
        return self._answers[pair]

    def _reached(self, producer: Node) -> set[Node] | None:
        """Instructions that depend on a producer and precede its last user; None if there are too many to follow."""
        if len(producer.users) < 2:
            return set()
        last = max(user.place for user in producer.users)
        reached: set[Node] = set()
        pending = [producer]
        while pending:
            for user in pending.pop().users:
                self._steps -= 1
                if user.place <= last and user not in reached:
                    reached.add(user)
                    pending.append(user)
            if self._steps < 0:
                return None
        return reached


def shifted_by_its_maximum(node: Node, elementwise: Elementwise) -> Node | None:
    """Returns the maximum that is subtracted from an elementwise value before an exponential, as in softmax, or None.

    Corresponds to `IsCoupledReductionShiftExpProducer`; only the first maximum is considered.
    """
    if node.is_fusion or not elementwise.everywhere(node.origin):
        return None
    largest = next((user for user in node.users if user.own[0] is node and _is_maximum(user)), None)
    if largest is None:
        return None
    for user in node.users:
        if user.opcode != "subtract" or not any(one.opcode == "exponential" for one in user.users):
            continue
        if any(operand.opcode == "broadcast" and operand.own[0] is largest for operand in user.own):
            return largest
    return None


def _is_maximum(node: Node) -> bool:
    callees = node.origin.called_computations
    return node.opcode == "reduce" and bool(callees) and callees[0].root.opcode == "maximum"


def _is_at_most_unary(node: Node) -> bool:
    """True if at most one operand is as large as the result, by its dimensions (`EffectivelyAtMostUnary`)."""
    rank = max((leaf.true_rank for _, leaf in node.shape.leaves() if leaf.is_array), default=0)
    count = 0
    for operand in node.own:
        shape = operand.shape
        if operand.opcode in ("broadcast", "iota"):
            continue
        if operand.opcode == "constant" and is_effective_scalar(shape):
            continue
        count += (shape.true_rank if shape.is_array else 0) >= rank
    return count <= 1


def _read_elements(node: Node) -> int:
    return sum(_elements(operand.shape) for operand in dict.fromkeys(node.own))


def _elements(shape: Shape) -> int:
    return sum(leaf.element_count for _, leaf in shape.leaves() if leaf.is_array)
