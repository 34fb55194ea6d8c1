"""L103: a copy that only changes the layout."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.convolution_relayout import ConvolutionRelayout
from hlotext.lint.parts.parameter_relayout import ParameterRelayout
from hlotext.lint.parts.relayout_copy import RelayoutCopy


class Relayout(MergedRule):
    code = "L103"
    name = "relayout"
    title = "a copy that only changes the layout"
    waste = "copied"
    gives_form = True
    former = ("L105",)
    needs_optimized = True
    parts = (
        ConvolutionRelayout,
        ParameterRelayout,
        RelayoutCopy,
    )
