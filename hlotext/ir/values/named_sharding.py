"""Shardings that name the axes of a mesh."""

from __future__ import annotations

import math

import attrs

from hlotext.ir.values.mesh import AxisRef, Mesh
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.sharding import Sharding
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class DimensionSharding(Value):
    """The axes along which one dimension is cut, the most major first (`DimensionSharding`)."""

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    """False where the compiler may add axes, printed `?`."""

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes]
        if not self.is_closed:
            parts.append("?")
        return f"{{{', '.join(parts)}}}"


@attrs.frozen(repr=False)
class NamedSharding(Sharding):
    """A sharding by mesh axes: `{mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}], replicated={'b':(2)2}}`.

    With no dimensions it is one word for the whole value: `{mesh['a'=2], replicated}`.
    """

    mesh: Mesh
    dim_shardings: tuple[DimensionSharding, ...] = ()
    """One for each dimension of the array; empty for the short forms."""
    replicated_axes: tuple[AxisRef, ...] = ()
    """Axes that the compiler may not use to cut a dimension."""
    unreduced_axes: tuple[AxisRef, ...] = ()
    """Axes along which each device holds a part of a result that is not yet reduced."""
    manual_axes: tuple[AxisRef, ...] = ()
    """Axes for which the program itself says what each device holds."""
    metadata: tuple[Metadata, ...] = ()
    unreduced_kind: str = ""
    """`max` or `min` where `unreduced_axes` are not summed; empty for a sum."""

    @property
    def is_replicated(self) -> bool:
        return not (
            self.is_maximal
            or any(dimension.axes for dimension in self.dim_shardings)
            or self.unreduced_axes
            or self.manual_axes
        )

    @property
    def is_maximal(self) -> bool:
        return self.mesh.is_maximal

    @property
    def is_manual(self) -> bool:
        return self._covers_mesh(self.manual_axes)

    @property
    def is_unreduced(self) -> bool:
        return self._covers_mesh(self.unreduced_axes)

    def _covers_mesh(self, axes: tuple[AxisRef, ...]) -> bool:
        """Whether these are all axes of the mesh in order; those of size 1 may be missing."""
        wanted = [axis.name for axis in self.mesh.axes if axis.size != 1 or AxisRef(axis.name) in axes]
        return bool(axes) and [AxisRef(name) for name in wanted] == list(axes)

    @property
    def tile_dimensions(self) -> tuple[int, ...]:
        """Number of tiles along each dimension of the array; empty for the short forms."""
        return tuple(math.prod(self.mesh.axis_size(axis) for axis in d.axes) for d in self.dim_shardings)

    @property
    def num_tiles(self) -> int:
        """Into how many different tiles the array is cut."""
        return math.prod(self.tile_dimensions)

    def all_axes(self) -> tuple[AxisRef, ...]:
        """Every axis that is named, in the order of the text."""
        cut = tuple(axis for dimension in self.dim_shardings for axis in dimension.axes)
        return cut + self.replicated_axes + self.unreduced_axes + self.manual_axes

    def without_metadata(self) -> NamedSharding:
        return attrs.evolve(self, metadata=())

    def canonical(self) -> NamedSharding:
        """With the mesh's canonical form."""
        return attrs.evolve(self, mesh=self.mesh.canonical())

    def __str__(self) -> str:
        parts = [str(self.mesh), *self._shardings_text()]
        if self.metadata:
            parts.append(f"metadata={{{', '.join(map(str, self.metadata))}}}")
        return f"{{{', '.join(parts)}}}"

    def _shardings_text(self) -> list[str]:
        """What stands between mesh and metadata, one text for each part."""
        if self.is_maximal:
            return []
        if not self.dim_shardings:
            if not (self.replicated_axes or self.unreduced_axes or self.manual_axes):
                return ["replicated"]
            if self.is_unreduced:
                return [self._unreduced_text()]
            if self.is_manual:
                return ["manual"]
        parts = [f"[{', '.join(map(str, self.dim_shardings))}]"]
        for name, axes in (
            ("replicated=", self.replicated_axes),
            (f"unreduced={self.unreduced_kind}", self.unreduced_axes),
            ("manual=", self.manual_axes),
        ):
            if axes:
                parts.append(f"{name}{{{', '.join(map(str, axes))}}}")
        return parts

    def _unreduced_text(self) -> str:
        if not self.unreduced_kind:
            return "unreduced"
        is_partial = len(self.unreduced_axes) < len(self.mesh.axes)
        axes = f"{{{', '.join(map(str, self.unreduced_axes))}}}" if is_partial else ""
        return f"unreduced={self.unreduced_kind}{axes}"
