"""Sums over devices of what is the same on all of them."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.lint.equal import equal_operands
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule


class EqualAlready(Rule):
    code = "C114"
    name = "equal-already"
    title = "an all-reduce of values that are equal on all its devices"
    waste = "sent"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        sums = [one for one in context.communications if one.kind == "all-reduce" and one.sent_bytes]
        for one in equal_operands(sums, context):
            runs = context.runs(one.start)
            yield Report(
                one.start,
                f"{byte_text(one.operand_bytes)} of values that are already equal on all {one.participants or ''} devices "
                f"are all-reduced{times(runs)}",
                "remove the reduction: the mean of equal values is that value, and their sum is a multiple of it",
                one.sent_bytes * runs,
                seconds=context.prices.seconds(one.start),
                covers=frozenset([one.start]),
            )
