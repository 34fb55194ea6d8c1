"""What `hlotext show` shows of a module: what is in it, and what one run takes in operations, bytes and memory."""

from __future__ import annotations

import attrs

import hlotext as hlo
from hlotext import cost, memory
from hlotext.analysis import Summary, XlaAge, age_of, summarize
from hlotext.dumps.texts import age_beside
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.syntax.source.file_text import FileSource

_MOST_COUNTED = 150_000
"""Instructions of a module up to which its cost is counted for a summary."""
_MOST_ASSIGNED = 60_000
"""Instructions of a module up to which its memory is assigned for a summary."""


@attrs.frozen
class RunFigures:
    """Operations and bytes of one run, as `hlotext cost` tells: loops as often as they run, asynchronous work once."""

    flops: float
    transcendentals: float
    bytes_accessed: float
    """Read and written, without padding, in whatever memory space."""
    is_exact: bool
    is_at_least: bool
    """Whether a trip count, a custom call or a size is not known, so that there may be more."""
    unknown_loops: int
    """Loops that count once, for want of their trip count."""
    unknown_calls: int
    """Custom calls of unknown cost, of which only the bytes count."""


@attrs.frozen
class PeakMemory:
    """Most bytes that live at once in the device's main memory, as `hlotext memory` tells; on TPU by the rules of v5e."""

    bytes: int
    """Arguments, results and constants included."""
    time: int
    name: str
    """What runs then."""


@attrs.frozen
class AgeFacts:
    """When the XLA was written that wrote a module; days as text, None where nothing tells."""

    since: str | None
    until: str | None
    marks: tuple[str, ...]


@attrs.frozen
class ModuleFacts(Summary):
    """What `hlotext show` shows of a module."""

    age: AgeFacts | None
    """None where nothing tells; of what is too large for a summary the text is not asked."""

    run: RunFigures | None
    """None for what is too large for a summary."""
    peak_memory: PeakMemory | None
    """None for what is not scheduled, too large for a summary, or of unknown platform."""


def module_facts(module: Module) -> ModuleFacts:
    """The facts of a module with at least one computation. Of a large file that is read as it is touched nothing stays."""
    summary = summarize(module)
    age = _age(module, summary.instructions)
    run, peak_memory = _run_and_peak(module, summary.instructions, age)
    return ModuleFacts(
        **attrs.asdict(summary, recurse=False), age=_age_facts(age), run=run, peak_memory=peak_memory
    )


def _age(module: Module, instructions: int) -> XlaAge | None:
    """As the folder tells that the text lies in, else as the text does; a text too large for a summary is not searched."""
    beside = age_beside(module.source.name) if module.source is not None else None
    return beside or (age_of(module) if instructions <= _MOST_COUNTED else None)


def _age_facts(age: XlaAge | None) -> AgeFacts | None:
    if age is None or not age.is_known:
        return None
    since, until = (day.isoformat() if day is not None else None for day in (age.since, age.until))
    return AgeFacts(since, until, age.marks)


def _run_and_peak(
    module: Module, instructions: int, age: XlaAge | None
) -> tuple[RunFigures | None, PeakMemory | None]:
    """The figures of a module of so many instructions, None for what would take too long for a summary."""
    if instructions > _MOST_COUNTED:
        return None, None
    if isinstance(module.source, FileSource):
        # What is read as it is touched would stay read: another module is, and goes.
        module = hlo.load(module.source.name, lazy=False)
    return _run_figures(module, age), _peak_memory(module, age) if instructions <= _MOST_ASSIGNED else None


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
    )


def _peak_memory(module: Module, age: XlaAge | None) -> PeakMemory | None:
    if not module.is_scheduled:
        return None
    try:
        peak = memory.assign(module, age=age).peak()
    except memory.MemoryModelError:
        return None
    name = peak.instruction.name if isinstance(peak.instruction, Instruction) else ""
    return PeakMemory(peak.bytes, peak.time, name)
