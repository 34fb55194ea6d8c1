"""What ends cases that do not come to their end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Endless(BaseException):
    """A case that does not come to its end. No `Exception`, so that nothing on the way catches it."""


@contextmanager
def watching() -> Iterator[None]:
    """Raises Endless when the timer of processor time (`ITIMER_VIRTUAL`) runs out."""

    def give_up(*_: object) -> None:
        raise Endless

    before = signal.signal(signal.SIGVTALRM, give_up)
    try:
        yield
    finally:
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raises Endless after so many seconds of processor time."""
    with watching():
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
