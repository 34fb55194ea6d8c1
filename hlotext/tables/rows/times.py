"""The least time of instructions on the module's chip, as `hlotext.cost.estimate` computes it."""

from __future__ import annotations

from typing import Any

from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, from_rows


def times(subject: Subject) -> Table:
    """Builds the table `times`; empty if the chip is unknown."""
    found = subject.estimate
    if found is None:
        return from_rows("times", [])
    ids, chip = subject.ids, found.chip.name
    rows: list[dict[str, Any]] = [
        {
            "module": subject.key,
            "chip": chip,
            "id": ids[one.instruction],
            "on": "core",
            "seconds": one.seconds,
            "runs": one.runs,
            "bound": one.bound.value,
            "exposed_seconds": None,
            "compiler_seconds": None if one.cycle_seconds is None else one.cycle_seconds * one.runs,
        }
        for one in found.instructions
    ]
    rows += [
        {
            "module": subject.key,
            "chip": chip,
            "id": ids[one.start],
            "on": ", ".join(one.queues),
            "seconds": one.seconds,
            "runs": None,
            "bound": None,
            "exposed_seconds": one.exposed,
            "compiler_seconds": None,
        }
        for one in found.transfers
    ]
    return from_rows("times", rows, subject.build)
