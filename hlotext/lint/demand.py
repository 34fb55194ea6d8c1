"""Demand: the elements of an array that its users ask for.

It is a part of the indices of each dimension, and of the elements at these a part that masks keep: both are upper bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

from hlotext.ir.lazy_imports import late_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = late_module("numpy")


@attrs.frozen(eq=False)
class Part:
    """Indices of a dimension: known ones, and numbers of indices that are known only at run time, by what they depend
    on.
    """

    known: NDArray[np.bool_]
    loose: Mapping[object, int] = attrs.field(factory=dict)

    @property
    def count(self) -> int:
        """The maximum number of indices."""
        return min(self.known.size, int(self.known.sum()) + sum(self.loose.values()))

    def joined(self, other: Part) -> Part | None:
        """Returns the union of both; None for all indices."""
        return part_of(self.known | other.known, {**self.loose, **other.loose})


Parts: TypeAlias = "tuple[Part | None, ...]"
"""The indices of each dimension; None for all."""


@attrs.frozen
class Mask:
    """A used part of the elements, the same at all indices of dimensions that it does not depend on."""

    part: float
    dimensions: frozenset[int]
    is_counted: bool
    """True if the mask depends on positions alone, not on data."""
    picked: int = 0
    """Elements that indices pick one by one; 0 where elements are masked."""
    blocks: float = 0.0
    """The part that lies in blocks of which the mask keeps any."""
    rounds: float = 1.0
    """The part of the iterations of loops in which the mask keeps any element."""

    def is_diagonal(self, sizes: Sequence[int]) -> bool:
        """Returns True if the mask keeps at most one element of each row."""
        return self.is_counted and self.part * min((sizes[d] for d in self.dimensions), default=1) <= 1

    def in_blocks(self, sizes: Sequence[int]) -> float:
        """Returns the fraction that is computed in blocks; the mask's own fraction for diagonals and data-dependent
        masks.
        """
        is_whole = not self.is_counted or self.is_diagonal(sizes)
        return self.part if is_whole else max(self.part, self.blocks)


@attrs.frozen(eq=False)
class Demand:
    """Elements of an array that its users need."""

    parts: Parts
    masks: Mapping[object, Mask] | None = None
    """Masks of which one at least must keep an element; None for all elements."""

    def fraction(self, shape: Shape, by_blocks: bool = False) -> float:
        """Returns an upper bound on the fraction of an array's elements that is needed, or computed in blocks."""
        sizes = shape.dimensions
        kept = math.prod(
            part.count / max(1, size)
            for part, size in zip(self.parts, sizes, strict=True)
            if part is not None
        )
        if self.masks is None:
            return kept
        return kept * min(
            1.0, sum(mask.in_blocks(sizes) if by_blocks else mask.part for mask in self.masks.values())
        )

    def joined(self, other: Demand) -> Demand:
        parts = tuple(
            None if a is None or b is None else a.joined(b)
            for a, b in zip(self.parts, other.parts, strict=True)
        )
        masks = None if self.masks is None or other.masks is None else {**self.masks, **other.masks}
        return Demand(parts, masks)


Asked: TypeAlias = "Demand | dict[int, Asked] | None"
"""Demand for a result, of a tuple by elements; None for all of it."""


def fraction(asked: Asked, shape: Shape | None, by_blocks: bool = False) -> float:
    """Returns the needed fraction of a result's elements, as `Demand.fraction`; 1 if all are needed."""
    if shape is None or asked is None:
        return 1.0
    if isinstance(asked, Demand):
        return asked.fraction(shape, by_blocks) if shape.is_array else 1.0
    elements = shape.tuple_shapes
    sizes = [max(1, _elements(one)) for one in elements]
    part = sum(
        size * fraction(asked.get(n), one, by_blocks)
        for n, (one, size) in enumerate(zip(elements, sizes, strict=True))
    )
    return part / max(1, sum(sizes))


def _elements(shape: Shape) -> int:
    if shape.is_tuple:
        return sum(map(_elements, shape.tuple_shapes))
    return (shape.element_count or 0) if shape.is_array else 0


def joined(a: Asked, b: Asked) -> Asked:
    if isinstance(a, Demand) and isinstance(b, Demand):
        return a.joined(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return {n: joined(a[n], b[n]) if n in a and n in b else a.get(n, b.get(n)) for n in a | b}
    return None


def part_of(known: NDArray[np.bool_], loose: Mapping[object, int] | None = None) -> Part | None:
    found = Part(known, loose or {})
    return None if found.count >= known.size else found


def demand_of(parts: Iterable[Part | None], masks: Mapping[object, Mask] | None = None) -> Demand | None:
    """Returns the demand with these parts and masks; None for all elements."""
    found = tuple(parts)
    return Demand(found, masks) if masks is not None or any(part is not None for part in found) else None


def array_of(one: Instruction) -> Shape | None:
    return one.shape if one.shape is not None and one.shape.is_array and not one.shape.is_unbounded else None
