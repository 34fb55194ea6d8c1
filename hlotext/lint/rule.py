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
from hlotext.lint.rule_row import RuleNeeds

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


UNKNOWN_MEMORY = 64 << 30
"""Bytes of memory of a chip of which nobody knows how many it has, as of hosts."""
_SCARCE = 0.01
"""Part of a chip's memory from which on saving it is worth an edit."""
WORTH_KERNEL = 0.1
"""Part of the step, or of the peak, from which on a kernel of one's own, or of a library, is worth its use."""


@attrs.frozen(eq=False, slots=False)
class Context:
    """The module being linted, with the analyses that rules use."""

    module: Module
    backend: Backend | None
    """The platform: configured, else detected from the module, or None if unknown."""
    is_optimized: bool
    checkout: Checkout | None = None
    """Location of the program's source, or None if unknown."""
    chip: str = ""
    """Chip for time estimates; empty for the chip named in the dump folder or module text, or the platform's default.
    """
    trips: Mapping[str, int] = attrs.field(factory=dict)
    """Trip counts by the name of a `while` or of its body, for loops of unknown trip count."""
    compilation: Compilation | None = None
    """The compilation whose final HLO the module is, or None if not from a dump folder."""
    _loops: dict[Computation, Instruction | None] = attrs.field(factory=dict, init=False)

    @functools.cached_property
    def prices(self) -> Prices:
        """Estimated times of instructions, as fractions of the time of a step."""
        return prices_of(self.module, self.backend, self.chip, self.trips, self.folders_chip)

    @property
    def folders_chip(self) -> Chip | None:
        """The chip named by the dump folder, or None if there is no folder or it names no chip."""
        return self.compilation.chip if self.compilation is not None else None

    @functools.cached_property
    def assignment(self) -> memory.Assignment | None:
        """Buffer assignment, computed once per module, or None if it cannot be computed from the text."""
        if self.backend is backend_of(self.module):
            return told(self.module)
        return assigned(self.module, self.backend)

    @functools.cached_property
    def peak(self) -> int | None:
        """Peak memory in bytes, or None if it cannot be computed."""
        return self.assignment.peak(0).bytes if self.assignment is not None else None

    @functools.cached_property
    def excess(self) -> Excess | None:
        """Memory required beyond the capacity of the chip, or None if the module fits or this is unknown."""
        if not self.module.is_scheduled:
            return None
        return excess_of(self.module, self.backend, self.graph, self.chip, self.folders_chip)

    @property
    def peak_at_stake(self) -> int | None:
        """Bytes that memory savings are measured against: the excess if the module does not fit, otherwise the peak.

        None if unknown.
        """
        if not self.peak or self.excess is None:
            return self.peak
        return min(self.peak, self.excess.bytes)

    def is_scarce(self, saved: int) -> bool:
        """Returns True if saving these bytes of memory is worth an edit of the program.

        That are a hundredth of the chip's memory, or any bytes if the module does not fit.
        """
        return self.excess is not None or saved >= _SCARCE * self._usable

    @property
    def memory_share(self) -> float:
        """Fraction of the chip's memory that the module needs; at least 1 if it does not fit, 0 if unknown."""
        share = (self.peak or 0) / self._usable
        return max(1.0, share) if self.excess is not None else share

    def saved_peak(self, shares: Mapping[Any, float]) -> int | None:
        """Returns the reduction of peak memory in bytes if some results become smaller, or None if unknown.

        `shares` maps instructions, or pairs of an instruction and a shape index, to the saved fraction of their bytes
        (0 to 1).
        """
        if self.assignment is None or not self.peak:
            return None
        left = memory.without.peak_without(self.assignment, shares) / self.peak
        return max(0, round(self._needed * (1 - left)))

    def most_saved(self, changed: Collection[Any]) -> int | None:
        """Returns an upper bound on the reduction of peak memory in bytes if only these instructions change.

        The bound excludes arguments, results and constants, which stay live. None if unknown.
        """
        if self.assignment is None or not self.peak:
            return None
        return max(0, self._needed - memory.without.kept(self.assignment, changed))

    @property
    def _usable(self) -> int:
        return self.prices.chip.usable_bytes(0) or UNKNOWN_MEMORY

    @functools.cached_property
    def _needed(self) -> int:
        """Bytes of main memory, with what is lost by fragments, which fall with the rest; 0 where memory cannot be told."""
        return max(self.assignment.run_bytes, self.peak or 0) if self.assignment is not None else 0

    @functools.cached_property
    def census(self) -> Census:
        """The instructions of the module, grouped by opcode, shape and attributes."""
        return census(self.module)

    @functools.cached_property
    def arguments(self) -> tuple[Instruction, ...]:
        """The parameters of the entry, by number. Computed by visiting all instructions of the entry."""
        return self.module.entry.parameters

    @functools.cached_property
    def graph(self) -> CallGraph:
        """The call graph, with trip counts."""
        return call_graph(self.module)

    @functools.cached_property
    def fused_work(self) -> Mapping[Instruction, str]:
        """Fusions whose body has operations of a single opcode, apart from parameters and bitcasts, with that opcode."""
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
        """Communications by `Communication.start`."""
        return {one.start: one for one in self.communications}

    @functools.cached_property
    def communication_kinds(self) -> frozenset[str]:
        """Kinds of the module's communications, such as `all-to-all`."""
        return frozenset(one.kind for one in self.communications)

    def loop_around(self, computation: Computation | None) -> Instruction | None:
        """Returns the innermost while that contains a computation, or None outside all loops."""
        if computation is None:
            return None
        if computation not in self._loops:
            self._loops[computation] = self.graph.loop_around(computation)
        return self._loops[computation]

    def runs(self, instruction: Instruction) -> int:
        """Returns the execution count of an instruction, counting loops of data-dependent trip count once."""
        computation = instruction.computation
        known = self.graph.runs.get(computation) if computation is not None else None
        return 1 if known is None else known

    def in_all_rounds(self, count: int, instruction: Instruction) -> int:
        """Scales a count from `runs` executions to those with assumed trip counts for loops of unknown trip count.

        `Prices.basis` states the assumed trip counts.

        Args:
            count: A total over `runs(instruction)` executions.
            instruction: The instruction.
        """
        return count * self.prices.runs(instruction.computation) // max(1, self.runs(instruction))

    def flops(self, product: Instruction) -> int:
        """Returns the FLOPs of a matrix product or convolution over all its executions, as XLA counts them."""
        return int(cost.product_flops(product)) * self.runs(product)

    @functools.cached_property
    def written(self) -> int:
        """Bytes that all instructions outside fusion bodies write to memory in one run: a lower bound.

        Instructions whose execution count is unknown count once, arrays of unknown size not at all.
        """
        return sum(written_bytes(one) * self.runs(one) for one in self.graph.sequential_instructions())

    @functools.cached_property
    def sent(self) -> int:
        """Bytes that each device sends over all executions of all collectives, excluding unknown amounts."""
        return sum(
            one.sent_bytes * self.runs(one.start) for one in self.communications if not one.is_host_transfer
        )

    @functools.cached_property
    def product_flops(self) -> int:
        """FLOPs of all matrix products and convolutions over all their executions."""
        by_opcode = self.census.by_opcode
        return sum(self.flops(one) for opcode in ("dot", "convolution") for one in by_opcode.get(opcode, ()))

    def is_stepped(self, instruction: Instruction) -> bool:
        """Returns True if an instruction executes individually, rather than in a fusion or reducer."""
        return instruction.computation in self.graph.stepped


def make_context(
    module: Module,
    backend: Backend | None = None,
    checkout: Checkout | None = None,
    chip: str = "",
    trips: Mapping[str, int] | None = None,
    compilation: Compilation | None = None,
) -> Context:
    """Creates the context in which rules check a module.

    The other arguments are the fields of `Context`; a platform that is None is inferred from the module.
    """
    return Context(
        module, backend or backend_of(module), is_optimized(module), checkout, chip, trips or {}, compilation
    )


@fact
def told(module: Module) -> memory.Assignment | None:
    """Returns the buffer assignment on the platform that the text implies; None if it cannot be computed."""
    return assigned(module, None)


def assigned(module: Module, backend: Backend | None) -> memory.Assignment | None:
    """Returns the buffer assignment on a platform, without placement in fast memory; None if it cannot be computed."""
    try:
        return memory.assign(module, backend, places_fast_memory=False)
    except memory.MemoryModelError:
        return None


@attrs.frozen
class Report:
    """A finding as reported by a rule, before its cost is computed."""

    instruction: Instruction | None
    """The instruction, or None for reports about the whole module."""
    message: str
    help: str = ""
    bytes: int | None = None
    """See `Finding.bytes`."""
    key: str = ""
    """Distinguishes reports about otherwise identical instructions in fingerprints."""
    flops: int | None = None
    """See `Finding.flops`."""
    is_held: bool = False
    """See `Finding.is_held`."""
    severity: Severity | None = None
    """Severity, for costs that are neither bytes nor FLOPs, such as host stalls; None to derive it from the cost."""
    seconds: float | None = None
    """See `Finding.seconds`. If None and bytes or FLOPs are given, the time of the instruction is used."""
    peak_bytes: int | None = None
    """See `Finding.peak_bytes`. If None, it is derived from `spares`, or else from live bytes."""
    spares: Mapping[Any, float] = {}
    """Fraction of each array's bytes that the repair saves, as for `Context.saved_peak`; combined for equal causes."""
    is_at_most: bool = False
    """See `Finding.is_at_most`."""
    is_proved: bool | None = None
    """True if the module text proves that the cost is avoidable. None uses the rule's default."""
    waste: str = ""
    """See `Finding.waste`; empty to use that of the rule."""
    origin: Instruction | None = None
    """Instruction whose Python line is reported, if `instruction` has none."""
    repair: Repair | None = None
    """Edit of the module that repairs the finding, or None if unknown."""
    covers: frozenset[Instruction] = frozenset()
    """Instructions whose cost is included. Other findings about nothing else are dropped."""
    cause: str = ""
    """Key shared by findings with the same cause. If empty, the Python line is used, or else the op_name."""


@attrs.frozen
class Rule:
    """Base class of lint rules. A rule with configurable thresholds is a frozen attrs class with a field for each.

    The documentation of a built-in rule is in `pages/CODE.md`.
    """

    code: ClassVar[str]
    """Code: the letter of the family and three digits. Never reused for another rule."""
    name: ClassVar[str]
    """Name of the rule: words joined by hyphens."""
    title: ClassVar[str]
    """One-line description of the waste, without a full stop."""
    severity: ClassVar[Severity] = Severity.WARNING
    """Maximum severity. Cheap findings become notes (`Config.warn`)."""
    waste: ClassVar[str] = ""
    """Kind of waste, one of `WASTES`; empty for rules without a cost."""
    is_proved: ClassVar[bool] = True
    """True if the reported cost is provably avoidable; otherwise findings are notes regardless of cost."""
    is_trade: ClassVar[bool] = False
    """True if the remedy trades time for memory, so that findings are proved only if the module does not fit."""
    gives_form: ClassVar[bool] = False
    """True if the remedy changes the shape or dimension order of an array (see `hlotext.lint.proof`)."""
    is_default: ClassVar[bool] = True
    """True if enabled by default; False if evidence is thin or the pattern is often intended."""
    backends: ClassVar[frozenset[Backend]] = frozenset()
    """Platforms to which the rule applies. If empty, it applies to all, including unknown platforms."""
    needs_optimized: ClassVar[bool] = False
    """True if the rule applies only to optimized modules."""
    needs_schedule: ClassVar[bool] = False
    """True if the rule applies only to scheduled modules, because late passes may remove the pattern."""
    yields_to: ClassVar[frozenset[str]] = frozenset()
    """Codes that suppress this rule if reported for the same instruction or for the consumer of a collective.
    """
    names_cause: ClassVar[bool] = False
    """True if messages already state why a collective was inserted; otherwise `exchange_causes.with_cause` adds it.
    """
    former: ClassVar[tuple[str, ...]] = ()
    """Codes of rules merged into this rule, which configurations, comments and baselines may still use."""
    fix: ClassVar[str] = ""
    """Pass that fixes the finding without changing results (so `--fix` is safe); empty if there is none."""
    opcodes: ClassVar[frozenset[str]] = frozenset()
    """Opcodes of the instructions passed to `check`."""
    needs_any: ClassVar[frozenset[str]] = frozenset()
    """Opcodes, at least one of which a module must have for the rule to run; empty for no such condition."""
    needs_partitions: ClassVar[bool] = False
    """True if the rule needs a module with several partitions."""
    needs_communication: ClassVar[bool] = False
    """True if the rule needs a module with communication."""

    @classmethod
    def needs(cls) -> RuleNeeds:
        """Returns the conditions that a module must meet before the rule is imported and run.

        A rule that only checks single instructions needs one with its opcodes.
        """
        is_by_instruction = not cls.needs_any and cls.check_module is Rule.check_module
        return RuleNeeds(
            cls.needs_optimized,
            cls.needs_schedule,
            cls.needs_partitions,
            cls.needs_communication,
            " ".join(sorted(one.value for one in cls.backends)),
            " ".join(sorted(cls.opcodes if is_by_instruction else cls.needs_any)),
        )

    def applies_to(self, context: Context) -> bool:
        """Returns True if a module meets the conditions of the rule."""
        return self.needs().unmet(context) is None

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        """Yields reports about an instruction with one of the rule's opcodes. Rules override it; the base yields none."""
        return iter(())

    def check_module(self, context: Context) -> Iterator[Report]:
        """Yields reports about the module as a whole, once per module. Rules override it; the base yields none."""
        return iter(())

    def nearest(self, context: Context) -> tuple[str, str] | None:
        """Returns the candidate closest to a finding and the condition that it fails, or None without candidates.

        For modules in which the rule reports nothing. The closest candidate is the one that meets the most conditions.
        Rules override it; the base class returns None.
        """
        return None

    @classmethod
    def described(cls) -> Code:
        """Returns the description of this rule's code, as listed in tables of codes."""
        return RuleCode(cls.code, cls.severity, cls.title, "hlotext.lint", cls)

    @classmethod
    def page(cls) -> str:
        """Returns the documentation as Markdown: the cost, how to recognize the pattern, and how to fix it.

        For plugin rules, this is the docstring.
        """
        if cls.__module__.startswith("hlotext.lint.rules."):
            return Code(cls.code, cls.severity, cls.title, "hlotext.lint").page()
        return f"# {cls.code}: {cls.title}\n\n{inspect.getdoc(cls) or ''}\n"


@attrs.frozen
class RuleCode(Code):
    """The code of a rule, whose page may be in another package."""

    rule: type[Rule] | None = None

    def page(self) -> str:
        return self.rule.page() if self.rule is not None else ""
