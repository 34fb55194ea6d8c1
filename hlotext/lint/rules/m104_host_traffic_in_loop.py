"""M104: moves between host and device memory in every round of a loop."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import arrays_of, byte_text, memory_space
from hlotext.ir.instruction import Instruction
from hlotext.lint.helpers import size_of, times
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class HostTrafficInLoop(Rule):
    code = "M104"
    name = "host-traffic-in-loop"
    title = "moves between host and device memory in every round of a loop"
    opcodes = frozenset(
        {"copy", "copy-start", "dynamic-slice", "dynamic-update-slice", "fusion", "async-start"}
    )

    min_bytes: int = 1 << 20
    """Bytes moved in all rounds, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        computation = instruction.computation
        if (
            computation is None
            or context.loops.get(computation) is None
            or not context.is_stepped(instruction)
        ):
            return
        written = [array for _, array in arrays_of(instruction.shape)]
        spaces = {
            memory_space(array) for operand in instruction.operands for _, array in arrays_of(operand.shape)
        }
        to_host = any(memory_space(array) == _HOST for array in written) and any(
            space != _HOST for space in spaces
        )
        from_host = _HOST in spaces and any(memory_space(array) != _HOST for array in written)
        if not (to_host or from_host):
            return
        moved, runs = _moved_bytes(instruction, to_host), context.runs(instruction)
        if moved * runs >= self.min_bytes:
            way = "to" if to_host and not from_host else "from"
            if instruction.opcode == "copy-start" and instruction.operands:
                way = (
                    "from"
                    if _HOST in {memory_space(a) for _, a in arrays_of(instruction.operands[0].shape)}
                    else "to"
                )
            yield Report(
                instruction,
                f"{instruction.opcode} moves {byte_text(moved)} {way} host memory{times(runs)} in a loop",
                "move larger blocks outside the loop, or offload less",
                moved * runs,
            )


_HOST = 5


def _moved_bytes(instruction: Instruction, to_host: bool) -> int:
    """What goes over the bus: of an update in place only the update."""
    if instruction.opcode == "dynamic-update-slice":
        return size_of(instruction.operands[1].shape)
    if instruction.opcode == "copy-start":
        return size_of(instruction.operands[0].shape)
    on_host = [array for _, array in arrays_of(instruction.shape) if memory_space(array) == _HOST]
    if not to_host or not on_host:
        return sum(
            size_of(array) for _, array in arrays_of(instruction.shape) if memory_space(array) != _HOST
        )
    sources = [size_of(operand.shape) for operand in instruction.operands]
    return min([*sources, *map(size_of, on_host)])
