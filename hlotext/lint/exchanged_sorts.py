"""Sorts along a sharded dimension: the partitioner shards another one for them by all-to-alls, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import fusions_around
from hlotext.lint.moving import moved_array
from hlotext.lint.rounds import parts_of
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS

_MADE = "is_spmd_generated"
"""Attribute of the collectives that the partitioner inserts."""
_KIND = "all-to-all"
_HANDED = VIEWS | traits.REARRANGES_ELEMENTS | traits.DONES | traits.SLICES | traits.TUPLES
_ELEMENTWISE = ELEMENTWISE | VIEWS | traits.REPEATS_ELEMENTS | traits.KNOWN_VALUES | traits.GIVEN
_MOST_STEPS = 100


@attrs.frozen
class Path:
    """The all-to-alls next to an operation, with the copies between and after them."""

    exchanges: frozenset[Instruction]
    moves: frozenset[Instruction]
    ends: tuple[Instruction, ...] = ()
    """The first instructions behind that are neither."""


def is_exchange(one: Instruction, context: Context) -> bool:
    """True for an all-to-all that the partitioner inserted."""
    found = context.communication_of.get(one)
    return found is not None and found.kind == _KIND and one.frontend_attributes.get(_MADE) == "true"


def exchanged_before(value: Instruction, context: Context) -> Path:
    """Returns the all-to-alls that produce a value, looking through copies."""
    return _along((value,), False, context)


def exchanged_after(sort: Instruction, context: Context) -> Path:
    """Returns the all-to-alls that use an operation's results, looking through copies."""
    return _along(sort.users, True, context)


def _by_element(one: Instruction) -> bool:
    return all(part.opcode in _ELEMENTWISE for part in parts_of(one))


def _along(
    first: Iterable[Instruction],
    is_forward: bool,
    context: Context,
    is_passed: Callable[[Instruction], bool] | None = None,
) -> Path:
    pending, exchanges, moves, ends = list(first), set[Instruction](), set[Instruction](), list[Instruction]()
    seen: set[Instruction] = set()
    while pending and len(seen) < _MOST_STEPS:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if is_exchange(one, context):
            exchanges.add(one)
        elif one.opcode in _HANDED or moved_array(one, context) is not None:
            moves.add(one)
        elif is_passed is not None and is_passed(one):
            pass
        else:
            ends.append(one)
            continue
        pending += one.users if is_forward else one.operands
    return Path(frozenset(exchanges), frozenset(moves) if exchanges else frozenset(), tuple(ends))


def is_next_to_exchange(copy: Instruction, context: Context) -> bool:
    """True if a copy serves an all-to-all of the partitioner, so that it disappears together with it.

    Elementwise operations in between take the layout of their neighbors.
    """
    if _KIND not in context.communication_kinds:
        return False
    return any(
        _along(first, is_forward, context, _by_element).exchanges
        for first, is_forward in ((copy.operands, False), (copy.users, True))
    )


def exchanged_sorts(context: Context) -> Iterator[tuple[Instruction, Path]]:
    """Yields sorts, or fusions around them, with all-to-alls both before and after that restore the sharding."""
    if _KIND not in context.communication_kinds:
        return
    for sort in context.census.by_opcode.get("sort", ()):
        whole = (*fusions_around(sort, context), sort)[0]
        before = [exchanged_before(operand, context) for operand in whole.operands]
        after = exchanged_after(whole, context)
        if after.exchanges and any(one.exchanges for one in before):
            paths = (*before, after)
            yield (
                whole,
                Path(
                    frozenset().union(*(one.exchanges for one in paths)),
                    frozenset().union(*(one.moves for one in paths)),
                ),
            )
