"""Measured time of instructions, in the profiler's trace that a module was read from."""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.instruction import Instruction
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, from_rows


def measured(subject: Subject) -> Table:
    """Builds the table `measured`; empty for a module that is not from a trace."""
    rows: list[dict[str, Any]] = []
    traced = subject.traced
    if traced is None:
        return from_rows("measured", rows)
    for name, time in traced.times.items():
        node = subject.module.find(name)
        own = {
            "module": subject.key,
            "trace": subject.path,
            "id": subject.ids[node] if isinstance(node, Instruction) else None,
            "name": name,
            "runs": traced.runs,
        }
        for number, device in enumerate(time.devices or (None,)):
            rows.append(
                {
                    **own,
                    "device": device.device if device is not None else None,
                    "kernels": device.count if device is not None else 0,
                    "seconds": device.seconds if device is not None else 0.0,
                    "launches": None if number else time.launches,
                    "launch_seconds": None if number else time.launch_seconds,
                }
            )
    return from_rows("measured", rows, subject.build)
