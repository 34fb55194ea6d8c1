"""`hlotext convert --to trace-events`: the estimated schedule of a module for viewers of traces."""

from __future__ import annotations

import hlotext as hlo
from hlotext import cost, memory
from hlotext.analysis import choose_chip
from hlotext.cli.chip_options import chip_of, say_other_platform
from hlotext.cli.common import NotFound, Unreadable, say
from hlotext.cli.cost_time import mesh_named
from hlotext.dumps.texts import compilation_beside
from hlotext.findings.errors import brief
from hlotext.interop import trace_events
from hlotext.proto.traces import TracedModule
from hlotext.syntax.source.inputs import read_data
from hlotext.thunks import with_kernels_named


def trace_data(module: hlo.Module, file: str, chip: str | None, trace: str | None) -> bytes:
    """Returns gzipped trace events. Raises Unreadable if the chip is unknown, or the trace lacks the module."""
    given = chip_of(chip) if chip is not None else None
    if given is not None:
        say_other_platform(file, module, given)
    choice = choose_chip(module, given)
    if choice is None:
        raise Unreadable(f"{file}: the module does not name its chip; set --chip NAME (v5e, h100, ...)")
    try:
        estimate = cost.estimate(module, choice.chip, mesh_named(module, compilation_beside(file)))
    except ValueError as error:
        raise Unreadable(f"{file}: {error}") from None
    assignment = None
    try:
        assignment = memory.assign(module)
    except memory.MemoryModelError as error:
        say(f"{file}: no memory counters: {brief(error)}")
    measured = traced(trace, module) if trace is not None else None
    return trace_events.packed(trace_events.trace_events(estimate, assignment, measured))


def traced(place: str, module: hlo.Module) -> TracedModule:
    """Returns the module's program in a profiler trace; if there are several, the longest-running one.

    Raises Unreadable and NotFound.
    """
    data, label = read_data(place)
    if isinstance(data, str):
        raise Unreadable(f"{label} is not a profiler trace (.xplane.pb)")
    try:
        found = with_kernels_named(hlo.proto.read_trace(data, label))
    except hlo.ProtoError as error:
        raise Unreadable(f"{label} is not a profiler trace (.xplane.pb): {error.message}") from None
    mine = [one for one in found.modules if one.name == module.name]
    if not found.modules:  # also what is no trace, but has the form of a proto by chance
        raise NotFound(f"{label} is not a profiler trace (.xplane.pb), or contains no program")
    if not mine:
        names = ", ".join(dict.fromkeys(one.name for one in found.modules))
        raise NotFound(f"{label} contains no program {module.name}; it contains {names}")
    return max(mine, key=lambda one: (sum(time.seconds for time in one.times.values()), -mine.index(one)))
