"""The same task on the workers of a Dask cluster. The only file that imports `distributed`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from hlotext.syntax.source.inputs import InputError

Item = TypeVar("Item")
Result = TypeVar("Result")
HINT = "a cluster needs an extra: pip install 'hlotext[dist]'"
_PATIENCE = 10
"""Seconds in which a scheduler answers."""
_AHEAD = 2_000
"""Inputs that a scheduler knows of at a time."""


def on_cluster(
    scheduler: str,
    work: Callable[[Item], Result],
    items: Sequence[Item],
    died: Callable[[Item, str], Result],
    retries: int = 2,
) -> Iterator[Result]:
    """Processes items on a Dask cluster and yields the results in order of completion.

    If a worker is killed, its items are tried again elsewhere, as often as the scheduler allows
    (`distributed.scheduler.allowed-failures`); an item that raises an exception is tried again `retries` times. After
    that the result is `died(item, reason)`. Workers need hlotext with its extra `dist`, and access to the same files
    and URLs. Raises InputError if the scheduler cannot be reached or the connection is lost.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise InputError(HINT) from None
    try:
        client = Client(scheduler, set_as_default=False, timeout=_PATIENCE)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no Dask scheduler at {scheduler}: {error}") from None
    with client:
        waiting = iter(items)
        doing: dict[Any, Item] = {}

        def send(count: int) -> list[Any]:
            batch = list(islice(waiting, count))
            futures = client.map(work, batch, pure=False, retries=retries)
            doing.update(zip((future.key for future in futures), batch, strict=True))
            return list(futures)

        done = as_completed(send(_AHEAD), loop=client.loop)
        for future in done:
            item = doing.pop(future.key)
            if future.status == "finished":
                yield future.result()
            elif future.status == "error":
                yield died(item, _reason(future.exception()))
            else:
                raise InputError(
                    f"the scheduler at {scheduler} is gone: {len(doing) + 1:,} inputs are not done"
                )
            for more in send(1):
                done.add(more)


def _reason(error: Any) -> str:
    """Failure of an item, on one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
