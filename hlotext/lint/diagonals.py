"""Diagonals: the offsets of those outside of which a matrix is zero, where comparisons of positions tell."""

from __future__ import annotations

from hlotext.analysis import census, fact
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.lint.rounds import places_of
from hlotext.lint.selectors import is_zero
from hlotext.lint.slots import before_loops
from hlotext.lint.values import Value, entered, source

_KEPT = traits.CONVERSIONS | traits.FORWARDS_OPERAND | {"copy", "negate"}
_SUMS = traits.COMMUTATIVE | {"subtract"}
"""Opcodes that make zero of zeros, of which a product is zero already where one operand is."""
_COUNTS = traits.SOURCES | traits.TUPLES | {"add", "subtract"}
"""Opcodes of what may be a row or column number."""
_MOST_OPERATIONS = 200
_RANK = 2


@fact
def has_diagonals(module: Module) -> bool:
    """True if positions are compared for equality anywhere, without which no matrix is a diagonal one."""
    for one in census(module).by_opcode.get("compare", ()):
        is_equal = str(one.attributes.get("direction")) == "EQ"
        if is_equal and one.shape is not None and one.shape.rank >= _RANK:
            sides = [source(Value(operand), _KEPT | {"broadcast"}).instruction for operand in one.operands]
            if all(side.opcode in _COUNTS for side in sides) and any(side.opcode == "iota" for side in sides):
                return True
    return False


def diagonals(matrix: Value) -> frozenset[int] | None:
    """Returns column minus row of each diagonal of the last two dimensions that may be nonzero; None if all may be."""
    return _diagonals(matrix, [_MOST_OPERATIONS])


def _diagonals(value: Value, left: list[int]) -> frozenset[int] | None:
    made = _made(value)
    one, operands = made.instruction, made.operands()
    shape = one.shape
    left[0] -= 1
    if left[0] < 0 or shape is None or not shape.is_array or shape.rank < _RANK:
        return None
    if is_zero(made):
        return frozenset()
    if one.opcode in _KEPT:
        return _diagonals(operands[0], left)
    if one.opcode in ("bitcast", "reshape"):
        is_turned = _is_turned(one)
        return _turned(_diagonals(operands[0], left), is_turned) if is_turned is not None else None
    places = tuple(one.attributes.get("dimensions", ())) if one.opcode in ("broadcast", "transpose") else ()
    if places:
        last = (shape.rank - 2, shape.rank - 1)
        found = _diagonals(operands[0], left) if set(places[-_RANK:]) == {*last} else None
        return _turned(found, places[-_RANK:] != last)
    if one.opcode == "compare" and str(one.attributes.get("direction")) == "EQ":
        return _equal(operands, shape.rank)
    if one.opcode in ("multiply", "and"):
        known = [found for operand in operands if (found := _diagonals(operand, left)) is not None]
        return frozenset.intersection(*known) if known else None
    if one.opcode == "divide":
        return _diagonals(operands[0], left)
    if one.opcode == "select":
        mask, *sides = operands
        inside, outside = (_diagonals(side, left) for side in sides)
        if outside is None:
            return None
        chosen = _diagonals(mask, left)
        inside = chosen if inside is None else inside if chosen is None else inside & chosen
        return inside | outside if inside is not None else None
    if one.opcode in _SUMS:
        both = [_diagonals(operand, left) for operand in operands]
        return frozenset.union(*(each for each in both if each is not None)) if None not in both else None
    return None


def _made(value: Value) -> Value:
    """The producer of a value, out of loops that do not change it."""
    made = entered(value)
    return entered(first) if (first := before_loops(made)) != made else made


def _turned(found: frozenset[int] | None, is_turned: bool) -> frozenset[int] | None:
    """The diagonals of a matrix that has these, perhaps transposed."""
    return frozenset(-offset for offset in found) if found is not None and is_turned else found


def _is_turned(view: Instruction) -> bool | None:
    """True for a view of matrices that transposes each, False for one of the same rows and columns; None for others."""
    before, after = view.operands[0].shape, view.shape
    if before is None or after is None or not before.is_array or before.dimensions != after.dimensions:
        return None
    if view.opcode == "reshape":
        return False
    places, same = places_of(view), [*range(after.rank)]
    turned = [*same[:-_RANK], same[-1], same[-_RANK]]
    return None if places is None or [*places] not in (same, turned) else [*places] == turned


def _equal(operands: list[Value], rank: int) -> frozenset[int] | None:
    """The diagonal on which two counts of positions are equal."""
    counts = [_count(operand) for operand in operands]
    if None in counts:
        return None
    (one, more), (other, also) = sorted(count for count in counts if count is not None)
    return frozenset({more - also}) if (one, other) == (rank - 2, rank - 1) else None


def _count(value: Value) -> tuple[int, int] | None:
    """The dimension of a matrix along which a value counts, and what it counts from; None for any other value."""
    made = source(_made(value), _KEPT - {"negate"})
    one, operands = made.instruction, made.operands()
    if one.opcode == "iota":
        return int(one.attributes.get("iota_dimension", 0)), 0
    if one.opcode == "broadcast":
        inner = _count(operands[0])
        places = one.attributes.get("dimensions", ())
        return (places[inner[0]], inner[1]) if inner is not None and inner[0] < len(places) else None
    if one.opcode in ("add", "subtract"):
        for operand, other in zip(operands, operands[::-1], strict=True):
            count, number = _count(operand), _number(other)
            if count is not None and number is not None and (one.opcode == "add" or operand == operands[0]):
                return count[0], count[1] + (number if one.opcode == "add" else -number)
    return None


def _number(value: Value) -> int | None:
    """The integer that a value is everywhere; None where it is not known to be one."""
    made = source(_made(value), _KEPT - {"negate"} | {"broadcast"}).instruction
    if made.opcode != "constant":
        return None
    text = str(made.literal).strip("{} ")
    return int(text) if text.lstrip("-").isdigit() else None
