"""G109: arrays whose sizes are known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule


class DynamicShape(Rule):
    code = "G109"
    name = "dynamic-shape"
    title = "arrays whose sizes are known only at run time"
    severity = Severity.NOTE

    def check_module(self, context: Context) -> Iterator[Report]:
        if all(shape.is_static for shape in context.census.shapes):  # every shape is static
            return
        found = [i for i in context.census.instructions if _is_dynamic(i)]
        if found:
            yield Report(
                found[0],
                (
                    "this instruction has dimensions whose size is known only at run time"
                    if len(found) == 1
                    else f"{len(found):,} instructions, this one first, have dimensions whose size is known only at run time"
                ),
                "pad to fixed sizes",
                None,
                "present",
            )


def _is_dynamic(instruction: Instruction) -> bool:
    # How large a constant is stands in its literal, whatever its shape says.
    shape = instruction.shape
    return shape is not None and not shape.is_static and instruction.opcode != "constant"
