"""M102: a donated argument that fits no result."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.findings.errors import Severity
from hlotext.lint.helpers import donors, size_of, unaliased_results
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class DonationWithoutUse(Rule):
    code = "M102"
    name = "donation-without-use"
    title = "a donated argument that fits no result"
    severity = Severity.NOTE
    needs_schedule = True

    min_bytes: int = 1 << 16
    """Bytes of the argument from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        free = unaliased_results(context)
        sizes = {size_of(result) for result in free}
        shapes = {result.without_layout() for result in free}  # of these M101 says more
        for parameter, array in donors(context):
            size = size_of(array)
            if size >= self.min_bytes and size not in sizes and array.without_layout() not in shapes:
                yield Report(
                    parameter,
                    f"no result can take the {byte_text(size)} of the donated argument {array.without_layout()}",
                    "do not donate it",
                    0,
                )
