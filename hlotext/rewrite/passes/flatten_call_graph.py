"""A computation of its own for every caller."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.cloning import clone_computation
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.passes.properties import FLAT_CALL_GRAPH

SEQUENTIAL = frozenset({"call", "while", "conditional", "async-start"})
"""Opcodes whose computations run by themselves, not for each element (`CallContext::kControlFlow`)."""


@attrs.frozen
class FlattenCallGraph(Pass):
    """Copies computations so that each that runs by itself is called in one place (XLA's `FlattenCallGraph`).

    Callers first, so copies are flattened in their turn.
    """

    name: ClassVar[str] = "flatten-call-graph"
    summary: ClassVar[str] = "Gives every call, loop and branch a computation of its own."
    ensures = (FLAT_CALL_GRAPH,)

    def run(self, module: Module) -> PassResult:
        taken: set[Computation] = set()
        count = 0
        pending = list(reversed(post_order(module.computations)))
        while pending:
            computation = pending.pop(0)
            for caller in computation.instructions:
                if caller.opcode not in SEQUENTIAL:
                    continue
                changed = {}
                for name in dict(caller.attributes):
                    value = caller.attributes[name]
                    several = isinstance(value, tuple)
                    callees = value if several else (value,)
                    if not callees or not all(isinstance(c, Computation) for c in callees):
                        continue
                    own = []
                    for callee in callees:
                        if callee in taken:
                            callee = clone_computation(callee)
                            pending.append(callee)
                            count += 1
                        taken.add(callee)
                        own.append(callee)
                    changed[name] = tuple(own) if several else own[0]
                if any(caller.attributes[name] != value for name, value in changed.items()):
                    caller.change(attributes={**caller.attributes, **changed})
        return PassResult.of({"copies": count})
