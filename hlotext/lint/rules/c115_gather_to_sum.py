"""Arrays that are gathered only to be summed over what was gathered."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.lint.gathered import sums_of
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule


class GatherToSum(Rule):
    code = "C115"
    name = "gather-to-sum"
    title = "an all-gather that is only summed over the gathered dimension"
    waste = "sent"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            devices = one.participants
            if (
                one.kind != "all-gather" or one.fusion is not None or not devices or devices < 2
            ):  # it is not an all-gather in the schedule
                continue
            sums = sums_of(one)
            if sums is None:  # its result is not only summed
                continue
            # A sum sends what each device has twice, but for its own part, in place of the parts of all others.
            runs = context.runs(one.start)
            saved = context.prices.seconds(one.start) * max(0.0, 1 - 2 / devices)
            yield Report(
                one.start,
                f"{byte_text(one.result_bytes)} is gathered from {devices} devices{times(runs)} only to be summed over them",
                "sum on each device and then over the devices (psum), so that the whole array is never materialized",
                one.sent_bytes * runs,
                seconds=saved + context.prices.together(sums) * (1 - 1 / devices),
                covers=frozenset([one.start]),
            )
