"""C102: a collective in a loop whose operands do not change."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import is_invariant
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, entered


@attrs.frozen
class LoopInvariantCollective(Rule):
    code = "C102"
    name = "loop-invariant-collective"
    title = "a collective in a loop whose operands do not change"
    waste = "again"
    yields_to = frozenset({"C108"})

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if not is_invariant(one) or all(map(_is_counted, one.start.operands)):
                continue
            runs = context.runs(one.start)
            total = one.sent_bytes * runs
            if runs == 1 and one.runs == 1:
                continue
            if total:
                size = byte_text(max(one.operand_bytes, one.result_bytes))
                yield Report(
                    one.start,
                    f"{one.kind} of {size} has the same operands in every round of the loop",
                    "compute it once before the loop and pass the result in",
                    total - one.sent_bytes,
                    seconds=context.prices.seconds(one.start)
                    * (1 - 1 / max(1, context.prices.trips(one.loop)))
                    if one.loop is not None
                    else None,
                )


_LEAVES = frozenset({"constant", "iota", "partition-id", "replica-id"})
_MOST = 50
"""Operations that are looked at."""


def _is_counted(value: Instruction) -> bool:
    """True if a value is made of nothing but places, as XLA numbers what it sorts: no program could hoist it."""
    pending, left = [Value(value)], _MOST
    while pending and left:
        left -= 1
        one = entered(pending.pop())
        if one.instruction.opcode in _LEAVES:
            continue
        if one.instruction.opcode not in ELEMENTWISE | VIEWS | {"broadcast", "transpose"}:
            return False
        pending += one.operands()
    return not pending
