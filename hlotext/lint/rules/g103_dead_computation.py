"""G103: a computation that is never called."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis.formatting import pluralize
from hlotext.lint.rule import Context, Report, Rule


class DeadComputation(Rule):
    code = "G103"
    name = "dead-computation"
    title = "a computation that is never called"
    fix = "dce"
    is_default = False

    def check_module(self, context: Context) -> Iterator[Report]:
        graph = context.graph
        for computation in context.module.computations:
            if (
                not graph.callers.get(computation)
                and computation is not context.module.entry
                and len(computation)
            ):  # every computation is called
                yield Report(
                    computation.root,
                    f"computation {computation.name} ({pluralize(len(computation), 'instruction')}) is never called",
                    "remove it",
                )
