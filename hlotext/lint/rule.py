"""Rules, and the context with the facts that they may ask for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from hlotext import cost, memory
from hlotext.analysis import (
    Backend,
    CallGraph,
    Census,
    Communication,
    backend_of,
    call_graph,
    census,
    communications,
    fact,
    is_optimized,
    written_bytes,
)
from hlotext.analysis.chips import Chip
from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.lint.alike_fusions import alike
from hlotext.lint.checkout import Checkout
from hlotext.lint.fitting import Excess, excess_of
from hlotext.lint.price import Prices, prices_of

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation
    from hlotext.lint.repairs import Repair

WASTES = {
    "again": "computed before, with the same result",
    "copied": "bytes moved, nothing computed",
    "sent": "bytes sent needlessly or more than once",
    "waited": "a transfer that other work could hide",
    "held": "memory held needlessly",
    "dense": "arithmetic on known zeros, or whose result is unused",
    "wide": "a wider type than the data has",
    "small": "operations that take less time than launching them",
    "host": "waiting for the host",
}
"""The kinds of waste by `Finding.waste`."""

FAMILIES = {
    "C": "collectives",
    "D": "element types",
    "G": "graph",
    "K": "constants",
    "L": "layout and padding",
    "M": "memory",
    "S": "schedule and asynchronous operations",
    "V": "verifier",
    "X": "syntax",
}
"""Families by the letter of their codes."""


@attrs.frozen(eq=False, slots=False)
class Context:
    """The module being linted, with the facts that rules use."""

    module: Module
    backend: Backend | None
    """The platform: configured, else detected from the module; None if unknown."""
    is_optimized: bool
    checkout: Checkout | None = None
    """Location of the program's source; None if unknown."""
    chip: str = ""
    """Chip for time estimates. If empty, the chip named by the dump folder or module text is used, or else the
    platform's default."""
    trips: Mapping[str, int] = attrs.field(factory=dict)
    """Trip counts by name of the loop body, for loops of unknown trip count."""
    compilation: Compilation | None = None
    """The compilation that the module is the final text of; None if the module is not from a dump folder."""
    _loops: dict[Computation, Instruction | None] = attrs.field(factory=dict, init=False)

    @functools.cached_property
    def prices(self) -> Prices:
        """Times of instructions as fractions of the step."""
        return prices_of(self.module, self.backend, self.chip, self.trips, self.folders_chip)

    @property
    def folders_chip(self) -> Chip | None:
        """The chip named by the dump folder; None if the folder names no chip, or if the module is not from a dump
        folder.
        """
        return self.compilation.chip if self.compilation is not None else None

    @functools.cached_property
    def assignment(self) -> memory.Assignment | None:
        """Buffer assignment, computed once per module; None if it cannot be computed from the text."""
        if self.backend is backend_of(self.module):
            return told(self.module)
        return assigned(self.module, self.backend)

    @functools.cached_property
    def peak(self) -> int | None:
        """Peak memory in bytes; None if it cannot be computed."""
        return self.assignment.peak(0).bytes if self.assignment is not None else None

    @functools.cached_property
    def excess(self) -> Excess | None:
        """Memory beyond the capacity of the chip; None if the module fits, or if that is unknown."""
        if not self.module.is_scheduled:
            return None
        return excess_of(self.module, self.backend, self.graph, self.chip, self.folders_chip)

    @property
    def peak_at_stake(self) -> int | None:
        """Bytes that a memory saving is compared with; None if unknown.

        The excess if the module does not fit the chip, else the peak.
        """
        if not self.peak or self.excess is None:
            return self.peak
        return min(self.peak, self.excess.bytes)

    def saved_peak(self, shares: Mapping[Any, float]) -> int | None:
        """Reduction of peak memory in bytes if the results of some instructions become smaller; None if unknown.

        `shares` maps instructions, or one array of them with its index, to the fraction of their bytes that is saved.
        """
        if self.assignment is None or not self.peak:
            return None
        left = memory.without.peak_without(self.assignment, shares) / self.peak
        return max(0, round(self._needed * (1 - left)))

    def most_saved(self, changed: Collection[Any]) -> int | None:
        """Upper bound on the reduction of peak memory if only the results of these instructions change; None if
        unknown.

        The rest of the peak consists of arguments, results and constants, which stay.
        """
        if self.assignment is None or not self.peak:
            return None
        return max(0, self._needed - memory.without.kept(self.assignment, changed))

    @functools.cached_property
    def _needed(self) -> int:
        """Bytes of main memory, with what is lost by fragments, which fall with the rest; 0 where memory cannot be told."""
        return max(self.assignment.run_bytes, self.peak or 0) if self.assignment is not None else 0

    @functools.cached_property
    def census(self) -> Census:
        """The instructions of the module by category."""
        return census(self.module)

    @functools.cached_property
    def arguments(self) -> tuple[Instruction, ...]:
        """The parameters of the entry by number. Finding them visits all instructions of the entry."""
        return self.module.entry.parameters

    @functools.cached_property
    def graph(self) -> CallGraph:
        """The call graph, with trip counts."""
        return call_graph(self.module)

    @functools.cached_property
    def fused_work(self) -> Mapping[Instruction, str]:
        """Fusions that perform a single operation apart from changes of view, with the opcode of that operation."""
        found, bodies = {}, alike(self.module)
        single: dict[frozenset[str], str] = {}
        for fusion in self.census.by_opcode.get("fusion", ()):
            opcodes = bodies.opcodes(fusion)
            if opcodes not in single:
                work = opcodes - {"parameter", "bitcast"}
                single[opcodes] = min(work) if len(work) == 1 else ""
            if single[opcodes]:
                found[fusion] = single[opcodes]
        return found

    @property
    def communications(self) -> tuple[Communication, ...]:
        """All communications of the module."""
        return communications(self.module)

    @functools.cached_property
    def communication_of(self) -> Mapping[Instruction, Communication]:
        """Communications by the instruction to report."""
        return {one.start: one for one in self.communications}

    def loop_around(self, computation: Computation | None) -> Instruction | None:
        """The innermost while that contains a computation; None outside all loops."""
        if computation is None:
            return None
        if computation not in self._loops:
            self._loops[computation] = self.graph.loop_around(computation)
        return self._loops[computation]

    def runs(self, instruction: Instruction) -> int:
        """Execution count of an instruction; loops of data-dependent trip count are counted once."""
        computation = instruction.computation
        known = self.graph.runs.get(computation) if computation is not None else None
        return 1 if known is None else known

    def in_all_rounds(self, count: int, instruction: Instruction) -> int:
        """Scales a count over `runs` executions of an instruction to the executions that its seconds are based on.

        Loops of unknown trip count run as often as `Prices.basis` says.
        """
        return count * self.prices.runs(instruction.computation) // max(1, self.runs(instruction))

    def flops(self, product: Instruction) -> int:
        """FLOPs of a matrix product or convolution over all its executions, as XLA counts them."""
        return int(cost.product_flops(product)) * self.runs(product)

    @functools.cached_property
    def written(self) -> int:
        """Bytes that all instructions write to memory over all their executions."""
        return sum(written_bytes(one) * self.runs(one) for one in self.graph.sequential_instructions())

    @functools.cached_property
    def sent(self) -> int:
        """Bytes that each device sends to others over all executions of all collectives; unknown amounts count 0."""
        return sum(
            one.sent_bytes * self.runs(one.start) for one in self.communications if not one.is_host_transfer
        )

    @functools.cached_property
    def product_flops(self) -> int:
        """FLOPs of all matrix products and convolutions over all their executions."""
        by_opcode = self.census.by_opcode
        return sum(self.flops(one) for opcode in ("dot", "convolution") for one in by_opcode.get(opcode, ()))

    def loop_inside(self, loop: Instruction) -> bool:
        """True if the body of a loop contains another loop."""
        body = loop.attributes.get("body")
        return (
            any(self.loop_around(other.computation) is loop for other, _ in self.graph.loops())
            if body
            else False
        )

    def is_stepped(self, instruction: Instruction) -> bool:
        """True if the instruction executes individually and its result is in memory: not in a fusion or reducer."""
        return instruction.computation in self.graph.stepped


def make_context(
    module: Module,
    backend: Backend | None = None,
    checkout: Checkout | None = None,
    chip: str = "",
    trips: Mapping[str, int] | None = None,
    compilation: Compilation | None = None,
) -> Context:
    """Creates the context of a module; arguments override what the module's text shows."""
    return Context(
        module, backend or backend_of(module), is_optimized(module), checkout, chip, trips or {}, compilation
    )


@fact
def told(module: Module) -> memory.Assignment | None:
    """The buffer assignment on the platform that the text implies."""
    return assigned(module, None)


def assigned(module: Module, backend: Backend | None) -> memory.Assignment | None:
    """The same on a platform; None if the text does not tell. Without places in fast memory, for which no rule asks."""
    try:
        return memory.assign(module, backend, places_fast_memory=False)
    except memory.MemoryModelError:
        return None


@attrs.frozen
class Report:
    """A finding as a rule reports it, before its cost is computed."""

    instruction: Instruction | None
    """The instruction; None for reports about the whole module."""
    message: str
    help: str = ""
    bytes: int | None = None
    """See `Finding.bytes`."""
    key: str = ""
    """Distinguishes reports of a rule on instructions of the same form."""
    flops: int | None = None
    """See `Finding.flops`."""
    is_held: bool = False
    """See `Finding.is_held`."""
    severity: Severity | None = None
    """Severity of costs that are neither bytes nor FLOPs, such as waiting for the host. None derives it from the
    cost."""
    seconds: float | None = None
    """See `Finding.seconds`. None uses the instruction's time, if the rule gives bytes or FLOPs."""
    peak_bytes: int | None = None
    """See `Finding.peak_bytes`; None derives it from `spares`, else from live bytes."""
    spares: Mapping[Any, float] = {}
    """Arrays that the repair makes smaller, as for `Context.saved_peak`; arrays of one cause are combined."""
    is_at_most: bool = False
    """See `Finding.is_at_most`."""
    is_proved: bool | None = None
    """True if the module text proves that the cost is avoidable. None uses the rule's default."""
    waste: str = ""
    """See `Finding.waste`; empty for the rule's."""
    origin: Instruction | None = None
    """Instruction whose Python line is reported, if `instruction` has none."""
    repair: Repair | None = None
    """Edit of the text that repairs the finding; None if there is none."""
    covers: frozenset[Instruction] = frozenset()
    """Instructions whose cost is included, so that other findings about them are dropped."""
    cause: str = ""
    """Key shared by findings with the same cause. If empty, the Python line is used, or else the op_name."""


@attrs.frozen
class Rule:
    """Base class of lint rules. A rule with configurable thresholds is a frozen attrs class with a field for each.

    The documentation of a built-in rule is in `pages/CODE.md`.
    """

    code: ClassVar[str]
    """Letter of the family and three digits. Never reused for another rule."""
    name: ClassVar[str]
    """Name of the rule: words joined by hyphens."""
    title: ClassVar[str]
    """The waste, in one line without a full stop."""
    severity: ClassVar[Severity] = Severity.WARNING
    """Maximum severity; cheap findings become notes (`Config.warn`)."""
    waste: ClassVar[str] = ""
    """Kind of waste, one of `WASTES`; empty for rules without a cost."""
    is_proved: ClassVar[bool] = True
    """True if its reports are provably avoidable; otherwise they are notes, at any cost."""
    is_trade: ClassVar[bool] = False
    """True if the remedy trades time for memory, so it only counts as proved if the module does not fit."""
    gives_form: ClassVar[bool] = False
    """True if the remedy changes the shape or dimension order of an array (see `hlotext.lint.proof`)."""
    is_default: ClassVar[bool] = True
    """True if it runs by default; False where evidence is thin or the pattern is often intended."""
    backends: ClassVar[frozenset[Backend]] = frozenset()
    """Platforms to which the rule applies. If empty, it applies to all, including unknown platforms."""
    needs_optimized: ClassVar[bool] = False
    """True if it applies only to optimized modules."""
    needs_schedule: ClassVar[bool] = False
    """True if it applies only to final (scheduled) modules: later passes remove earlier occurrences."""
    yields_to: ClassVar[frozenset[str]] = frozenset()
    """Codes that take precedence: if one is reported for the same instruction, or for the consumer of a collective, this
    rule is not.
    """
    names_cause: ClassVar[bool] = False
    """True if reports state why the partitioner inserted a collective; for others `exchange_causes.with_cause` adds
    it.
    """
    former: ClassVar[tuple[str, ...]] = ()
    """Codes of former rules merged into this one, still accepted in configurations, comments and baselines."""
    fix: ClassVar[str] = ""
    """Pass that fixes the finding without changing results (so `--fix` is safe); empty if there is none."""
    opcodes: ClassVar[frozenset[str]] = frozenset()
    """Opcodes of the instructions passed to `check`."""
    needs_any: ClassVar[frozenset[str]] = frozenset()
    """Opcodes of which a module has one, or the rule finds nothing; empty for no such condition."""
    needs_partitions: ClassVar[bool] = False
    """True if it finds nothing in a module of one partition."""
    needs_communication: ClassVar[bool] = False
    """True if it finds nothing in a module without communication."""

    def applies_to(self, context: Context) -> bool:
        """True if the rule applies to a module of this kind."""
        if self.needs_optimized and not context.is_optimized:
            return False
        if self.needs_schedule and not context.module.is_scheduled:
            return False
        return not self.backends or context.backend in self.backends

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        """Yields findings about one instruction with one of the rule's opcodes."""
        return iter(())

    def check_module(self, context: Context) -> Iterator[Report]:
        """Yields findings about the module as a whole. Called once per module."""
        return iter(())

    def nearest(self, context: Context) -> tuple[str, str] | None:
        """The candidate closest to a finding in a module without findings, and the condition that it fails.

        This candidate meets the most conditions of the rule's functions. None if there is no candidate.
        """
        return None

    @classmethod
    def described(cls) -> Code:
        """The code of this rule, as listed in tables of codes."""
        return RuleCode(cls.code, cls.severity, cls.title, "hlotext.lint", cls)

    @classmethod
    def page(cls) -> str:
        """Documentation as Markdown: why it costs, how to recognize it, how to fix it.

        For plugin rules, the docstring.
        """
        if cls.__module__.startswith("hlotext.lint.rules."):
            return Code(cls.code, cls.severity, cls.title, "hlotext.lint").page()
        return f"# {cls.code}: {cls.title}\n\n{inspect.getdoc(cls) or ''}\n"


@attrs.frozen
class RuleCode(Code):
    """The code of a rule, whose page may come from another package."""

    rule: type[Rule] | None = None

    def page(self) -> str:
        return self.rule.page() if self.rule is not None else ""
