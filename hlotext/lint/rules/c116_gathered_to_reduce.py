"""Arrays that the partitioner gathers, of which only something small is made."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.lint.gathered import reduced_gathers
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule


class GatheredToReduce(Rule):
    code = "C116"
    name = "gathered-to-reduce"
    title = "an all-gather whose result is only reduced"
    waste = "sent"
    needs_optimized = True
    yields_to = frozenset({"C115"})

    def check_module(self, context: Context) -> Iterator[Report]:
        prices = context.prices
        for found in reduced_gathers(context):
            first = max(found.gathers, key=lambda start: found.gathers[start].result_bytes)
            devices = found.devices
            waited = sum(prices.seconds(start) for start in found.gathers)
            runs = context.runs(first)
            size = sum(one.result_bytes for one in found.gathers.values())
            yield Report(
                first,
                f"{byte_text(size)} is gathered{times(runs)}, although only reductions of it, "
                f"{max(1, found.large // max(1, found.small)):,} times smaller, are used",
                "keep the array sharded along the reduced dimensions (with_sharding_constraint): the devices then exchange "
                "only the small results",
                sum(one.sent_bytes for one in found.gathers.values()) * runs,
                seconds=waited + prices.together(found.work) * (1 - 1 / devices),
                spares={**dict.fromkeys(found.work, 1.0), **dict.fromkeys(found.gathers, 1 - 1 / devices)},
                covers=frozenset(found.gathers) | found.work,
            )
