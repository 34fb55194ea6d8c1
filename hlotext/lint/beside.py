"""Overlap by estimated times: the work that could run during a collective, and shares of the step."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from hlotext import cost
from hlotext.analysis import CallGraph, Communication, call_graph, fact
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.lint.helpers import (
    add_outwards,
    is_product_call,
    operation,
    pieces,
    results,
    size_of,
    takers,
    works,
)
from hlotext.lint.rule import Context
from hlotext.lint.values import Value, source

_WHOLE = frozenset({"all-reduce", "collective-broadcast"})
"""Kinds that need all of what makes their operands. Of the others XLA makes loops of permutes, with a part of the product
that makes the operand or uses the result beside each (`spmd/dot_handler.cc`, windowed einsum), and programs do it by hand:
they exchange pieces, and each piece of an all-reduce would have to be a sum for everybody at once."""
_NEIGHBOURS = frozenset({"collective-permute"})
"""Kinds in which a device needs what a few others have: the rest can be computed before the edges are there."""
_PART = 0.5
"""Of the time of a collective, that independent work must take for the collective to be worth hiding."""
_MOST = 256
"""Instructions of a computation that are looked at, those that take longest."""


def step_percent(instruction: Instruction, context: Context) -> float | None:
    """Returns an instruction's percentage of the module's estimated time, over all executions; None if the platform is
    unknown.

    For a collective, only exposed time counts.
    """
    if (estimate := _estimated(context)) is None:
        return None
    seconds, total = _step_seconds(context.module, estimate)
    return 100 * seconds.get(instruction, 0.0) / total if total else None


def most_percent(instruction: Instruction, context: Context) -> float:
    """Returns `step_percent`, or 100 if that is unknown."""
    share = step_percent(instruction, context)
    return 100.0 if share is None else share


def is_worth_time(instruction: Instruction, context: Context, percent: float) -> bool:
    """True if an instruction's share of the module's estimated time is at least `percent`, or unknown."""
    share = step_percent(instruction, context)
    return share is None or share >= percent


def is_share_known(one: Communication, context: Context) -> bool:
    """False for a collective outside of loops in a module that has a loop of unknown trip count, whose time is assumed."""
    return one.loop is not None or not context.prices.rounds


def worth_time_together(
    ones: Iterable[Communication], context: Context, percent: float
) -> Iterator[tuple[Communication, str]]:
    """Yields the collectives that take at least `percent` of the estimated time, with text that names them.

    Collectives of one kind and operation are judged together, such as those of unrolled layers.
    """
    together: dict[tuple[str, str], list[Communication]] = defaultdict(list)
    for one in ones:
        together[one.kind, operation(one.start)].append(one)
    for (kind, name), group in together.items():
        shares = {one: most_percent(one.start, context) for one in group}
        if sum(shares.values()) >= percent:
            for one in filter(shares.__getitem__, group):
                yield one, f"{kind} for {name}" if name else ""


def could_be_hidden(one: Communication, context: Context) -> bool:
    """True if something could run during a collective.

    This is independent work that takes part of its time, or, except for an all-reduce, pieces of a matmul that computes
    its operand or uses its result.
    """
    estimate = _estimated(context)
    if estimate is None or one.start not in _alone(context.module, estimate):
        return True
    return one.kind in _NEIGHBOURS or (one.kind not in _WHOLE and _is_beside_product(one))


_SAME = frozenset({"bitcast", "convert", "copy", "get-tuple-element", "opt-barrier", "reshape", "transpose"})
"""Opcodes behind which a product's operand or result is still the same."""
_GIVEN = frozenset({"constant", "iota", "parameter"})
_BY_PIECES = (
    _SAME
    | _GIVEN
    | ELEMENTWISE
    | {"broadcast", "concatenate", "dynamic-slice", "gather", "pad", "reduce", "scatter", "slice", "tuple"}
)
"""Opcodes that can be done for a piece of an array before the others are there."""
_MOSTLY = 0.9


def _is_beside_product(one: Communication) -> bool:
    """True if a matmul makes its operand, or piece by piece takes what comes of its result.

    Not so the gather of arguments, before which nothing runs; but a round of a loop may gather what the next one takes.
    """
    made = [source(Value(operand), _SAME).instruction for operand in one.start.operands]
    if any(map(_multiplies, made)):
        return True
    sizes = [(size_of(origin.shape), origin.opcode in _GIVEN) for origin in made]
    # Combined with something small that is sent meanwhile it is still a gather of arguments.
    if one.loop is None and sum(s for s, given in sizes if given) > _MOSTLY * sum(s for s, _ in sizes):
        return False
    return any(_multiplies(user) for user, _ in takers(results(one), _BY_PIECES))


def _multiplies(instruction: Instruction) -> bool:
    return any(
        i.opcode in ("dot", "convolution", "fft") or (i.opcode == "custom-call" and is_product_call(i))
        for i in pieces(instruction)
    )


def _estimated(context: Context) -> cost.Estimate | None:
    """The estimate of the findings' prices; None if nothing shows what platform the module is for."""
    return context.prices.estimate if context.backend is not None else None


@fact
def _step_seconds(module: Module, estimate: cost.Estimate) -> tuple[dict[Instruction, float], float]:
    """Seconds that each instruction adds to the module's time, and their sum."""
    found: dict[Instruction, float] = defaultdict(float)
    for time in estimate.instructions:
        found[time.instruction] += time.seconds
    taken = _taken(module, estimate)
    for transfer in estimate.transfers:
        # If a longer transfer was started before, that one is waited for.
        need, longer = taken.get(transfer.start, (0.0, transfer.start))
        found[longer if need > _PART * transfer.seconds else transfer.start] += transfer.exposed
    return dict(found), sum(found.values())


@fact
def _alone(module: Module, estimate: cost.Estimate) -> frozenset[Instruction]:
    """The collectives that everything else either makes operands for or waits for."""
    needs: dict[Computation, dict[Instruction, float]] = {}
    for transfer in estimate.transfers:
        where, kind = transfer.start.computation, transfer.communication
        if where is not None and kind is not None:
            needs.setdefault(where, {})[transfer.start] = _PART * transfer.seconds
    seconds, taken = _seconds(estimate.instructions, call_graph(module)), _taken(module, estimate)
    return frozenset(
        start for where, starts in needs.items() for start in _without_work(where, starts, seconds, taken)
    )


@fact
def _taken(module: Module, estimate: cost.Estimate) -> dict[Instruction, tuple[float, Instruction]]:
    """For what is between the start and the done of transfers, half the time of the longest of these, and its start."""
    begun: dict[Computation, dict[Instruction, tuple[float, int]]] = {}
    for transfer in estimate.transfers:
        chain, where = transfer.start.async_chain, transfer.start.computation
        if transfer.is_pair and where is not None and len(chain) > 1 and chain[-1].computation is where:
            begun.setdefault(where, {})[chain[0]] = _PART * transfer.seconds, where.order.index(chain[-1])
    taken: dict[Instruction, tuple[float, Instruction]] = {}
    for where, starts in begun.items():
        flying: list[tuple[float, int, Instruction]] = []
        for place, instruction in enumerate(where):
            while flying and flying[0][1] <= place:
                heapq.heappop(flying)
            if flying:
                taken[instruction] = -flying[0][0], flying[0][2]
            if instruction in starts:
                need, end = starts[instruction]
                heapq.heappush(flying, (-need, end, instruction))
    return taken


def _seconds(times: Iterable[cost.InstructionTime], graph: CallGraph) -> dict[Instruction, float]:
    """The time of each instruction over all its executions, of loops and calls with their bodies."""
    found: dict[Instruction, float] = {}
    bodies: dict[Computation, float] = {}
    for time in times:
        found[time.instruction] = found.get(time.instruction, 0.0) + time.seconds
        where = time.instruction.computation
        if where is not None:
            bodies[where] = bodies.get(where, 0.0) + time.seconds
    add_outwards(found, bodies, graph.caller)
    return found


def _without_work(
    where: Computation,
    starts: dict[Instruction, float],
    seconds: dict[Instruction, float],
    taken: Mapping[Instruction, tuple[float, Instruction]],
) -> list[Instruction]:
    """Those of the starts beside which less than what each needs could run; of both directions one bit each.

    What the scheduler has put beside a transfer that needs as much is of no use to another.
    """
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
            is_taken = instruction in taken and taken[instruction][0] >= starts[start]
            if not related & bits[start] and not is_taken:
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
    """True if it is work of the program: what only moves or fills an array is there for what it feeds, wherever it stands."""
    return works(instruction) and any(i.opcode not in _MOVING for i in pieces(instruction) or [instruction])
