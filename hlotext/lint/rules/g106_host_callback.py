"""G106: a call of the host in the middle of the program."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_callback, is_in_branch, passed_bytes, times
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class HostCallback(Rule):
    code = "G106"
    name = "host-callback"
    title = "a call of the host in the middle of the program"

    def check_module(self, context: Context) -> Iterator[Report]:
        by_opcode = context.census.by_opcode
        calls = [i for i in by_opcode.get("custom-call", ()) if is_callback(i)]
        sends, receives = (
            [i for i in by_opcode.get(opcode, ()) if _is_to_host(i)] for opcode in ("send", "recv")
        )
        # A callback on TPU sends its arguments and receives its results: one finding.
        sending = {i.computation for i in sends}
        receives = [i for i in receives if i.computation not in sending]
        for instruction in (
            *calls,
            *sends,
            *receives,
            *by_opcode.get("infeed", ()),
            *by_opcode.get("outfeed", ()),
        ):
            if instruction.computation is None or instruction.computation not in context.graph.runs:
                continue
            # Of a branch nobody knows whether it is taken: errors are reported so, which do not happen.
            if is_in_branch(instruction):
                continue
            yield self._report(instruction, context)

    def _report(self, instruction: Instruction, context: Context) -> Report:
        opcode, runs = instruction.opcode, context.runs(instruction)
        if opcode == "custom-call":
            what = f'a Python callback ("{instruction.attributes.get("custom_call_target")}") runs'
        elif opcode in ("send", "recv"):
            what = (
                "an exchange with the host is waited for"
                if opcode == "send"
                else "data from the host is waited for"
            )
        else:
            what = f"{opcode} waits for the host"
        in_loop = context.loop_around(instruction.computation) is not None
        often = times(runs) or (" in every round of a loop" if in_loop else " in the middle of the program")
        help = "take it out of code that must be fast"
        if in_loop:
            help = "take it out of the loop, or collect its arguments and call once"
        return Report(
            instruction,
            f"{what}{often}" + (" in a loop" if in_loop and runs > 1 else ""),
            help,
            passed_bytes(instruction, context),
            severity=Severity.WARNING if in_loop else Severity.NOTE,
        )


def _is_to_host(instruction: Instruction) -> bool:
    """Whether the other side is the host's program: traffic between slices goes through the host too, and is a collective."""
    handler = instruction.frontend_attributes.get("_xla_host_transfer_handler_name", "")
    return instruction.attributes.get("is_host_transfer") is True and "megascale" not in handler
