"""C102: a collective in a loop whose operands do not change."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, invariant_instructions
from hlotext.ir.instruction import Instruction
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class LoopInvariantCollective(Rule):
    code = "C102"
    name = "loop-invariant-collective"
    title = "a collective in a loop whose operands do not change"

    min_bytes: int = 0
    """Bytes that each device sends in all rounds, from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        fixed: dict[Instruction, frozenset[Instruction]] = {}
        for one in context.communications:
            loop = one.loop
            if (
                loop is None
                or one.kind not in COLLECTIVE_KINDS
                or one.computation is not loop.attributes.get("body")
            ):
                continue
            if loop not in fixed:
                fixed[loop] = invariant_instructions(loop)
            if not one.start.operands or not all(operand in fixed[loop] for operand in one.start.operands):
                continue
            runs = context.runs(one.start)
            total = one.wire_bytes * runs
            if total > self.min_bytes and not (runs == 1 and one.runs == 1):
                yield Report(
                    one.start,
                    f"{one.kind} of {byte_text(one.operand_bytes)} has the same operands in every round of the loop",
                    "compute it once before the loop and pass the result in",
                    total - one.wire_bytes,
                )
