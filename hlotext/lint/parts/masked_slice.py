"""Arrays that are written anew where a mask selects one slice of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.entries import aliases_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import size_of, times
from hlotext.lint.rounds import stepped_rounds
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, elements_of, source

_SAME = traits.REPEATS_ELEMENTS | traits.CONVERSIONS
_MANY = 16
"""Minimum number of slices of which one is replaced."""


@attrs.frozen(eq=False)
class _Rewritten:
    """A selection between an array and a slice that is repeated."""

    select: Value
    old: Value
    slices: int


class MaskedSlice(Rule):
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        if context.census.by_opcode.get("select"):
            for given, is_place in _places(context):
                found = _rewritten(Value(given))
                if found is not None and not found.old.fusions and is_place(found.old.instruction):
                    yield _report(found, context)


def _places(context: Context) -> Iterator[tuple[Instruction, Callable[[Instruction], bool]]]:
    """Arrays that are written to memory of their former values, with a test of these: results in donated arguments, and the
    state of loops."""
    root, parameters = context.module.entry.root, context.arguments
    for alias in aliases_of(context.module):
        index, number = alias.output_index, alias.parameter_number
        if len(index) > 1 or alias.parameter_index or number >= len(parameters):
            continue
        if index and (root.opcode != "tuple" or index[0] >= len(root.operands)):
            continue
        given = root.operands[index[0]] if index else root
        yield given, lambda one, first=parameters[number]: one is first  # type: ignore[misc]
    for rounds in stepped_rounds(context):
        for slot, given in enumerate(rounds.given):
            if slot not in rounds.passed:
                yield given, lambda one, of=rounds.slot_of, slot=slot: of(one) == slot  # type: ignore[misc]


def _rewritten(value: Value) -> _Rewritten | None:
    made = source(value, VIEWS)
    if made.instruction.opcode != "select":  # no result is a select
        return None
    mask, new, old = made.operands()
    slices = _slices(mask)
    if slices < _MANY or not _is_repeated(new, slices):
        return None
    return _Rewritten(made, source(old, VIEWS), slices)


def _slices(mask: Value) -> int:
    """The number of slices of which a mask selects one at most, at a place that the run tells; 0 for other masks."""
    made = source(mask, _SAME)
    one, operands = made.instruction, made.operands()
    if one.opcode == "and":
        return max(map(_slices, operands))
    if one.opcode != "compare" or str(one.attributes.get("direction")) != "EQ":
        return 0
    sides = [source(operand, _SAME).instruction for operand in operands]
    counted = [side for side in sides if side.opcode == "iota"]
    places = [side for side in sides if side.opcode not in traits.SOURCES - {"parameter"}]
    if len(counted) != 1 or len(places) != 1 or counted[0].shape is None or places[0].shape is None:
        return 0
    count = int(counted[0].shape.dimensions[counted[0].attributes.get("iota_dimension", 0)])
    is_one = (places[0].shape.element_count or 0) * count <= elements_of(one.shape)
    return count if is_one else 0


def _is_repeated(new: Value, slices: int) -> bool:
    made = source(new, _SAME - {"broadcast"}).instruction
    return made.opcode == "broadcast" and elements_of(made.operands[0].shape) * slices <= elements_of(
        made.shape
    )


def _report(found: _Rewritten, context: Context) -> Report:
    prices, writer = context.prices, found.select.writer
    size = size_of(found.select.instruction.shape)
    # What else the same operation makes of the array reads it in any case.
    beside = [user for user, _ in consumers(found.old, VIEWS) if user != found.select]
    beside += [user for user, _ in consumers(found.select, VIEWS)]
    moved = size if any(user.writer is writer for user in beside) else 2 * size
    seconds = prices.reading(moved) * prices.runs(writer.computation)
    return Report(
        writer,
        f"{byte_text(size)} is {'written' if moved == size else 'read and written'} in full{times(context.runs(writer))} to "
        f"replace one of {found.slices:,} slices, selected by a mask",
        "write the slice in place: lax.dynamic_update_slice or x.at[:, i].set(new), on an array that is donated or carried",
        moved * context.runs(writer),
        seconds=min(prices.seconds(writer), seconds) * (1 - 1 / found.slices),
        origin=found.select.instruction,
    )
