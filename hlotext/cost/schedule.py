"""A walk through a schedule: one clock for the core, a queue for each link, what waits for what."""

from __future__ import annotations

import attrs

from hlotext.analysis import Communication, DeviceMesh, Interconnect, axes_of, communications
from hlotext.analysis.census import census
from hlotext.analysis.communication import chain_of
from hlotext.analysis.wire import RULES
from hlotext.cost.counting import Counting
from hlotext.cost.op_cost import NOT_WELL_FORMED, NOTHING, CalleeCost, OpCost
from hlotext.cost.roofline import LowerBound, Roofline, is_host_copy
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

CORE, COPIES, DCN_QUEUE, HOST_QUEUE, LINKS = "core", "copies", "DCN", "host link", "device links"


@attrs.frozen
class ScheduleStep:
    """Work of the core at one position of a schedule. Times are in seconds."""

    instruction: Instruction
    begin: float
    end: float
    least: LowerBound | None
    """None for loops and calls, whose time is that of their bodies, and for collectives."""
    awaited: ScheduledTransfer | None = None
    """The transfer that it waits for."""


@attrs.frozen(eq=False)
class ScheduledTransfer:
    """A transfer on a link or a copy engine that overlaps with the core. Times are in seconds."""

    start: Instruction
    done: Instruction | None
    """None if nothing in the same computation waits for it."""
    communication: Communication | None
    """None for copies and computations on other threads."""
    queues: tuple[str, ...]
    seconds: float
    is_known: bool
    """False where the bytes or the rate are not known: it then takes no time."""
    begin: float
    end: float
    place: int
    """The number of the step at which it started."""
    before: ScheduledTransfer | None
    """The transfer that kept its queue busy when it was begun."""

    @property
    def is_pair(self) -> bool:
        """True if an operation in the same computation waits for the transfer."""
        return self.done is not None


@attrs.frozen
class Walk:
    """Timeline of one execution of a computation, from time 0, in seconds."""

    seconds: float
    steps: tuple[ScheduleStep, ...]
    transfers: tuple[ScheduledTransfer, ...]
    exposed: dict[ScheduledTransfer, float]
    """For how long the core waits for each."""

    def critical(self) -> list[tuple[Instruction, float, str]]:
        """Returns the critical path, last step first, as (instruction, seconds, resource). The seconds add up to the
        run.
        """
        found: list[tuple[Instruction, float, str]] = []
        place, time = len(self.steps) - 1, self.seconds
        while place >= 0:
            step = self.steps[place]
            transfer = step.awaited
            if transfer is None or self.exposed.get(transfer, 0.0) <= 0 or not transfer.is_pair:
                if step.end > step.begin:
                    queue = transfer.queues[0] if transfer is not None else CORE
                    found.append((step.instruction, step.end - step.begin, queue))
                time = step.begin
                place -= 1
                continue
            while True:
                found.append((transfer.start, time - transfer.begin, transfer.queues[0]))
                time = transfer.begin
                place = transfer.place - 1
                if transfer.before is None or transfer.before.end < transfer.begin:
                    break
                transfer = transfer.before
        return found


_TRANSFERS = frozenset({"async-start", "copy-start"})
"""Opcodes that begin a transfer which is no communication."""


def _is_plain(transfer: ScheduledTransfer) -> bool:
    """True if a start says that it runs as if it were none."""
    return transfer.communication is not None and not transfer.communication.is_async


class Scheduler:
    """Simulates the schedules of a module's computations, callees first."""

    def __init__(
        self, module: Module, counting: Counting, roofline: Roofline, mesh: DeviceMesh | None
    ) -> None:
        self._counting, self._roofline, self._mesh = counting, roofline, mesh
        self._module = module
        self._begun: dict[Instruction, list[Communication]] = {}
        self._chains: dict[tuple[str, str], Instruction] = {}
        self._find_communication()
        self.walks: dict[Computation, Walk] = {}
        stepped = counting.graph.stepped
        bodies = [c for c in counting.callees_first if c in stepped or self._is_async_body(c)]
        for computation in bodies:
            self.walks[computation] = self._walk(computation)

    def _is_async_body(self, computation: Computation) -> bool:
        call = self._counting.graph.call(computation)
        return call is not None and call.opcode == "async-start"

    def _find_communication(self) -> None:
        for one in communications(self._module):
            fusion = one.fusion
            self._begun.setdefault(fusion if fusion is not None else one.start, []).append(one)
        for call in census(self._module).by_opcode.get("custom-call", ()):
            if call.attributes.get("custom_call_target") != "AsyncCollectiveDone":
                continue
            chain = next((found for o in call.operands if (found := chain_of(o)) is not None), None)
            caller = self._counting.graph.caller(call.computation)
            if chain is not None and caller is not None:
                self._chains[chain] = caller

    def _walk(self, computation: Computation) -> Walk:
        clock = 0.0
        free: dict[str, tuple[float, ScheduledTransfer | None]] = {}
        steps: list[ScheduleStep] = []
        waiting: dict[Instruction, ScheduledTransfer] = {}
        transfers: list[ScheduledTransfer] = []
        exposed: dict[ScheduledTransfer, float] = {}
        works = self._counting.works[computation]
        has_launches = self._roofline.chip.rates.launch is not None
        for place, (instruction, work) in enumerate(zip(computation.instructions, works, strict=True)):
            begin = clock
            ended = waiting.pop(instruction, None)
            if ended is not None:
                clock = max(clock, ended.end)
                exposed[ended] = clock - begin
            opcode = instruction._head.opcode
            transfer = (
                self._transfer(instruction, clock, len(steps), free)
                if opcode in _TRANSFERS or instruction in self._begun
                else None
            )
            if transfer is not None:
                transfers.append(transfer)
                for queue in transfer.queues:
                    free[queue] = transfer.end, transfer
                if transfer.done is not None:
                    waiting[transfer.done] = transfer
                elif ROLES.get(opcode) != "start" or _is_plain(transfer):
                    exposed[transfer] = transfer.end - clock
                    clock = transfer.end
                if clock > begin and ended is None:
                    steps.append(ScheduleStep(instruction, begin, clock, None, transfer))
                    begin = clock
                if opcode != "fusion":
                    continue
            if ended is not None and opcode != "fusion":
                if clock > begin:
                    steps.append(ScheduleStep(instruction, begin, clock, None, ended))
                continue
            if ended is not None and clock > begin:
                steps.append(ScheduleStep(instruction, begin, clock, None, ended))
                begin = clock
            least, seconds = None, 0.0
            if work.bodies and work.taken is not CalleeCost.OPERATIONS:
                for body, times, _ in self._counting.calls(computation, place, work):
                    walk = self.walks.get(body)
                    seconds += walk.seconds * times if walk is not None else 0.0
            elif ROLES.get(opcode) is None and (work is not NOTHING or has_launches):
                least = self._least(instruction, work)
                seconds = least.seconds if least is not None else 0.0
            if seconds:
                clock += seconds
                steps.append(ScheduleStep(instruction, begin, clock, least))
        return Walk(clock, tuple(steps), tuple(transfers), exposed)

    def _least(self, instruction: Instruction, work: OpCost) -> LowerBound | None:
        """The bound of what an instruction does itself; None for one that is not well-formed, which is not counted then."""
        try:
            return self._roofline.of(instruction, work)
        except NOT_WELL_FORMED:
            self._counting.uncounted[instruction] = "it is not well-formed"
            return None

    def _transfer(
        self,
        instruction: Instruction,
        clock: float,
        place: int,
        free: dict[str, tuple[float, ScheduledTransfer | None]],
    ) -> ScheduledTransfer:
        """The transfer of an instruction that begins one."""
        group = self._begun.get(instruction, [])
        one = group[0] if group else None
        opcode = instruction.opcode
        seconds: float | None
        if one is not None:
            # A group of collectives goes one after the other, over whatever links any of them takes.
            times = [self._communication_time(member) for member in group]
            queues = tuple(dict.fromkeys(queue for found, _ in times for queue in found))
            known = [time for _, time in times if time is not None]
            seconds = sum(known) if len(known) == len(times) else None
            launch = self._roofline.chip.rates.collective_launch
            if seconds and launch is not None and not one.is_host_transfer:
                seconds += launch.value
        elif opcode == "copy-start":
            queues, seconds = self._copy_time(instruction)
        else:
            thread = instruction.attributes.get("async_execution_thread", "main")
            walks = [self.walks[c] for c in instruction.called_computations if c in self.walks]
            # On the main thread what runs beside the core is a copy of a slice.
            queue = COPIES if thread == "main" else f"thread {thread}"
            queues, seconds = (queue,), sum(walk.seconds for walk in walks)
        blocked = max(
            (free[queue] for queue in queues if queue in free), key=lambda f: f[0], default=(0.0, None)
        )
        begin = max(clock, blocked[0])
        return ScheduledTransfer(
            instruction,
            self._done(instruction, one),
            one,
            queues,
            seconds or 0.0,
            seconds is not None,
            begin,
            begin + (seconds or 0.0),
            place,
            blocked[1] if blocked[0] > clock else None,
        )

    def _done(self, instruction: Instruction, one: Communication | None) -> Instruction | None:
        """Done of a transfer; None if the core itself runs it, or if it ends elsewhere."""
        if one is not None and not one.is_async:
            return None
        if one is not None and instruction.opcode == "fusion":
            chain = chain_of(one.instruction)
            done = self._chains.get(chain) if chain is not None else None
        else:
            links = instruction.async_chain
            done = links[-1] if links and ROLES.get(links[-1].opcode) == "done" else None
        return done if done is not None and done.computation is instruction.computation else None

    def _communication_time(self, one: Communication) -> tuple[tuple[str, ...], float | None]:
        rates, sent = self._roofline.chip.rates, one.wire_bytes
        if one.is_host_transfer:
            size = max(one.operand_bytes, one.result_bytes)
            return (HOST_QUEUE,), size / rates.host_link.value if rates.host_link is not None else None
        if one.link is Interconnect.DCN:
            return (
                DCN_QUEUE,
            ), sent / rates.dcn.value if rates.dcn is not None and sent is not None else None
        axes = axes_of(self._module, one, self._mesh)
        queues = tuple(f"links of {axis}" for axis in axes) if axes else (LINKS,)
        bandwidth = rates.axis_bandwidth
        if sent is None or bandwidth is None:
            return queues, 0.0 if sent == 0 else None
        together = len(queues) if RULES.get(one.kind) is not None and RULES[one.kind].is_shared else 1
        return queues, sent / (bandwidth * together)

    def _copy_time(self, instruction: Instruction) -> tuple[tuple[str, ...], float | None]:
        rates = self._roofline.chip.rates
        size = self._counting.sizes.operand(instruction.operands[0]) if instruction.operands else 0
        if is_host_copy(instruction):
            return (HOST_QUEUE,), size / rates.host_link.value if rates.host_link is not None else None
        return (COPIES,), size / rates.bandwidth.value if rates.bandwidth is not None else None
