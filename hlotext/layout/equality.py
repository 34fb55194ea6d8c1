"""When two layouts or two shapes count as the same: XLA's relations, each under its own name.

Plain `==` of the values compares every field. XLA's relations leave some out, and not the same ones.
"""

from __future__ import annotations

import attrs

from hlotext.ir.values.shape import UNBOUNDED_SIZE, Layout, Shape, default_layout

_COMPARED = tuple(
    field.name
    for field in attrs.fields(Layout)
    if field.name not in ("dim_level_types", "dynamic_shape_metadata_prefix_bytes")
)
_BESIDE_ORDER = frozenset(_COMPARED) - {"minor_to_major", "split_configs"}


def layouts_equal(a: Layout, b: Layout, *, minor_to_major_only: bool = False) -> bool:
    """Returns True if two layouts are equal, ignoring the metadata prefix `M(n)` and the level types.

    Corresponds to XLA's `Layout::Equal`. With `minor_to_major_only`, only the order of dimensions and, as in XLA, the
    split configs are compared.
    """
    left_out = _BESIDE_ORDER if minor_to_major_only else frozenset()
    return all(getattr(a, name) == getattr(b, name) for name in _COMPARED if name not in left_out)


@attrs.frozen
class Relation:
    """A way to compare shapes. Each flag makes the comparison ignore one property.

    Tuples are compared element by element.
    """

    ignore_element_type: bool = False
    ignore_fp_precision: bool = False
    """Treat all floating-point types as equal."""
    ignore_dimensions: bool = False
    """Ignore sizes; ranks must still match."""
    ignore_dynamic: bool = False
    """Ignore dynamic flags, and let an unbounded dimension match any size."""
    ignore_layout: bool = False
    minor_to_major_only: bool = False
    """Compare only the dimension order of layouts."""

    def holds(self, a: Shape, b: Shape) -> bool:
        """Returns True if two shapes are equal under this relation."""
        if a is b:
            return True
        if a.tuple_shapes or b.tuple_shapes or not (a.is_array and b.is_array):
            same_kind = a.element_type is b.element_type and len(a.tuple_shapes) == len(b.tuple_shapes)
            return same_kind and all(map(self.holds, a.tuple_shapes, b.tuple_shapes))
        return self._same_type(a, b) and self._same_sizes(a, b) and self._same_layout(a, b)

    def _same_type(self, a: Shape, b: Shape) -> bool:
        if self.ignore_element_type or a.element_type is b.element_type:
            return True
        return self.ignore_fp_precision and a.element_type.is_floating and b.element_type.is_floating

    def _same_sizes(self, a: Shape, b: Shape) -> bool:
        if a.rank != b.rank or not (self.ignore_dynamic or a.dynamic_dimensions == b.dynamic_dimensions):
            return False
        if self.ignore_dimensions:
            return True
        return all(
            x == y or (self.ignore_dynamic and UNBOUNDED_SIZE in (x, y))
            for x, y in zip(a.dimensions, b.dimensions, strict=True)
        )

    def _same_layout(self, a: Shape, b: Shape) -> bool:
        if self.ignore_layout:
            return True
        first, second = (default_layout(s.rank) if s.layout is None else s.layout for s in (a, b))
        return layouts_equal(first, second, minor_to_major_only=self.minor_to_major_only)


_EQUAL = Relation()
_EQUAL_IGNORING_TYPE = Relation(ignore_element_type=True)
_COMPATIBLE = Relation(ignore_dynamic=True, ignore_layout=True)
_COMPATIBLE_IGNORING_TYPE = attrs.evolve(_COMPATIBLE, ignore_element_type=True)
_COMPATIBLE_IGNORING_PRECISION = attrs.evolve(_COMPATIBLE, ignore_fp_precision=True)
_COMPATIBLE_KIND = attrs.evolve(_COMPATIBLE_IGNORING_TYPE, ignore_dimensions=True)


def shapes_equal(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes have equal element types, sizes, dynamic flags and layouts (XLA's `ShapeUtil::Equal`).

    Layouts are compared by `layouts_equal`; a missing layout is treated as the default layout.
    """
    return _EQUAL.holds(a, b)


def equal_ignoring_element_type(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes are equal except for element types (XLA's `EqualIgnoringElementType`)."""
    return _EQUAL_IGNORING_TYPE.holds(a, b)


def compatible(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes have equal element types and sizes, whatever their layouts (XLA's `Compatible`).

    Dynamic flags are ignored, and an unbounded size matches any size.
    """
    return _COMPATIBLE.holds(a, b)


def compatible_ignoring_element_type(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes are `compatible` except for element types (XLA's `CompatibleIgnoringElementType`)."""
    return _COMPATIBLE_IGNORING_TYPE.holds(a, b)


def compatible_ignoring_fp_precision(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes are `compatible` when all floating-point types are treated as equal.

    Corresponds to XLA's `CompatibleIgnoringFpPrecision`.
    """
    return _COMPATIBLE_IGNORING_PRECISION.holds(a, b)


def compatible_kind(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes have equal tuple structures and array ranks (XLA's `CompatibleKind`)."""
    return _COMPATIBLE_KIND.holds(a, b)


def same_structure(a: Shape, b: Shape) -> bool:
    """Returns True if two shapes have equal tuple structures, whatever their leaves (XLA's `EqualStructure`)."""
    if a.is_tuple != b.is_tuple or (a.is_tuple and len(a.tuple_shapes) != len(b.tuple_shapes)):
        return False
    return all(map(same_structure, a.tuple_shapes, b.tuple_shapes)) if a.is_tuple else True
