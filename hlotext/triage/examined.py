"""One module of many: its time, its peak, what it sends, what its bytes are, and what lint finds."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

import hlotext as hlo
from hlotext import cost, lint, memory
from hlotext.analysis import (
    Backend,
    backend_of,
    call_graph,
    chip_or_default,
    devices_of,
    responsible_frame,
)
from hlotext.analysis.chips import Chip
from hlotext.analysis.entries import arguments
from hlotext.cost import TrafficTotal
from hlotext.dumps.compilation import Compilation
from hlotext.dumps.texts import ModuleFile, compilation_beside, is_final
from hlotext.findings.errors import brief
from hlotext.findings.escape import line
from hlotext.findings.finding import Finding
from hlotext.lint.price import prices_of
from hlotext.lint.rule import told
from hlotext.memory import usage
from hlotext.semantics.assumed_entry import missing_entry
from hlotext.triage.contents import MAIN, Content, Layer, contents_of


@attrs.frozen
class Settings:
    """Settings for examining modules: the lint configuration, and with it the chip."""

    config: lint.Config = attrs.field(factory=lint.Config)
    """Lint configuration; its chip, if set, applies to all modules."""


@attrs.frozen
class Stall:
    """The collective or transfer between devices that the core waits for longest."""

    name: str
    seconds: float
    """Seconds of waiting in all executions."""
    file: str
    line: int
    """Python line; 0 if unknown."""


@attrs.frozen
class Examined:
    """A module with the metrics used for ranking, as values that can be pickled."""

    place: str
    """Path of the file, or of the member of an archive."""
    name: str
    platform: str
    """`cpu`, `gpu`, `tpu`; empty if unknown."""
    chip: str
    is_chip_assumed: bool
    instructions: int
    seconds: float
    """Lower bound on the time of one run; loops of unknown trip count are counted once."""
    is_bound: bool
    """False before optimization; see `hlotext.cost.Estimate`."""
    unknown_loops: int
    unknown_calls: int
    exposed_seconds: float
    """Seconds during which the core waits for transfers."""
    sent: TrafficTotal
    """Traffic sent by each device in one run."""
    peak_bytes: int | None
    """Peak of live bytes in main memory, or None if it cannot be computed, for the reason in `memory_problem`."""
    memory_problem: str
    excess: str
    """Memory beyond the capacity of the chip, as text; empty if it fits or is unknown."""
    contents: tuple[Content, ...]
    layers: tuple[Layer, ...]
    findings: tuple[Finding, ...]
    arguments: tuple[tuple[str, str], ...] = ()
    """Names and shapes of the arguments; for a recompiled function, only those with a different shape."""
    priced_seconds: float = 0.0
    """Time of one run as findings are priced: loops of unknown trip count as in `Finding.basis`."""
    stall: Stall | None = None
    """The longest wait for a transfer between devices, or None if the core waits for none."""
    usable_bytes: int | None = None
    """Main memory of the chip that a program may use, or None if unknown, as on CPU."""
    devices: int | None = None
    """Number of devices that the module is for, or None if unknown."""

    @property
    def is_at_least(self) -> bool:
        """True if calls of unknown cost or loops of unknown trip count make the time a lower bound."""
        return bool(self.unknown_loops or self.unknown_calls)


@attrs.frozen
class Unexamined:
    """A file that could not be examined, and the problem."""

    place: str
    problem: str


def examine(text: str | ModuleFile, settings: Settings) -> tuple[Examined | Unexamined, ...]:
    """Examines all modules of a file, given by path or as a `ModuleFile`.

    A file that cannot be examined yields a single `Unexamined` with the reason, whatever it contains. Raises
    lint.RuleError if a plugin rule or a rule file cannot be used.
    """
    place = text if isinstance(text, str) else text.label
    try:
        opened = ModuleFile(text) if isinstance(text, str) else text
        compilation = opened.compilation or compilation_beside(place)
        final = compilation if compilation is not None and is_final(text, compilation) else None
        modules = opened.load_all()
        if missing := next(filter(None, map(missing_entry, modules)), ""):
            return (Unexamined(place, line(missing)),)
        return tuple(_examined(place, module, opened, compilation, final, settings) for module in modules)
    except (hlo.InputError, hlo.HloSyntaxError, hlo.ProtoError, ImportError) as error:
        return (Unexamined(place, line(brief(error))),)
    except lint.RuleError:
        raise
    except Exception as error:
        return (Unexamined(place, line(f"{type(error).__name__}: {error}")),)


def _examined(
    place: str,
    module: hlo.Module,
    text: ModuleFile,
    compilation: Compilation | None,
    final: Compilation | None,
    settings: Settings,
) -> Examined:
    """`compilation`: the one that the text is of; `final`: the one whose final HLO it is, as lint takes it."""
    config = settings.config
    backend = config.profile or backend_of(module)
    chip, is_assumed = _chip(module, backend, compilation, config.chip)
    estimate = cost.estimate(module, chip, trips=_known_trips(module, config.trips))
    assignment, problem = _memory(module, text, backend, chip if not is_assumed else None)
    contents, layers = contents_of(assignment) if assignment is not None else ((), ())
    priced = attrs.evolve(config, chip=chip.name if not is_assumed else config.chip)
    found = lint.run(module, priced, place, final)
    return Examined(
        place=place,
        name=module.name,
        platform=backend.value if backend is not None else "",
        chip=chip.name,
        is_chip_assumed=is_assumed,
        instructions=sum(map(len, module.computations)),
        seconds=estimate.seconds,
        is_bound=estimate.is_bound,
        unknown_loops=len(estimate.unknown_loops),
        unknown_calls=len(estimate.unknown_calls),
        exposed_seconds=estimate.exposed,
        sent=_sent(module),
        peak_bytes=assignment.peak(MAIN).bytes if assignment is not None else None,
        memory_problem=problem,
        excess=usage.excess_text(assignment) if assignment is not None else "",
        contents=contents,
        layers=layers,
        findings=tuple(finding.detached() for finding in found),
        arguments=tuple((one.label, one.shape) for one in arguments(module)),
        priced_seconds=prices_of(module, backend, priced.chip, priced.trips).step,
        stall=_longest_stall(estimate),
        usable_bytes=chip.usable_bytes(MAIN),
        devices=devices_of(module).total,
    )


def _chip(
    module: hlo.Module, backend: Backend | None, compilation: Compilation | None, given: str
) -> tuple[Chip, bool]:
    """The chip that is given, or named by the folder, or told by the text; else the usual one of the platform, assumed."""
    choice = chip_or_default(
        module,
        hlo.analysis.chips.chip(given) if given else None,
        compilation.chip if compilation is not None else None,
        backend,
    )
    return choice.chip, not choice.is_known


def _known_trips(module: hlo.Module, given: Mapping[str, int]) -> dict[str, int]:
    if not given:
        return {}
    bodies = {body.name for loop, _ in call_graph(module).loops() for body in loop.called_computations}
    told = call_graph(module).trips_by_body(given)
    return {name: count for name, count in told.items() if name in bodies}


def _memory(
    module: hlo.Module, text: ModuleFile, backend: Backend | None, chip: Chip | None
) -> tuple[memory.Assignment | None, str]:
    """The memory of a module as `hlotext memory` computes it, or why there is none."""
    if chip is None and text.age is None and backend is backend_of(module):
        found = told(module)  # what lint asks for too
        if found is not None:
            return found, ""
    try:
        known = chip if chip is not None and chip.backend is backend else None
        return memory.assign(module, backend, known, age=text.age), ""
    except memory.MemoryModelError as error:
        return None, line(str(error))


def _longest_stall(estimate: cost.Estimate) -> Stall | None:
    between_devices = (one for one in estimate.transfers if one.communication is not None)
    most = max(between_devices, key=lambda one: one.exposed, default=None)
    if most is None or not most.exposed:
        return None
    frame = responsible_frame(most.start)
    return Stall(most.start.name, most.exposed, frame.file if frame else "", frame.line if frame else 0)


def _sent(module: hlo.Module) -> TrafficTotal:
    total = TrafficTotal()
    for flow in cost.traffic(module).flows:
        if not flow.communication.is_host_transfer:
            total = total.plus(flow)
    return total
