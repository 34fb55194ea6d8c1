"""D101: arithmetic in a wider type, or in more passes, than the data has."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.complex_transform import ComplexTransform
from hlotext.lint.parts.double_precision import DoublePrecision
from hlotext.lint.parts.highest_precision import HighestPrecision
from hlotext.lint.parts.threefry import Threefry
from hlotext.lint.parts.upcast_dot import UpcastDot
from hlotext.lint.parts.wide_ahead import WideAhead
from hlotext.lint.parts.wide_argument import WideArgument
from hlotext.lint.parts.wide_model import WideModel
from hlotext.lint.parts.wide_residuals import WideResiduals
from hlotext.lint.parts.wide_state import WideState
from hlotext.lint.parts.wide_weights import WideWeights


class Wide(MergedRule):
    code = "D101"
    name = "wide"
    title = "arithmetic in a wider type, or in more passes, than the data needs"
    waste = "wide"
    former = ("D103", "D105")
    parts = (
        DoublePrecision,
        WideState,
        WideAhead,
        WideArgument,
        UpcastDot,
        HighestPrecision,
        WideModel,
        WideWeights,
        WideResiduals,
        ComplexTransform,
        Threefry,
    )
