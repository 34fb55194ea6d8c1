"""Fates of the partitioner's collectives: the bytes that the final HLO sends for each, after all passes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.arrays import Arrays
from hlotext.dumps.collectives.finals import Match
from hlotext.dumps.collectives.partitioner import SUMS, Written
from hlotext.ir.tables import traits


@attrs.frozen
class Fate:
    """The outcome in the final HLO of one collective created by the partitioner."""

    sent: float | None
    """Bytes that each device sends for it per run of the module; None if a size or a trip count is not known."""
    width: float | None
    """Size of an element in the final HLO as a multiple of that at the partitioner; None if several were combined."""
    is_scattered: bool
    """True for an all-reduce that became a reduce-scatter."""


def fates_of(matches: Iterable[Match]) -> dict[hlo.Instruction, Fate]:
    """Returns the outcome of each partitioner collective that is still in the final HLO."""
    found: dict[hlo.Instruction, Fate] = {}
    for one in matches:
        final = one.item.communication
        whole = sum(part.total for part in one.parts)
        sent = (
            final.wire_bytes * final.runs if final.wire_bytes is not None and final.runs is not None else None
        )
        for part in one.parts:
            share = part.total / whole if whole else 1 / len(one.parts)
            width = None
            if len(one.parts) == 1:
                old, new = _width(part.node), _width(one.item.node)
                width = new / old if new and old else None
            is_scattered = part.kind == "all-reduce" and one.item.kind == "reduce-scatter"
            found[part.node] = Fate(sent * share if sent is not None else None, width, is_scattered)
    return found


def _width(node: hlo.Instruction) -> float | None:
    """Bytes of an element of the first operand."""
    shape = node.operands[0].shape if node.operands else None
    return float(shape.element_type.byte_width) if shape is not None and shape.is_array else None


@attrs.frozen
class Passes:
    """Effect of later passes on the bytes that operations send."""

    moved: Mapping[int, float]
    """Element size of an array that is placed otherwise, as a multiple of its own; by the array's id, 1 for others."""
    summed: Mapping[int, float]
    """The same of a result that is summed across devices."""
    scatters: bool
    """True if a sum that is cut along its axes becomes a reduce-scatter."""


NO_PASSES = Passes({}, {}, False)


def passes_of(
    arrays: Arrays, written: Sequence[Written], fates: Mapping[hlo.Instruction, Fate], is_likely: bool
) -> tuple[Passes, Passes]:
    """Returns the likely and the most expensive effect of later passes, as the program's collectives show them.

    An array whose collective is in the program keeps what was done to it. Others are likely treated as those of their kind
    are, where all of these are treated alike.

    Args:
        arrays: The arrays of the text before partitioning.
        written: The collectives of the partitioner.
        fates: What became of them.
        is_likely: True for a compiler that makes reduce-scatters, for programs that do not show whether it does.
    """
    factors = {
        id(value)
        for one in arrays.operations
        if one.opcode in traits.CONTRACTIONS
        for value in one.values[: one.operands]
    }
    own: tuple[dict[int, float], dict[int, float]] = {}, {}
    alike: dict[object, set[float]] = defaultdict(set)
    scattered: set[bool] = set()
    for part in written:
        fate = fates.get(part.part)
        if fate is None:
            continue
        is_sum = part.communication.kind in SUMS
        if part.communication.kind == "all-reduce" and _is_cut(part.part):
            scattered.add(fate.is_scattered)
        value = arrays.value(part.tensor) if part.tensor is not None else None
        if value is None or fate.width is None:
            continue
        known = own[is_sum]
        known[id(value)] = max(fate.width, known.get(id(value), 0.0))
        alike[is_sum, value.width, id(value) in factors].add(fate.width)
    likely: tuple[dict[int, float], dict[int, float]] = {}, {}
    dear: tuple[dict[int, float], dict[int, float]] = {}, {}
    for value in arrays.values:
        for is_sum in (False, True):
            seen = alike.get((is_sum, value.width, id(value) in factors), {1.0})
            usual = next(iter(seen)) if len(seen) == 1 else 1.0
            for made, otherwise in ((likely, usual), (dear, max(1.0, *seen))):
                width = own[is_sum].get(id(value), otherwise)
                if not math.isclose(width, 1.0):
                    made[is_sum][id(value)] = width
    is_seen = scattered == {True}
    return (
        Passes(*likely, is_seen or (is_likely and not scattered)),
        Passes(*dear, is_seen),
    )


def _is_cut(node: hlo.Instruction) -> bool:
    """True for a sum of which each device keeps a part only."""
    readers = node.user_view
    return bool(readers) and all(one.opcode == "dynamic-slice" for one in readers)
