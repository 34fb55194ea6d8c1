"""Pairs of all-reduces whose results are only added to one another: the sum over the devices of both together is one."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Communication, total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import results
from hlotext.lint.loop_state import members
from hlotext.lint.rule import Context
from hlotext.lint.sums import adds
from hlotext.lint.values import Value, consumers

_KEPT = traits.REARRANGES_ELEMENTS | {"convert"}
"""Opcodes behind which every element of a sum is still that sum."""


@attrs.frozen(eq=False)
class AddedSums:
    """Two all-reduces whose results are only added to each other."""

    one: Communication
    other: Communication
    bytes: int
    """Of the smaller of both results, without padding: what need not be summed by itself."""
    added: Instruction


def added_sums(context: Context) -> Iterator[AddedSums]:
    """Yields pairs of all-reduces over the same groups whose results are used only by one addition."""
    waiting: dict[object, tuple[Communication, Instruction]] = {}
    for one in context.communications:
        if one.kind != "all-reduce" or not adds(one.instruction.attributes.get("to_apply")):
            continue
        for result in results(one):
            readers = list(consumers(Value(result), _KEPT))
            if len(readers) != 1 or readers[0][0].instruction.opcode != "add" or result.is_root:
                continue
            added = readers[0][0]
            place = (added.instruction, added.fusions, one.computation, members(one.groups))
            if place not in waiting:
                waiting[place] = (one, result)
                continue
            other, first = waiting.pop(place)
            size = min(total_of(each.shape).unpadded_bytes for each in (first, result))
            if other is not one:
                yield AddedSums(other, one, size, added.instruction)
