"""D105: a matrix product in several passes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import flops_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class HighestPrecision(Rule):
    code = "D105"
    name = "highest-precision"
    title = "a matrix product in several passes"
    is_default = False
    opcodes = frozenset({"dot", "convolution"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        stated = instruction.attributes.get("operand_precision", ())
        # A word that this release does not know is kept as text.
        precision = [str(p) for p in stated] if isinstance(stated, tuple) else [str(stated)]
        if any(p in ("high", "highest") for p in precision):
            yield Report(
                instruction,
                f"{instruction.opcode} at precision {', '.join(precision)} takes several passes on TPU",
                "use the default precision where the values allow it",
                flops=flops_of(instruction, context),
            )
