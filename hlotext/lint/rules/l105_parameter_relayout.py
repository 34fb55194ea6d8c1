"""L105: an argument that every call first writes into another order."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text, written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import step_percent
from hlotext.lint.helpers import size_of, times
from hlotext.lint.moving import comes_from_argument, moved_array, moved_bytes
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import uses


@attrs.frozen
class ParameterRelayout(Rule):
    code = "L105"
    name = "parameter-relayout"
    title = "an argument that every call first writes in another order"
    needs_optimized = True
    opcodes = frozenset({"copy", "copy-start", "fusion", "transpose"})

    min_bytes: int = 4 << 20
    """Bytes of the argument from which on it is worth a finding."""
    min_percent: float = 1
    """Percent of the estimated time of the module that this takes, likewise."""
    min_written_percent: float = 3
    """Percent of all that the module writes that this takes, likewise where times cannot be estimated."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if not context.is_stepped(instruction):
            return
        moved = moved_array(instruction, context)
        if moved is None or not comes_from_argument(moved, context):
            return
        runs = context.runs(instruction)
        if (
            size_of(moved.shape) >= self.min_bytes
            and self._is_much(instruction, context)
            and not _is_kernel(instruction)
        ):
            yield Report(
                instruction,
                f"every call writes an argument of {byte_text(size_of(moved.shape))} in another order{times(runs)}",
                "store it in the order that the program wants: transposed, or in the layout that automatic layouts choose",
                moved_bytes(instruction, moved) * runs,
            )

    def _is_much(self, instruction: Instruction, context: Context) -> bool:
        share = step_percent(instruction, context)
        if share is not None:
            return share >= self.min_percent
        size = written_bytes(instruction) * context.runs(instruction)
        return 100 * size >= self.min_written_percent * context.written


def _is_kernel(moved: Instruction) -> bool:
    """Whether it is the kernel of a convolution: which order that wants is the choice of the library."""
    found = uses(moved, ("bitcast",))
    return any(
        len(user.operands) > 1 and user.operands[1] is value and _is_convolution(user)
        for user, value in found
    )


def _is_convolution(instruction: Instruction) -> bool:
    target = str(instruction.attributes.get("custom_call_target", ""))
    return instruction.opcode == "convolution" or target.startswith("__cudnn$conv")
