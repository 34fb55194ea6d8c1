"""Required accuracy of an instruction's result."""

from __future__ import annotations

import attrs

from hlotext.ir.values.enums import ResultAccuracyMode
from hlotext.ir.values.text import short_float
from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class Tolerance(Value):
    """Allowed deviation of a result from the exact one (`ResultAccuracy::Tolerance`)."""

    atol: float = 0.0
    """Absolute."""
    rtol: float = 0.0
    """Relative to the exact result."""
    ulps: int = 0
    """In units of the last place."""

    def __str__(self) -> str:
        return f"{{atol={short_float(self.atol)},rtol={short_float(self.rtol)},ulps={self.ulps}}}"


@attrs.frozen(repr=False)
class ResultAccuracy(Value):
    """`result_accuracy=` (`ResultAccuracy`): `{mode=highest}`, `{tolerance={atol=0.1,rtol=1e-05,ulps=2}}`."""

    mode: ResultAccuracyMode = ResultAccuracyMode.DEFAULT
    tolerance: Tolerance | None = None
    """None if the mode says it."""

    def __str__(self) -> str:
        if self.tolerance is not None:
            return f"{{tolerance={self.tolerance}}}"
        # XLA prints no attribute for the default.
        return "{}" if self.mode is ResultAccuracyMode.DEFAULT else f"{{mode={self.mode}}}"
