"""Sorts of keys alone that carry the position of each, for nothing but to keep those that are equal in order."""

from __future__ import annotations

from hlotext.analysis import byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.exchanged_sorts import exchanged_before
from hlotext.lint.helpers import size_of
from hlotext.lint.rule import Context, Report
from hlotext.lint.values import Value, source

_KEY_AND_PLACE = 2


def of_keys_alone(sort: Instruction, context: Context) -> Report | None:
    """Reports a sort of one array whose second operand, the positions, is not used afterwards; None for other sorts.

    XLA makes every stable sort such a sort if the device has none (`StableSortExpander`). If no other array is sorted
    along, equal keys may be exchanged.
    """
    if sort.opcode != "sort" or len(sort.operands) != _KEY_AND_PLACE or sort.is_root:
        return None
    if any(
        user.opcode != "get-tuple-element" or (user.attributes.get("index") == 1 and user.users)
        for user in sort.users
    ):
        return None
    places = sort.operands[1]
    path = exchanged_before(places, context)
    moved = path.exchanges | path.moves
    first = path.ends[0] if moved and len(path.ends) == 1 else places
    if not _counts(first, sort) or not _breaks_ties(sort.attributes.get("to_apply")):
        return None
    made = source(Value(first), ()).writer
    size = size_of(places.shape)
    share = size / (size + size_of(sort.operands[0].shape))
    alone = [*moved, *([made] if len(made.users) == 1 else [])]
    return Report(
        sort,
        f"a stable sort of keys alone also sorts their positions ({byte_text(size)}) to keep equal keys in order",
        "sort with jnp.sort(x, stable=False)",
        bytes=size * context.runs(sort),
        seconds=share * context.prices.seconds(sort) + context.prices.together(alone),
        spares=dict.fromkeys([*alone, (sort, (1,))], 1.0),
    )


def _counts(places: Instruction, sort: Instruction) -> bool:
    """True if an operand is the number of each element along the sorted dimension."""
    value = source(Value(places), ())
    if value.instruction.opcode == "add":  # a device's part is numbered from its own offset
        parts = [source(operand, ()) for operand in value.operands()]
        if sorted(part.instruction.opcode for part in parts) == ["broadcast", "iota"]:
            value = next(part for part in parts if part.instruction.opcode == "iota")
    iota = value.instruction
    along = (sort.attributes.get("dimensions") or (None,))[0]
    if iota.opcode != "iota":
        return False
    return along is not None and iota.attributes.get("iota_dimension") == along


def _breaks_ties(comparator: object) -> bool:
    """True if a comparator asks for the positions only where the keys compare alike both ways."""
    if not isinstance(comparator, Computation) or comparator.root.opcode != "select":
        return False
    alike, by_place, before = comparator.root.operands
    places = [one for one in comparator.parameters if (one.parameter_number or 0) >= _KEY_AND_PLACE]
    return (
        alike.opcode == "compare"
        and alike.attributes.get("direction") == "EQ"
        and before in alike.operands
        and by_place.opcode == "compare"
        and set(by_place.operands) == set(places)
        and all(one.users == (by_place,) for one in places)
    )
