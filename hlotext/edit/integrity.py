"""Debugging edits: derives users, call edges, parents, names and order again, and compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module


def problems(module: Module, computations: Iterable[Computation] | None = None) -> list[str]:
    """Checks the consistency of the graph, and returns a sentence for each inconsistency; empty for a sound module.

    `computations` limits the check to these.
    """
    if computations is None:
        return list(_problems(module))
    known = set(module._computations)
    return [problem for c in computations if c in known for problem in _computation_problems(c, known)]


def _problems(module: Module) -> Iterator[str]:
    computations = set(module._computations)
    if len(computations) != len(module._computations):
        yield "a computation is in the module twice"
    if module._computations and module.entry not in computations:
        yield "the entry is not in the module"
    names = [c._name for c in module._computations if not c.is_inline]
    if len(set(names)) != len(names):
        yield "two computations have the same name"
    callers: dict[Computation, dict[Instruction, None]] = {}
    for computation in module._computations:
        if computation.module is not module:
            yield f"{computation.name} has a different module from the one that contains it"
        yield from _computation_problems(computation, computations)
        for instruction in computation._instructions:
            for callee in instruction.called_computations:
                callers.setdefault(callee, {})[instruction] = None
    for computation in module._computations:
        if computation.callers != tuple(callers.get(computation, ())):
            yield f"the callers of {computation.name} do not match the recorded ones"


def _computation_problems(computation: Computation, computations: set[Computation]) -> Iterator[str]:
    place = computation.name
    seen: dict[Instruction, None] = {}
    users: dict[Instruction, dict[Instruction, None]] = {i: {} for i in computation._instructions}
    successors: dict[Instruction, dict[Instruction, None]] = {i: {} for i in computation._instructions}
    for instruction in computation._instructions:
        name = instruction._name
        if instruction in seen:
            yield f"{name} is in {place} twice"
        if instruction.computation is not computation:
            yield f"{name} has a different computation from {place}, which contains it"
        for operand in (*instruction._operands, *instruction.control_predecessors):
            if operand not in users:
                yield f"{name} needs {operand._name}, which is not in {place}"
            elif operand not in seen:
                yield f"{name} comes before {operand._name}, which it needs"
        for operand in instruction._operands:
            users.setdefault(operand, {})[instruction] = None
        for predecessor in instruction.control_predecessors:
            successors.setdefault(predecessor, {})[instruction] = None
        for callee in instruction.called_computations:
            if callee not in computations:
                yield f"{name} calls {callee.name}, which is not in the module"
        seen[instruction] = None
    if len({i._name for i in seen}) != len(seen):
        yield f"two instructions of {place} have the same name"
    if seen and computation.root not in seen:
        yield f"the root of {place} is not in it"
    order = computation.order
    for number, instruction in enumerate(computation._instructions):
        if set(instruction.users) != set(users[instruction]):
            yield f"the users of {instruction._name} do not match the recorded ones"
        if set(instruction.control_successors) != set(successors[instruction]):
            yield f"the control successors of {instruction._name} do not match the recorded ones"
        if order.index(instruction) != number:
            yield f"the place of {instruction._name} does not match the recorded one"
        if instruction._name not in computation or computation[instruction._name] is not instruction:
            yield f"{instruction._name} is not found by its name"
