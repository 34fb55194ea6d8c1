"""The shortcut for the dimension numbers of convolutions."""

from __future__ import annotations

from typing import Any

from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.syntax.fast_plain import exact


@exact
def dim_labels(text: str) -> ConvolutionDimensionNumbers | None:
    """`b01f_01io->b01f`, without dimensions that have no label."""
    lhs, rhs, output = text.replace("->", "_").split("_")
    if not len(lhs) == len(rhs) == len(output):
        return None
    parts: list[Any] = []
    for labels, batch, feature in ((lhs, "b", "f"), (rhs, "i", "o"), (output, "b", "f")):
        spatial = [labels.index(str(number)) for number in range(len(labels) - 2)]
        parts += [labels.index(batch), labels.index(feature), tuple(spatial)]
    return ConvolutionDimensionNumbers(*parts)
