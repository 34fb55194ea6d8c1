"""M102: a donated argument that fits no result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import attrs

from hlotext.analysis import Backend, byte_text
from hlotext.findings.errors import Severity
from hlotext.ir.values.shape import Shape
from hlotext.lint.held import least_held
from hlotext.lint.helpers import donors, size_of, unaliased_results
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class DonationWithoutUse(Rule):
    code = "M102"
    name = "donation-without-use"
    title = "a donated argument that matches no result"
    waste = "held"
    severity = Severity.NOTE
    needs_schedule = True

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes of the argument from which on it is worth a finding."""
    min_total: ClassVar[int] = 4 << 20
    """Bytes of all such arguments on a GPU or TPU, likewise."""
    min_percent: ClassVar[float] = 5
    """Percent of the arguments and results that all such arguments are, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        free = unaliased_results(context)
        sizes = {size_of(result) for result in free}
        shapes = {result.without_layout() for result in free}  # of these M101 says more
        useless = [
            (parameter, array)
            for parameter, array in donors(context)
            if size_of(array) not in sizes and array.without_layout() not in shapes
            if any(_may_replace(result, array) for result in free)
        ]
        total = sum(size_of(array) for _, array in useless)
        is_device = context.backend in (Backend.GPU, Backend.TPU)
        if (is_device and total < self.min_total) or 100 * total < self.min_percent * least_held(
            context
        ):  # the donated arguments that no result can reuse are too small
            return
        for parameter, array in sorted(useless, key=lambda one: -size_of(one[1])):
            size = size_of(array)
            if size >= self.min_bytes:
                yield Report(
                    parameter,
                    f"no result can take the {byte_text(size)} of the donated argument {array.without_layout()}",
                    "give it the type and the sharding of the result that replaces it, or do not donate it",
                    0,
                    cause="no result",
                )


def _may_replace(result: Shape, array: Shape) -> bool:
    """True if a result may be what an array has become: of its sizes, but for one that may be split over the devices.

    What nothing replaces is donated to be given up, as gradients are.
    """
    pairs = list(zip(result.dimensions, array.dimensions, strict=False))
    others = [(one, other) for one, other in pairs if one != other]
    return result.rank == array.rank and (
        not others or (len(others) == 1 and min(others[0]) > 0 and max(others[0]) % min(others[0]) == 0)
    )
