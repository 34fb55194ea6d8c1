"""Arrays that are converted to a wider type before a loop, each iteration of which reads a part."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.lint.computed_ahead import computed, read_by
from hlotext.lint.helpers import size_of
from hlotext.lint.rounds import Rounds, parts_of, stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.slots import given_in, written_at
from hlotext.lint.values import VIEWS, Value, elements_of, made_of

_READING = frozenset({"dynamic-slice", "gather"})
_CHEAP = (
    VIEWS
    | traits.COMMUTATIVE
    | traits.CONVERSIONS
    | traits.REPEATS_ELEMENTS
    | traits.SOURCES
    | {"divide", "subtract"}
)
"""Opcodes of scaling and conversion, which take no time where a slice is read."""
_SMALL = 8
"""Minimum ratio of the array to all others that it is computed from, such as scales."""


@attrs.frozen(eq=False)
class _Ahead:
    """An array that is wider than what it is converted from."""

    rounds: Rounds
    array: Instruction
    copies: tuple[Instruction, ...]
    narrow: Value
    slices: frozenset[Value]
    """The slices and gathers that read it."""


class WideAhead(Rule):
    needs_optimized = True
    # TPU compilers prefetch slices that they convert for matmuls, which waits longer than what is saved.
    backends = frozenset({Backend.CPU, Backend.GPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        for rounds in stepped_rounds(context):
            if context.prices.trips(rounds.loop) > 1:  # the loop runs once
                for slot in sorted(rounds.passed):
                    ahead = _ahead(rounds, slot, context)
                    if ahead is not None:  # no array is widened before a loop that reads parts of it
                        yield _report(ahead, context)


def _ahead(rounds: Rounds, slot: int, context: Context) -> _Ahead | None:
    first = given_in(rounds.loop, slot)
    if first is None or first.shape is None or not first.shape.is_array:
        return None
    slices = read_by(rounds, slot, _READING)
    if not slices:
        return None
    array, copies = computed(first, context)
    whole = elements_of(array.shape)
    parts = list(parts_of(array)) if array.opcode in ("convert", "fusion") else []
    if not any(map(_is_programs, parts)) or any(part.opcode not in _CHEAP for part in parts):
        return None
    made = made_of(Value(array), whole + whole // _SMALL) or []
    large = [one for one in made if elements_of(one.instruction.shape) == whole and not one.fusions]
    if len(large) != 1 or _bits(large[0].instruction.shape) >= _bits(array.shape):
        return None
    return _Ahead(rounds, array, tuple(copies), large[0], slices)


def _is_programs(part: Instruction) -> bool:
    """True for a conversion of the program, perhaps moved out of the loop: of matmuls the CPU compiler widens operands."""
    name = part.metadata.op_name if part.metadata is not None else ""
    return part.opcode == "convert" and name.endswith("/convert_element_type")


def _bits(shape: Shape | None) -> int:
    """Bits of an element, in memory."""
    return 8 * size_of(shape) // max(1, elements_of(shape))


def _report(ahead: _Ahead, context: Context) -> Report:
    prices, array, narrow = context.prices, ahead.array, ahead.narrow.instruction
    size, less = size_of(array.shape), 1 - size_of(narrow.shape) / size_of(array.shape)
    read = sum(size_of(one.instruction.shape) * context.runs(one.writer) for one in ahead.slices)
    readers = {one.writer for one in ahead.slices}
    # A kernel that multiplies a slice in place would need it converted in an array of its own.
    is_fused = not any(part.opcode in traits.CONTRACTIONS for one in readers for part in parts_of(one))
    seconds = prices.together([array, *ahead.copies])
    seconds += min(prices.reading(less * read), prices.together(readers))
    home = narrow.computation
    is_kept = narrow.opcode == "parameter" and home is context.module.entry
    share = 1.0 if is_kept else less
    kinds = [one.shape.element_type.name if one.shape is not None else "" for one in (array, narrow)]
    return Report(
        array,
        f"{byte_text(size)} are converted to {kinds[0]} before a loop whose iterations each read a part; in {kinds[1]} they "
        f"would take {byte_text(size_of(narrow.shape))}",
        "pass the array to the loop unconverted, and convert each slice in the body, where the conversion is fused "
        "into the read",
        seconds=seconds if is_fused else None,
        spares={**dict.fromkeys(written_at(array), share), **dict.fromkeys(ahead.copies, 1.0)},
        covers=frozenset(ahead.copies),
    )
