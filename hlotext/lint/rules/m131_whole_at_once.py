"""M131: large arrays that are computed from small ones and only summed up, all of them at once."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.held import at_peak, least_held, written_in_main
from hlotext.lint.helpers import is_librarys, size_of
from hlotext.lint.rounds import parts_of, rounds_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import memory_of
from hlotext.lint.small_origins import Origin, small_origin
from hlotext.lint.values import VIEWS, Value, is_spread, source
from hlotext.lint.wording import written

_MUCH = 0.5
"""Part of the peak that blocks would save, from which on the program is about these arrays."""
_BLOCKS = 16
"""Number of blocks that the saving is computed for."""
_SMALLEST = 100
"""Largest ratio of the peak to an array that matters."""
_SMALLER = 4
"""Minimum ratio of an array to what is summed up of it."""
_MOST_STEPS = 100
_BY_BLOCKS = (
    ELEMENTWISE
    | traits.REPEATS_ELEMENTS
    | traits.NAMES_VALUE
    | traits.REDUCTIONS
    | traits.SLICES
    | traits.COPIES
    | traits.DONES
    | traits.ASSEMBLES
    | traits.CONVERSIONS
    | traits.KNOWN_VALUES
)
"""Opcodes of which a block of the result is computed from a block of the operands."""


class WholeAtOnce(Rule):
    code = "M131"
    name = "whole-at-once"
    title = "large intermediate arrays that are computed from small ones and only reduced, and could be processed in blocks"
    waste = "held"
    is_proved = False  # how much memory is to spare is for the author to say
    needs_schedule = True

    def check_module(self, context: Context) -> Iterator[Report]:
        least = least_held(context)
        large = [(one, size) for one, size in written_in_main(context) if size > least]
        peak = at_peak(context) if large else None  # no array is larger than arguments and results
        if peak is None:
            return
        found: dict[Instruction, Origin] = {}
        for one, size in large:
            if size * _SMALLEST >= peak.bytes and _is_by_blocks(one) and _is_summed_up(one, size):
                origin = small_origin(one, size, context, through_samplers=True)
                if origin is not None and all(map(_is_by_blocks, origin.computed)):
                    found[one] = origin
        places = [*found, *_states(found, context)]
        saved = context.saved_peak(dict.fromkeys(places, 1 - 1 / _BLOCKS)) if found else None
        if not saved or saved < _MUCH * peak.bytes:  # no such arrays are most of the peak
            return
        if not context.is_scarce(saved):  # the chip has plenty of memory for them
            return
        first = max(found, key=lambda one: (not is_spread(one), size_of(one.shape), -_line(one)))
        size, most = size_of(first.shape), max(origin.bytes for origin in found.values())
        verb = "is" if len(found) == 1 else "are"
        yield Report(
            first,
            f"{pluralize(len(found), 'array')}, the largest {byte_text(size)} ({written(first)}), "
            f"{verb} computed from at most {byte_text(most)} and only reduced, but held in full",
            "compute them in blocks: jax.lax.map(f, rows, batch_size=...), or a lax.scan that accumulates; if f is "
            f"differentiated, wrap it in jax.checkpoint, or every block is kept. The saving is for {_BLOCKS} blocks; "
            "blocks that fit in a cache or in fast memory are not written to memory",
            size,
            is_held=True,
            peak_bytes=saved,
        )


def _states(found: Collection[Instruction], context: Context) -> Iterator[object]:
    """The places of such arrays in the state of samplers' loops."""
    for loop, _ in context.graph.loops():
        rounds = rounds_of(loop) if is_librarys(loop) else None
        if rounds is not None:
            for slot, given in enumerate(rounds.given):
                if source(Value(given), VIEWS).writer in found:
                    yield from memory_of(rounds, slot)


def _line(one: Instruction) -> int:
    return one.span.line if one.span is not None else 0


def _is_by_blocks(one: Instruction) -> bool:
    """True if a block of its result can be computed alone."""
    if one.opcode == "while":
        return is_librarys(one)
    return all(part.opcode in _BY_BLOCKS for part in parts_of(one))


def _is_summed_up(one: Instruction, size: int) -> bool:
    """True if what is made of an array in the end is much smaller, and computed by blocks."""
    pending, seen = [one], {one}
    while pending and len(seen) < _MOST_STEPS:
        current = pending.pop()
        users = list(current.users)
        if current.is_root:
            callers = current.computation.callers if current.computation is not None else ()
            if len(callers) != 1 or callers[0].opcode != "while":
                return False
            users.append(callers[0])  # of a sampler: other loops are not computed by blocks
        for user in users:
            if user in seen:
                continue
            seen.add(user)
            if not _is_by_blocks(user):
                return False
            if _SMALLER * _largest(user) > size:
                pending.append(user)
    return not pending


def _largest(one: Instruction) -> int:
    shape = one.shape
    shapes = shape.tuple_shapes if shape is not None and shape.is_tuple else (shape,)
    return max((size_of(each) for each in shapes), default=0)
