"""G112: get-tuple-element of a tuple in the same computation."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule


class TupleNoise(Rule):
    code = "G112"
    name = "tuple-noise"
    title = "get-tuple-element of a tuple in the same computation"
    fix = "tuple-simplifier"
    severity = Severity.NOTE
    is_default = False
    opcodes = frozenset({"get-tuple-element"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        made = instruction.operands[0] if instruction.operands else None
        index = instruction.attributes.get("index")
        if (
            made is not None
            and made.opcode == "tuple"
            and isinstance(index, int)
            and index < len(made.operands)
        ):  # its operand is not a tuple in the same computation
            yield Report(
                instruction,
                f"this get-tuple-element returns {made.operands[index].name}",
                "use that instruction directly",
            )
