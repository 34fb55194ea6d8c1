"""Masks: which part of the elements of an array is true, where positions, counters of loops and one-hot rows alone tell."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from hlotext.analysis import fact
from hlotext.analysis.trip_count import Counter, counter
from hlotext.ir.caches import weighted_cache
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape, default_layout
from hlotext.lint.classes import chosen_among
from hlotext.lint.selectors import selector
from hlotext.lint.slots import before_loops
from hlotext.lint.values import Value, entered, formula, is_counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")

_SAMPLES = 4096
"""Positions at which a mask is evaluated: of its part two digits are right."""
_MOST_OPERATIONS = 60
_BLOCK = 128
"""Elements in each dimension of the blocks that matrix units multiply: less than one is not skipped."""
_MOST_LOOPS = 4
_PAIRS = 2
"""Dimensions of a mask of pairs, as of rows and columns."""
_MOST_CORNERED = 4
"""Dimensions of a mask up to which blocks are looked at."""


@attrs.frozen
class Rate:
    """A fraction of the elements of an array."""

    part: float
    dimensions: frozenset[int]
    """Those on which it depends which elements these are."""
    key: object
    """Equal for the same elements."""
    is_counted: bool
    blocks: tuple[float, float] = (1.0, 1.0)
    """The part that lies in blocks in which one of these elements is at least, and likewise for the other elements."""
    rounds: tuple[float, float] = (1.0, 1.0)
    """The part of the iterations of loops in which one of these elements is at least, and likewise for the other elements."""

    def complement(self) -> Rate:
        """Returns the rate of the other elements."""
        return attrs.evolve(
            self,
            part=1 - self.part,
            key=("not", self.key),
            blocks=self.blocks[::-1],
            rounds=self.rounds[::-1],
        )


def kept_part(mask: Value) -> Rate | None:
    """Returns the fraction of a mask that is true; None if it is unknown.

    Computed to two digits for masks of positions and constants; one in n for one-hot rows.
    """
    inner, dimensions = unbroadcast(mask)
    home = inner.instruction.computation
    if home is None or home.module is None:
        return None
    found = _kept_part(home.module, inner)  # all layers share one mask
    return attrs.evolve(found, dimensions=dimensions) if found is not None else None


@fact
def _kept_part(module: Module, inner: Value) -> Rate | None:
    """The same of what is repeated to make a mask, of no dimensions."""
    shape = inner.instruction.shape
    if shape is None or not shape.is_array or not shape.rank or not shape.element_count:
        return None
    if is_counted(inner, _of_loop):
        return _evaluated(inner, shape)
    classes = classes_of(inner)
    return Rate(1 / classes, frozenset(), formula(inner), False) if classes else None


def classes_of(mask: Value) -> int | None:
    """Returns the number of classes of a mask of one-hot rows, or of one class; None for other masks."""
    one_hot = selector(mask)
    return one_hot.classes if one_hot is not None else chosen_among(mask)


def unbroadcast(value: Value) -> tuple[Value, frozenset[int]]:
    """Returns the value before broadcasts, with the dimensions of the result that it has."""
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


# ---- masks of positions


_Array: TypeAlias = "NDArray[Any]"


def _evaluated(mask: Value, shape: Shape) -> Rate | None:
    """The part of a mask of positions that is true, at positions spread evenly, in iterations spread evenly; None if an
    operation is not known."""
    counters: dict[Instruction, _Array] = {}
    try:
        true = np.stack([_at(mask, at, _Left(counters)) for at in _corners(shape.dimensions)])
        ends = [_at(mask, at, _Left(counters)) for at in _ends(shape.dimensions)] if counters else []
    except _UnknownError:
        return None
    any_true, any_false = true.any(axis=0), ~true.all(axis=0)
    rounds = (1.0, 1.0)
    if counters:
        _, iteration = np.unique(np.stack(list(counters.values())), axis=1, return_inverse=True)
        edges = np.stack(ends)
        rounds = (
            _share(np.logical_or(any_true, edges.any(axis=0)), iteration),
            _share(np.logical_or(any_false, ~edges.all(axis=0)), iteration),
        )
        if min(rounds) == 1 and sum(size > 1 for size in shape.dimensions) < _PAIRS:
            return None  # how many rows are filled depends on the iteration, as of a cache: sizes are fixed
    return Rate(
        float(np.mean(true[0])),
        frozenset(),
        formula(mask),
        True,
        (float(np.mean(any_true)), float(np.mean(any_false))),
        rounds,
    )


def _share(found: NDArray[np.bool_], iteration: _Array) -> float:
    """The part of the iterations in which something is found."""
    counts = np.bincount(iteration.ravel(), weights=found.ravel())
    return float(np.mean(counts > 0))


@attrs.define(eq=False)
class _Left:
    """State of an evaluation at a mask's positions: iterations, and operations that it may still take."""

    counters: dict[Instruction, _Array]
    """Counters of loops, at iterations spread evenly."""
    operations: int = _MOST_OPERATIONS


def _of_loop(value: Value) -> Value | None:
    """A loop's counter itself, and of a slot that no iteration changes what it is initially; None for other values."""
    if value.fusions or value.instruction.opcode != "get-tuple-element":
        return None
    if _counter_of(value.instruction) is not None:
        return value
    first = entered(before_loops(value))
    return first if first != value else None


def _counter_of(element: Instruction) -> Counter | None:
    """The counter that an element of a loop's state is; None for other values."""
    body = element.computation
    callers = body.callers if body is not None and element.operands[0].opcode == "parameter" else ()
    if len(callers) != 1 or callers[0].opcode != "while" or callers[0].attributes.get("body") is not body:
        return None
    found = counter(callers[0])
    return found if found is not None and found.element == element.attributes.get("index") else None


def _corners(sizes: tuple[int, ...]) -> list[list[NDArray[np.int64]]]:
    """Positions spread evenly, and the corners of the blocks in which these lie."""
    positions = _spread(sizes)
    blocks = [min(_BLOCK, max(1, size // 4)) for size in sizes]
    ends = [
        (at // block * block, np.minimum(at // block * block + block, size) - 1)
        for at, block, size in zip(positions, blocks, sizes, strict=True)
    ]
    return [positions, *(list(corner) for corner in itertools.product(*ends) if len(sizes) <= _MOST_CORNERED)]


def _ends(sizes: tuple[int, ...]) -> list[list[NDArray[np.int64]]]:
    """The corners of all of it."""
    ends = [(0, size - 1) for size in sizes[:_MOST_CORNERED]]
    rest = [0] * len(sizes[_MOST_CORNERED:])
    return [[np.full(_SAMPLES, place) for place in (*corner, *rest)] for corner in itertools.product(*ends)]


def iterations_apart(a: Value, b: Value) -> int | None:
    """Returns the difference of two offsets determined by a loop's counter if it is equal in almost all iterations;
    else None.
    """
    if not (is_counted(a, _of_loop) and is_counted(b, _of_loop)):
        return None
    counters: dict[Instruction, _Array] = {}
    try:
        apart = np.broadcast_to(_at(a, [], _Left(counters)) - _at(b, [], _Left(counters)), _SAMPLES)
    except _UnknownError:
        return None
    middle = int(np.median(apart))
    return middle if np.mean(apart == middle) > _ALMOST_ALL else None


_ALMOST_ALL = 0.95
"""Part of the iterations: the first ones may read what was there before the loop."""


class _UnknownError(Exception):
    """An operation that is not evaluated."""


@weighted_cache(64)
def _spread(sizes: tuple[int, ...], loop: int | None = None) -> list[NDArray[np.int64]]:
    """So many positions, on a lattice whose steps share no factor: Kronecker's sequence with square roots of primes. With
    other primes for each loop."""
    counts = np.arange(1, _SAMPLES + 1)
    primes = (2, 3, 5, 7, 11, 13, 17, 19) if loop is None else (23, 29, 31, 37)[loop:]
    steps = [math.sqrt(prime) for prime in primes]
    return [
        np.minimum((counts * steps[n % len(steps)] % 1 * size).astype(np.int64), max(0, size - 1))
        for n, size in enumerate(sizes)
    ]


def _at(value: Value, at: list[NDArray[np.int64]], left: _Left) -> _Array:
    """A value at these positions."""
    value = entered(value)
    left.operations -= 1
    one, operands = value.instruction, value.operands()
    shape = one.shape
    if shape is None or left.operations < 0:
        raise _UnknownError
    if one.opcode == "get-tuple-element":
        return _in_iterations(value, at, left)
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
    if one.opcode == "dynamic-slice":
        whole = operands[0].instruction.shape
        if whole is None or not whole.is_array:
            raise _UnknownError
        scalar: list[NDArray[np.int64]] = []
        first = [_at(operand, scalar, left) for operand in operands[1:]]
        rooms = [size - part for size, part in zip(whole.dimensions, shape.dimensions, strict=True)]
        return _at(
            operands[0],
            [np.clip(begin, 0, room) + place for begin, room, place in zip(first, rooms, at, strict=True)],
            left,
        )
    if one.opcode == "compare":
        a, b = (_at(operand, at, left) for operand in operands)
        return np.asarray(_COMPARED[str(one.attributes.get("direction"))](a, b))
    computed = _LOGICAL if str(shape.element_type) == "pred" else _COMPUTED
    if one.opcode in computed:
        parts = [_at(operand, at, left) for operand in operands]
        if one.opcode in ("divide", "remainder") and not np.all(parts[1]):
            raise _UnknownError
        return np.asarray(getattr(np, computed[one.opcode])(*parts))
    raise _UnknownError


def _in_iterations(value: Value, at: list[NDArray[np.int64]], left: _Left) -> _Array:
    """A counter of a loop, in iterations spread evenly and apart from those of other loops, or what no iteration changes."""
    one = value.instruction
    found = _counter_of(one) if not value.fusions else None
    if found is None:
        first = _of_loop(value)
        if first is None:
            raise _UnknownError
        return _at(first, at, left)
    loop = one.operands[0]
    if loop not in left.counters:
        if len(left.counters) >= _MOST_LOOPS:
            raise _UnknownError
        (spread,) = _spread((found.trips,), len(left.counters))
        left.counters[loop] = found.first + found.step * spread
    return left.counters[loop]


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
_LOGICAL = {"and": "logical_and", "not": "logical_not", "or": "logical_or", "select": "where"}
_COMPUTED = {
    "abs": "abs", "add": "add", "divide": "floor_divide", "maximum": "maximum", "minimum": "minimum",
    "multiply": "multiply", "negate": "negative", "remainder": "fmod", "select": "where", "subtract": "subtract",
}  # fmt: skip
"""Numpy's names of operations on positions, which are not negative: of others the quotient is not XLA's."""
