"""C121: a sort along a sharded dimension."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.lint.exchanged_sorts import exchanged_sorts
from hlotext.lint.helpers import times
from hlotext.lint.rule import Context, Report, Rule


class ShardedSort(Rule):
    code = "C121"
    name = "sharded-sort"
    title = "a sort along a sharded dimension"
    waste = "sent"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for sort, path in exchanged_sorts(context):
            sent = sum(context.communication_of[one].sent_bytes for one in path.exchanges)
            runs = context.runs(sort)
            yield Report(
                sort,
                f"a sort along a sharded dimension: {pluralize(len(path.exchanges), 'all-to-all')} "
                f"{'send' if len(path.exchanges) > 1 else 'sends'} {byte_text(sent)}{times(runs)} to shard another "
                "dimension for it and this one again",
                "shard another dimension of the array from where it is produced to where the result is used, such as "
                "P(None, 'x') for a sort along dimension 0 (in its sharding, or by with_sharding_constraint): each "
                "device then "
                "sorts its part alone",
                sent * runs,
                seconds=context.prices.together(path.exchanges | path.moves),
                covers=path.exchanges | path.moves,
            )
