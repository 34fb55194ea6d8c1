"""The orders in which XLA prints what a proto holds: instructions need not come as they lie in it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.proto.bodies import LOCAL, number_of

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.proto.bodies import Body


def instruction_order(body: Body) -> list[Instruction]:
    """The instructions of a computation, operands before users (`HloComputation::MakeInstructionPostOrder`).

    Every instruction without users starts a walk, in the order of their ids. XLA writes protos in that order already.
    """
    starts = _starts(body)
    if len(starts) == 1 or (starts and _is_ascending(body, starts)):
        return body.nodes
    computation = body.computation
    pairs = sorted(zip(body.local_ids(), body.nodes, strict=True), key=_local)
    computation._instructions = [node for _, node in pairs]
    return instruction_post_order(computation)


def _starts(body: Body) -> list[Instruction]:
    """The instructions at which walks start that visit them in the order in which they stand; none if no walks do.

    What was visited lies on a stack until the user comes from which the walk went there: what a user takes as operands, and
    nobody took before, must lie on top, in the order of the operands.
    """
    waiting: dict[Instruction, None] = {}
    pop, has_predecessors = waiting.popitem, body.has_predecessors
    for node in body.nodes:
        visited: Any = node._operands
        if has_predecessors and node.control_predecessors:
            visited = dict.fromkeys((*reversed(node.control_predecessors), *visited))
        elif len(visited) > 2:
            visited = dict.fromkeys(visited)
        for operand in reversed(visited):
            if operand in waiting and pop()[0] is not operand:
                return []
        waiting[node] = None
    return list(waiting)


def _is_ascending(body: Body, starts: list[Instruction]) -> bool:
    """Whether these stand in the order of their ids."""
    keys = {node: key for key, node in body.by_key.items()}
    found = [number_of(keys[node]) & LOCAL for node in starts]
    return all(a < b for a, b in itertools.pairwise(found))


def _local(pair: tuple[int, Instruction]) -> int:
    return pair[0]
