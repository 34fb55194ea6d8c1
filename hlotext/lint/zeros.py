"""Zeros: which part of the elements of an array may not be zero, and which a mask of positions leaves."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING

import attrs

from hlotext.analysis import call_graph, fact
from hlotext.analysis.loops import operands_first
from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.lint.alike_fusions import alike
from hlotext.lint.masks import Rate, classes_of, kept_part, unbroadcast
from hlotext.lint.selectors import is_zero
from hlotext.lint.values import Value, entered, formula, source

if TYPE_CHECKING:
    import numpy as np
else:
    np = late_module("numpy")

_DEEPEST = 40


@fact
def zeros(module: Module) -> Zeros:
    """Returns the parts of a module's values that may be nonzero."""
    return Zeros(module)


class Zeros:
    """Parts of a module's values that may be nonzero."""

    def __init__(self, module: Module) -> None:
        self._known: dict[Value, float] = {}
        self._masks: dict[tuple[Value, bool], Rate | None] = {}
        self._alike = alike(module)
        self._makes_full: dict[Hashable, bool] = {}
        """True for fusions, of those that are alike one, that make full results of full operands."""
        self._is_place_full: dict[Hashable, bool] = {}
        self._full: set[Instruction] = set()
        """Results outside of fusions, of tuples all elements, of which nothing is known to be zero or masked."""
        for computation in call_graph(module).stepped:
            if not computation.is_fusion_body:
                for one in operands_first(computation):
                    if one.opcode not in _ASKED or self._is_full(one):
                        self._full.add(one)

    def nonzero_part(self, value: Value) -> Rate | None:
        """Returns the part of a value that may be nonzero; None if all or none of it may be (see `part`)."""
        if self.part(value) is None:
            return None
        inner, dimensions = unbroadcast(value)
        return Rate(self._nonzero(inner, _DEEPEST), dimensions, ("nonzero", formula(inner)), False)

    def part(self, value: Value) -> float | None:
        """Returns the fraction of a value's elements, before broadcasts, that may be nonzero.

        None for all, and for none. Compilers remove such operations of a program early, so the remaining ones are their
        own, such as the imaginary half of real numbers in an expanded Fourier transform.
        """
        return None if self._is_nonzero(value) else self._nonzero(unbroadcast(value)[0], _DEEPEST) or None

    def _is_nonzero(self, value: Value) -> bool:
        """True if no element of a value is known to be zero."""
        place = self._place(value)
        if place is not None:
            if place not in self._is_place_full:
                self._is_place_full[place] = self._nonzero(value, _DEEPEST) >= 1
            return self._is_place_full[place]
        return self._nonzero(value, _DEEPEST) >= 1

    def mask_of(self, value: Value, is_low: bool = False) -> Rate | None:
        """Returns the mask of positions outside of which a value is zero, or so negative that its exponential is; None
        if there is none.
        """
        return self._mask(value, is_low, _DEEPEST)

    def masks_of(self, results: Collection[Instruction]) -> Hashable:
        """Returns the position masks of results outside of fusions, comparable; None if one may be zero in other ways."""
        if self.are_full(results):
            return ()
        found: list[tuple[Rate | None, Rate | None] | None] = []
        for one in results:
            if one in self._full:
                found.append(None)
            elif self._nonzero(Value(one), _DEEPEST) < 1:
                return None
            else:
                found.append((self.mask_of(Value(one)), self.mask_of(Value(one), True)))
        return tuple(found)

    def are_full(self, results: Iterable[Instruction]) -> bool:
        """Returns True if none of these results, which must be outside of fusions, is known to have zeros or masks."""
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
        """True for a result of which nothing is known to be zero or masked, of an opcode of `_ASKED`."""
        opcode, operands = one.opcode, one.operands
        if opcode == "get-tuple-element" and operands[0] in self._full:
            return True
        if opcode == "tuple":
            return self.are_full(operands)
        if opcode == "fusion" and (bodies := one.called_computations):
            likeness = self._alike.of(one, bodies[0])
            if likeness is None or not self.are_full(likeness.others):
                return self._gives_full(one, bodies[0])
            if likeness.key not in self._makes_full:
                self._makes_full[likeness.key] = self._gives_full(one, bodies[0])
            return self._makes_full[likeness.key]
        return self._is_value_full(Value(one))

    def _is_value_full(self, value: Value) -> bool:
        return self._nonzero(value, _DEEPEST) >= 1 and all(
            self._mask(value, is_low, _DEEPEST) is None for is_low in (False, True)
        )

    def _gives_full(self, fusion: Instruction, body: Computation) -> bool:
        root = body.root
        given = root.operands if root.opcode == "tuple" else (root,)
        return all(self._is_value_full(Value(one, (fusion,))) for one in given)

    def _nonzero(self, value: Value, left: int) -> float:
        value = entered(value, self._full)
        if value.instruction in self._full and not value.fusions:
            return 1.0
        if value not in self._known:
            if not left or value.instruction.opcode not in _TOLD:
                return 1.0
            self._known[value] = self._nonzero_of(value, left - 1)
        return self._known[value]

    def _mask(self, value: Value, is_low: bool, left: int) -> Rate | None:
        value = entered(value, self._full)
        if not left or value.instruction.opcode not in _MASKED:
            return None
        if value.instruction in self._full and not value.fusions:
            return None
        key = value, is_low
        if key not in self._masks:
            self._masks[key] = self._mask_of(value, is_low, left - 1)
        return self._masks[key]

    def _mask_of(self, value: Value, is_low: bool, left: int) -> Rate | None:
        one, operands = value.instruction, value.operands()
        opcode = one.opcode
        if opcode == "select":
            kept = kept_part(operands[0])
            if kept is not None and kept.is_counted and 0 < kept.part < 1:
                if _is_left_out(operands[2], is_low):
                    return kept
                if _is_left_out(operands[1], is_low):
                    return kept.complement()
            return None
        if opcode in _SAME - {"negate"}:
            found = self._mask(operands[0], is_low, left)
            return _moved(found, one) if found is not None else None
        if opcode == "exponential":
            return self._mask(operands[0], True, left) if not is_low else None
        if opcode == "add":  # what is added to a mask is of no such size
            return self._first_mask(operands, is_low, left) if is_low else None
        if opcode == "multiply":
            if is_low and not any(map(_is_positive, operands)):
                return None
            return self._first_mask(operands, is_low, left)
        follows = opcode == "subtract" if is_low else opcode == "divide"
        follows = follows or (opcode == "divide" and _is_positive(operands[1]))
        return self._mask(operands[0], is_low, left) if follows else None

    def _first_mask(self, operands: Iterable[Value], is_low: bool, left: int) -> Rate | None:
        found = (self._mask(operand, is_low, left) for operand in operands)
        return next((rate for rate in found if rate is not None), None)

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
            classes = classes_of(value)
            return 1 / classes if classes else 1.0
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
_MASKED = _TOLD | {"exponential"}
_ASKED = _MASKED | traits.TUPLES | {"async-done", "fusion"}
"""Opcodes of values that may be zero or masked, or give on what may be."""


def _is_left_out(value: Value, is_low: bool) -> bool:
    """True if a value is zero, or its exponential, everywhere."""
    if not is_low:
        return is_zero(value)
    number = _number(value)
    return number is not None and number < 0 and bool(np.exp(np.float32(number)) == 0)


def _is_positive(value: Value) -> bool:
    number = _number(value)
    return number is not None and number > 0


def _number(value: Value) -> float | None:
    """The number that a value is everywhere; None if it is not known to be one."""
    made = source(value, _SAME).instruction
    if made.opcode != "constant":
        return None
    try:
        return float(str(made.literal).strip("{} "))
    except ValueError:
        return None


def _moved(rate: Rate, one: Instruction) -> Rate | None:
    """A mask of an operand in the dimensions of the result that is its elements in another order or shape, or repeated."""
    after, before = one.shape, one.operands[0].shape
    if after is None or before is None or not (after.is_array and before.is_array):
        return None
    if one.opcode == "transpose":
        order = tuple(one.attributes.get("dimensions", ()))
        there = {d: n for n, d in enumerate(order)}
    elif one.opcode == "broadcast":
        there = dict(enumerate(one.attributes.get("dimensions", ())))
    elif one.opcode in ("reshape", "bitcast"):
        if one.opcode == "bitcast" and before.element_type != after.element_type:
            return None
        is_bitcast = one.opcode == "bitcast"
        strides = {key: d for d, key in _strides(after, is_bitcast).items()}
        there = {d: strides[key] for d, key in _strides(before, is_bitcast).items() if key in strides}
    else:
        there = {d: d for d in range(before.rank)}
    if not there.keys() >= rate.dimensions:
        return None
    return attrs.evolve(rate, dimensions=frozenset(there[d] for d in rate.dimensions))


def _strides(shape: Shape, is_in_memory: bool) -> dict[int, tuple[int, int]]:
    """Size and stride, in elements, of each dimension of more than one index."""
    order = list(reversed(range(shape.rank)))
    if is_in_memory and shape.layout is not None and len(shape.layout.minor_to_major) == shape.rank:
        order = list(shape.layout.minor_to_major)
    sizes = shape.dimensions
    return {
        d: (sizes[d], math.prod(sizes[n] for n in order[:place]))
        for place, d in enumerate(order)
        if sizes[d] > 1
    }
