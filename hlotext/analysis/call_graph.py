"""Call graph: the use of every computation, and its execution count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import attrs

from hlotext.analysis.facts import fact
from hlotext.analysis.trip_count import condition_runs, trip_count
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables.opcodes import CALLS_NOTHING

ENTRY, CALLED, ASYNC, BRANCH, APPLIED, UNUSED = "entry", "called", "async body", "branch", "applied", "unused"
FUSED, LOOP_BODY, LOOP_CONDITION = "fusion body", "loop body", "loop condition"
_USES = {
    ("fusion", "calls"): FUSED,
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
"""Use of a computation by the opcode and attribute that call it; others are applied to elements."""

USES = (ENTRY, *dict.fromkeys(_USES.values()), APPLIED, UNUSED)
"""Every use, in display order."""

SEQUENTIAL_USES = frozenset({LOOP_BODY, LOOP_CONDITION, BRANCH, CALLED})
"""Uses whose computations run instruction by instruction, each writing its result to memory."""


_MOST_NAMED = 8
"""Maximum number of loops named in an error."""

MOST_RUNS = 1 << 63
"""Maximum execution count; larger ones are reported as unknown: no machine runs so often, and a float may not hold it."""


@attrs.define(
    unsafe_hash=True
)  # never changed: made by the ten thousand, and what checks that takes most of the time
class CallEdge:
    """A call of one computation by one instruction.

    Stores the caller's position instead of the node, so that lazily loaded computations can be unloaded.
    """

    computation: Computation
    """The computation that contains the caller."""
    place: int
    """Position of the caller in that computation."""
    name: str
    """Name of the calling instruction."""
    opcode: str
    attribute: str
    callee: Computation

    @property
    def caller(self) -> Instruction:
        """The calling instruction."""
        return self.computation._instructions[self.place]

    @property
    def use(self) -> str:
        """Role of the callee, such as loop body, branch or reducer."""
        return _USES.get((self.opcode, self.attribute), APPLIED)


@attrs.frozen(eq=False)
class CallGraph:
    """The call graph of a module. Refers to callers by position, so it does not keep instructions alive."""

    module: Module
    callers: Mapping[Computation, tuple[CallEdge, ...]]
    """Call edges of each computation that has callers, in text order."""
    callees: Mapping[Computation, tuple[CallEdge, ...]]
    """Call edges out of each computation that calls others, in text order."""
    runs: Mapping[Computation, int | None]
    """Execution count of each computation in one run of the module, or None if data-dependent or above `MOST_RUNS`.

    Computations that are unreachable from the entry are omitted. The condition of a loop with an annotated trip count
    counts 0 except on TPU: XLA's CPU and GPU runtimes do not evaluate it.
    """
    most_runs: Mapping[Computation, int | None]
    """Upper bound on `runs`, counting every branch each time its conditional executes, or None if a trip count is unknown.
    """
    counted_runs: Mapping[Computation, int | None]
    """As `most_runs`, counting loops of unknown trip count once per execution; None only above `MOST_RUNS`."""
    stepped: frozenset[Computation]
    """Computations whose instructions execute individually, including the entry, excluding fusions and reducers."""
    trips: Mapping[tuple[Computation, int], int | None]
    """Trip count of each while, keyed by its computation and position, or None if unknown."""
    _loop_calls: dict[Computation, CallEdge | None] = attrs.field(factory=dict, init=False, repr=False)
    """Cache of `loop_call`, so that asking it of every computation of a long chain of calls walks the chain once."""

    def loops(self) -> Iterator[tuple[Instruction, int | None]]:
        """Yields every while with its trip count, which is None if unknown."""
        for (computation, place), trip in self.trips.items():
            yield computation._instructions[place], trip

    def sequential_instructions(self) -> Iterator[Instruction]:
        """Yields instructions that execute individually, skipping those inside fusions and reducers."""
        # The interpreter need not resume a generator for each of them.
        return chain.from_iterable(one for one in self.module.computations if one in self.stepped)

    def call(self, computation: Computation | None) -> CallEdge | None:
        """Returns the first call of a computation in text order, or None if it is never called."""
        edges = self.callers.get(computation) if computation is not None else None
        return edges[0] if edges else None

    def caller(self, computation: Computation | None) -> Instruction | None:
        """Returns the first instruction in text order that calls a computation, or None if it is never called."""
        call = self.call(computation)
        return call.caller if call is not None else None

    def use(self, computation: Computation) -> str:
        """Returns the role of a computation, such as loop body or reducer, at its first call in text order.

        The role is `ENTRY` for the entry computation and `UNUSED` for any other without callers.
        """
        if computation is self.module.entry:
            return ENTRY
        edges = self.callers.get(computation)
        return edges[0].use if edges else UNUSED

    def loop_call(self, computation: Computation) -> CallEdge | None:
        """Returns the call edge of the innermost while that contains a computation, or None outside all loops.

        Of a computation with several callers, only the first call in text order is followed.
        """
        known, path = self._loop_calls, dict[Computation, None]()
        found: CallEdge | None = None
        while computation not in path:
            if computation in known:
                found = known[computation]
                break
            path[computation] = None
            call = self.call(computation)
            if call is None or call.opcode == "while":
                found = call
                break
            computation = call.computation
        known.update(dict.fromkeys(path, found))
        return found

    def with_trips(self, trips: Mapping[str, int]) -> CallGraph:
        """Returns a copy with other trip counts, and with the execution counts that follow from them.

        Args:
            trips: Trip counts by the name of a `while` or of its body, overriding those in the text.

        Raises:
            ValueError: A name is neither a loop nor a loop body.
        """
        bodies = {str(body.name): key for key in self.trips if (body := _body(key)) is not None}
        trips = self.trips_by_body(trips)
        if missing := sorted(set(trips) - set(bodies)):
            loops = {
                str(home._instructions[place].name): str(body.name)
                for home, place in self.trips
                if (body := _body((home, place))) is not None
            }
            there = did_you_mean(missing[0], [*loops, *bodies]) or (
                f"loops: {', '.join(f'{loop} (body {body})' for loop, body in islice(loops.items(), _MOST_NAMED))}"
                if loops
                else "the module has no loops"
            )
            raise ValueError(f"no loop or loop body is named {missing[0]}; {there}")
        known = {**self.trips, **{bodies[name]: count for name, count in trips.items()}}
        callees = self.callees
        order = _callers_first([self.module.entry], callees)
        return attrs.evolve(
            self,
            trips=known,
            runs=_runs(self.module.entry, order, callees, known),
            most_runs=_runs(self.module.entry, order, callees, known, per_branch=1),
            counted_runs=_runs(self.module.entry, order, callees, known, per_branch=1, per_loop=1),
        )

    def trips_by_body(self, trips: Mapping[str, int]) -> dict[str, int]:
        """Returns `trips` with each name of a `while` replaced by that of its body. Other names are unchanged."""
        loops = {
            str(home._instructions[place].name): str(body.name)
            for home, place in self.trips
            if (body := _body((home, place))) is not None
        }
        bodies = set(loops.values())
        return {name if name in bodies else loops.get(name, name): count for name, count in trips.items()}

    def most(self, own: Mapping[Computation, int]) -> int | None:
        """Returns an upper bound on the total of a quantity, such as bytes, over one run of the module.

        Conditionals count their largest branch. Returns None if a loop of unknown trip count contributes.

        Args:
            own: The quantity per execution of each computation, excluding its callees; 0 for those omitted.
        """
        callees = self.callees
        totals: dict[Computation, int] = {}
        for computation in reversed(_callers_first([self.module.entry], callees)):
            total, branches = own.get(computation, 0), dict[int, int]()
            for edge in callees.get(computation, ()):
                inside = totals.get(edge.callee, 0)
                if not inside:
                    continue
                if edge.use == BRANCH:
                    branches[edge.place] = max(inside, branches.get(edge.place, 0))
                    continue
                factor = _runs_per_call(edge, self.trips)
                if factor is None:
                    return None
                total += factor * inside
            totals[computation] = total + sum(branches.values())
        return totals[self.module.entry]

    def loop_around(self, computation: Computation) -> Instruction | None:
        """Returns the innermost while around a computation, directly or through calls, or None outside all loops.

        Of a computation with several callers, only the first call in text order is followed.
        """
        call = self.loop_call(computation)
        return call.caller if call is not None else None


def _body(key: tuple[Computation, int]) -> Computation | None:
    body = key[0]._instructions[key[1]].attributes.get("body")
    return body if isinstance(body, Computation) else None


@attrs.define(eq=False)
class Calls:
    """Collects the calls of a module, computation by computation, in any order."""

    module: Module
    _edges: dict[Computation, tuple[CallEdge, ...]] = attrs.field(factory=dict)
    """The calls that stand in each computation."""
    _trips: dict[Computation, dict[int, int | None]] = attrs.field(factory=dict)

    def add(self, computation: Computation) -> tuple[CallEdge, ...]:
        """Adds the calls of a computation and returns them."""
        found = []
        for place, instruction in enumerate(computation._instructions):
            opcode = instruction._head.opcode
            if opcode in CALLS_NOTHING:
                continue
            if opcode == "while":
                self._trips.setdefault(computation, {})[place] = trip_count(instruction)
            for attribute, callee in instruction.callees():
                found.append(CallEdge(computation, place, instruction.name, opcode, attribute, callee))
        edges = tuple(found)
        if edges:
            self._edges[computation] = edges
        return edges

    def graph(self) -> CallGraph:
        """Returns the call graph, after all computations that call others have been added."""
        module, callees, trips = self.module, self._edges, self._trips
        callers: dict[Computation, list[CallEdge]] = {}
        for computation in module.computations:
            for edge in callees.get(computation, ()):
                callers.setdefault(edge.callee, []).append(edge)
        order = _callers_first([module.entry], callees)
        by_place = {
            (c, place): trip for c in module.computations if c in trips for place, trip in trips[c].items()
        }
        has_branches = any(edge.use == BRANCH for edges in callees.values() for edge in edges)
        runs = _runs(module.entry, order, callees, by_place)
        most = _runs(module.entry, order, callees, by_place, per_branch=1) if has_branches else runs
        is_counted = None in by_place.values()
        return CallGraph(
            module,
            {callee: tuple(edges) for callee, edges in callers.items()},
            callees,
            runs,
            most,
            _runs(module.entry, order, callees, by_place, per_branch=1, per_loop=1) if is_counted else most,
            _stepped(module.entry, order, callees),
            by_place,
        )


@fact
def call_graph(module: Module) -> CallGraph:
    """Builds the call graph of a module, with execution counts from the trip counts of loops."""
    calls = Calls(module)
    for computation in module.walk(only_callers=True):
        calls.add(computation)
    return calls.graph()


@fact
def callers_first(module: Module) -> tuple[Computation, ...]:
    """Returns all computations, callers before callees."""
    return tuple(_callers_first(module.computations, call_graph(module).callees))


def _callers_first(
    roots: Sequence[Computation], callees: Mapping[Computation, tuple[CallEdge, ...]]
) -> list[Computation]:
    """These computations and all that they call, each behind all that call it."""
    done: list[Computation] = []
    entered: set[Computation] = set()
    stack: list[tuple[Computation, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        computation, leaving = stack.pop()
        if leaving:
            done.append(computation)
        elif computation not in entered:
            entered.add(computation)
            if edges := callees.get(computation):
                stack.append((computation, True))
                stack.extend([(edge.callee, False) for edge in reversed(edges)])
            else:
                done.append(computation)
    return done[::-1]


def _runs(
    entry: Computation,
    order: Iterable[Computation],
    callees: Mapping[Computation, tuple[CallEdge, ...]],
    trips: Mapping[tuple[Computation, int], int | None],
    per_branch: int | None = None,
    per_loop: int | None = None,
) -> dict[Computation, int | None]:
    """Execution count of each computation; `order` has callers before callees. `per_branch` is how often each branch is taken
    when a conditional runs, and `per_loop` how often the body of a loop runs if the text does not say.
    """
    runs: dict[Computation, int | None] = {entry: 1}
    for computation in order:
        outer = runs.setdefault(computation, 0)
        for edge in callees.get(computation, ()):
            use = edge.use
            if use == FUSED:
                factor: int | None = 1
            else:
                factor = _runs_per_call(edge, trips) if use != BRANCH else per_branch
                if factor is None and edge.opcode == "while":
                    factor = per_loop
            known = runs.get(edge.callee, 0)
            count = None if outer is None or factor is None or known is None else known + outer * factor
            runs[edge.callee] = None if count is None or count > MOST_RUNS else count
    return runs


def _runs_per_call(edge: CallEdge, trips: Mapping[tuple[Computation, int], int | None]) -> int | None:
    if edge.opcode == "while":
        trip = trips[edge.computation, edge.place]
        return condition_runs(edge.caller, trip) if edge.attribute == "condition" else trip
    # Which branch is taken, and how often a function is applied to elements, the text does not say.
    return None if edge.use in (BRANCH, APPLIED) else 1


def _stepped(
    entry: Computation, order: Iterable[Computation], callees: Mapping[Computation, tuple[CallEdge, ...]]
) -> frozenset[Computation]:
    found = {entry}
    for computation in order:
        edges = callees.get(computation, ())
        if computation in found:
            found.update(edge.callee for edge in edges if edge.use in SEQUENTIAL_USES)
            # An asynchronous body is one instruction, whose result the start has; what it calls runs on.
            for body in (edge.callee for edge in edges if edge.use == ASYNC):
                found.update(edge.callee for edge in callees.get(body, ()) if edge.use in SEQUENTIAL_USES)
    return frozenset(found)
