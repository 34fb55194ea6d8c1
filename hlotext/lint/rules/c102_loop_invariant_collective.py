"""C102: a collective in a loop whose operands do not change."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.lint.helpers import is_invariant
from hlotext.lint.repairs import Hoist
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, is_counted


class LoopInvariantCollective(Rule):
    code = "C102"
    name = "loop-invariant-collective"
    title = "a collective in a loop whose operands do not change"
    needs_communication = True
    waste = "again"
    yields_to = frozenset({"C108"})

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if not is_invariant(one) or all(is_counted(Value(operand)) for operand in one.start.operands):
                continue
            runs = context.runs(one.start)
            total = one.sent_bytes * runs
            if runs == 1 and one.runs == 1:  # its loop runs once
                continue
            if total:
                needless = 1 - 1 / max(1, context.prices.trips(one.loop)) if one.loop is not None else 1.0
                size = byte_text(max(one.operand_bytes, one.result_bytes))
                yield Report(
                    one.start,
                    f"{one.kind} of {size} has the same operands in every iteration of the loop",
                    "run it once before the loop and pass the result in",
                    round(total * needless),
                    seconds=context.prices.seconds(one.start) * needless if one.loop is not None else None,
                    repair=Hoist(one.loop, frozenset(one.start.async_chain or (one.start,)))
                    if one.loop is not None and one.fusion is None
                    else None,
                )
