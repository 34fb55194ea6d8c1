"""State that an iteration accepts or rejects: a select between what it proposes and what it began with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from hlotext.lint.demand import Demand, Part
from hlotext.lint.numbering import Numbering
from hlotext.lint.operand_demands import operand_demands
from hlotext.lint.rounds import Rounds
from hlotext.lint.values import VIEWS, Value, entered, source
from hlotext.lint.zeros import zeros

if TYPE_CHECKING:
    import numpy as np
else:
    from hlotext.ir.lazy_imports import late_module

    np = late_module("numpy")

_REPEATED = VIEWS | {"broadcast", "convert"}
_MOST_STEPS = 2000


@attrs.frozen(eq=False)
class AcceptedState:
    """Slots of a loop's state that take proposed values where a predicate is true, and otherwise keep theirs."""

    proposed: Mapping[int, Value]
    """The proposed values, by slot."""
    rows: Mapping[int, int]
    """By slot the dimension along which the predicate differs, if it does not decide for all elements alike."""


def accepted(rounds: Rounds, begins: Numbering) -> Iterator[AcceptedState]:
    """Yields such slots of a loop, by predicate. `begins` numbers the values of the loop body."""
    proposed: dict[object, dict[int, Value]] = {}
    rows: dict[object, dict[int, int]] = {}
    for slot, value in enumerate(rounds.given):
        made = source(Value(value), VIEWS) if slot not in rounds.passed else None
        if made is None or made.instruction.opcode != "select":
            continue
        predicate, *sides = made.operands()
        stays = [rounds.slot_of(source(side, VIEWS).instruction) == slot for side in sides]
        row = _row(predicate, made)
        if sum(stays) != 1 or row is None:
            continue
        decides = source(predicate, _REPEATED)
        key: object = (begins.numbers.get(decides, decides), stays[0])
        proposed.setdefault(key, {})[slot] = entered(sides[stays[0]])
        if row >= 0:
            rows.setdefault(key, {})[slot] = row
    for key, values in proposed.items():
        if not rows.get(key) or rows[key].keys() == values.keys():
            yield AcceptedState(values, rows.get(key, {}))


def _row(predicate: Value, select: Value) -> int | None:
    """The dimension of a select along which its predicate differs: -1 if along none, None if that is not known."""
    shape = select.instruction.shape
    inner, dimensions = predicate, list(range(shape.rank if shape is not None and shape.is_array else 0))
    for _ in range(_MOST_STEPS):
        inner = entered(inner)
        one = inner.instruction
        if not dimensions or one.shape is None or not one.shape.is_array or not one.shape.rank:
            return -1
        if one.opcode == "broadcast":
            dimensions = [dimensions[d] for d in one.attributes.get("dimensions", ())]
        elif one.opcode not in ("convert", "copy"):
            break
        inner = inner.operands()[0]
    return dimensions[0] if len(dimensions) == 1 else None


def is_by_row(
    result: Value, row: int, state: AcceptedState, rounds: Rounds, depends: frozenset[Value]
) -> bool:
    """True if each index of a result's dimension `row` is computed from the same index of the accepted state only.

    `depends` are the values computed from that state.
    """
    shape, home = result.instruction.shape, rounds.body.module
    if shape is None or not shape.is_array or row >= shape.rank or home is None:
        return False
    size = shape.dimensions[row]
    index = size // 3
    known = zeros(home)
    pending, seen = [(result, row)], {(result, row)}
    while pending:
        value, along = pending.pop()
        one = value.instruction
        slot = rounds.slot_of(one) if not value.fusions else None
        if slot is not None:
            if state.rows.get(slot) != along:
                return False
            continue
        if len(seen) > _MOST_STEPS or one.shape is None or not one.shape.is_array:
            return False
        wanted = Demand(tuple(_only(index, size) if d == along else None for d in range(one.shape.rank)))
        asked = operand_demands(one, wanted, value.fusions, known)
        for operand, demand in zip(value.operands(), asked, strict=True):
            made = entered(operand)
            if made not in depends:
                continue
            place = _index(demand, index, size)
            if place is None:
                return False
            if (made, place) not in seen:
                seen.add((made, place))
                pending.append((made, place))
    return True


def _only(index: int, size: int) -> Part:
    known = np.zeros(size, bool)
    known[index] = True
    return Part(known)


def _index(demand: Demand | None, index: int, size: int) -> int | None:
    """The dimension of which only this index is asked for; None if something else is asked for."""
    if demand is None:
        return None
    places = [d for d, part in enumerate(demand.parts) if part is not None]
    if len(places) != 1:
        return None
    (place,) = places
    part = demand.parts[place]
    assert part is not None
    is_one = part.known.size == size and part.count == 1 and bool(part.known[index])
    return place if is_one else None
