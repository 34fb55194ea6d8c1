"""Sums over products of repeated arrays: what is computed element by element and could be a matrix product."""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from hlotext.analysis.loops import operands_first
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.sums import adds

_MOST_TERMS = 16
Term = tuple[Instruction, ...]
"""The factors of a term, in the order of the text."""


@attrs.frozen(eq=False)
class Separable:
    """A sum of products whose factors each lack some of the result's dimensions."""

    reduce: Instruction
    work: frozenset[Instruction]
    """The operations on elements of the larger array, the sum among them."""
    factors: tuple[frozenset[Instruction], frozenset[Instruction]]
    """The arrays that the two kinds of factors are made of."""
    cross: int
    """The number of terms that have factors of both kinds: so many products of matrices."""
    is_difference: bool
    """True if terms are subtracted, and digits may cancel once they are summed apart."""
    batch: int
    rows: int
    columns: int
    summed: int
    is_apart: bool = False
    """True if rows and columns are summed, too: then the factors can be summed before they are multiplied."""

    @property
    def flops(self) -> int:
        """FLOPs of the equivalent matmuls; if factors are summed separately, those of the sums."""
        if self.is_apart:
            return 2 * self.cross * self.batch * self.summed * (self.rows + self.columns)
        return 2 * self.cross * self.batch * self.rows * self.columns * self.summed


def separable_sums(body: Computation) -> Iterator[Separable]:
    """Yields the separable sums of a computation."""
    order = [one for one in operands_first(body) if one.opcode not in ("parameter", "constant")]
    for one in order:
        if one.opcode == "reduce" and len(one.operands) == 2 and adds(one.attributes.get("to_apply")):
            found = _separable(one, order)
            if found is not None:
                yield found


def _separable(reduce: Instruction, order: list[Instruction]) -> Separable | None:
    summand, summed = reduce.operands[0], frozenset(reduce.attributes.get("dimensions", ()))
    shape = summand.shape
    if shape is None or not shape.is_array or not shape.element_type.is_floating:
        return None
    inside = _made_for(summand, order, shape.dimensions)
    leaves = {one: _varies_in(one) for one in inside if one.opcode in _REPEATED}
    if (apart := _apart(reduce, inside, leaves, summed)) is not None:
        return apart
    free = {kept for one in leaves if (kept := leaves[one] - summed)}
    sides = [one for one in free if not any(one < other for other in free)]
    if len(sides) != 2 or sides[0] | sides[1] != _long(shape.dimensions) - summed:
        return None
    within = [{one for one in leaves if leaves[one] - summed <= side} for side in sides]
    own = [within[0] - within[1], within[1] - within[0]]
    terms = _terms(inside, leaves, summed, sides).get(summand, frozenset())
    return _of_terms(terms, reduce, inside, own, sides, sides[0] & sides[1], summed)


def _apart(
    reduce: Instruction,
    inside: list[Instruction],
    leaves: dict[Instruction, frozenset[int]],
    summed: frozenset[int],
) -> Separable | None:
    """A sum over both the rows of one factor and those of the other, as of all pairs of rows."""
    summand = reduce.operands[0]
    sizes = summand.shape.dimensions if summand.shape is not None else ()
    sides = [one for one in {*leaves.values()} if not any(one < other for other in leaves.values())]
    if len(sides) != 2 or sides[0] | sides[1] != _long(sizes):
        return None
    only = [sides[0] - sides[1], sides[1] - sides[0]]
    if not all(each and each <= summed for each in only):
        return None
    own = [{one for one in leaves if leaves[one] & each} for each in only]
    common = sides[0] & sides[1]
    terms = _terms(inside, leaves, frozenset(), sides).get(summand, frozenset())
    return _of_terms(terms, reduce, inside, own, sides, common - summed, common & summed, is_apart=True)


def _of_terms(
    terms: frozenset[Term],
    reduce: Instruction,
    inside: list[Instruction],
    own: list[set[Instruction]],
    sides: list[frozenset[int]],
    batch: frozenset[int],
    summed: frozenset[int],
    is_apart: bool = False,
) -> Separable | None:
    """The sum of these terms; None if none of them has a factor of each side's own arrays."""
    cross = [term for term in terms if all(any(_of(factor, side) for factor in term) for side in own)]
    shape = reduce.operands[0].shape
    if not cross or shape is None:
        return None

    def size(dimensions: frozenset[int]) -> int:
        return math.prod(shape.dimensions[d] for d in dimensions)

    return Separable(
        reduce,
        frozenset(one for one in inside if one.opcode not in _REPEATED) | {reduce},
        (frozenset(own[0]), frozenset(own[1])),
        len(cross),
        any(one.opcode == "subtract" for one in inside),
        size(batch),
        size(sides[0] - sides[1]),
        size(sides[1] - sides[0]),
        size(summed),
        is_apart,
    )


_REPEATED = frozenset({"broadcast", "iota"})


def _made_for(summand: Instruction, order: list[Instruction], sizes: tuple[int, ...]) -> list[Instruction]:
    """The operations of these sizes that a value is made of, operands first."""
    wanted = {summand}
    for one in reversed(order):
        if one in wanted and one.opcode in ELEMENTWISE:
            wanted.update(one.operands)
    return [one for one in order if one in wanted and one.shape is not None and one.shape.dimensions == sizes]


def _long(sizes: tuple[int, ...]) -> frozenset[int]:
    return frozenset(d for d, size in enumerate(sizes) if size > 1)


def _varies_in(one: Instruction) -> frozenset[int]:
    """The dimensions along which what is repeated differs."""
    if one.opcode == "iota":
        return frozenset({one.attributes.get("iota_dimension", 0)})
    shape = one.operands[0].shape
    sizes = shape.dimensions if shape is not None and shape.is_array else ()
    return frozenset(
        d for d, size in zip(one.attributes.get("dimensions", ()), sizes, strict=False) if size > 1
    )


def _terms(
    inside: list[Instruction],
    leaves: dict[Instruction, frozenset[int]],
    summed: frozenset[int],
    sides: list[frozenset[int]],
) -> dict[Instruction, frozenset[Term]]:
    """Each operation as a sum of products; those that are none are left out."""
    varies: dict[Instruction, frozenset[int] | None] = dict(leaves)
    found: dict[Instruction, frozenset[Term]] = {one: frozenset({(one,)}) for one in leaves}
    place = {one: number for number, one in enumerate(inside)}
    for one in inside:
        if one in leaves:
            continue
        among = [varies.get(operand) for operand in one.operands]
        known = [each for each in among if each is not None]
        varies[one] = frozenset().union(*known) if len(known) == len(among) else None
        if one.opcode not in ELEMENTWISE or varies[one] is None:
            varies[one] = None
            continue
        terms = [found.get(operand) for operand in one.operands]
        if any(varies[one] - summed <= side for side in sides):  # type: ignore[operator]
            found[one] = frozenset({(one,)})  # any function of one side alone is a factor
        elif None in terms:
            continue
        elif (made := _combined(one, terms, place)) is not None:  # type: ignore[arg-type]
            found[one] = made
    return found


def _combined(
    one: Instruction, terms: list[frozenset[Term]], place: dict[Instruction, int]
) -> frozenset[Term] | None:
    if one.opcode in traits.CONVERSIONS | {"negate"}:
        return terms[0]
    if one.opcode in ("add", "subtract"):
        made = terms[0] | terms[1]
    elif one.opcode == "multiply" or (one.opcode == "divide" and len(terms[1]) == 1):
        # The reciprocal of a factor is a function of the same array.
        made = frozenset(
            tuple(sorted(left + right, key=place.__getitem__)) for left in terms[0] for right in terms[1]
        )
    else:
        return None
    return made if len(made) <= _MOST_TERMS else None


def _of(factor: Instruction, side: set[Instruction]) -> bool:
    """True if a factor is made of an array of one side."""
    pending, seen = [factor], {factor}
    while pending:
        current = pending.pop()
        if current in side:
            return True
        if current.opcode in ELEMENTWISE:
            new = [operand for operand in current.operands if operand not in seen]
            pending += new
            seen.update(new)
    return False
