"""A pager for what is longer than the terminal, as git has one."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click


class _Held(io.TextIOWrapper):
    """A stream that collects a command's output and behaves like the terminal."""

    def isatty(self) -> bool:
        return True


def is_held() -> bool:
    """True while standard output is buffered for the pager."""
    return isinstance(sys.stdout, _Held)


@contextmanager
def paged() -> Iterator[None]:
    """Buffers what is printed to a terminal, and shows it in a pager if it is longer than the terminal.

    The pager is PAGER; none if that is empty or `cat`, or on dumb terminals.
    """
    if not _is_wanted():
        yield
        return
    terminal = sys.stdout
    held = _Held(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)
    sys.stdout = held
    try:
        yield
    finally:
        sys.stdout = terminal
        held.flush()
        _show(held.buffer.getvalue().decode("utf-8", "surrogateescape"))  # type: ignore[attr-defined]


def _is_wanted() -> bool:
    return (
        sys.stdout.isatty()
        and sys.stdout is sys.__stdout__
        and sys.stdin.isatty()
        and os.environ.get("PAGER", "less").strip() not in ("", "cat")
        and os.environ.get("TERM") not in (None, "", "dumb")
    )


def _show(text: str) -> None:
    if text.count("\n") < shutil.get_terminal_size().lines:
        click.echo(text.encode("utf-8", "surrogateescape"), nl=False)
        return
    os.environ.setdefault("LESS", "FRX")
    click.echo_via_pager(text, color=None if os.environ.get("NO_COLOR") else True)
