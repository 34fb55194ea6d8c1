"""Number of runs of a program in a trace that does not separate them, as on GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import attrs

from hlotext.proto.traces import TracedModule


@attrs.frozen
class Runs:
    """Number of runs of a program in a trace."""

    count: int
    is_inferred: bool
    """True if the trace does not tell, so that it is the count of most operations that run once in a run."""


def runs_of(traced: TracedModule, executions: Mapping[str, int] | None = None) -> Runs | None:
    """Returns the number of runs of a program, from the trace or else inferred; None if nothing ran.

    An operation has at least one kernel per execution, so that the most frequent number of kernels is the number of
    runs. `executions` are those of each operation in one run, by name; all others execute once.
    """
    if traced.runs:
        return Runs(traced.runs, False)
    counts: Counter[int] = Counter()
    for name, time in traced.times.items():
        each = (executions or {}).get(name, 1)
        for device in time.devices[:1]:
            if each and device.count % each == 0:
                counts[device.count // each] += 1
    if not counts:
        return None
    most = max(counts.values())
    return Runs(min(count for count, number in counts.items() if number == most), True)
