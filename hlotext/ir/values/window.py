"""Windows that slide over an array, and paddings and slices: one entry for each dimension."""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class WindowDimension(Value):
    """A dimension of a window (`WindowDimension`). Sizes and distances are in elements."""

    size: int
    stride: int = 1
    padding_low: int = 0
    """Elements added before; a negative number removes elements."""
    padding_high: int = 0
    """Elements added after; a negative number removes elements."""
    window_dilation: int = 1
    """Distance between neighbouring window elements, `rhs_dilate` in the text."""
    base_dilation: int = 1
    """Distance between neighbouring input elements, `lhs_dilate` in the text."""
    window_reversal: bool = False
    """True where the window runs backwards, `rhs_reversal=1` in the text."""


@attrs.frozen(repr=False)
class Window(Value):
    """A window over all dimensions (`Window`): `{size=3x3 stride=2x1 pad=1_1x0_0}`.

    Each part after `size` is printed for every dimension if it differs from the default in any, and otherwise omitted.
    """

    dimensions: tuple[WindowDimension, ...] = ()

    def __str__(self) -> str:
        dims = self.dimensions
        if not dims:
            return "{}"
        parts = [f"size={_by_x(d.size for d in dims)}"]
        if any(d.stride != 1 for d in dims):
            parts.append(f"stride={_by_x(d.stride for d in dims)}")
        if any(d.padding_low or d.padding_high for d in dims):
            parts.append(f"pad={_by_x(f'{d.padding_low}_{d.padding_high}' for d in dims)}")
        if any(d.base_dilation != 1 for d in dims):
            parts.append(f"lhs_dilate={_by_x(d.base_dilation for d in dims)}")
        if any(d.window_dilation != 1 for d in dims):
            parts.append(f"rhs_dilate={_by_x(d.window_dilation for d in dims)}")
        if any(d.window_reversal for d in dims):
            parts.append(f"rhs_reversal={_by_x(int(d.window_reversal) for d in dims)}")
        return f"{{{' '.join(parts)}}}"


@attrs.frozen(repr=False)
class PaddingConfigDimension(Value):
    """Padding of a dimension (`PaddingConfigDimension`), in elements. Edge padding may be negative."""

    edge_padding_low: int
    edge_padding_high: int
    interior_padding: int = 0
    """Elements put between every two neighbours."""


@attrs.frozen(repr=False)
class PaddingConfig(Value):
    """`padding=` (`PaddingConfig`): `1_2x0_1`, or with interior padding `1_2_1x0_1_0`; empty for a scalar."""

    dimensions: tuple[PaddingConfigDimension, ...] = ()

    @property
    def has_interior_padding(self) -> bool:
        """True if any dimension has interior padding."""
        return any(d.interior_padding for d in self.dimensions)

    def __str__(self) -> str:
        if self.has_interior_padding:
            return _by_x(
                f"{d.edge_padding_low}_{d.edge_padding_high}_{d.interior_padding}" for d in self.dimensions
            )
        return _by_x(f"{d.edge_padding_low}_{d.edge_padding_high}" for d in self.dimensions)


@attrs.frozen(repr=False)
class SliceDimension(Value):
    """The elements `start`, `start + stride`, ... below `limit` of a dimension."""

    start: int
    limit: int
    stride: int = 1


@attrs.frozen(repr=False)
class SliceDimensions(Value):
    """`slice=`: `{[0:5], [0:8]}`. Strides are printed for every dimension if any is not 1."""

    dimensions: tuple[SliceDimension, ...] = ()

    @property
    def starts(self) -> tuple[int, ...]:
        """Start index of each dimension."""
        return tuple(d.start for d in self.dimensions)

    @property
    def limits(self) -> tuple[int, ...]:
        """Limit of each dimension (exclusive)."""
        return tuple(d.limit for d in self.dimensions)

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each dimension, in elements."""
        return tuple(d.stride for d in self.dimensions)

    def __str__(self) -> str:
        if all(d.stride == 1 for d in self.dimensions):
            ranges = [f"[{d.start}:{d.limit}]" for d in self.dimensions]
        else:
            ranges = [f"[{d.start}:{d.limit}:{d.stride}]" for d in self.dimensions]
        return f"{{{', '.join(ranges)}}}"


def _by_x(values: object) -> str:
    return "x".join(map(str, values))  # type: ignore[call-overload]
