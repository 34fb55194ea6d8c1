"""What the sub-commands share: their arguments, reading files, and how trouble is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import click

import hlotext as hlo
from hlotext.cli import UNREADABLE
from hlotext.cli.documents import note_error, write_json
from hlotext.cli.output import ReadingBar
from hlotext.cli.pager import is_held
from hlotext.findings import escape
from hlotext.syntax import lazy
from hlotext.syntax.read import as_source
from hlotext.syntax.source.inputs import is_binary, read_data
from hlotext.syntax.source.limits import LEAST_LAZY

__all__ = [
    "FILES",
    "FORMAT",
    "NOT_FOUND",
    "Inputs",
    "NotFound",
    "Unreadable",
    "one_line",
    "read",
    "say",
    "write_json",
]

T = TypeVar("T")

FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...")
"""One or more paths, or `-` for standard input."""

FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Text is for people and may change; json is for programs.",
)


class Unreadable(click.ClickException):
    """Input that cannot be used: one line on standard error (on a terminal `report` where there is one), exit status 2.

    `where` is what JSON says of the place: file, line, column, code.
    """

    exit_code = UNREADABLE

    def __init__(self, message: str, report: str = "", where: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.report = report
        self.where = where

    def show(self, file: Any = None) -> None:
        note_error("unreadable", self.message, self.where)
        if self.report and sys.stderr.isatty():
            _complain(escape.lines(f"hlotext: {self.report}"))
        else:
            say(self.message)


NOT_FOUND = 1
"""Exit status where what was asked for is not there."""


class NotFound(click.ClickException):
    """What was asked for is not there: one line on standard error, exit status 1."""

    exit_code = NOT_FOUND

    def show(self, file: Any = None) -> None:
        note_error("not-found", self.message)
        say(self.message)


def say(message: str) -> None:
    """One line on standard error: what went wrong, or what was done. Nothing in it acts there."""
    _complain(f"hlotext: {escape.line(message)}")


def _complain(text: str) -> None:
    # Where the report is held back for a pager, and both are for the same terminal, it stays in its order.
    click.echo(text, err=not (is_held() and sys.stderr.isatty()))


def read(place: str, *, with_errors: bool = False) -> hlo.ParseResult:
    """The modules of a path or of `-`, with notes on what this release does not know.

    Raises Unreadable, for text that is no HLO only unless the caller wants to say its errors itself.
    """
    try:
        data, name = read_data(place)
    except hlo.InputError as error:
        raise Unreadable(str(error), where={"file": place}) from None
    if is_binary(data):
        return _read_proto(data, name)
    source = as_source(data, name)
    result = hlo.parse_tolerant(source.text, name=source.name)
    for diagnostic in result.diagnostics:
        if diagnostic.severity is hlo.Severity.ERROR and not with_errors:
            place_in_text = {"file": place, "line": diagnostic.line, "column": diagnostic.column}
            raise Unreadable(
                one_line(diagnostic), str(diagnostic), {**place_in_text, "code": diagnostic.code}
            )
    return result


def _read_proto(data: bytes | str, name: str) -> hlo.ParseResult:
    """The modules of a proto. Raises Unreadable."""
    try:
        modules = tuple(hlo.proto.read_modules(data, name))
    except (hlo.ProtoError, ImportError) as error:
        raise Unreadable(str(error), where={"file": name}) from None
    if not modules:
        raise Unreadable(f"{name} holds no modules", where={"file": name})
    return hlo.ParseResult(modules[0], (), modules)


def _used_lazily(place: str, use: Callable[[tuple[hlo.Module, ...]], T]) -> tuple[T, list[str]] | None:
    """What `Inputs.used` says of a file that is read as it is touched; None where it must be read at once."""
    module = lazy.lazy_module.load(place, strict=False, infer=hlo.infer_shape)
    if module is None:
        return None
    try:
        return use((module,)), list(map(one_line, lazy.lazy_module.notes(module)))
    except hlo.HloSyntaxError:
        return None
    except hlo.InputError as error:
        raise Unreadable(str(error), where={"file": place}) from None


class Inputs:
    """The files of a command, one by one: place and content; a progress bar on a terminal for large ones.

    An unreadable file is reported and left out; `finish` then ends the command with exit status 2.
    """

    def __init__(self, places: Iterable[str], *, with_errors: bool = False) -> None:
        self._with_errors = with_errors
        self._sizes = [(place, _file_size(place)) for place in places]
        self._failed = False

    def __iter__(self) -> Iterator[tuple[str, hlo.ParseResult]]:
        return self._each(lambda place, _: read(place, with_errors=self._with_errors))

    def used(self, use: Callable[[tuple[hlo.Module, ...]], T]) -> Iterator[tuple[str, tuple[T, list[str]]]]:
        """The place of each file, what `use` makes of its modules, and a line for all that this release does not know.

        Of a large file computations are read as they are touched, so `use` should keep no node. Where that meets an error,
        the file is read at once, which says it with all others.
        """

        def read_and_use(place: str, size: int) -> tuple[T, list[str]]:
            if size >= LEAST_LAZY and (found := _used_lazily(place, use)) is not None:
                return found
            result = read(place)
            return use(result.modules), list(map(one_line, result.diagnostics))

        return self._each(read_and_use)

    def _each(self, get: Callable[[str, int], T]) -> Iterator[tuple[str, T]]:
        bar = ReadingBar([size for _, size in self._sizes])
        for place, size in self._sizes:
            try:
                with bar.reading(place, size):
                    found = get(place, size)
            except Unreadable as error:
                error.show()
                self._failed = True
                continue
            yield place, found

    def finish(self) -> None:
        """To be called after the last file. Raises Exit if one was unreadable."""
        if self._failed:
            raise click.exceptions.Exit(UNREADABLE)


def one_line(diagnostic: hlo.Diagnostic) -> str:
    """A diagnostic as one line, `file:line:column: error[X101]: message`."""
    name = diagnostic.source.name if diagnostic.source is not None else "<text>"
    text = f"{name}:{diagnostic.line}:{diagnostic.column}: {diagnostic.severity.value}[{diagnostic.code}]: "
    text += diagnostic.message + (f" ({diagnostic.help})" if diagnostic.help else "")
    return escape.line(" ".join(text.split()))


def _file_size(place: str) -> int:
    """Bytes of a file, 0 where that is not known."""
    try:
        return os.stat(place).st_size
    except (OSError, ValueError):
        return 0
