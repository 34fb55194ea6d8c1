"""What `hlotext show` says of a profiler's trace: which modules ran, how often, how long, and what took the time."""

from __future__ import annotations

from typing import Any

import hlotext as hlo
from hlotext.analysis.quantities import counted
from hlotext.cli.common import Unreadable
from hlotext.cli.output import Column, Output, Table
from hlotext.syntax.source.inputs import is_binary, read_data


def trace_of(place: str) -> hlo.proto.Trace | None:
    """The trace that a file holds; None for a file of another kind. Raises Unreadable for a damaged one."""
    if place == "-":
        return None
    try:
        data, name = read_data(place)
        if not is_binary(data) or isinstance(data, str) or hlo.proto.kind_of(data, name) != hlo.proto.TRACE:
            return None
        return hlo.proto.read_trace(data, name)
    except (hlo.InputError, hlo.ProtoError):
        return None  # whoever reads it as modules says what is wrong
    except ImportError as error:
        raise Unreadable(str(error), where={"file": place}) from None


def show_trace(report: Output, place: str, trace: hlo.proto.Trace, limit: int | None) -> None:
    """Prints the modules, then for each what its operations took."""
    report.heading(f"{place}: {counted(len(trace.modules), 'module')} of a profiler's trace")
    if not trace.modules:
        report.note(NO_MODULES)
    columns = [
        Column("module"), Column("program", is_number=True), Column("runs", is_number=True),
        Column("time", is_number=True), Column("per run", is_number=True), Column("instructions", is_number=True),
    ]  # fmt: skip
    rows = [
        [
            module.name, _shown(module.program_id), _shown(module.runs), _time(module.seconds),
            _time(module.seconds / module.runs if module.seconds is not None and module.runs else None),
            str(sum(1 for _ in module.module.instructions())),
        ]
        for module in trace.modules
    ]  # fmt: skip
    shown = rows[:limit]
    report.table(Table("Modules", columns, shown, len(rows) - len(shown)))
    if trace.others:
        report.note(f"ran without their HLO in the trace: {', '.join(trace.others)}")
    ran = sorted((module for module in trace.modules if module.times), key=lambda one: -_weight(one))
    for module in ran[:limit]:
        _show_times(report, module, limit)


NO_MODULES = "this trace holds no HLO: the profiler keeps it in the plane /host:metadata, if HLO protos are switched on"


def _weight(module: hlo.proto.TracedModule) -> float:
    """What counts for which module comes first: what its operations took on all devices."""
    return sum(time.total_seconds for time in module.times.values())


def _show_times(report: Output, module: hlo.proto.TracedModule, limit: int | None) -> None:
    """A table of operations; on several devices the mean and the slowest of them, as these work side by side."""
    devices = module.devices
    kind = "kernels" if module.counts_kernels else "times run"
    has_launches = any(time.launches for time in module.times.values())
    columns = [Column("name"), Column("opcode"), Column(kind, is_number=True)]
    if len(devices) > 1:
        columns += [
            Column("devices", is_number=True), Column("sum", is_number=True), Column("mean", is_number=True),
            Column("slowest", is_number=True),
        ]  # fmt: skip
    else:
        columns.append(Column("time", is_number=True))
    if has_launches:
        columns += [Column("launches", is_number=True), Column("launching", is_number=True)]
    columns.append(Column("scope"))
    rows = []
    for row in _times(module):
        time = module.times[row["name"]]
        cells = [row["name"], row["opcode"] or "", str(time.count)]
        if len(devices) > 1:
            cells += [
                str(len(time.devices)),
                *map(_time, (time.total_seconds, time.mean_seconds, time.seconds)),
            ]
        else:
            cells.append(_time(time.seconds))
        if has_launches:
            cells += [str(time.launches), _time(time.launch_seconds)]
        rows.append([*cells, row["op_name"] or ""])
    shown = rows[:limit]
    where = f" on each of {len(devices)} devices" if len(devices) > 1 else ""
    title = f"{module.name}: measured{where}, all runs together, callees included"
    report.table(Table(title, columns, shown, len(rows) - len(shown)))


def _times(module: hlo.proto.TracedModule) -> list[dict[str, Any]]:
    """What the operations took, the longest first, joined to the module's instructions by name."""
    found = []
    for name, time in sorted(module.times.items(), key=lambda item: (-item[1].total_seconds, item[0])):
        node = module.module.find(name)
        instruction = node if isinstance(node, hlo.Instruction) else None
        metadata = instruction.metadata if instruction is not None else None
        found.append(
            {
                "name": name,
                "opcode": instruction.opcode if instruction is not None else None,
                "op_name": metadata.op_name or None if metadata is not None else None,
                "count": time.count,
                "devices": len(time.devices),
                "seconds": time.seconds,
                "mean_seconds": time.mean_seconds,
                "total_seconds": time.total_seconds,
                "launches": time.launches,
                "launch_seconds": time.launch_seconds,
            }
        )
    return found


def trace_json(place: str, trace: hlo.proto.Trace, limit: int | None) -> dict[str, Any]:
    """The same for programs."""
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
                "measured": _times(module)[: limit or None],
            }
            for module in trace.modules
        ],
        "without_hlo": list(trace.others),
    }


def _shown(number: int | None) -> str:
    return "" if number is None else str(number)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
