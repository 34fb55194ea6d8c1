"""The work of every instruction of a module by one measure of sizes, and the sums of computations, callees first."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hlotext.analysis import CallGraph, call_graph, communications, memory_space
from hlotext.analysis.communication import KINDS, chain_of
from hlotext.analysis.equal_computations import equal_computations
from hlotext.analysis.mosaic import MosaicKernel, kernels
from hlotext.analysis.trip_count import condition_runs
from hlotext.cost.custom_calls import kernel_work, known_work
from hlotext.cost.op_cost import NOT_WELL_FORMED, NOTHING, CalleeCost, CannotCountError, OpCost, Rule
from hlotext.cost.rules import RULES
from hlotext.cost.sizes import ShapeSizes
from hlotext.cost.target_costs import TargetCosts
from hlotext.cost.xla_sums import Figures, Orders, figures_of, total_of
from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.shape import Shape

MOST = 10**200
"""Saturation limit: nested loops multiply until a number exceeds the range of floats."""


def product_flops(product: Instruction) -> float:
    """Returns the FLOPs of one execution of a matrix product, convolution or custom call; 0 if unknown.

    Products and convolutions are counted as in XLA's `HloCostAnalysis`, library calls by the products that they compute.
    """
    expect(product, Instruction)
    try:
        work = _RULES_BY_OPCODE[product.opcode](product, _UNMEASURED)
    except (CannotCountError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return 0
    return ((known_work(product, work) or work) if work.is_unknown else work).flops


class Amount(NamedTuple):
    """FLOPs, transcendentals and bytes."""

    flops: float = 0
    transcendentals: float = 0
    accessed: float = 0

    def plus(self, other: Amount, times: int = 1) -> Amount:
        """Returns the sum with a multiple of another amount."""
        return Amount(
            min(self.flops + other.flops * times, MOST),
            min(self.transcendentals + other.transcendentals * times, MOST),
            min(self.accessed + other.accessed * times, MOST),
        )


_ZERO = Amount()


class _Unmeasured(ShapeSizes):
    """Sizes for who asks for operations alone: bytes take most of the time of counting a product."""

    def of(self, shape: Shape | None) -> int:
        return 0

    def leaves(self, shape: Shape | None) -> tuple[int, ...]:
        return ()


_UNMEASURED = _Unmeasured()
_RULES_BY_OPCODE: dict[str, Rule] = {
    name: RULES[row.cost_rule] for name, row in OPCODES.items() if row.cost_rule is not None
}
_ALL_REDUCES = frozenset(opcode for opcode, kind in KINDS.items() if kind == "all-reduce")
_FREE = frozenset(name for name, row in OPCODES.items() if row.cost_rule == "free")
"""More than half of all instructions, so that they are not worth a call each."""


class Counting:
    """Counts the work of each instruction, and the cost of one run of each computation."""

    def __init__(
        self,
        module: Module,
        sizes: ShapeSizes | None = None,
        graph: CallGraph | None = None,
        costs: TargetCosts | None = None,
    ) -> None:
        self._costs = costs
        self._known: dict[Instruction, OpCost | None] = {}
        self.graph: CallGraph = graph if graph is not None else call_graph(module)
        self.sizes = sizes if sizes is not None else ShapeSizes()
        self.works: dict[Computation, list[OpCost]] = {}
        """The work of each instruction, in the order of the computation."""
        self.owned: dict[Computation, list[Amount]] = {}
        """Cost of each instruction in one run, as `own` computes it."""
        self.callers: dict[Computation, list[tuple[int, OpCost]]] = {}
        """Place and work of the instructions that run bodies."""
        self.amounts: dict[Computation, Amount] = {}
        """Cost of each computation in one run, with its loops scaled by their trip counts."""
        self.orders: Orders = {}
        self.uncounted: dict[Instruction, str] = {}
        """Instructions of no known cost, and why."""
        # The devices of each communication, by the instruction that begins it.
        self._begun = {one.instruction: one.participants for one in communications(module)}
        self._first = equal_computations(module)
        self._alike: set[Computation] = set()
        """Computations of which equal ones cost the same: they call only fusions, and all that they hold is counted."""
        self._fusions: dict[tuple[Computation, int, object], tuple[OpCost, Computation]] = {}
        """Work of fusions, and the body counted, by equal bodies, shapes and kinds."""
        self.counted_as: dict[Computation, Computation] = {}
        """The equal computation that was counted, for those that were not counted themselves."""
        self.callees_first = list(self._first)
        for computation in self.callees_first:
            first = self._first[computation]
            if first is not computation and first in self._alike:
                self._count_as(computation, first)
            else:
                self._count(computation)

    def _count_as(self, computation: Computation, first: Computation) -> None:
        """Takes over what was counted for an equal computation, with the bodies of its own fusions."""
        works = self.works[first]
        calls = self.callers.get(first)
        if calls is not None:
            works, own_calls = works.copy(), []
            for place, work in calls:
                body: Computation = computation._instructions[place]._attributes["calls"]
                self.sizes.note_equal_body(body, work.bodies[0])
                works[place] = work._replace(bodies=(body,))
                own_calls.append((place, works[place]))
            self.callers[computation] = own_calls
        self.works[computation] = works
        self.owned[computation] = self.owned[first]
        self.amounts[computation] = self.amounts[first]
        self.counted_as[computation] = first

    def _count(self, computation: Computation) -> None:
        works: list[OpCost] = []
        owned: list[Amount] = []
        calls: list[tuple[int, OpCost]] = []
        flops: float = 0
        transcendentals: float = 0
        accessed: float = 0
        is_alike = True
        uncounted = len(self.uncounted)
        for place, instruction in enumerate(computation.instructions):
            opcode = instruction._head.opcode
            if opcode in _FREE:
                works.append(NOTHING)
                owned.append(_ZERO)
                continue
            if opcode == "custom-call" and self._costs is not None:
                is_alike = False  # what a table says is its own business
            work = self._fusion_work(instruction) if opcode == "fusion" else self._work(instruction)
            works.append(work)
            own = self.own(instruction, work) if work is not NOTHING else _ZERO
            owned.append(own)
            if own is _ZERO and not work.bodies:
                continue
            own_flops, own_transcendentals, own_accessed = own
            flops += own_flops
            transcendentals += own_transcendentals
            accessed += own_accessed
            if work.bodies:
                calls.append((place, work))
                if opcode != "fusion":
                    is_alike = False
        if calls:
            self.callers[computation] = calls
        if is_alike and len(self.uncounted) == uncounted:
            self._alike.add(computation)
        total = Amount(flops, transcendentals, accessed)
        for place, work in calls:
            for body, times, has_bytes in self.calls(computation, place, work):
                inner = self.amounts.get(body, _ZERO)
                total = total.plus(inner if has_bytes else inner._replace(accessed=0), times)
        self.works[computation] = works
        self.owned[computation] = owned
        self.amounts[computation] = total

    @functools.cached_property
    def figures(self) -> Mapping[Computation, Figures]:
        """XLA's figures for each computation."""
        found: dict[Computation, Figures] = {}
        for computation in self.callees_first:
            if (first := self.counted_as.get(computation)) is not None:
                found[computation] = found[first]
                continue
            figures = {
                place: figures_of(work, found)
                for place, work in enumerate(self.works[computation])
                if work is not NOTHING
            }
            found[computation] = total_of(computation, figures, self.orders)
        return found

    def _fusion_work(self, fusion: Instruction) -> OpCost:
        """The work of a fusion, of those with one shape and equal bodies counted once."""
        body: Any = fusion._attributes.get("calls")
        first = self._first.get(body)
        if first is None or first not in self._alike:
            return self._work(fusion)
        key = first, id(fusion._head.shape), fusion._attributes.get("kind")
        known = self._fusions.get(key)
        if known is None:
            work = self._work(fusion)
            if work is not NOTHING:
                self._fusions[key] = work, body
            return work
        work, counted = known
        self.sizes.note_equal_body(body, counted)
        return work._replace(bodies=(body,)) if work.bodies else work

    def _work(self, instruction: Instruction) -> OpCost:
        if instruction.opcode not in _RULES_BY_OPCODE:
            self.uncounted[instruction] = f"opcode {instruction.opcode} is unknown"
            return NOTHING
        try:
            return self._rule_work(instruction)
        except CannotCountError as error:
            self.uncounted[instruction] = str(error)
        except NOT_WELL_FORMED:
            self.uncounted[instruction] = "it is not well-formed"
        return NOTHING

    def _rule_work(self, instruction: Instruction) -> OpCost:
        """The work by the rule of the opcode's row. Raises what rules raise of instructions that XLA would not accept."""
        return _RULES_BY_OPCODE[instruction.opcode](instruction, self.sizes)

    def own(self, instruction: Instruction, work: OpCost) -> Amount:
        """Returns the cost of one execution of an instruction, without the bodies that it runs.

        For custom calls that of `known`; for asynchronous operations it is counted at the start.
        """
        is_begun = instruction in self._begun if instruction.opcode in KINDS else True
        if not is_begun and chain_of(instruction) is not None:
            return _ZERO  # a later part of a collective that is spread over fusions
        if work.is_unknown:
            work = self.known(instruction, work)
        flops: float = work.flops if work.performed is None else work.performed
        transcendentals: float = work.transcendentals
        for body, count in work.applied:
            inner = self.amounts.get(body, _ZERO)
            flops += inner.flops * count
            transcendentals += inner.transcendentals * count
        if flops and instruction.opcode in _ALL_REDUCES:
            devices = self._begun.get(instruction)
            flops = flops * (devices - 1) // devices if devices else flops
        written, read = (work.written, work.read) if work.touched is None else work.touched
        return Amount(flops, transcendentals, sum(written) + work.constants + sum(read))

    def calls(
        self, computation: Computation, place: int, work: OpCost
    ) -> tuple[tuple[Computation, int, bool], ...]:
        """Returns the bodies that an instruction runs, how often each runs, and whether its bytes count.

        Of a conditional, the most expensive branch; a loop of unknown trip count counts once, as in XLA.
        """
        bodies = work.bodies
        if work.taken is CalleeCost.OPERATIONS:
            return tuple([(body, 1, False) for body in bodies])
        if work.taken is CalleeCost.LARGEST:
            return ((max(bodies, key=lambda body: self.amounts.get(body, _ZERO)), 1, True),)
        if (computation, place) in self.graph.trips and len(bodies) == 2:
            trips = self.graph.trips[computation, place]
            tests = condition_runs(computation._instructions[place], trips)
            return (bodies[0], 1 if trips is None else trips, True), (
                bodies[1],
                1 if tests is None else tests,
                True,
            )
        return tuple([(body, 1, True) for body in bodies])

    @functools.cached_property
    def weights(self) -> Mapping[Computation, tuple[int, int]]:
        """Weights of the operations and the bytes of each computation in one run of the module, callers first."""
        entry = self.graph.module.entry
        found: dict[Computation, tuple[int, int]] = {entry: (1, 1)}
        for computation in reversed(self.callees_first):
            operations, accesses = found.get(computation, (0, 0))
            if not operations:
                continue
            for place, work in self.callers.get(computation, ()):
                for body, times, has_bytes in self.calls(computation, place, work):
                    before = found.get(body, (0, 0))
                    found[body] = (
                        min(before[0] + operations * times, MOST),
                        min(before[1] + (accesses * times if has_bytes else 0), MOST),
                    )
        return found

    def whole(self, computation: Computation, place: int) -> Amount:
        """Returns the cost of one execution of an instruction, including the bodies that it runs."""
        work = self.works[computation][place]
        total = self.owned[computation][place]
        for body, times, has_bytes in self.calls(computation, place, work):
            inner = self.amounts.get(body, _ZERO)
            total = total.plus(inner if has_bytes else inner._replace(accessed=0), times)
        return total

    def is_known(self, instruction: Instruction, work: OpCost) -> bool:
        """True if the cost of a custom call is known."""
        return not self.known(instruction, work).is_unknown

    def known(self, instruction: Instruction, work: OpCost) -> OpCost:
        """Returns the cost of a custom call from the given table, its target, or its kernel.

        If none of these is known, that of reading its operands and writing its results.
        """
        if instruction not in self._known:
            found = self._known[instruction] = self._found(instruction, work)
            if found is not None and found.left_open:
                self.uncounted[instruction] = found.left_open
        return self._known[instruction] or work

    def _found(self, instruction: Instruction, work: OpCost) -> OpCost | None:
        try:
            found = self._costs.work(instruction, work) if self._costs is not None else None
        except CannotCountError as error:
            self.uncounted[instruction] = str(error)
            return work._replace(is_unknown=False)
        if found is None:
            found = known_work(instruction, work)
        if found is None and (kernel := self._kernels.get(instruction)) is not None:
            found = kernel_work(kernel, work)
        return found

    @property
    def kernel_error(self) -> str:
        """Reason why the body of a kernel could not be read; empty if all could."""
        read = self.__dict__.get("_kernels", {})
        return next((kernel.error for kernel in read.values() if kernel.error), "")

    @functools.cached_property
    def _kernels(self) -> Mapping[Instruction, MosaicKernel]:
        """The kernels of the module that do not say what they cost."""
        silent = [
            instruction
            for computation in self.callees_first
            for instruction in computation.instructions
            if instruction.opcode == "custom-call" and known_work(instruction, NOTHING) is None
        ]
        return kernels(silent)

    def bytes_by_space(self) -> dict[int, float]:
        """Returns the bytes accessed in one run by memory space."""
        totals: dict[int, float] = {}
        for computation, (_, accesses) in self.weights.items():
            if not accesses:
                continue
            works = self.works[computation]
            for instruction, work in zip(computation.instructions, works, strict=True):
                for space, size in self.accesses(instruction, work):
                    totals[space] = totals.get(space, 0) + size * accesses
        return dict(sorted(totals.items()))

    def bytes_written(self) -> dict[Instruction, float]:
        """Returns the bytes that each instruction itself writes in one run; instructions that write nothing are left
        out.
        """
        found = {}
        for computation, (_, accesses) in self.weights.items():
            rows = zip(
                computation.instructions, self.works[computation], self.owned[computation], strict=True
            )
            for instruction, work, own in rows if accesses else ():
                if own.accessed:
                    known = self.known(instruction, work) if work.is_unknown else work
                    written = known.written if known.touched is None else known.touched[0]
                    if size := sum(written):
                        found[instruction] = size * accesses
        return found

    def accesses(self, instruction: Instruction, work: OpCost) -> Iterator[tuple[int, float]]:
        """Yields memory space and bytes of each array that an instruction itself reads or writes in one execution."""
        if work.is_unknown:
            work = self.known(instruction, work)
        written, read = (work.written, work.read) if work.touched is None else work.touched
        leaves = _leaf_spaces(instruction.shape)
        for number, size in enumerate(written):
            if size:
                yield leaves[number] if number < len(leaves) == len(written) else leaves[0], size
        operands = instruction.operands
        for number, size in enumerate(read):
            if size:
                spaces = _leaf_spaces(operands[number].shape) if number < len(operands) else _DEFAULT_SPACE
                yield spaces[0], size
        if work.constants:
            yield 0, work.constants


_DEFAULT_SPACE = (0,)


@weighted_cache(16384)
def _leaf_spaces(shape: Shape | None) -> tuple[int, ...]:
    """The memory space of each leaf of a shape, of a shape without leaves the default one."""
    if shape is None:
        return _DEFAULT_SPACE
    return tuple(memory_space(leaf) for _, leaf in shape.leaves()) or _DEFAULT_SPACE
