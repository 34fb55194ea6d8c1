"""Totals of `hlotext show`: contents of a module, and the operations, bytes and memory of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

import hlotext as hlo
from hlotext import cost, memory
from hlotext.analysis import (
    Backend,
    ChipChoice,
    Summary,
    XlaAge,
    age_of,
    backend_of,
    choose_chip,
    summarize,
)
from hlotext.analysis.chip_choice import ChipSource
from hlotext.analysis.chips import Chip
from hlotext.dumps.texts import compilation_beside
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.syntax.source.file_text import FileSource

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_MOST_COUNTED = 150_000
"""Instructions of a module up to which its cost is counted for a summary."""
_MOST_ASSIGNED = 60_000
"""Instructions of a module up to which its memory is assigned for a summary."""


@attrs.frozen
class RunFigures:
    """Operations and bytes of one run as in `hlotext cost`, with loops multiplied by trip counts."""

    flops: float
    transcendentals: float
    bytes_accessed: float
    """Read and written, without padding, in whatever memory space."""
    is_exact: bool
    is_at_least: bool
    """True if a trip count, custom call or size is unknown, so that this is a lower bound."""
    unknown_loops: int
    """Loops that count once, for want of their trip count."""
    unknown_calls: int
    """Custom calls of unknown cost, counted by bytes only."""
    bound: str
    """`at least`, `at most` or `about`; nothing where neither is said."""


@attrs.frozen
class PeakMemory:
    """Maximum live bytes in the device's main memory, as in `hlotext memory`."""

    bytes: int
    """Arguments, results and constants included."""
    time: int
    name: str
    """Instruction at that time."""


@attrs.frozen
class CompilerFigures:
    """Cost analysis of the TPU compiler as in `hlotext cost --as-xla`: loop bodies counted once, with padding."""

    flops: float
    transcendentals: float
    bytes_accessed: float
    least_seconds: float
    """Of what has a known cost."""
    unknown_calls: int
    """Calls of unknown cost, those left out that only mark or join arrays."""
    is_loop_once: bool
    """True if a loop runs more than once in one run, whose body counts once here."""
    is_estimate: bool
    """True if collectives are carried out in several fusions, of which the compiler's bytes are not known exactly."""


@attrs.frozen
class AgeFacts:
    """Dates between which the XLA that wrote a module was released, as text; None if unknown."""

    since: str | None
    until: str | None
    marks: tuple[str, ...]


@attrs.frozen
class ModuleFacts(Summary):
    """Run figures of a module in `hlotext show`."""

    age: AgeFacts | None
    """None if nothing tells; of what is too large for a summary the text is not asked."""

    run: RunFigures | None
    """None for what is too large for a summary."""
    peak_memory: PeakMemory | None
    """None for what is not scheduled, too large for a summary, or of unknown platform."""
    chip: str | None
    """The chip whose rules were taken. None if nothing names it and the module is not for TPU, and for what is too large
    for a summary."""
    chip_source: ChipSource | None
    chip_candidates: tuple[str, ...]
    """The chips that it may be."""
    compiler: CompilerFigures | None
    """None for what is not for TPU, or too large for a summary."""


def module_facts(module: Module) -> ModuleFacts:
    """Returns the facts of a module, which must have a computation. Lazily read computations are not kept in memory."""
    summary = summarize(module)
    beside = compilation_beside(module.source.name) if module.source is not None else None
    age = _age(module, summary.instructions, beside)
    figures = _figures(module, summary.instructions, age, beside.chip if beside is not None else None)
    return ModuleFacts(**attrs.asdict(summary, recurse=False), age=_age_facts(age), **figures)


def _age(module: Module, instructions: int, beside: Compilation | None) -> XlaAge | None:
    """As the folder tells that the text lies in, else as the text does; a text too large for a summary is not searched."""
    if beside is not None:
        return beside.age
    return age_of(module) if instructions <= _MOST_COUNTED else None


def _age_facts(age: XlaAge | None) -> AgeFacts | None:
    if age is None or not age.is_known:
        return None
    since, until = (day.isoformat() if day is not None else None for day in (age.since, age.until))
    return AgeFacts(since, until, age.marks)


def _figures(module: Module, instructions: int, age: XlaAge | None, named: Chip | None) -> dict[str, Any]:
    """The figures of a module of so many instructions, None for what would take too long for a summary."""
    if instructions > _MOST_COUNTED:
        return {"run": None, "peak_memory": None, **_chip_facts(None), "compiler": None}
    if isinstance(module.source, FileSource):
        # What is read as it is touched would stay read: another module is, and goes.
        module = hlo.load(module.source.name, lazy=False)
    choice = choose_chip(module, named=named)
    is_small = instructions <= _MOST_ASSIGNED
    return {
        "run": _run_figures(module, age),
        "peak_memory": _peak_memory(module, age, choice) if is_small else None,
        **_chip_facts(choice),
        "compiler": _compiler_figures(module, age, choice) if is_small else None,
    }


def _chip_facts(choice: ChipChoice | None) -> dict[str, Any]:
    if choice is None:
        return {"chip": None, "chip_source": None, "chip_candidates": ()}
    return {
        "chip": choice.chip.name,
        "chip_source": choice.source,
        "chip_candidates": choice.candidates,
    }


def _compiler_figures(
    module: Module, age: XlaAge | None, choice: ChipChoice | None
) -> CompilerFigures | None:
    if choice is None or choice.chip.backend is not Backend.TPU:
        return None
    counted = cost.analyze(module, age=age)
    found = counted.as_tpu(choice.chip)
    return CompilerFigures(
        found.flops,
        found.transcendentals,
        found.bytes_accessed,
        found.least_seconds,
        found.left_out,
        counted.counts_loops_again,
        bool(found.carried),
    )


def _run_figures(module: Module, age: XlaAge | None) -> RunFigures:
    run = cost.analyze(module, age=age).run
    return RunFigures(
        run.flops,
        run.transcendentals,
        run.bytes_accessed,
        run.is_exact,
        run.is_at_least,
        len(run.unknown_loops),
        len(run.unknown_calls),
        run.bound,
    )


def _peak_memory(module: Module, age: XlaAge | None, choice: ChipChoice | None) -> PeakMemory | None:
    if not module.is_scheduled:
        return None
    try:
        chip = choice.chip if choice is not None and choice.chip.backend is backend_of(module) else None
        peak = memory.assign(module, chip=chip, age=age, places_fast_memory=False).peak()
    except memory.MemoryModelError:
        return None
    name = peak.instruction.name if isinstance(peak.instruction, Instruction) else ""
    return PeakMemory(peak.bytes, peak.time, name)
