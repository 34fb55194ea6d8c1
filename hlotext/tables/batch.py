"""A farm: many inputs to one dataset, in processes of this machine or on a cluster, each once, however often it is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from hlotext import tables
from hlotext.tables.batch_dask import on_cluster
from hlotext.tables.batch_inputs import Input
from hlotext.tables.batch_task import Status, Task, died, first_of_together
from hlotext.tables.compaction import rewrite
from hlotext.tables.dataset import COMPACT, FAILED, MODULES, OK, Dataset, Done, State
from hlotext.tables.schema import TABLES


@attrs.frozen
class Plan:
    """The inputs that a run processes and those that it skips."""

    dataset: Dataset
    task: Task
    todo: tuple[Input, ...]
    before: tuple[Done, ...]
    """Inputs done by an earlier run, read or found unreadable, and unchanged since."""
    again: frozenset[str]
    """Keys of those that are done once more: they changed, they failed, or that was asked for."""
    others: int
    """Number of other inputs in the dataset."""

    def __len__(self) -> int:
        return len(self.todo) + len(self.before)


def plan(
    inputs: Iterable[Input],
    dataset: str,
    tables: Sequence[str],
    *,
    retry: bool = False,
    is_anew: bool = False,
) -> Plan:
    """Compares inputs with a dataset and returns the work that is left; nothing is written.

    Unchanged inputs are skipped. With `retry`, those that could not be read are not, with `is_anew` none is. Raises
    InputError if the dataset cannot be read.
    """
    whole = Dataset.of(dataset)
    state = whole.state()
    todo, before, again = [], [], set()
    for one in inputs:
        done = state.done.get(one.key)
        if done is None:
            todo.append(one)
        elif (
            is_anew
            or not done.covers(one.version, tables)
            or done.status == FAILED
            or (retry and done.status != OK)
        ):
            todo.append(one)
            again.add(one.key)
        else:
            before.append(done)
    # What is read again keeps the tables that it had.
    names = {MODULES, *tables, *(name for key in again for name in state.done[key].tables)}
    kept = tuple(name for name in TABLES if name in names)
    others = len(state.done) - len(before) - len(again)
    return Plan(whole, Task(whole.place.url, kept), tuple(todo), tuple(before), frozenset(again), others)


def run(
    planned: Plan,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    retries: int = 2,
    is_together: bool = False,
) -> Iterator[Status]:
    """Processes the planned inputs and yields the status of each as soon as it is known.

    Uses this process, `jobs` processes, or the Dask cluster of a `scheduler`. With `is_together`, small inputs share
    parts on this machine, and an interrupted run repeats the inputs that it was processing; otherwise and on a cluster,
    each input is a part, which `compaction` can merge. If a worker is killed, its input has the status `failed`; on a
    cluster it is tried again. The next run continues an interrupted one. Raises InputError if the dataset cannot be
    written or the scheduler cannot be reached.
    """
    planned.dataset.place.make_folder()
    _prepare(planned)
    task, todo = planned.task, planned.todo
    groups = list(_groups(todo, jobs)) if is_together else []
    if scheduler is not None:
        yield from on_cluster(scheduler, task, todo, partial(died, task), retries)
    elif jobs <= 1 or len(groups or todo) <= 1:
        for group in groups:
            yield from task.together(group)
        yield from map(task, () if is_together else todo)
    elif is_together:
        yield from tables.batch_processes.in_groups(task, groups, jobs)
    else:
        yield from tables.batch_processes.one_by_one(task, todo, jobs)


_MOST_BYTES, _MOST_INPUTS = 4 << 20, 256
"""Limits of one part in bytes and inputs: about a second of work, which an interrupted run may lose."""


def _groups(todo: Sequence[Input], jobs: int) -> Iterator[list[Input]]:
    """Inputs that are done together; large ones are alone. For several processes large groups come first."""
    order = list(todo) if jobs <= 1 else sorted(todo, key=lambda one: -_size(one))
    most_bytes, most = _MOST_BYTES, _MOST_INPUTS
    if jobs > 1:  # several groups for each process, so that all end at about the same time
        most_bytes = min(most_bytes, sum(map(_size, order)) // (4 * jobs))
        most = max(1, min(most, len(order) // (4 * jobs)))
    group: list[Input] = []
    size = 0
    for one in order:
        if group and (size + _size(one) > most_bytes or len(group) >= most):
            yield group
            group, size = [], 0
        group.append(one)
        size += _size(one)
    if group:
        yield group


def _size(input: Input) -> int:
    return 0 if input.member else input.size or 0  # of what lies in a packed folder only that one's is known


def _prepare(planned: Plan) -> None:
    """Takes out of the dataset what is to be made anew, and what a run that was killed has left of these inputs."""
    dataset = planned.dataset
    state = dataset.state()
    dataset.remove(state, state.replaced)
    for part, gone in _by_part(state, planned.again).items():
        if part.startswith(COMPACT):
            rewrite(dataset, state, part, gone)
        else:
            dataset.remove(state, [part])
    keys = {one.key for one in planned.todo}
    halves = state.all - set(state.parts)
    dataset.remove(state, [part for part in halves if part in keys or first_of_together(part) in keys])


def _by_part(state: State, keys: Iterable[str]) -> dict[str, set[str]]:
    """Keys of inputs by the part that holds them."""
    found: dict[str, set[str]] = {}
    for key in keys:
        if key in state.done:
            found.setdefault(state.done[key].part, set()).add(key)
    return found
