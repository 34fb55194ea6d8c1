"""Cost of a module: XLA's own figures, and totals with every loop scaled by its trip count."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Literal

import attrs

from hlotext.analysis import (
    Backend,
    Phase,
    Scope,
    SourceLocation,
    XlaAge,
    age_for,
    backend_of,
    call_graph,
    called_lines,
    choose_chip,
    scopes,
    source_locations,
)
from hlotext.analysis.call_graph import CallEdge
from hlotext.analysis.chips import Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.facts import fact
from hlotext.analysis.formatting import pluralize
from hlotext.cost.counting import MOST, Amount, Counting
from hlotext.cost.sizes import ShapeSizes, padded_size, size_with_small_tables
from hlotext.cost.target_costs import TargetCosts
from hlotext.cost.tpu import TpuCost, as_tpu
from hlotext.ir import gc_control
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.value import mimebundle

Key = Literal["scope", "line", "caller", "opcode", "computation", "instruction"]
"""Keys by which costs can be summed."""

KEYS: tuple[Key, ...] = ("scope", "line", "caller", "opcode", "computation", "instruction")
UNKNOWN_LINE = "(unknown)"


@with_foreign_names
@attrs.frozen
class Cost:
    """FLOPs, transcendental operations and bytes of an instruction or of a module."""

    flops: float = 0
    """Non-transcendental operations, including integer operations and comparisons."""
    transcendentals: float = 0
    """Transcendental operations: exponentials, logarithms, square roots, etc., per element."""
    bytes_accessed: float = 0
    """Bytes read and written in all memory spaces, without padding."""


@attrs.frozen
class RunCost(Cost):
    """The cost of one run of a module, with loops scaled by trip counts and asynchronous work counted once.

    Fusions count only the bytes that their bodies touch, such as the rows of a gather; XLA counts the whole table.
    """

    unknown_loops: tuple[Instruction, ...] = ()
    """Loops of unknown trip count, counted once."""
    conditionals: tuple[Instruction, ...] = ()
    """Conditionals whose branches have different costs; the most expensive is counted."""
    unknown_calls: tuple[Instruction, ...] = ()
    """Custom calls of unknown cost, for which only operand and result bytes are counted."""
    uncounted: tuple[tuple[Instruction, str], ...] = ()
    """Other instructions whose cost is not counted, with the reasons."""
    has_unsized: bool = False
    """True if a shape of unknown size was counted as 0."""
    at_most_calls: tuple[Instruction, ...] = ()
    """Kernels whose branches are all counted although some may not execute, as when masked blocks are skipped."""
    kernel_error: str = ""
    """Reason why the body of a kernel could not be read; empty if all were read."""

    @property
    def is_exact(self) -> bool:
        """True if all trip counts, branches taken, custom-call costs and sizes are known."""
        return not (
            self.unknown_loops
            or self.conditionals
            or self.unknown_calls
            or self.uncounted
            or self.has_unsized
            or self.at_most_calls
        )

    @property
    def bound(self) -> Literal["", "at least", "at most", "about"]:
        """`at least`, `at most` or `about` for the kind of uncertainty; empty if there is none.

        The choice of conditional branches is ignored.
        """
        if self.is_at_least:
            return "about" if self.at_most_calls else "at least"
        return "at most" if self.at_most_calls else ""

    @property
    def is_at_least(self) -> bool:
        """True if the cost is a lower bound, ignoring the choice of conditional branches."""
        return bool(self.unknown_loops or self.unknown_calls or self.uncounted or self.has_unsized)

    @property
    def mark(self) -> str:
        """Prefix for displayed totals: empty if exact, else `at least `, `at most ` or `about `.

        `at least` names the number of custom calls of unknown cost, if there are any.
        """
        if self.unknown_calls:
            return (
                f"at least (excluding {pluralize(len(self.unknown_calls), 'custom call')} of unknown cost) "
            )
        return "" if self.is_exact else f"{self.bound or 'about'} "


@attrs.frozen
class InstructionCost:
    """The cost of one instruction over a run of the module, excluding its callees."""

    instruction: Instruction
    home: Computation
    """The computation in which it executes; for fused instructions, the one that contains the fusion."""
    cost: Cost
    """Cost over all executions. Bytes of fused instructions are those of the fusion."""


@with_foreign_names
class Analysis:
    """Cost of a module, created by `analyze`: of one run (`run`), by instruction, line or scope, and as XLA counts it.

    `run.flops` is what the program does, with every iteration of loops, and what `hlotext cost` prints. `flops`,
    `transcendentals` and `bytes_accessed` are the three numbers of XLA's `HloCostAnalysis`, which counts each loop body
    once; `as_xla` gives them as `compiled.cost_analysis()` does on each platform. All other members are of one run.
    """

    def __init__(
        self,
        module: Module,
        age: XlaAge,
        costs: TargetCosts | None = None,
        trips: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.module = module
        self.age = age
        """Age of the XLA version whose rules were applied."""
        has_small_tables = age.has(xla_changes.SMALL_TUPLE_TABLES)
        self._costs = costs
        sizes = ShapeSizes(size_with_small_tables) if has_small_tables else None
        graph = call_graph(module)
        self._graph = graph.with_trips(dict(trips)) if trips else graph
        self._counting = Counting(module, sizes, self._graph, costs)

    def __repr__(self) -> str:
        """Both counts of the FLOPs, since one is easily taken for the other."""
        run, xla = self.run.flops, self.flops
        why = f" ({', '.join(self.xla_omissions)})" if run != xla and self.xla_omissions else ""
        return f"<Analysis of {self.module.name}: run.flops={run:,.0f}, flops as XLA counts them={xla:,.0f}{why}>"

    @property
    def flops(self) -> float:
        """FLOPs as XLA counts them, in float32: each loop body once, -1 for each custom call of unknown cost.

        Those of one run of the program are `run.flops`.
        """
        return self._counting.figures[self.module.entry][0]

    @property
    def transcendentals(self) -> float:
        """Transcendental operations as XLA counts them, in float32: each loop body once. Of a run: `run.transcendentals`."""
        return self._counting.figures[self.module.entry][1]

    @property
    def bytes_accessed(self) -> float:
        """Bytes accessed as XLA counts them, in float32: each loop body once, -1 for each custom call of unknown cost.

        Those of one run of the program are `run.bytes_accessed`.
        """
        return self._counting.figures[self.module.entry][2]

    _repr_mimebundle_ = mimebundle

    @functools.cached_property
    def run(self) -> RunCost:
        """The cost of one run of the module, with loops scaled by their trip counts."""
        counting, graph = self._counting, self._graph
        reached = counting.weights
        conditionals, calls, at_most = [], [], []
        for computation in self.module.computations:
            if computation not in reached:
                continue
            works = counting.works[computation]
            for instruction, work in zip(computation.instructions, works, strict=True):
                if work.is_unknown:
                    known = counting.known(instruction, work)
                    if known.is_unknown:
                        calls.append(instruction)
                    elif known.is_at_most:
                        at_most.append(instruction)
                elif instruction._head.opcode == "conditional":
                    branches = {counting.amounts.get(body) for body in work.bodies}
                    if len(branches) > 1:
                        conditionals.append(instruction)
        return RunCost(
            *counting.amounts[self.module.entry],
            unknown_loops=tuple(
                loop for loop, trips in graph.loops() if trips is None and loop.computation in reached
            ),
            conditionals=tuple(conditionals),
            unknown_calls=tuple(calls),
            uncounted=tuple(
                (one, why) for one, why in counting.uncounted.items() if one.computation in reached
            ),
            has_unsized=bool(counting.sizes.unknown),
            at_most_calls=tuple(at_most),
            kernel_error=counting.kernel_error,
        )

    @property
    def counts_loops_again(self) -> bool:
        """True if `run` counts a loop body 0 or several times, where XLA counts every body once."""
        reached = self._counting.weights
        loops = self._graph.loops()
        return any(trips not in (None, 1) and loop.computation in reached for loop, trips in loops)

    @functools.cached_property
    def xla_omissions(self) -> tuple[str, ...]:
        """Reasons why XLA's numbers differ from the cost of one run, as phrases such as `loop bodies once`.

        XLA counts one iteration of each loop, omits the work of custom calls, and counts FFTs with another formula.
        Empty if none of these occurs in the module.
        """
        counting, reached = self._counting, self._counting.weights
        omissions = ["loop bodies once"] if self.counts_loops_again else []
        for computation in reached:
            works = zip(computation.instructions, counting.works[computation], strict=True)
            if any(work.is_unknown and counting.known(one, work).flops > 0 for one, work in works):
                omissions.append("without custom calls")
                break
        works_reached = (work for computation in reached for work in counting.works[computation])
        if any(work.performed not in (None, work.flops) for work in works_reached):
            omissions.append("FFTs counted with XLA's formula")
        return tuple(omissions)

    def as_tpu(self, chip: Chip | str) -> TpuCost:
        """Returns the result of XLA:TPU's own cost analysis, as `compiled.cost_analysis()` does on TPU.

        Raises ValueError for a chip that is unknown or not a TPU.
        """
        return as_tpu(self.module, chip)

    def as_xla(self, chip: Chip | str | None = None) -> Cost | TpuCost:
        """Returns the result of XLA's own cost analysis: for a TPU module that of XLA:TPU, otherwise `HloCostAnalysis`.

        `chip` is used for TPU modules only, whose seconds and bytes of tuples depend on it; None uses a chip that fits the
        text (`choose_chip`). Raises ValueError for an unknown chip, and for a TPU module if the chip is not a TPU.
        """
        given = chip_named(chip) if isinstance(chip, str) else chip
        if backend_of(self.module) is not Backend.TPU:
            return Cost(self.flops, self.transcendentals, self.bytes_accessed)
        choice = choose_chip(self.module, given)
        assert choice is not None  # there is one for each module for TPU
        return self.as_tpu(choice.chip)

    def of(self, instruction: Instruction) -> Cost:
        """Returns the cost of executing one instruction once, including its callees and all iterations of loops.

        Raises KeyError for an instruction of another module.
        """
        expect(instruction, Instruction)
        computation = instruction.computation
        if computation is None or computation not in self._counting.works:
            raise KeyError(f"{instruction.name} is not an instruction of {self.module.name}")
        return Cost(*self._counting.whole(computation, self._places(computation)[instruction]))

    @functools.cached_property
    def _place_tables(self) -> dict[Computation, dict[Instruction, int]]:
        return {}

    def _places(self, computation: Computation) -> dict[Instruction, int]:
        table = self._place_tables.get(computation)
        if table is None:
            table = {instruction: place for place, instruction in enumerate(computation.instructions)}
            self._place_tables[computation] = table
        return table

    def shares(self) -> Sequence[InstructionCost]:
        """Returns the cost of each instruction over one run, omitting zeros. The costs add up to `run`."""
        return self._shares

    @functools.cached_property
    def _shares(self) -> tuple[InstructionCost, ...]:
        with gc_control.gc_paused(collect_first=False):
            return tuple(self._find_shares())

    def _find_shares(self) -> Iterator[InstructionCost]:
        counting = self._counting
        homes: dict[Computation, Computation] = {}
        graph = self._graph
        for computation, (operations, accesses) in counting.weights.items():
            call = graph.call(computation)
            is_inside = call is not None and call.opcode == "fusion"
            home = homes.get(call.computation, call.computation) if is_inside and call else computation
            homes[computation] = home
            if not operations and not accesses:
                continue
            for instruction, own in zip(computation.instructions, counting.owned[computation], strict=True):
                flops, transcendentals, accessed = own
                if flops or transcendentals or accessed:
                    cost = Cost(flops * operations, transcendentals * operations, accessed * accesses)
                    yield InstructionCost(instruction, home, cost)

    def by(self, key: Key, *, depth: int | None = None) -> dict[str, Cost]:
        """Groups the cost of one run by a key, most FLOPs first. The groups add up to `run`.

        Args:
            key: `scope`: the path of names in `op_name`, with repeated layers separate. `line`: the Python line.
                `caller`: the Python line and the line that called its function. `opcode`: FLOPs by the opcodes inside
                fusions, bytes by the instruction that moves them. `computation`: the computation that executes the
                instruction; for fused instructions, the one that contains the fusion. `instruction`: the instruction's
                name, with costs as in `by_instruction`.
            depth: Maximum number of names in a scope, or None for all.

        Raises:
            ValueError: The key is unknown.
        """
        if key not in KEYS:
            raise ValueError(f"costs can be grouped by {', '.join(KEYS)}, not by {key!r}")
        if key == "instruction":
            named: dict[str, Amount] = {}
            for instruction, cost in self.by_instruction().items():
                own = Amount(cost.flops, cost.transcendentals, cost.bytes_accessed)
                named[instruction.name] = named.get(instruction.name, Amount()).plus(own)
            return {name: Cost(*amount) for name, amount in named.items()}
        subject, text = self._naming(key, depth)
        # What names a cost is nearly always one object for many instructions: it is found by identity, and named once.
        sums: dict[int, list[float]] = {}
        totals: dict[str, list[float]] = {}
        for share in self.shares():
            one, cost = subject(share), share.cost
            total = sums.get(id(one))
            if total is None:
                total = sums[id(one)] = totals.setdefault(text(one), [0, 0, 0])
            total[0] += cost.flops
            total[1] += cost.transcendentals
            total[2] += cost.bytes_accessed
        ordered = sorted(totals.items(), key=lambda item: (-item[1][0], -item[1][2], item[0]))
        return {name: Cost(*(min(amount, MOST) for amount in total)) for name, total in ordered}

    def _naming(
        self, key: Key, depth: int | None
    ) -> tuple[Callable[[InstructionCost], Any], Callable[[Any], str]]:
        """The object of the module that a cost is added up by, and the name of such an object."""
        if key == "computation":
            return lambda share: share.home, lambda home: str(home.name)
        subject, text = naming(self.module, key, depth)
        return lambda share: subject(share.instruction), text

    @property
    def runs(self) -> Mapping[Computation, int | None]:
        """Execution count of each computation in one run, or None if it depends on an unknown trip count or on a branch."""
        return self._graph.runs

    def by_instruction(self) -> dict[Instruction, Cost]:
        """Returns the cost of one run by instruction, most FLOPs first.

        A fusion includes the cost of its body, and an asynchronous start the cost of the operation that it wraps. The
        cost of a body with several callers is divided equally among them.
        """
        owners: dict[Computation, Counter[Instruction]] = {}
        for computation in reversed(self._counting.callees_first):
            for edge in self._graph.callers.get(computation, ()):
                if edge.opcode == "fusion" or _wraps_one_operation(edge):
                    outer = owners.get(edge.computation)
                    own = owners.setdefault(computation, Counter())
                    own.update({edge.caller: 1} if outer is None else outer)
        wholes = {computation: found.total() for computation, found in owners.items()}
        totals: dict[Instruction, list[float]] = {}
        for share in self.shares():
            cost, inside = share.cost, share.instruction._computation
            found = owners.get(inside) if inside is not None else None
            whole = wholes[inside] if found is not None and inside is not None else 1
            for owner, part in (found or {share.instruction: 1}).items():
                total = totals.setdefault(owner, [0, 0, 0])
                total[0] += cost.flops * part / whole
                total[1] += cost.transcendentals * part / whole
                total[2] += cost.bytes_accessed * part / whole
        ordered = sorted(totals.items(), key=lambda item: (-item[1][0], -item[1][2], item[0].name))
        return {owner: Cost(*(min(amount, MOST) for amount in total)) for owner, total in ordered}

    def by_scope(self) -> dict[Scope, Cost]:
        """Returns the cost of one run by scope and phase.

        The `source` of each key is None: scopes are merged whether or not they were propagated.
        """
        found = scopes(self.module)
        # Equal scopes are nearly always one object, and a number is found sooner than a scope.
        sums: dict[int, list[float]] = {}
        seen: dict[int, Scope] = {}
        for share in self.shares():
            scope, cost = found.of(share.instruction), share.cost
            number = id(scope)
            total = sums.get(number)
            if total is None:
                seen[number] = scope
                total = sums[number] = [0, 0, 0]
            total[0] += cost.flops
            total[1] += cost.transcendentals
            total[2] += cost.bytes_accessed
        totals: dict[Scope, Amount] = {}
        for number, scope in seen.items():
            key = attrs.evolve(scope, source=None)
            totals[key] = totals.get(key, Amount()).plus(Amount(*sums[number]))
        return {scope: Cost(*amount) for scope, amount in totals.items()}

    @property
    def recomputed(self) -> float:
        """Fraction (0 to 1) of the FLOPs of one run that are recomputed for the backward pass (`jax.checkpoint`).

        Recomputation is identified by `op_name`. The fraction is 0 if the run has no FLOPs.
        """
        again = sum(one.flops for scope, one in self.by_scope().items() if scope.phase is Phase.RECOMPUTED)
        return again / self.run.flops if self.run.flops else 0.0

    @functools.cached_property
    def bytes_by_memory_space(self) -> Mapping[int, float]:
        """Bytes that one run reads and writes in each memory space: 0 is HBM, 1 is VMEM on TPU, 5 is host memory."""
        return self._counting.bytes_by_space()

    @functools.cached_property
    def bytes_written(self) -> Mapping[Instruction, float]:
        """Bytes that each instruction writes in one run, as part of its `bytes_accessed`.

        In-place updates count the update only. Instructions that write nothing are omitted.
        """
        return self._counting.bytes_written()

    @functools.cached_property
    def padded_bytes_by_memory_space(self) -> Mapping[int, float]:
        """Bytes that one run reads and writes in each memory space, including layout padding."""
        counting = Counting(self.module, ShapeSizes(padded_size), self._graph, self._costs)
        return counting.bytes_by_space()


def _wraps_one_operation(edge: CallEdge) -> bool:
    """True if an asynchronous start calls a body of one operation besides its parameters."""
    body = edge.callee
    return ROLES.get(edge.opcode) == "start" and len(body.instructions) == len(body.parameters) + 1


def naming(
    module: Module, key: Key, depth: int | None = None
) -> tuple[Callable[[Instruction], Any], Callable[[Any], str]]:
    """Returns a function from an instruction to the object that a key groups it by, and one that names such an object.

    `depth` limits the number of names of a scope; None keeps all.
    """
    if key == "opcode":
        return lambda instruction: instruction.opcode, str
    if key == "instruction":
        return lambda instruction: instruction.name, str
    if key == "computation":
        return lambda instruction: instruction.computation, lambda home: str(home.name)
    if key == "scope":
        found = scopes(module)
        return found.of, str if depth is None else lambda scope: "/".join(scope.path[:depth]) or str(scope)
    if key == "caller":
        return called_lines(module).get, lambda place: str(place[0]) if place is not None else UNKNOWN_LINE
    return source_locations(module).get, lambda found: line_name(found[0] if found is not None else None)


def line_name(place: SourceLocation | None) -> str:
    """Returns `FILE:LINE` of a Python source line, or the name for unknown lines for None."""
    return UNKNOWN_LINE if place is None else f"{place.file}:{place.line}"


def analyze(
    module: Module,
    *,
    age: XlaAge | date | str | None = None,
    costs: TargetCosts | None = None,
    trips: Mapping[str, int] | None = None,
) -> Analysis:
    """Analyzes the cost of a module by the rules of XLA's `HloCostAnalysis`. Cached until the module is edited.

    Args:
        module: The module.
        age: The XLA version whose rules apply: an XlaAge, a date or a jaxlib release ("0.10.2"). None (the default)
            detects it from the module text, or else assumes the newest.
        costs: Costs of custom-call targets (`target_costs`).
        trips: Trip counts by the name of a `while` or of its body, overriding those in the text.

    Raises:
        ValueError: The age is invalid, or a name in `trips` is neither a loop nor a loop body.
    """
    return _analysis(module, age_for(module, age), costs, tuple(sorted((trips or {}).items())))


_analysis = fact(Analysis)
