"""Processes that share work and may die: who is killed costs one piece of it, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hlotext.ir.lazy_imports import late_module

if TYPE_CHECKING:
    import multiprocessing as mp
    from multiprocessing import connection
else:
    mp = late_module("multiprocessing")
    connection = late_module("multiprocessing.connection")

Task = TypeVar("Task")
Result = TypeVar("Result")


class Pool(Generic[Task, Result]):
    """Runs batches of tasks in several processes, all of which end with the context.

    In contrast to a `concurrent.futures` pool, it survives the death of a process.
    """

    def __init__(self, work: Callable[[Task], Result], size: int) -> None:
        self._work = work
        self._size = size
        self._workers: list[_Worker] = []
        self._before: Any = None

    def __enter__(self) -> Pool[Task, Result]:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGTERM)
            if self._before is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._terminated)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for worker in self._workers:
            worker.end()

    def _terminated(self, number: int, _: object) -> None:
        """Ends the processes, and then this one as the signal would have."""
        for worker in self._workers:
            worker.process.kill()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def run(
        self, batches: Sequence[Sequence[Task]], died: Callable[[Task, int | None], Result]
    ) -> Iterator[tuple[int, list[Result]]]:
        """Yields the number and results of each batch, in order of completion.

        The result for a task during which a process died is `died(task, exit status)`, negative for a signal; the rest
        of its batch goes to another process.
        """
        waiting = deque(enumerate(map(list, batches)))
        results: dict[int, list[Result]] = {number: [] for number in range(len(batches))}
        busy: dict[connection.Connection, tuple[_Worker, int, list[Task]]] = {}
        idle: list[_Worker] = []
        while waiting or busy:
            while waiting and (idle or len(self._workers) < self._size):
                worker = idle.pop() if idle else self._new()
                number, tasks = waiting.popleft()
                if worker.give(tasks):
                    busy[worker.pipe] = worker, number, tasks
                else:
                    waiting.appendleft((number, tasks))
                    self._bury(worker)
            for ready in connection.wait(list(busy)):
                pipe: Any = ready
                worker, number, tasks = busy[pipe]
                try:
                    results[number].append(pipe.recv())
                    tasks.pop(0)
                except (EOFError, OSError):
                    status = self._bury(worker)
                    del busy[pipe]
                    results[number].append(died(tasks.pop(0), status))
                    if tasks:
                        waiting.appendleft((number, tasks))
                else:
                    if not tasks:
                        del busy[pipe]
                        idle.append(worker)
                if not tasks:
                    yield number, results.pop(number)

    def _new(self) -> _Worker:
        worker = _Worker(self._work)
        self._workers.append(worker)
        return worker

    def _bury(self, worker: _Worker) -> int | None:
        self._workers.remove(worker)
        return worker.end()


class _Worker:
    """One process, which answers each task of a batch by itself."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.pipe, other = mp.Pipe()
        self.process = mp.Process(target=_serve, args=(work, other, self.pipe), daemon=True)
        self.process.start()
        other.close()

    def give(self, tasks: list[Any]) -> bool:
        """Hands it a batch; False where it has died."""
        try:
            self.pipe.send(tasks)
        except OSError:
            return False
        return True

    def end(self) -> int | None:
        """Ends the process; its exit status."""
        self.pipe.close()
        self.process.join(0.05)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return self.process.exitcode


def _serve(work: Callable[[Any], Any], pipe: connection.Connection, other: connection.Connection) -> None:
    """Main loop of a worker process; ends when the pipe closes, the parent exits, or on request."""
    other.close()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = mp.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()
    while True:
        try:
            tasks = pipe.recv()
            for task in tasks:
                pipe.send(work(task))
        except (EOFError, BrokenPipeError):
            return


def _follow(parent: int) -> None:
    """Ends this process when its parent has ended, even if it was killed."""
    connection.wait([parent])
    os.kill(os.getpid(), signal.SIGTERM)
