"""The figures of XLA's `HloCostAnalysis`: every loop body once, float32, in the order of XLA's visit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hlotext.cost.float32 import EXACT, float32_sum, is_exact, round_to_float32
from hlotext.cost.op_cost import CalleeCost, OpCost
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

Figures = tuple[float, float, float]
"""Flops, transcendentals, bytes accessed."""
NO_FIGURES: Figures = (0, 0, 0)
_UNKNOWN: Figures = (-1, 0, -1)


def figures_of(work: OpCost, known: Mapping[Computation, Figures]) -> Figures:
    """Returns XLA's totals for one instruction, given those of the computations that it calls."""
    if work.is_unknown:
        return _UNKNOWN
    flops, transcendentals = round_to_float32(work.flops), round_to_float32(work.transcendentals)
    accessed: float = sum(work.written) + work.constants + sum(work.read)
    if not (type(accessed) is int and accessed <= EXACT):  # of whole numbers below that nothing is rounded
        moved = (*work.written, work.constants, *work.read) if work.constants else (*work.written, *work.read)
        accessed = round_to_float32(sum(moved)) if work.at_once or is_exact(moved) else float32_sum(moved)
    for body, count in work.applied:
        body_flops, body_transcendentals, _ = known.get(body, NO_FIGURES)
        times = round_to_float32(count)
        flops = round_to_float32(flops + round_to_float32(body_flops * times))
        transcendentals = round_to_float32(transcendentals + round_to_float32(body_transcendentals * times))
    if not work.bodies:
        return flops, transcendentals, accessed
    parts = [known.get(body, NO_FIGURES) for body in work.bodies]
    if work.taken is CalleeCost.LARGEST:
        return _largest(parts)
    flops, transcendentals = float32_sum([p[0] for p in parts]), float32_sum([p[1] for p in parts])
    if work.taken is CalleeCost.OPERATIONS:
        return flops, transcendentals, accessed
    return flops, transcendentals, float32_sum([p[2] for p in parts])


def _largest(parts: Sequence[Figures]) -> Figures:
    """For each figure the largest of the branches; XLA skips zeros of later ones, so a -1 of the first stays."""
    flops, transcendentals, accessed = parts[0]
    for part in parts[1:]:
        flops = max(flops, part[0]) if part[0] else flops
        transcendentals = max(transcendentals, part[1]) if part[1] else transcendentals
        accessed = max(accessed, part[2]) if part[2] else accessed
    return flops, transcendentals, accessed


Orders = dict[Computation, list[int]]
"""The orders of visits that were needed so far."""


def total_of(computation: Computation, figures: Mapping[int, Figures], orders: Orders) -> Figures:
    """Returns XLA's totals for a computation; `figures` are those of its instructions by position, omitting zeros."""
    if not figures:
        return NO_FIGURES
    flops, transcendentals, accessed = sums_of(computation, figures, orders)
    return flops, transcendentals, accessed


def sums_of(
    computation: Computation, figures: Mapping[int, tuple[float, ...]], orders: Orders
) -> list[float]:
    """Returns the float32 sum of each column over a computation's instructions, in XLA's order. `figures` must not be
    empty.
    """
    totals: list[float] = []
    for number, column in enumerate(zip(*figures.values(), strict=True)):
        if is_exact(column):
            totals.append(sum(column))
            continue
        if computation not in orders:
            orders[computation] = visit_order(computation)
        totals.append(
            float32_sum([figures[place][number] for place in orders[computation] if place in figures])
        )
    return totals


def visit_order(computation: Computation) -> list[int]:
    """Returns the positions of instructions in the order of XLA's visitor (`HloComputation::Accept`).

    Unused instructions come first, in text order, each after its operands and control predecessors; the root comes
    last.
    """
    instructions = computation.instructions
    places = {instruction: place for place, instruction in enumerate(instructions)}
    needed: set[Instruction] = set()
    earlier: dict[Instruction, tuple[Instruction, ...]] = {}
    for instruction in instructions:
        needed.update(instruction._operands)
        predecessors = instruction.control_predecessors
        if predecessors:
            needed.update(predecessors)
            earlier[instruction] = predecessors
    root = computation.root
    starts = [i for i in instructions if i not in needed and i is not root]
    order: list[int] = []
    entered: set[Instruction] = set()
    done: set[Instruction] = set()
    for start in (*starts, root):
        stack = [start]
        while stack:
            instruction = stack[-1]
            if instruction in entered:
                stack.pop()
                if instruction not in done:
                    done.add(instruction)
                    order.append(places[instruction])
                continue
            entered.add(instruction)
            before = instruction._operands
            if instruction in earlier:
                before = (*before, *earlier[instruction])
            more = [other for other in reversed(before) if other not in entered and other in places]
            if more:
                stack += more
            else:
                stack.pop()
                done.add(instruction)
                order.append(places[instruction])
    return order
