"""Masks: which part of the elements of an array is true, or not zero, where positions and one-hot rows alone tell."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from hlotext.analysis import call_graph, fact
from hlotext.analysis.loops import operands_first
from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.lint.alike_fusions import alike
from hlotext.lint.selectors import is_zero, selector
from hlotext.lint.values import Value, entered, formula, is_counted

_SAMPLES = 4096
"""Positions at which a mask is evaluated: of its part two digits are right."""
_MOST_OPERATIONS = 60
_DEEPEST = 40


@attrs.frozen
class Rate:
    """A part of the elements of an array."""

    part: float
    dimensions: frozenset[int]
    """Those on which it depends which elements these are."""
    key: object
    """Equal for the same elements."""
    is_counted: bool

    def complement(self) -> Rate:
        """The other elements."""
        return attrs.evolve(self, part=1 - self.part, key=("not", self.key))


def kept_part(mask: Value) -> Rate | None:
    """The part of a mask that is true: exact to two digits where positions and constants alone tell, of one-hot rows one in
    so many; None where it is not known."""
    inner, dimensions = _unbroadcast(mask)
    shape = inner.instruction.shape
    if shape is None or not shape.is_array or not shape.rank or not shape.element_count:
        return None
    if is_counted(inner):
        part = _evaluated(inner, shape)
        return Rate(part, dimensions, formula(inner), True) if part is not None else None
    found = selector(inner)
    return (
        Rate(1 / found.classes, dimensions, formula(inner), False)
        if found is not None and found.classes
        else None
    )


def _unbroadcast(value: Value) -> tuple[Value, frozenset[int]]:
    """Value that is repeated to make another, with its dimensions in the result."""
    value = entered(value)
    shape = value.instruction.shape
    places = list(range(shape.rank)) if shape is not None and shape.is_array else []
    for _ in range(_MOST_OPERATIONS):
        if value.instruction.opcode == "convert":
            value = entered(value.operands()[0])
        elif value.instruction.opcode == "broadcast":
            places = [places[d] for d in value.instruction.attributes.get("dimensions", ())]
            value = entered(value.operands()[0])
        else:
            break
    return value, frozenset(places)


@fact
def zeros(module: Module) -> Zeros:
    """The parts of the values of a module that may not be zero."""
    return Zeros(module)


class Zeros:
    """The parts of the values of a module that may not be zero."""

    def __init__(self, module: Module) -> None:
        self._known: dict[Value, float] = {}
        self._alike = alike(module)
        self._makes_full: dict[Hashable, bool] = {}
        """True for fusions, of those that are alike one, that make full results of full operands."""
        self._is_place_full: dict[Hashable, bool] = {}
        self._full: set[Instruction] = set()
        """Results outside of fusions, of tuples all elements, of which nothing is known to be zero."""
        for computation in call_graph(module).stepped:
            if not computation.is_fusion_body:
                for one in operands_first(computation):
                    if self._is_full(one):
                        self._full.add(one)

    def nonzero_part(self, value: Value) -> Rate | None:
        """The part of a value that may not be zero; None where all of it may be."""
        place = self._place(value)
        if place is not None:
            if place not in self._is_place_full:
                self._is_place_full[place] = self._nonzero(value, _DEEPEST) >= 1
            if self._is_place_full[place]:
                return None
        elif self._nonzero(value, _DEEPEST) >= 1:
            return None
        inner, dimensions = _unbroadcast(value)
        return Rate(self._nonzero(inner, _DEEPEST), dimensions, ("nonzero", formula(inner)), False)

    def are_full(self, results: Iterable[Instruction]) -> bool:
        """True if of these results, which stand in no fusion, nothing is known to be zero."""
        return self._full.issuperset(results)

    def _place(self, value: Value) -> Hashable | None:
        """The place of a value in a fusion whose operands are full, equal for those that are alike; None for other values."""
        if len(value.fusions) != 1:
            return None
        fusion, body = value.fusions[0], value.instruction.computation
        likeness = self._alike.of(fusion, body) if body is not None and fusion.opcode == "fusion" else None
        if likeness is None or not self.are_full(likeness.others):
            return None
        return likeness.key, self._alike.number(value.instruction)

    def _is_full(self, one: Instruction) -> bool:
        opcode, operands = one.opcode, one.operands
        if opcode == "tuple" or (opcode == "get-tuple-element" and operands[0] in self._full):
            return self.are_full(operands)
        if opcode == "fusion" and (bodies := one.called_computations):
            likeness = self._alike.of(one, bodies[0])
            if likeness is None or not self.are_full(likeness.others):
                return self._gives_full(one, bodies[0])
            if likeness.key not in self._makes_full:
                self._makes_full[likeness.key] = self._gives_full(one, bodies[0])
            return self._makes_full[likeness.key]
        return self._nonzero(Value(one), _DEEPEST) >= 1

    def _gives_full(self, fusion: Instruction, body: Computation) -> bool:
        root = body.root
        given = root.operands if root.opcode == "tuple" else (root,)
        return all(self._nonzero(Value(one, (fusion,)), _DEEPEST) >= 1 for one in given)

    def _nonzero(self, value: Value, left: int) -> float:
        value = entered(value, self._full)
        if value.instruction in self._full and not value.fusions:
            return 1.0
        if value not in self._known:
            if not left or value.instruction.opcode not in _TOLD:
                return 1.0
            self._known[value] = self._nonzero_of(value, left - 1)
        return self._known[value]

    def _nonzero_of(self, value: Value, left: int) -> float:
        one, operands = value.instruction, value.operands()
        shape = one.shape
        if shape is None or not shape.is_array or not shape.element_count:
            return 1.0
        if is_zero(value):
            return 0.0
        first = self._nonzero(operands[0], left) if one.opcode in _FOLLOWED else 1.0
        if one.opcode in _SAME or one.opcode == "divide":
            return first
        if one.opcode in ("multiply", "and"):
            return min(first, self._nonzero(operands[1], left))
        if one.opcode in _SUMS:
            return first if first >= 1 else min(1.0, first + self._nonzero(operands[1], left))
        if one.opcode == "select":
            kept = kept_part(operands[0])
            parts = [self._nonzero(operand, left) for operand in operands[1:]]
            rates = (kept.part, 1 - kept.part) if kept is not None else (1.0, 1.0)
            return min(1.0, sum(min(part, rate) for part, rate in zip(parts, rates, strict=True)))
        if one.opcode == "compare":
            found = selector(value)
            return 1 / found.classes if found is not None and found.classes else 1.0
        before = one.operands[0].shape if one.operands else None
        if one.opcode == "reduce" and before is not None and is_zero(operands[1]):
            return min(1.0, first * (before.element_count or 0) / shape.element_count)
        updates = one.operands[2].shape if one.opcode == "scatter" and len(operands) == 3 else None
        if updates is not None:
            return min(1.0, first + (updates.element_count or 0) / shape.element_count)
        return 1.0


_SAME = traits.REPEATS_ELEMENTS | {"convert", "negate"}
_SUMS = frozenset({"add", "maximum", "or", "subtract"})
_FOLLOWED = _SAME | _SUMS | {"divide", "multiply"} | {"and", "reduce"} | {"scatter"}
_TOLD = _FOLLOWED | {"compare", "constant"} | {"select"}


# ---- masks of positions


_Array = NDArray[Any]


def _evaluated(mask: Value, shape: Shape) -> float | None:
    """The part of a mask of positions that is true, at positions spread evenly; None where an operation is not known."""
    positions = _spread(shape.dimensions)
    try:
        return float(np.mean(_at(mask, positions, [_MOST_OPERATIONS])))
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """An operation that is not evaluated."""


@weighted_cache(64)
def _spread(sizes: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """So many positions, on a lattice whose steps share no factor: Kronecker's sequence with square roots of primes."""
    counts = np.arange(1, _SAMPLES + 1)
    steps = [math.sqrt(prime) for prime in (2, 3, 5, 7, 11, 13, 17, 19)]
    return [
        np.minimum((counts * steps[n % len(steps)] % 1 * size).astype(np.int64), max(0, size - 1))
        for n, size in enumerate(sizes)
    ]


def _at(value: Value, at: list[NDArray[np.int64]], left: list[int]) -> _Array:
    """A value at these positions."""
    value = entered(value)
    left[0] -= 1
    one, operands = value.instruction, value.operands()
    shape = one.shape
    if shape is None or left[0] < 0:
        raise _UnknownError
    if one.opcode == "iota":
        return np.asarray(at[one.attributes.get("iota_dimension", 0)])
    if one.opcode == "constant":
        return _constant(one)
    if one.opcode == "broadcast":
        dimensions = one.attributes.get("dimensions", ())
        return _at(operands[0], [at[d] for d in dimensions], left)
    if one.opcode == "transpose":
        permutation = one.attributes.get("dimensions", ())
        inner = [at[permutation.index(d)] for d in range(len(permutation))]
        return _at(operands[0], inner, left)
    if one.opcode in ("reshape", "bitcast"):
        before = operands[0].instruction.shape
        if before is None or not before.is_array:
            raise _UnknownError
        if one.opcode == "bitcast" and not all(map(_is_row_major, (before, shape))):
            raise _UnknownError
        flat = (
            np.ravel_multi_index(tuple(at), shape.dimensions) if shape.rank else np.zeros(_SAMPLES, np.int64)
        )
        return _at(
            operands[0],
            list(np.unravel_index(flat, before.dimensions)) if before.rank else [],
            left,
        )
    if one.opcode in ("copy", "convert"):
        return _at(operands[0], at, left)
    if one.opcode == "compare":
        a, b = (_at(operand, at, left) for operand in operands)
        return np.asarray(_COMPARED[str(one.attributes.get("direction"))](a, b))
    computed = _LOGICAL if str(shape.element_type) == "pred" else _COMPUTED
    if one.opcode in computed:
        parts = [_at(operand, at, left) for operand in operands]
        if one.opcode in ("divide", "remainder") and not np.all(parts[1]):
            raise _UnknownError
        return np.asarray(computed[one.opcode](*parts))
    raise _UnknownError


def _is_row_major(shape: Shape) -> bool:
    order = default_layout(shape.rank).minor_to_major
    return shape.layout is None or shape.layout.minor_to_major == order


def _constant(one: Instruction) -> _Array:
    text = str(one.literal).strip("{} ")
    if text in ("true", "false"):
        return np.full(_SAMPLES, text == "true")
    try:
        return np.full(_SAMPLES, float(text) if any(c in text for c in ".einf") else int(text))
    except ValueError:
        raise _UnknownError from None


_COMPARED: Mapping[str, Callable[[_Array, _Array], object]] = {
    "EQ": operator.eq, "NE": operator.ne, "LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge,
}  # fmt: skip
_LOGICAL: Mapping[str, Callable[..., object]] = {
    "and": np.logical_and, "not": np.logical_not, "or": np.logical_or, "select": np.where,
}  # fmt: skip
_COMPUTED: Mapping[str, Callable[..., object]] = {
    "abs": np.abs, "add": np.add, "divide": np.floor_divide, "maximum": np.maximum, "minimum": np.minimum,
    "multiply": np.multiply, "negate": np.negative, "remainder": np.fmod, "select": np.where, "subtract": np.subtract,
}  # fmt: skip
"""Operations on positions, which are not negative: of others the quotient is not XLA's."""
