"""GPU's post-processing of a schedule: groups synchronous collectives, moves starts up and dones down.

After `PostProcessSchedule` (`xla/service/gpu/gpu_hlo_schedule.cc`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hlotext.compiler.async_collectives import is_done, is_start, is_synchronous
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits

_DONES = traits.COLLECTIVE_DONES | {"async-done"}
_STARTS = traits.COLLECTIVE_STARTS | {"async-start"}


def post_process(order: Sequence[Instruction]) -> list[Instruction]:
    """Returns the order after XLA:GPU's postprocessing of the schedule."""
    return _late(_early(_together(order)))


def _together(order: Sequence[Instruction]) -> list[Instruction]:
    """Puts each synchronous start right before its done (`PostprocessorToScheduleSyncCollectives`)."""
    synchronous = {i for i in order if (is_start(i) or i.opcode in ("recv", "send")) and is_synchronous(i)}
    found = []
    for i in order:
        if i in synchronous:
            continue
        if (
            i.operands
            and i.operands[0] in synchronous
            and (is_done(i) or i.opcode in ("recv-done", "send-done"))
        ):
            found.append(i.operands[0])
        found.append(i)
    return found if len(found) == len(order) else list(order)


def _is_early(i: Instruction) -> bool:
    """`ShouldScheduleAsEarlyAsPossible`."""
    if i.opcode in _STARTS:
        return not is_synchronous(i)
    return i.opcode == "custom-call" and str(i.attributes.get("schedule")) == "SCHEDULE_EARLIEST"


def _is_late(i: Instruction) -> bool:
    """`ShouldScheduleAsLateAsPossible`."""
    if i.opcode in _DONES:
        return bool(i.operands) and _is_early(i.operands[0])
    return i.opcode == "custom-call" and str(i.attributes.get("schedule")) == "SCHEDULE_LATEST"


def _before(i: Instruction) -> tuple[Instruction, ...]:
    return *i.operands, *i.control_predecessors


def _behind(i: Instruction) -> tuple[Instruction, ...]:
    return *i.users, *i.control_successors


def _early(order: Sequence[Instruction]) -> list[Instruction]:
    return _moved(order, _is_early, _behind, _before)


def _late(order: Sequence[Instruction]) -> list[Instruction]:
    return _moved(order[::-1], _is_late, _before, _behind)[::-1]


def _moved(
    order: Sequence[Instruction],
    is_moved: Callable[[Instruction], bool],
    following: Callable[[Instruction], Iterable[Instruction]],
    needed: Callable[[Instruction], Iterable[Instruction]],
) -> list[Instruction]:
    """Each instruction, and behind it those that may come at once."""
    found: dict[Instruction, None] = {}
    for i in order:
        if i in found:
            continue
        found[i] = None
        for other in following(i):
            if other not in found and is_moved(other) and all(n in found for n in needed(other)):
                found[other] = None
    return list(found)
