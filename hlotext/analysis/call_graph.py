"""Who calls what: the use of every computation, and how often each runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs

from hlotext.analysis.facts import fact
from hlotext.analysis.trip_count import trip_count
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.opcodes import CALLED_NAMES

ENTRY, CALLED, ASYNC, BRANCH, APPLIED, UNUSED = "entry", "called", "async body", "branch", "applied", "unused"
LOOP_BODY, LOOP_CONDITION = "loop body", "loop condition"
_USES = {
    ("fusion", "calls"): "fusion body",
    ("while", "body"): LOOP_BODY,
    ("while", "condition"): LOOP_CONDITION,
    ("conditional", "true_computation"): BRANCH,
    ("conditional", "false_computation"): BRANCH,
    ("conditional", "branch_computations"): BRANCH,
    ("call", "to_apply"): CALLED,
    ("async-start", "calls"): ASYNC,
    ("async-update", "calls"): ASYNC,
    ("async-done", "calls"): ASYNC,
    ("custom-call", "called_computations"): "called by custom call",
    ("custom-call", "to_apply"): "called by custom call",
}
"""What a computation is for, by the opcode and attribute that name it; others are applied to elements."""

USES = (ENTRY, *dict.fromkeys(_USES.values()), APPLIED, UNUSED)
"""Every use, in the order in which they are shown."""

_CALL_NOTHING = frozenset(opcode for opcode, names in CALLED_NAMES.items() if not names)
"""Opcodes that never call; an unknown one may."""

_STEPPED_INTO = frozenset({LOOP_BODY, LOOP_CONDITION, BRANCH, CALLED})
"""Uses whose computations run instruction by instruction, each writing its result to memory."""


@attrs.frozen
class CallEdge:
    """One instruction calls one computation."""

    caller: Instruction
    attribute: str
    callee: Computation

    @property
    def use(self) -> str:
        return _USES.get((self.caller.opcode, self.attribute), APPLIED)


@attrs.frozen(eq=False)
class CallGraph:
    """The calls of a module, found once."""

    module: Module
    callers: Mapping[Computation, tuple[CallEdge, ...]]
    """Calls of each computation that is called at all, in the order of the text."""
    runs: Mapping[Computation, int | None]
    """How often each computation runs when the module runs once; None where that depends on values.

    Those that are never reached from the entry are missing.
    """
    stepped: frozenset[Computation]
    """The computations whose instructions run one by one, the entry first of all."""
    trips: Mapping[Instruction, int | None]
    """How often the body of each while runs; None where it is not known."""

    def stepped_instructions(self) -> Iterator[Instruction]:
        """The instructions that run one by one: not those in fusions, nor those of reducers."""
        for computation in self.module.computations:
            if computation in self.stepped:
                yield from computation

    def caller(self, computation: Computation | None) -> Instruction | None:
        """The first instruction in the text that calls a computation."""
        edges = self.callers.get(computation) if computation is not None else None
        return edges[0].caller if edges else None

    def use(self, computation: Computation) -> str:
        """What a computation is for; the first call in the text decides."""
        if computation is self.module.entry:
            return ENTRY
        edges = self.callers.get(computation)
        return edges[0].use if edges else UNUSED

    def loop_around(self, computation: Computation) -> Instruction | None:
        """The innermost while in which a computation runs; None outside all loops."""
        seen = set()
        while computation not in seen and (edges := self.callers.get(computation)):
            seen.add(computation)
            if edges[0].caller.opcode == "while":
                return edges[0].caller
            if (outer := edges[0].caller.computation) is None:
                break
            computation = outer
        return None


@fact
def call_graph(module: Module) -> CallGraph:
    """Finds every call of a module, and from the trip counts of its loops how often each computation runs."""
    callers: dict[Computation, list[CallEdge]] = {}
    callees: dict[Computation, list[CallEdge]] = {}
    trips: dict[Instruction, int | None] = {}
    for computation in module._computations:
        for instruction in [i for i in computation._instructions if i._opcode not in _CALL_NOTHING]:
            if instruction._opcode == "while":
                trips[instruction] = trip_count(instruction)
            for attribute, callee in instruction.callees():
                edge = CallEdge(instruction, attribute, callee)
                callers.setdefault(callee, []).append(edge)
                callees.setdefault(computation, []).append(edge)
    order = _callers_first(module.entry, callees)
    return CallGraph(
        module,
        {callee: tuple(edges) for callee, edges in callers.items()},
        _runs(module.entry, order, callees, trips),
        _stepped(module.entry, order, callees),
        trips,
    )


def _callers_first(entry: Computation, callees: Mapping[Computation, list[CallEdge]]) -> list[Computation]:
    """The computations that run, each behind all that call it."""
    done: list[Computation] = []
    entered: set[Computation] = set()
    stack: list[tuple[Computation, bool]] = [(entry, False)]
    while stack:
        computation, leaving = stack.pop()
        if leaving:
            done.append(computation)
        elif computation not in entered:
            entered.add(computation)
            stack.append((computation, True))
            stack.extend((edge.callee, False) for edge in reversed(callees.get(computation, ())))
    return done[::-1]


def _runs(
    entry: Computation,
    order: Iterable[Computation],
    callees: Mapping[Computation, list[CallEdge]],
    trips: Mapping[Instruction, int | None],
) -> dict[Computation, int | None]:
    """How often each computation runs; `order` has callers before callees."""
    runs: dict[Computation, int | None] = {entry: 1}
    for computation in order:
        outer = runs.setdefault(computation, 0)
        for edge in callees.get(computation, ()):
            factor = _runs_per_call(edge, trips)
            known = runs.get(edge.callee, 0)
            runs[edge.callee] = (
                None if outer is None or factor is None or known is None else known + outer * factor
            )
    return runs


def _runs_per_call(edge: CallEdge, trips: Mapping[Instruction, int | None]) -> int | None:
    if edge.caller.opcode == "while":
        trip = trips[edge.caller]
        return None if trip is None else trip + (edge.attribute == "condition")
    # Which branch is taken, and how often a function is applied to elements, the text does not say.
    return None if edge.use in (BRANCH, APPLIED) else 1


def _stepped(
    entry: Computation, order: Iterable[Computation], callees: Mapping[Computation, list[CallEdge]]
) -> frozenset[Computation]:
    found = {entry}
    for computation in order:
        edges = callees.get(computation, ())
        if computation in found:
            found.update(edge.callee for edge in edges if edge.use in _STEPPED_INTO)
            # An asynchronous body is one instruction, whose result the start has; what it calls runs on.
            for body in (edge.callee for edge in edges if edge.use == ASYNC):
                found.update(edge.callee for edge in callees.get(body, ()) if edge.use in _STEPPED_INTO)
    return frozenset(found)


@attrs.frozen
class ComputationUse:
    """The computations of one use."""

    use: str
    computations: int
    instructions: int


def computation_uses(graph: CallGraph) -> tuple[ComputationUse, ...]:
    """How many computations there are for each use, and how many instructions they have."""
    computations: Counter[str] = Counter()
    instructions: Counter[str] = Counter()
    for computation in graph.module.computations:
        use = graph.use(computation)
        computations[use] += 1
        instructions[use] += len(computation)
    return tuple(
        ComputationUse(use, computations[use], instructions[use]) for use in USES if computations[use]
    )
