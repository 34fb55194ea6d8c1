"""What estimated times say: which work could run beside a collective, and how much of the step something takes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from hlotext import cost
from hlotext.analysis import Backend, CallGraph, Communication, backend_of, call_graph, fact
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.lint.helpers import works
from hlotext.lint.rule import Context

CHIPS = {Backend.GPU: "h100", Backend.TPU: "v5e"}
"""The chip on which times are estimated where none is set."""
_WHOLE = frozenset({"all-reduce", "collective-broadcast"})
"""Kinds that need all of what makes their operands. Of the others XLA makes loops of permutes, with a part of the product
that makes the operand or uses the result beside each (`spmd/dot_handler.cc`, windowed einsum), and programs do it by hand:
they exchange pieces, and each piece of an all-reduce would have to be a sum for everybody at once."""
_PART = 0.5
"""Of the time of a collective, that independent work must take for the collective to be worth hiding."""
_MOST = 256
"""Instructions of a computation that are looked at, those that take longest."""
_NUMBERS = re.compile(r"\d+")
_DEEPEST = 50
"""Loops and calls inside one another that are followed."""


def step_percent(instruction: Instruction, context: Context) -> float | None:
    """Percent of the estimated time of the module that an instruction takes in all its runs, of a collective what is waited
    for; None where there is no chip to estimate for, as on CPU."""
    found = _estimated(context.module)
    if found is None or not found.seconds:
        return None
    return 100 * _step_seconds(context.module).get(instruction, 0.0) / found.seconds


def is_worth_time(instruction: Instruction, context: Context, percent: float) -> bool:
    """Whether it takes so much of the estimated time of the module, or nobody can tell."""
    share = step_percent(instruction, context)
    return share is None or share >= percent


def worth_time_together(
    ones: Iterable[Communication], context: Context, percent: float
) -> Iterator[tuple[Communication, str]]:
    """The collectives that take so much of the estimated time, all of one kind for one operation of the program together,
    each with what names them. Layers that are not in a loop have one each."""
    together: dict[tuple[str, str], list[Communication]] = defaultdict(list)
    for one in ones:
        metadata = one.start.metadata
        name = metadata.op_name if metadata is not None else ""
        together[one.kind, _NUMBERS.sub("", name)].append(one)
    for (kind, name), group in together.items():
        shares = [step_percent(one.start, context) for one in group]
        if sum(100 if share is None else share for share in shares) >= percent:
            for one in group:
                yield one, f"{kind} for {name}" if name else ""


def could_be_hidden(one: Communication, context: Context) -> bool:
    """Whether something could run while a collective does: always, in pieces, but for an all-reduce, which needs work that
    does not depend on it and takes a part of its time."""
    return one.kind not in _WHOLE or one.start not in _alone(context.module)


@fact
def _estimated(module: Module) -> cost.Estimate | None:
    backend = backend_of(module)
    chip = CHIPS.get(backend) if backend is not None else None
    return cost.estimate(module, chip) if chip is not None else None


@fact
def _step_seconds(module: Module) -> dict[Instruction, float]:
    """What each instruction adds to the time of the module."""
    found: dict[Instruction, float] = {}
    estimated = _estimated(module)
    if estimated is not None:
        for time in estimated.instructions:
            found[time.instruction] = found.get(time.instruction, 0.0) + time.seconds
        for transfer in estimated.transfers:
            found[transfer.start] = found.get(transfer.start, 0.0) + transfer.exposed
    return found


@fact
def _alone(module: Module) -> frozenset[Instruction]:
    """The all-reduces that everything else either makes operands for or waits for."""
    found = _estimated(module)
    if found is None:
        return frozenset()
    needs: dict[Computation, dict[Instruction, float]] = {}
    for transfer in found.transfers:
        where, kind = transfer.start.computation, transfer.communication
        if where is not None and kind is not None and kind.kind in _WHOLE:
            needs.setdefault(where, {})[transfer.start] = _PART * transfer.seconds
    seconds = _seconds(found.instructions, call_graph(module))
    return frozenset(
        start for where, starts in needs.items() for start in _without_work(where, starts, seconds)
    )


def _seconds(times: Iterable[cost.InstructionTime], graph: CallGraph) -> dict[Instruction, float]:
    """The time of each instruction in all its runs, of loops and calls with their bodies."""
    found: dict[Instruction, float] = {}
    bodies: dict[Computation, float] = {}
    for time in times:
        found[time.instruction] = found.get(time.instruction, 0.0) + time.seconds
        where = time.instruction.computation
        if where is not None:
            bodies[where] = bodies.get(where, 0.0) + time.seconds
    for body, total in bodies.items():
        caller = graph.caller(body)
        for _ in range(_DEEPEST):
            if caller is None:
                break
            found[caller] = found.get(caller, 0.0) + total
            caller = graph.caller(caller.computation)
    return found


def _without_work(
    where: Computation, starts: dict[Instruction, float], seconds: dict[Instruction, float]
) -> list[Instruction]:
    """Those of the starts beside which less than what each needs could run; of both directions one bit each."""
    bits = {start: 1 << number for number, start in enumerate(starts)}
    behind: dict[Instruction, int] = {}
    for instruction in where:
        mask = bits.get(instruction, 0)
        for operand in instruction.operands:
            mask |= behind.get(operand, 0)
        behind[instruction] = mask
    before = dict(bits)
    for instruction in reversed(where.instructions):
        mask = before.get(instruction, 0)
        for operand in instruction.operands if mask else ():
            before[operand] = before.get(operand, 0) | mask
    left = dict(starts)
    longest = sorted((i for i in where if seconds.get(i) and _computes(i)), key=lambda i: -seconds[i])[:_MOST]
    for instruction in longest:
        related = behind[instruction] | before.get(instruction, 0)
        for start in left:
            if not related & bits[start]:
                left[start] -= seconds[instruction]
    return [start for start, need in left.items() if need > 0]


_MOVING = frozenset(
    {
        "bitcast",
        "broadcast",
        "constant",
        "convert",
        "copy",
        "iota",
        "parameter",
        "reshape",
        "transpose",
        "tuple",
    }
)
"""Opcodes that compute nothing."""


def _computes(instruction: Instruction) -> bool:
    """Whether it is work of the program: what only moves or fills an array is there for what it feeds, wherever it stands."""
    inside = (
        [i for body in instruction.called_computations for i in body]
        if instruction.opcode == "fusion"
        else []
    )
    return works(instruction) and any(i.opcode not in _MOVING for i in inside or [instruction])
