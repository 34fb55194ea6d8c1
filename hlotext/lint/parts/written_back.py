"""Slices of an array that are copied out, changed in a small part, and written back whole."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend, byte_text, memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.window import SliceDimensions
from hlotext.lint.helpers import changes_layout, is_product_call, size_of, times
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, entered, formula, source

_SMALLER = 4
"""Minimum ratio of a slice to what is changed in it."""
_MOST_LAYERS = 500
"""Updates of other slices that are looked through on the way to the array that a slice was read from."""
_DEEPEST = 8
_IN_PLACE = (
    "write only what changes into the whole array, in place (cache.at[layer, rows, position].set(new), or "
    "lax.dynamic_update_slice), and read the slice from there afterwards"
)
_TURNED = (
    "; also keep the array, from call to call, in the layout that the compiler then chooses (Format(Layout.AUTO), "
    "jax.experimental.layout): otherwise the whole array is converted to the layout in which its slices are changed"
)
_MOVED = VIEWS | {"transpose"}


@attrs.frozen(eq=False)
class _WrittenBack:
    """A slice on its way out of an array and back."""

    whole: Value
    """The dynamic-update-slice that writes the slice back."""
    changed: Value
    """The slice after its last change."""
    read: Value
    """The slice or dynamic-slice that takes it out."""
    update_bytes: int


class WrittenBack(Rule):
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.census.by_opcode.get("dynamic-update-slice", ()):
            found = _written_back(Value(one, _around(one, context)))
            if found is not None:  # no slice is read, changed in a small part and written back
                yield _report(found, context)


def _around(one: Instruction, context: Context) -> tuple[Instruction, ...]:
    """The fusions that an instruction stands in, and what starts them to run beside the rest, the outermost first."""
    around: list[Instruction] = []
    for _ in range(_DEEPEST):
        caller = context.graph.caller((around[0] if around else one).computation)
        if caller is None or caller.opcode not in ("fusion", "async-start"):
            break
        around.insert(0, caller)
    return tuple(around)


def _written_back(whole: Value) -> _WrittenBack | None:
    base, update = whole.operands()[:2]
    changed = made = source(update, _MOVED)
    size = size_of(update.instruction.shape)
    written = 0
    while made.instruction.opcode in traits.UPDATES_ELEMENTS and written * _SMALLER <= size:
        operands = made.operands()
        written += size_of(operands[_update_number(made.instruction)].instruction.shape)
        made = source(operands[0], _MOVED)
    if not written or written * _SMALLER > size or made.instruction.opcode not in traits.SLICES:
        return None
    if size_of(made.instruction.shape) != size or not _is_same_place(whole, made):
        return None
    first = source(made.operands()[0], VIEWS)
    return _WrittenBack(whole, changed, made, written) if _is_version(base, first) else None


def _update_number(one: Instruction) -> int:
    """The operand that is written: of a scatter of one array the last one."""
    return len(one.operands) - 1 if one.opcode == "scatter" else 1


def _is_version(base: Value, first: Value) -> bool:
    """True if an array is another one with other slices written into it."""
    for _ in range(_MOST_LAYERS):
        base = source(base, VIEWS)
        if base == first:
            return True
        if base.instruction.opcode != "dynamic-update-slice":
            break
        base = base.operands()[0]
    return False


def _is_same_place(whole: Value, read: Value) -> bool:
    """True if a slice is written to where it was read."""
    shape, before = whole.instruction.shape, read.instruction.operands[0].shape
    if shape is None or before is None or shape.dimensions != before.dimensions:
        return False
    there = [formula(place) for place in whole.operands()[2:]]
    if read.instruction.opcode == "dynamic-slice":
        return there == [formula(place) for place in read.operands()[1:]]
    cut = read.instruction.attributes.get("slice")
    return isinstance(cut, SliceDimensions) and there == [str(one.start) for one in cut.dimensions]


def _report(found: _WrittenBack, context: Context) -> Report:
    prices, writer = context.prices, found.whole.writer
    size, runs = size_of(found.changed.instruction.shape), prices.runs(writer.computation)
    copies = [writer]
    if not _is_multiplied(found.changed, context):
        copies.append(found.read.writer)
    moving = prices.reading(2 * size) * runs
    seconds = sum(min(prices.seconds(one), moving) for one in dict.fromkeys(copies))
    # What reads the slice in fast memory would read it from the array then.
    array = found.changed.writer.shape
    is_fast = array is not None and array.is_array and memory_space(array) != 0
    return Report(
        writer,
        f"{byte_text(size)} of an array of {byte_text(size_of(found.whole.instruction.shape))} is copied out and written "
        f"back in full{times(context.runs(writer))}, although only {byte_text(found.update_bytes)} of it changes",
        f"{_IN_PLACE}{_TURNED if _is_turned(found) else ''}",
        2 * size * context.runs(writer) * len(dict.fromkeys(copies)),
        seconds=max(0.0, seconds - (prices.reading(size) * runs if is_fast else 0.0)),
        spares=dict.fromkeys((found.read.writer, found.changed.writer), 1.0) if len(copies) > 1 else {},
        origin=found.whole.instruction,
    )


def _is_turned(found: _WrittenBack) -> bool:
    """True if the slice is changed in another layout than the array's."""
    value = found.whole.operands()[1]
    for _ in range(_DEEPEST):
        value = entered(value)
        if value == found.changed or not value.instruction.operands:
            break
        if changes_layout(value.instruction):
            return True
        value = value.operands()[0]
    return False


def _is_multiplied(changed: Value, context: Context) -> bool:
    """True if a kernel for matmuls reads the slice, which takes no slice of a larger array."""
    readers = [user.instruction for user, _ in consumers(changed, VIEWS)]
    if any(is_product_call(one) for one in readers):
        return True
    return context.backend is not Backend.TPU and any(one.opcode in traits.CONTRACTIONS for one in readers)
