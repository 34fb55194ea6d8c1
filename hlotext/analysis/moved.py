"""Arrays whose elements are another's in other places: shifted, rolled, or gathered by whole rows."""

from __future__ import annotations

import math

from hlotext.analysis.views import VIEWS, Value, fetched, source
from hlotext.ir.nodes.instruction import Instruction

_VIEWS = VIEWS | {"transpose"}


def moved(value: Value) -> list[tuple[Value, bool]]:
    """Returns the arrays of equal dimensions from which more than half of a value's elements come, unchanged but moved.

    Each is paired with True if other elements are included too, and False if all of its rows were only reordered.
    """
    one = value.instruction
    total = one.shape.element_count if one.shape is not None and one.shape.is_array else 0
    if one.opcode == "gather":
        return [(value.operands()[0], False)] if _is_of_whole_rows(one, total) else []
    kept: dict[Value, int] = {}
    for part in _joined(value):
        cut = source(part, _VIEWS)
        made = cut.instruction
        whole = made.operands[0] if made.opcode == "slice" else fetched(made)
        if (
            whole is not None
            and part.instruction.shape is not None
            and _dimensions(whole) == _dimensions(one)
        ):
            origin = source(Value(whole, cut.fusions), _NONE)
            kept[origin] = kept.get(origin, 0) + part.instruction.shape.element_count
    return [(whole, count < total) for whole, count in kept.items() if 2 * count > total]


_NONE: frozenset[str] = frozenset()


def _joined(value: Value) -> list[Value]:
    """The arrays that are put side by side; the TPU compiler takes the maximum of padded ones."""
    one = value.instruction
    if one.opcode == "concatenate":
        return list(value.operands())
    if one.opcode == "pad":
        return [value.operands()[0]]
    padded = [source(operand, _VIEWS) for operand in value.operands()] if one.opcode == "maximum" else []
    return [pad.operands()[0] for pad in padded] if all(p.instruction.opcode == "pad" for p in padded) else []


def _is_of_whole_rows(gather: Instruction, total: int) -> bool:
    """True if it takes as many whole rows, planes and so on as the array has."""
    given, sizes = _dimensions(gather.operands[0]), gather.attributes.get("slice_sizes")
    if given is None or not isinstance(sizes, tuple) or len(sizes) != len(given):
        return False
    cut = [size for size, whole in zip(sizes, given, strict=True) if size != whole]
    return len(cut) == 1 and cut[0] == 1 and math.prod(given) == total


def _dimensions(one: Instruction) -> tuple[int, ...] | None:
    return one.shape.dimensions if one.shape is not None and one.shape.is_array else None
