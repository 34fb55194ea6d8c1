"""A farm: many inputs to one dataset, in processes of this machine or on a cluster, each once, however often it is run."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from hlotext.lint.workers import Pool
from hlotext.tables.compaction import rewrite
from hlotext.tables.dataset import COMPACT, FAILED, MODULES, OK, Dataset, Done, State
from hlotext.tables.farm_dask import on_cluster
from hlotext.tables.farm_inputs import Input
from hlotext.tables.farm_task import Status, Task, refused
from hlotext.tables.schema import TABLES


@attrs.frozen
class Plan:
    """What a run has to do."""

    dataset: Dataset
    task: Task
    todo: tuple[Input, ...]
    before: tuple[Done, ...]
    """What was done by an earlier run, read or found unreadable, and has not changed since."""
    again: frozenset[str]
    """Keys of those that are done once more: they changed, they failed, or that was asked for."""
    others: int
    """How many inputs the dataset holds that are none of these."""

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
    """Compares inputs with what is there. With `retry` those are done again that could not be read, with `is_anew` all.

    Nothing is written. Raises InputError where the dataset cannot be read.
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


def run(planned: Plan, *, jobs: int = 1, scheduler: str | None = None, retries: int = 2) -> Iterator[Status]:
    """Does what is planned; what became of each input, as soon as it is known.

    In this process, in `jobs` of them, or on the Dask cluster of a `scheduler`. A worker that is killed costs the input that
    it was at, which has then failed, and on a cluster not even that. What is given up in the middle goes on with the next
    run. Raises InputError where the dataset cannot be written, or there is no such scheduler.
    """
    _prepare(planned)
    died = partial(_died, planned)
    if scheduler is not None:
        yield from on_cluster(scheduler, planned.task, planned.todo, died, retries)
    elif jobs <= 1 or len(planned.todo) <= 1:
        yield from map(planned.task, planned.todo)
    else:
        # What takes longest begins first, so that no process is left alone with it at the end.
        order = sorted(planned.todo, key=lambda one: -(one.size or 0))
        with Pool(planned.task, min(jobs, len(order))) as pool:
            for _, found in pool.run([[one] for one in order], lambda one, status: died(one, _how(status))):
                yield from found


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
    halves = {one.key for one in planned.todo} - set(state.parts)
    dataset.remove(state, halves & state.all)


def _by_part(state: State, keys: Iterable[str]) -> dict[str, set[str]]:
    """Keys of inputs by the part that holds them."""
    found: dict[str, set[str]] = {}
    for key in keys:
        if key in state.done:
            found.setdefault(state.done[key].part, set()).add(key)
    return found


def _died(planned: Plan, input: Input, how: str) -> Status:
    task = planned.task
    return refused(input, task.dataset, task.tables, FAILED, f"the process that was at it {how}")


def _how(status: int | None) -> str:
    """How a process ended."""
    if status is not None and status < 0:
        try:
            return f"died of {signal.Signals(-status).name}"
        except ValueError:
            return f"died of signal {-status}"
    return f"died with exit status {status}"
