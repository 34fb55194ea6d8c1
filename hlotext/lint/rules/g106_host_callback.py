"""G106: a call of the host in the middle of the program."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_callback, passed_bytes, times
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class HostCallback(Rule):
    code = "G106"
    name = "host-callback"
    title = "a call of the host in the middle of the program"
    opcodes = frozenset({"custom-call", "infeed", "outfeed", "send", "recv"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        opcode, runs = instruction.opcode, context.runs(instruction)
        if opcode == "custom-call":
            if not is_callback(instruction):
                return
            what = f'a Python callback ("{instruction.attributes.get("custom_call_target")}") runs'
        elif opcode in ("send", "recv"):
            if instruction.attributes.get("is_host_transfer") is not True:
                return
            what = f"{opcode} from the host waits" if opcode == "recv" else "send to the host waits"
        else:
            what = f"{opcode} waits for the host"
        yield Report(
            instruction,
            f"{what}{times(runs)} in the middle of the program",
            "take it out of code that must be fast",
            passed_bytes(instruction, context),
        )
