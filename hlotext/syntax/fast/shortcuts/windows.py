"""Shortcuts for windows, padding, slices and the dimension numbers of convolutions, in the form in which XLA writes them."""

from __future__ import annotations

import re
from typing import Any

from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
    Window,
    WindowDimension,
)
from hlotext.syntax.fast.shortcuts.plain import exact
from hlotext.syntax.language.words import integer

_SLICE = re.compile(r"\[([0-9]{1,18}):([0-9]{1,18})(?::([0-9]{1,18}))?\]")
_PADDING = re.compile(
    r"-?[0-9]{1,9}_-?[0-9]{1,9}(?:_[0-9]{1,9})?(?:x-?[0-9]{1,9}_-?[0-9]{1,9}(?:_[0-9]{1,9})?)*"
)


def slice_dimensions(text: str) -> SliceDimensions | None:
    """Parses `{[0:5], [0:8:2]}`; None if the grammar must."""
    found = _SLICE.findall(text)
    if text != f"{{{', '.join(f'[{a}:{b}:{c}]' if c else f'[{a}:{b}]' for a, b, c in found)}}}":
        return None
    return SliceDimensions(tuple(SliceDimension(int(a), int(b), int(c or 1)) for a, b, c in found))


def padding(text: str) -> PaddingConfig | None:
    """Parses `1_2x0_1_0`; None if the grammar must."""
    if not _PADDING.fullmatch(text):
        return None
    parts = [tuple(map(int, part.split("_"))) for part in text.split("x")]
    return PaddingConfig(tuple(PaddingConfigDimension(*part) for part in parts))


@exact
def window(text: str) -> Window | None:
    """Parses `{size=3x3 stride=2x1 pad=1_1x0_0}`; None if the grammar must."""
    fields = dict(field.split("=") for field in text[1:-1].split(" "))
    sizes = _by_x(fields["size"])
    ones = (1,) * len(sizes)
    pads = [_ends(pad) for pad in fields["pad"].split("x")] if "pad" in fields else [(0, 0)] * len(sizes)
    strides, windows, bases = (
        _by_x(fields[name]) if name in fields else ones for name in ("stride", "rhs_dilate", "lhs_dilate")
    )
    reversals = _by_x(fields["rhs_reversal"]) if "rhs_reversal" in fields else (0,) * len(sizes)
    rows = zip(sizes, strides, pads, windows, bases, reversals, strict=True)
    return Window(
        tuple(
            WindowDimension(size, stride, low, high, window, base, bool(reversal))
            for size, stride, (low, high), window, base, reversal in rows
        )
    )


def _by_x(text: str) -> tuple[int, ...]:
    numbers = tuple(map(integer, text.split("x")))
    if len(numbers) > 1 and min(numbers) < 0:
        raise ValueError("only a single number may be negative")
    return numbers


def _ends(text: str) -> tuple[int, int]:
    low, high = text.split("_")
    return integer(low), integer(high)


@exact
def dim_labels(text: str) -> ConvolutionDimensionNumbers | None:
    """Parses `b01f_01io->b01f`; None if a dimension has no label, or the grammar must parse it."""
    lhs, rhs, output = text.replace("->", "_").split("_")
    if not len(lhs) == len(rhs) == len(output):
        return None
    parts: list[Any] = []
    for labels, batch, feature in ((lhs, "b", "f"), (rhs, "i", "o"), (output, "b", "f")):
        spatial = [labels.index(str(number)) for number in range(len(labels) - 2)]
        parts += [labels.index(batch), labels.index(feature), tuple(spatial)]
    return ConvolutionDimensionNumbers(*parts)
