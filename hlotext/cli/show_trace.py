"""What `hlotext show` says of a profiler's trace: which modules ran, how often, how long, and what took the time."""

from __future__ import annotations

from typing import Any

import hlotext as hlo
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
    report.heading(f"{place}: {len(trace.modules)} modules that ran")
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
    for module in trace.modules[:limit]:
        _show_times(report, module, limit)


def _show_times(report: Output, module: hlo.proto.TracedModule, limit: int | None) -> None:
    if not module.times:
        return
    columns = [
        Column("name"), Column("opcode"), Column("times run", is_number=True), Column("time", is_number=True),
        Column("scope"),
    ]  # fmt: skip
    rows = [
        [row["name"], row["opcode"] or "", str(row["count"]), _time(row["seconds"]), row["op_name"] or ""]
        for row in _times(module)
    ]
    shown = rows[:limit]
    title = f"{module.name}: measured, all runs together, callees included"
    report.table(Table(title, columns, shown, len(rows) - len(shown)))


def _times(module: hlo.proto.TracedModule) -> list[dict[str, Any]]:
    """What the operations took, the longest first, joined to the module's instructions by name."""
    found = []
    for name, time in sorted(module.times.items(), key=lambda item: -item[1].seconds):
        node = module.module.find(name)
        instruction = node if isinstance(node, hlo.Instruction) else None
        metadata = instruction.metadata if instruction is not None else None
        found.append(
            {
                "name": name,
                "opcode": instruction.opcode if instruction is not None else None,
                "op_name": metadata.op_name or None if metadata is not None else None,
                "count": time.count,
                "seconds": time.seconds,
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
