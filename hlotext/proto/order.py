"""The orders in which XLA prints what a proto holds: neither instructions nor computations come as they lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation


def post_order(
    operands: Sequence[int], bounds: Sequence[int], predecessors: dict[int, list[int]], starts: Sequence[int]
) -> list[int]:
    """The numbers of a computation's instructions, operands before users (`HloComputation::MakeInstructionPostOrder`).

    Every instruction without users starts a walk, in the order of `starts`; control predecessors come first, the last one
    foremost, then operands from left to right. `operands` of all instructions lie one behind the other, those of one between
    its bound and the next; the first bound belongs to the first number. They are smaller numbers, so there is no cycle.
    """
    first = min(starts)
    count = len(starts)
    used = set(operands[bounds[first] : bounds[first + count]])
    state = bytearray(count)  # 1: entered, 2: done
    order: list[int] = []
    append = order.append
    for start in starts:
        if start in used:
            continue
        stack = [start]
        while stack:
            number = stack[-1]
            seen = state[number - first]
            if seen:
                stack.pop()
                if seen == 1:
                    state[number - first] = 2
                    append(number)
                continue
            a, b = bounds[number], bounds[number + 1]
            if a == b and not predecessors:
                stack.pop()
                state[number - first] = 2
                append(number)
                continue
            state[number - first] = 1
            while b > a:
                b -= 1
                if state[operands[b] - first] != 2:
                    stack.append(operands[b])
            if predecessors:
                for other in predecessors.get(number, ()):
                    if state[other - first] != 2:
                        stack.append(other)
    return order


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
            if place == len(groups):
                order.append(computation)
                continue
            stack.append((computation, place + 1))
            # All that one instruction calls is marked at once, and entered from the first on.
            new = [callee for callee in groups[place] if callee not in visited]
            visited.update(new)
            stack.extend((callee, 0) for callee in reversed(list(dict.fromkeys(new))))
    return order
