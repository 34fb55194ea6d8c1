"""While loops: how often they run, what a round writes, and what stays the same from one round to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from hlotext.analysis.call_graph import call_graph, callers_first
from hlotext.analysis.facts import fact
from hlotext.analysis.sizes import written_bytes
from hlotext.analysis.trip_count import condition_runs
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits

_CHANGING = (traits.HOST_EFFECTS - traits.DONES) | {"custom-call", "parameter", "after-all"}
"""Opcodes whose result may differ although their operands do not, or whose doing matters."""


@attrs.frozen
class Loop:
    """A while loop reachable from the entry computation."""

    instruction: Instruction
    trips: int | None
    """Trip count per execution, or None if unknown."""
    runs: int | None
    """Executions of the loop in one run of the module, or None if unknown."""
    written_bytes: int
    """Bytes written to newly allocated buffers per iteration, including all iterations of inner loops (1 if unknown).
    """


def loops(module: Module) -> tuple[Loop, ...]:
    """Returns the while loops that a module executes, callers before callees. Loops that never run are omitted."""
    graph = call_graph(module)
    round_bytes: Counter[Computation] = Counter()
    for one in graph.sequential_instructions():
        if one.computation is not None:
            round_bytes[one.computation] += written_bytes(one)
    for callee in reversed(callers_first(module)):
        if callee not in graph.stepped:
            continue
        for call in graph.callers.get(callee, ()):
            trips = graph.trips.get((call.computation, call.place)) if call.opcode == "while" else 1
            rounds = condition_runs(call.caller, trips) if call.attribute == "condition" else trips
            round_bytes[call.computation] += (1 if rounds is None else rounds) * round_bytes[callee]
    found = []
    for loop, trips in graph.loops():
        body = loop.attributes.get("body")
        runs = graph.runs.get(loop.computation) if loop.computation is not None else None
        if isinstance(body, Computation) and runs != 0:
            found.append(Loop(loop, trips, runs, round_bytes[body]))
    return tuple(found)


def invariant_instructions(loop: Instruction) -> frozenset[Instruction]:
    """Finds the instructions in a while's body that compute the same value in every iteration.

    These are state elements that the body forwards unchanged, constants, and everything computed from these alone.
    The result is empty if the state is not a tuple.
    """
    module = loop.computation.module if loop.computation is not None else None
    return _invariant(loop) if module is None else _known_invariant(module, loop)


@fact
def _known_invariant(module: Module, loop: Instruction) -> frozenset[Instruction]:
    return _invariant(loop)


def _invariant(loop: Instruction) -> frozenset[Instruction]:
    body = loop.attributes.get("body")
    if not isinstance(body, Computation) or not len(body) or body.root.opcode != "tuple":
        return frozenset()
    passed = {
        index
        for index, operand in enumerate(body.root.operands)
        if operand.opcode == "get-tuple-element"
        and operand.attributes.get("index") == index
        and operand.operands[0].opcode == "parameter"
    }
    found: set[Instruction] = set()
    for instruction in operands_first(body):
        opcode = instruction.opcode
        if opcode == "get-tuple-element" and instruction.operands[0].opcode == "parameter":
            if instruction.attributes.get("index") in passed:
                found.add(instruction)
        elif opcode in _CHANGING or (opcode in ROLES and opcode.startswith(("send", "recv"))):
            continue
        elif all(operand in found for operand in instruction.operands):
            found.add(instruction)
    return frozenset(found)


def operands_first(body: Computation) -> Sequence[Instruction]:
    """Returns the instructions with operands before users: in text order if that is such an order."""
    return _operands_first(body) if body.module is None else _known_order(body.module, body)


@fact
def _known_order(module: Module, body: Computation) -> Sequence[Instruction]:
    return _operands_first(body)


def _operands_first(body: Computation) -> Sequence[Instruction]:
    seen: set[Instruction] = set()
    for instruction in body._instructions:
        for operand in instruction._operands:
            if operand not in seen and operand._computation is body:
                return instruction_post_order(body)
        seen.add(instruction)
    return body.instructions
