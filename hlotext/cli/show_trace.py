"""`hlotext show` of a profiler trace: modules, runs, and measured times of operations."""

from __future__ import annotations

from functools import partial
from typing import Any

import hlotext as hlo
from hlotext import thunks
from hlotext.analysis.formatting import pluralize
from hlotext.cli.common import Unreadable
from hlotext.cli.listing import Listing, Row, Shown
from hlotext.cli.output import Output
from hlotext.syntax.source.inputs import is_binary, read_data


def trace_of(place: str) -> hlo.proto.Trace | None:
    """Returns the profiler trace in a file; None for another kind of file, or if it cannot be read.

    Raises Unreadable without protobuf.
    """
    if place == "-":
        return None
    try:
        data, name = read_data(place)
        if not is_binary(data) or isinstance(data, str) or hlo.proto.kind_of(data, name) != hlo.proto.TRACE:
            return None
        return thunks.with_kernels_named(hlo.proto.read_trace(data, name))
    except (hlo.InputError, hlo.ProtoError):
        return None  # whoever reads it as modules says what is wrong
    except ImportError as error:
        raise Unreadable(str(error), where={"file": place}) from None


def show_trace(report: Output, place: str, trace: hlo.proto.Trace, limit: int | None) -> None:
    """Prints the modules of a trace, then the times of their operations."""
    report.heading(f"{place}: {pluralize(len(trace.modules), 'module')} in a profiler trace")
    if not trace.modules:
        report.note(NO_MODULES)
    report.table(Listing("show.traced", _module).table("Modules", trace.modules, limit))
    if trace.others:
        report.note(f"executed, but without HLO in the trace: {', '.join(trace.others)}")
    ran = sorted((module for module in trace.modules if module.times), key=lambda one: -_weight(one))
    for module in ran[:limit]:
        _show_times(report, module, limit)


def _module(module: hlo.proto.TracedModule) -> Row:
    each = module.seconds / module.runs if module.seconds is not None and module.runs else None
    count = sum(1 for _ in module.module.instructions())
    return module.name, module.program_id, module.runs, _time(module.seconds), _time(each), count


NO_MODULES = "no HLO in this trace: enable HLO protos in the profiler (plane /host:metadata)"


def _weight(module: hlo.proto.TracedModule) -> float:
    """Sort key of modules: time of their operations on all devices."""
    return sum(time.total_seconds for time in module.times.values())


def _show_times(report: Output, module: hlo.proto.TracedModule, limit: int | None) -> None:
    """A table of operations; on several devices the mean and the slowest of them, as these work side by side."""
    devices = len(module.devices)
    listing = Listing(
        "show.times",
        partial(_row, module),
        {
            "times run": "kernels" if module.counts_kernels else "times run",
            "max": "max" if devices > 1 else "time",
        },
    )
    without = [] if devices > 1 else ["devices", "sum", "mean"]
    if not any(time.launches for time in module.times.values()):
        without += ["launches", "launching"]
    where = f" on {devices} devices (sum, mean and maximum over devices)" if devices > 1 else ""
    title = f"{module.name}: measured{where}, summed over runs, including callees"
    report.table(listing.table(title, _names(module), limit, without=without))
    for note in module.notes:
        report.note(note)


def _names(module: hlo.proto.TracedModule) -> list[str]:
    """The operations, the longest first."""
    return sorted(module.times, key=lambda name: (-module.times[name].total_seconds, name))


def _row(module: hlo.proto.TracedModule, name: str) -> Row:
    """The measured time of an operation, joined to the module's instruction by name."""
    time = module.times[name]
    node = module.module.find(name)
    instruction = node if isinstance(node, hlo.Instruction) else None
    metadata = instruction.metadata if instruction is not None else None

    def took(seconds: float | None) -> Shown:
        return Shown(seconds, _time(seconds))

    return (
        name,
        instruction.opcode if instruction is not None else None,
        metadata.op_name or None if metadata is not None else None,
        time.count,
        len(time.devices),
        took(time.seconds),
        took(time.mean_seconds),
        took(time.total_seconds),
        time.launches,
        took(time.launch_seconds),
    )


def trace_json(place: str, trace: hlo.proto.Trace, limit: int | None) -> dict[str, Any]:
    """Returns a trace as JSON values."""
    return {
        "file": place,
        "modules": [
            {
                "name": module.name,
                "program_id": module.program_id,
                "runs": module.runs,
                "seconds": module.seconds,
                "devices": list(module.devices),
                "counts_kernels": module.counts_kernels,
                "instructions": sum(1 for _ in module.module.instructions()),
                "notes": list(module.notes),
                "measured": Listing("show.times", partial(_row, module)).json(
                    _names(module)[: limit or None]
                ),
            }
            for module in trace.modules
        ],
        "without_hlo": list(trace.others),
    }


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
