"""A shape taken apart once: its subshapes in pre-order, so that values of nested tuples are slices of flat lists."""

from __future__ import annotations

from hlotext.ir.values.shape import Shape

ShapeIndex = tuple[int, ...]
"""Path into a tuple shape; `()` is the whole shape."""


class Subshapes:
    """The subshapes of a shape in pre-order, as visited by `ShapeUtil::ForEachSubshape`."""

    __slots__ = ("children", "indices", "place", "shapes")

    def __init__(self, shape: Shape) -> None:
        pairs = list(shape.subshapes())
        self.indices: tuple[ShapeIndex, ...] = tuple(index for index, _ in pairs)
        """The shape index of each part."""
        self.shapes: tuple[Shape, ...] = tuple(part for _, part in pairs)
        self.place: dict[ShapeIndex, int] = {index: number for number, index in enumerate(self.indices)}
        """The number of each shape index."""
        starts = [number for number, index in enumerate(self.indices) if len(index) == 1]
        ends = [*starts[1:], len(pairs)]
        self.children: tuple[tuple[int, int], ...] = tuple(zip(starts, ends, strict=True)) if starts else ()
        """Where the parts of each direct element begin and end."""


class SubshapeCache:
    """Cache of the subshapes of a module's shapes."""

    __slots__ = ("_by_shape", "_known")

    def __init__(self) -> None:
        self._by_shape: dict[Shape, Subshapes] = {}
        # Equal shapes are nearly always one object, which is found sooner by its number; it is kept, so that no other has it.
        self._known: dict[int, tuple[Subshapes, Shape]] = {}

    def of(self, shape: Shape) -> Subshapes:
        known = self._known.get(id(shape))
        if known is not None:
            return known[0]
        parts = self._by_shape.get(shape)
        if parts is None:
            parts = self._by_shape[shape] = Subshapes(shape)
        self._known[id(shape)] = parts, shape
        return parts
