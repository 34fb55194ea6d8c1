"""The flattened schedule: one time line through the entry and everything that it enters (`HloLiveRange::FlattenSchedule`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.late_bound import is_bound, is_bound_at_start
from hlotext.memory.values import Range

ENTERED = traits.RUNS_CALLEE
"""Opcodes whose computations run on the caller's time line, each instruction writing to memory of its own."""


@attrs.frozen(eq=False)
class Schedule:
    """Flattened execution order of a module, with one time step per instruction."""

    instructions: tuple[Instruction, ...]
    """In the order of time: the number is the moment."""
    times: Mapping[Instruction, int]
    spans: Mapping[Computation, Range]
    """For each computation its first moment, and the one after its last."""
    async_bodies: Mapping[Computation, Instruction]
    """For each computation inside an asynchronous operation the async-start that runs it."""
    is_assumed: bool
    """True if the module has no schedule, so that the order of the text is used."""

    @property
    def end(self) -> int:
        """The time after the last instruction."""
        return len(self.instructions)


def callees_in_time(instruction: Instruction) -> tuple[Computation, ...]:
    """Returns the computations that an instruction runs, in execution order: a while's condition before its body."""
    callees = instruction.called_computations
    return callees[::-1] if instruction.opcode == "while" else callees


def flatten(module: Module, orders: Mapping[Computation, Sequence[Instruction]] | None = None) -> Schedule:
    """Flattens the schedule of a module. `orders` replaces the instruction order of some computations.

    Raises MemoryModelError for recursion, and for a module without an entry.
    """
    if not module.computations or not len(module.entry):
        raise MemoryModelError(
            f"module {module.name} has no entry computation, so there is nothing to assign"
        )
    times: dict[Instruction, int] = {}
    spans: dict[Computation, Range] = {}
    async_bodies: dict[Computation, Instruction] = {}
    order: list[Instruction] = []
    entry = module.entry
    others = orders or {}
    # What is being walked: computation, its instructions still to come, its first moment, the async-start around it.
    stack: list[tuple[Computation, Iterator[Instruction], int, Instruction | None]] = [
        (entry, iter(others.get(entry, entry)), 0, None)
    ]
    open_now = {entry}
    # Starts that run their body, or members that run that of a start which binds something late; and that start.
    starts: dict[Instruction, Instruction] = {}
    late: dict[Instruction, Instruction] = {}
    waiting: list[list[Computation]] = [[]]
    pending: list[Instruction | None] = [None]
    while stack:
        computation, rest, start, around = stack[-1]
        if waiting[-1]:
            callee = waiting[-1].pop()
            if callee in spans:
                continue
            if callee in open_now:
                raise MemoryModelError(f"computation {callee.name} calls itself")
            caller = pending[-1]
            inside = starts.get(caller, around) if caller is not None else around
            if inside is not None:
                async_bodies[callee] = inside
            stack.append((callee, iter(others.get(callee, callee)), len(order), inside))
            open_now.add(callee)
            waiting.append([])
            pending.append(None)
            continue
        if (ready := pending[-1]) is not None:
            times[ready] = len(order)
            order.append(ready)
            pending[-1] = None
        for instruction in rest:
            opcode = instruction.opcode
            callees: tuple[Computation, ...] = ()
            if opcode not in CALLS_NOTHING and opcode in ENTERED:
                callees = callees_in_time(instruction)
                if opcode == "async-start":
                    starts[instruction] = instruction
                    if not is_bound_at_start(instruction):
                        late[instruction], callees = instruction, ()
            elif late and instruction.operands and instruction.operands[0] in late:
                begun = late[instruction.operands[0]]
                body = begun.called_computations[0]
                if is_bound(instruction, body):
                    starts[instruction], callees = begun, (body,)
                else:
                    late[instruction] = begun
            if not callees:
                times[instruction] = len(order)
                order.append(instruction)
                continue
            pending[-1] = instruction
            waiting[-1] = list(reversed(callees))
            break
        else:
            spans[computation] = start, len(order)
            open_now.discard(computation)
            stack.pop()
            waiting.pop()
            pending.pop()
    return Schedule(tuple(order), times, spans, async_bodies, not module.is_scheduled)
