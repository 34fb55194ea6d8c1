"""The orders in which XLA prints what a proto holds: neither instructions nor computations come as they lie in it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes.computation import Computation, instruction_post_order
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


def computation_order(
    computations: Sequence[Computation], calls: dict[Computation, list[list[Computation]]]
) -> list[Computation]:
    """Callees before callers (`HloModule::MakeComputationPostOrder` with `dfs_postorder`).

    Every computation that nobody calls starts a walk. `calls` are those of each computation, a list for each instruction that
    calls, in the order of the proto.
    """
    called = {callee for groups in calls.values() for group in groups for callee in group}
    order: list[Computation] = []
    visited: set[Computation] = set()
    for root in computations:
        if root in called:
            continue
        stack: list[tuple[Computation, int]] = [(root, 0)]
        visited.add(root)
        while stack:
            computation, place = stack.pop()
            groups = calls.get(computation, ())
            for place in range(place, len(groups)):  # noqa: B020 - from where it was left
                # All that one instruction calls is marked at once, and entered from the first on.
                new = [callee for callee in dict.fromkeys(groups[place]) if callee not in visited]
                if not new:
                    continue
                visited.update(new)
                if len(new) == 1 and new[0] not in calls:
                    order.append(new[0])
                    continue
                stack.append((computation, place + 1))
                stack.extend((callee, 0) for callee in reversed(new))
                break
            else:
                order.append(computation)
    return order
