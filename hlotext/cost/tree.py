"""Costs as a tree of scopes, repeated layers folded into one."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Phase, scopes
from hlotext.analysis.scopes import TOP
from hlotext.cost.analysis import Analysis, Cost


@attrs.define(eq=False)
class ScopeCost:
    """One scope with everything inside it."""

    name: str
    """The last part of the path, `layer_*` for repeated ones; empty for the whole module."""
    flops: float = 0
    transcendentals: float = 0
    bytes_accessed: float = 0
    phases: dict[Phase | None, float] = attrs.field(factory=dict)
    """Flops by phase."""
    children: dict[str, ScopeCost] = attrs.field(factory=dict)

    def sorted_children(self) -> list[ScopeCost]:
        """Those with the most flops first."""
        return sorted(self.children.values(), key=lambda node: (-node.flops, -node.bytes_accessed, node.name))

    def add(self, cost: Cost, phase: Phase | None) -> None:
        """Counts something more."""
        self.flops += cost.flops
        self.transcendentals += cost.transcendentals
        self.bytes_accessed += cost.bytes_accessed
        self.phases[phase] = self.phases.get(phase, 0) + cost.flops

    def walk(self, depth: int) -> Iterator[tuple[int, ScopeCost]]:
        """The nodes below, each with its level from 0, down to a depth, in pre-order."""
        stack = [(0, child) for child in reversed(self.sorted_children())]
        while stack:
            level, node = stack.pop()
            yield level, node
            if level + 1 < depth:
                stack.extend((level + 1, child) for child in reversed(node.sorted_children()))


def scope_tree(analysis: Analysis, *, fold: bool = True) -> ScopeCost:
    """The cost of one run by scope: each node has what is in it and below. With `fold` repeated layers are one `layer_*`.

    The nodes below the root add up to it: what is in no scope is a node of its own.
    """
    found = scopes(analysis.module)
    root = ScopeCost("")
    for scope, cost in analysis.by_scope().items():
        path = found.folded(scope) if fold else scope.path
        root.add(cost, scope.phase)
        node = root
        for name in path or (TOP,):
            node = node.children.setdefault(name, ScopeCost(name))
            node.add(cost, scope.phase)
    return root
