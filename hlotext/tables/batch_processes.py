"""A farm's task in processes of this machine. With the linter's pool come its rules, which one process needs not."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence

from hlotext.lint.workers import Pool
from hlotext.tables.batch_inputs import Input
from hlotext.tables.batch_task import Status, Task, died, name_together
from hlotext.tables.dataset import Dataset


def one_by_one(task: Task, inputs: Sequence[Input], jobs: int) -> Iterator[Status]:
    """Processes inputs in parallel, each as a part, and yields their status. If a process dies, its input has failed."""
    # What takes longest begins first, so that no process is left alone with it at the end.
    order = sorted(inputs, key=lambda one: -(one.size or 0))
    with Pool(task, min(jobs, len(order))) as pool:
        for _, found in pool.run([[one] for one in order], lambda one, status: died(task, one, _how(status))):
            yield from found


def in_groups(task: Task, groups: Sequence[Sequence[Input]], jobs: int) -> Iterator[Status]:
    """Processes groups of inputs in parallel and yields the status of each input.

    Groups during which a process died are repeated once, input by input.
    """
    lost: list[Sequence[Input]] = []
    with Pool(task.together, min(jobs, len(groups))) as pool:
        for number, results in pool.run([[group] for group in groups], lambda *_: []):
            yield from results[0]
            if not results[0]:
                lost.append(groups[number])
    if lost:
        # To write its part may have been the last that a process did.
        dataset = Dataset.of(task.dataset)
        state = dataset.state()
        dataset.remove(state, [part for part in map(name_together, lost) if part in state.all])
        yield from one_by_one(task, [input for group in lost for input in group], jobs)


def _how(status: int | None) -> str:
    """End of a process, in words."""
    if status is not None and status < 0:
        try:
            return f"died of {signal.Signals(-status).name}"
        except ValueError:
            return f"died of signal {-status}"
    return f"died with exit status {status}"
