"""M104: host transfers in every iteration of a loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import arrays_of, byte_text, memory_space
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import size_of, times
from hlotext.lint.rule import Context, Report, Rule


class HostTrafficInLoop(Rule):
    code = "M104"
    name = "host-traffic-in-loop"
    title = "host transfers in every iteration of a loop"
    waste = "waited"
    opcodes = frozenset(
        {"copy", "copy-start", "dynamic-slice", "dynamic-update-slice", "fusion", "async-start"}
    )

    min_bytes: ClassVar[int] = 1 << 20
    """Bytes moved in all rounds, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        if (
            not context.is_stepped(instruction) or context.loop_around(instruction.computation) is None
        ):  # it is not in a loop
            return
        moved, way = _moved(instruction)
        runs = context.runs(instruction)
        if moved * runs >= self.min_bytes:  # too few bytes move between host and device
            yield Report(
                instruction,
                f"{byte_text(moved)} is moved {way} host memory{times(runs)} in a loop",
                "move larger blocks, outside the loop, or offload less",
                moved * runs,
            )


_HOST = 5


def _moved(instruction: Instruction) -> tuple[int, str]:
    """Bytes that go over the bus, and which way: of an update in place only the update, of a slice only the slice."""
    inner = instruction.async_wrapped_instruction or instruction
    result = inner.shape
    if inner.opcode == "copy-start" and result is not None and result.tuple_shapes:
        result = result.tuple_shapes[0]  # the others are the operand and a context
    # Scalars are places in an array.
    taken = [a for operand in inner.operands for _, a in arrays_of(operand.shape) if a.rank]
    given = [array for _, array in arrays_of(result)]
    to_host = min(_bytes(given, on_host=True), _bytes(taken, on_host=False))
    from_host = min(_bytes(given, on_host=False), _bytes(taken, on_host=True))
    return (to_host, "to") if to_host > from_host else (from_host, "from")


def _bytes(arrays: list[Shape], *, on_host: bool) -> int:
    return sum(size_of(array) for array in arrays if (memory_space(array) == _HOST) is on_host)
