"""Uses of the computations of a module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from hlotext.analysis.call_graph import USES, CallGraph
from hlotext.ir.nodes.computation import Computation


@attrs.frozen
class ComputationUse:
    """Number of computations with one role, and of their instructions."""

    use: str
    computations: int
    instructions: int


def computation_uses(graph: CallGraph, sizes: Mapping[Computation, int]) -> tuple[ComputationUse, ...]:
    """Counts computations and their instructions by role, such as loop body or reducer."""
    computations: Counter[str] = Counter()
    instructions: Counter[str] = Counter()
    for computation, size in sizes.items():
        use = graph.use(computation)
        computations[use] += 1
        instructions[use] += size
    return tuple(
        ComputationUse(use, computations[use], instructions[use]) for use in USES if computations[use]
    )
