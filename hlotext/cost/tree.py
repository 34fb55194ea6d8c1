"""Costs as a tree of scopes, repeated layers folded into one."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Phase, scopes
from hlotext.analysis.scopes import TOP
from hlotext.cost.analysis import Analysis, Cost


@attrs.define(eq=False)
class ScopeCost:
    """A node of the cost tree: a scope and the total cost inside it."""

    name: str
    """Last component of the path (`layer_*` if folded); empty for the whole module."""
    flops: float = 0
    transcendentals: float = 0
    bytes_accessed: float = 0
    phases: dict[Phase | None, float] = attrs.field(factory=dict)
    """FLOPs by phase."""
    children: dict[str, ScopeCost] = attrs.field(factory=dict)

    def sorted_children(self) -> list[ScopeCost]:
        """Returns the child scopes, most FLOPs first."""
        return sorted(self.children.values(), key=lambda node: (-node.flops, -node.bytes_accessed, node.name))

    def add(self, cost: Cost, phase: Phase | None) -> None:
        """Adds a cost to the totals of this scope, and its FLOPs to those of a phase."""
        self.flops += cost.flops
        self.transcendentals += cost.transcendentals
        self.bytes_accessed += cost.bytes_accessed
        self.phases[phase] = self.phases.get(phase, 0) + cost.flops

    def walk(self, depth: int) -> Iterator[tuple[int, ScopeCost]]:
        """Yields the descendants in the top `depth` levels with their levels, in pre-order, most FLOPs first.

        Children of this scope have level 0.
        """
        stack = [(0, child) for child in reversed(self.sorted_children())] if depth > 0 else []
        while stack:
            level, node = stack.pop()
            yield level, node
            if level + 1 < depth:
                stack.extend((level + 1, child) for child in reversed(node.sorted_children()))


def scope_tree(analysis: Analysis, *, fold: bool = True) -> ScopeCost:
    """Returns the cost of one run as a tree of scopes, each including its descendants.

    With `fold`, repeated layers are merged into one `layer_*`. Operations outside all scopes get a separate node, so
    the children of the root add up to it.
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
