"""G106: a host callback inside the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Backend, written_bytes
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import FLOW, add_outwards, is_callback, is_in_branch, passed_bytes, times, works
from hlotext.lint.rule import Context, Report, Rule


class HostCallback(Rule):
    code = "G106"
    name = "host-callback"
    title = "a host callback inside the program"
    needs_any = traits.HOST_EFFECTS | {"custom-call"}
    waste = "host"

    min_bytes: ClassVar[int] = 4096
    """Bytes that pass in one call, from which on it is worth a finding whatever is computed between two calls."""
    min_percent: ClassVar[float] = 1
    """Percent of the time between two calls that a call of few bytes takes, from which on it is worth one (estimated)."""

    def check_module(self, context: Context) -> Iterator[Report]:
        by_opcode = context.census.by_opcode
        calls = [i for i in by_opcode.get("custom-call", ()) if is_callback(i)]
        sends, receives = (
            [i for i in by_opcode.get(opcode, ()) if _is_to_host(i)] for opcode in ("send", "recv")
        )
        # A callback on TPU sends its arguments and receives its results: one finding.
        sending = {i.computation for i in sends}
        receives = [i for i in receives if i.computation not in sending]
        seconds: tuple[float, dict[Instruction, float]] | None = None
        for instruction in (
            *calls,
            *sends,
            *receives,
            *by_opcode.get("infeed", ()),
            *by_opcode.get("outfeed", ()),
        ):
            if (
                instruction.computation is None or instruction.computation not in context.graph.runs
            ):  # it is never executed
                continue
            # Of a branch nobody knows whether it is taken: errors are reported so, which do not happen.
            if is_in_branch(instruction):  # it is in a branch of a conditional
                continue
            runs = context.runs(instruction)
            if passed_bytes(instruction, context) < self.min_bytes * runs:
                seconds = seconds or _seconds_between(context)
                whole, rounds = seconds
                loop = context.loop_around(instruction.computation)
                between = whole if loop is None else rounds.get(loop, 0.0)
                percent = 100 * _CALL * max(1, runs) / between if between else 100.0
                if percent < self.min_percent:  # a call takes too small a share of the time between two calls
                    continue
            yield self._report(instruction, context)

    def _report(self, instruction: Instruction, context: Context) -> Report:
        opcode, runs = instruction.opcode, context.runs(instruction)
        if opcode == "custom-call":
            what = f'a Python callback ("{instruction.attributes.get("custom_call_target")}") runs'
        elif opcode in ("send", "recv"):
            what = (
                "the program stops to exchange data with the host"
                if opcode == "send"
                else "the program stops to wait for data from the host"
            )
        else:
            what = f"{opcode} waits for the host"
        in_loop = context.loop_around(instruction.computation) is not None
        once = " inside the program" if opcode == "custom-call" else ""
        often = times(runs) or (" in every iteration of a loop" if in_loop else once)
        help = "keep it out of performance-critical code"
        if in_loop:
            help = "move it out of the loop, or collect its arguments and call it once"
        return Report(
            instruction,
            f"{what}{often}" + (" in a loop" if in_loop and runs > 1 else ""),
            help,
            severity=Severity.WARNING if in_loop else Severity.NOTE,
        )


def _is_to_host(instruction: Instruction) -> bool:
    """True if the other side is the host's program: traffic between slices goes through the host too, and is a collective."""
    handler = instruction.frontend_attributes.get("_xla_host_transfer_handler_name", "")
    return instruction.attributes.get("is_host_transfer") is True and "megascale" not in handler


_CALL = 100e-6
"""Seconds of a call: the interpreter's lock, and arrays made for Python. Inferred."""
_SPEED = {
    Backend.CPU: (1e-6, 2e10, 1e11),
    Backend.GPU: (3e-6, 3e12, 4e14),
    Backend.TPU: (1e-6, 8e11, 2e14),
}
"""Seconds to start an operation, bytes and operations a second: of fast devices, so that times are short. Inferred."""


def _seconds_between(context: Context) -> tuple[float, dict[Instruction, float]]:
    """The least time that a run of the module takes, and a round of each of its loops."""
    start, bytes_, flops = _SPEED[context.backend or Backend.GPU]
    inside: dict[Computation, float] = {}
    for instruction in context.graph.sequential_instructions():
        where = instruction.computation
        if where is not None and works(instruction):
            moved = 0 if instruction.opcode in FLOW else written_bytes(instruction)
            seconds = context.runs(instruction) * (start + moved / bytes_)
            inside[where] = inside.get(where, 0.0) + seconds
    products = [one for opcode in ("dot", "convolution") for one in context.census.by_opcode.get(opcode, ())]
    for one in products:
        if one.computation is not None:
            inside[one.computation] = inside.get(one.computation, 0.0) + context.flops(one) / flops
    rounds: dict[Instruction, float] = {}
    add_outwards(rounds, inside, context.loop_around)
    return sum(inside.values()), rounds
