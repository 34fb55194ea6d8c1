"""Cost of instructions in one run, from `hlotext.cost`."""

from __future__ import annotations

import numpy as np

from hlotext import cost
from hlotext.tables.columns import AnyColumn, Numbers, Words
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table


def costs(subject: Subject) -> Table:
    """Builds the table `costs`."""
    ids = subject.ids
    _ = subject.compiler_cost  # `modules` says it, once it is known
    analysis = cost.analyze(subject.module) if subject.module.computations else None
    found = list(analysis.shares()) if analysis is not None else []
    written = analysis.bytes_written if analysis is not None else {}
    columns: dict[str, AnyColumn] = {
        "id": Numbers.of([ids[one.instruction] for one in found]),
        "home": Words.of([one.home.name for one in found]),
        "flops": Numbers.of([float(one.cost.flops) for one in found], np.float64),
        "transcendentals": Numbers.of([float(one.cost.transcendentals) for one in found], np.float64),
        "bytes_accessed": Numbers.of([float(one.cost.bytes_accessed) for one in found], np.float64),
        "bytes_written": Numbers.of([float(written.get(one.instruction, 0)) for one in found], np.float64),
    }
    return subject.table("costs", len(found), columns)
