"""The orders in which XLA prints what a proto holds: instructions need not come as they lie in it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.proto.fast_computations import LOCAL, number_of

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.proto.fast_computations import Body


def instruction_order(body: Body) -> list[Instruction]:
    """Returns the instructions of a computation in post-order (`HloComputation::MakeInstructionPostOrder`).

    A traversal starts at every instruction without users, in order of ids. XLA writes protos in this order already.
    """
    like = body.like
    if (like is not None and like.is_in_order) or _is_in_order(
        body.nodes, body.has_predecessors, _starts(body)
    ):
        if like is not None:
            like.is_in_order = True
        return body.nodes
    computation = body.computation
    pairs = sorted(zip(body.local_ids(), body.nodes, strict=True), key=_local)
    computation._instructions = [node for _, node in pairs]
    return instruction_post_order(computation)


def as_read(computation: Computation) -> list[Instruction]:
    """Returns the instructions in the order that reading a proto would give, or in text order if there is a cycle."""
    nodes = computation._instructions
    used = set(itertools.chain.from_iterable([node._operands for node in nodes]))
    starts = [place for place, node in enumerate(nodes) if node not in used]
    has_predecessors = any("control-predecessors" in node._attributes for node in nodes)
    try:
        if _is_in_order(nodes, has_predecessors, starts):
            return nodes
    except KeyError:  # an operand of another computation, which whoever writes it finds out
        return nodes
    found = instruction_post_order(computation)
    return found if len(found) == len(nodes) else nodes


def _is_in_order(nodes: list[Instruction], has_predecessors: bool, starts: list[int]) -> bool:
    """True if these walks visit the instructions in their stored order.

    A walk from an instruction visits what stands from some place on up to it, and what each of its operands adds follows on
    what the one before it added. So from the last instruction on each one tells its operands where their walks begin, and
    when all agree, no walk needs to be made.
    """
    places = dict(zip(nodes, range(len(nodes)), strict=True))
    begins = [-1] * len(nodes)
    begin = 0
    for place in starts:
        if place >= begin:
            begins[place], begin = begin, place + 1
    if begin != len(nodes):
        return False
    for place in range(len(nodes) - 1, -1, -1):
        begin = begins[place]
        node = nodes[place]
        visited: Any = node._operands
        if has_predecessors and node.control_predecessors:
            visited = *reversed(node.control_predecessors), *visited
        for operand in visited:
            if (found := places[operand]) >= begin:
                begins[found], begin = begin, found + 1
        if begin != place:
            return False
    return True


def _starts(body: Body) -> list[int]:
    """The places of the instructions without users, in the order of their ids."""
    nodes = body.nodes
    used = set(itertools.chain.from_iterable([node._operands for node in nodes]))
    if len(used) == len(nodes) - 1 and nodes[-1] not in used:  # what most computations are
        return [len(nodes) - 1]
    found = [place for place, node in enumerate(nodes) if node not in used]
    keys = body.ids()
    found.sort(key=lambda place: number_of(keys[place]) & LOCAL)
    return found


def _local(pair: tuple[int, Instruction]) -> int:
    return pair[0]
