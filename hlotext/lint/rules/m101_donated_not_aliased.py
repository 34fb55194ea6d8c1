"""M101: a donated argument not aliased to any output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import byte_text
from hlotext.lint.helpers import donors, size_of, unaliased_results
from hlotext.lint.rule import Context, Report, Rule


class DonatedNotAliased(Rule):
    code = "M101"
    name = "donated-not-aliased"
    title = "a donated argument not aliased to any output"
    waste = "held"
    needs_schedule = True

    min_bytes: ClassVar[int] = 1 << 10
    """Bytes of the argument from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        free = unaliased_results(context).values()
        for parameter, array in donors(context):
            size = size_of(array)
            if size >= self.min_bytes and any(
                result.without_layout() == array.without_layout() for result in free
            ):  # no free result has its shape, or it is small
                yield Report(
                    parameter,
                    f"a donated argument of {byte_text(size)} is not aliased to the result of shape {array.without_layout()}",
                    "give the argument and the result the same sharding and layout",
                    size,
                    is_held=True,
                )
