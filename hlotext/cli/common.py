"""Shared code of the commands: arguments, reading files, error messages."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

import hlotext as hlo
from hlotext.cli import DEBUG_VARIABLE, UNREADABLE
from hlotext.cli.json_output import note_error, write_json
from hlotext.cli.option_hints import path_meant
from hlotext.cli.output import ReadingBar, emit_report
from hlotext.cli.pager import is_held
from hlotext.cli.table_options import table_options
from hlotext.findings import escape
from hlotext.ir.files import write_bytes, write_text
from hlotext.semantics.assumed_entry import assumed_entry, missing_entry
from hlotext.syntax import lazy
from hlotext.syntax.read import as_source
from hlotext.syntax.source import inputs as input_files
from hlotext.syntax.source.inputs import (
    MLIR_BYTECODE,
    is_binary,
    is_foreign,
    is_json,
    is_mlir_text,
    read_data,
)
from hlotext.syntax.source.limits import LEAST_LAZY

__all__ = [
    "FILES",
    "FORMAT",
    "NOT_FOUND",
    "Inputs",
    "NotFound",
    "Unreadable",
    "age_json",
    "is_given",
    "read",
    "say",
    "write_file",
    "write_json",
    "write_page",
    "write_picture",
]

if TYPE_CHECKING:
    from hlotext.dumps.texts import ModuleFile, Which
    from hlotext.ir.values.age import XlaAge

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

FILES = click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
"""One or more paths: files, dump folders, packed ones, or `-` for standard input."""


def which_option(default: Which) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the decorator for `--which`, which selects texts of each compilation in a folder."""
    return click.option(
        "--which",
        type=click.Choice(["last", "ends", "all"]),
        default=default,
        show_default=True,
        help="Modules of each compilation in a DIR: the last, first and last, or every step.",
    )


def limit_option(
    default: int, what: str = "rows per table"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the decorator for `--limit`, the maximum number of rows."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"Maximum number of {what} (0 for no limit).",
    )


def cannot_run(word: str, error: OSError) -> Unreadable:
    """The error for a COMMAND that does not start; the shell's syntax in one quoted word is the usual cause."""
    quoted = "; leave out its quotes, or write sh -c '...'" if " " in word.strip() else ""
    return Unreadable(f"cannot run {word}: {error.strerror}{quoted}")


def timeout_option(default: float, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the decorator for `--timeout` in seconds; `what` continues its help `Time limit`."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=default,
        show_default=True,
        help=f"Time limit {what}",
    )


def max_tests_option(default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns the decorator for `--max-tests`, the maximum number of runs of a command that reduces a module."""
    return click.option(
        "--max-tests",
        type=click.IntRange(min=1),
        metavar="N",
        default=default,
        show_default=True,
        help="Maximum number of runs of COMMAND.",
    )


_FORMAT = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format. Text may change between releases; use json in scripts.",
)


def FORMAT(command: F) -> F:  # noqa: N802
    """Adds `--format`, `--columns` and `--sort` to a command."""
    return table_options(_FORMAT(command))


class Unreadable(click.ClickException):
    """Raised for input that cannot be used: one line on standard error (a report on a terminal if given), exit status
    2.

    `where` has the location for JSON: file, line, column, code.
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
    """Raised for a name that does not exist: one line on standard error, exit status 1."""

    exit_code = NOT_FOUND

    def show(self, file: Any = None) -> None:
        note_error("not-found", self.message)
        say(self.message)


def age_json(age: XlaAge) -> dict[str, Any]:
    """Returns an XLA age as JSON values: the earliest and latest date, and the evidence."""
    return {
        "since": age.since.isoformat() if age.since is not None else None,
        "until": age.until.isoformat() if age.until is not None else None,
        "marks": list(age.marks),
    }


def write_file(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes a file atomically. Raises Unreadable with the reason, and UsageError if it is a folder."""
    try:
        if isinstance(data, str):
            write_text(path, data)
        else:
            write_bytes(path, data)
    except OSError as error:
        if os.path.isdir(path):
            raise click.UsageError(f"{path} is a folder; name a file in it") from None
        folder = os.path.dirname(path) or "."
        why = error.strerror if os.path.isdir(folder) else f"there is no folder {os.fspath(folder)}"
        raise Unreadable(f"{path}: cannot write: {why}") from None


def write_picture(place: str, text: str) -> None:
    """Writes a picture to a file and reports this, or to standard output for `-`. Raises Unreadable."""
    _write_or_emit(place, text, "")


def is_given(parameter: str) -> bool:
    """True for a parameter of the command that stands on the command line, rather than having its default."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def format_of(place: str, given: str | None, endings: Mapping[str, Sequence[str]]) -> str:
    """Returns the format of an output file: the given one, else that of its suffix, else the first of `endings`.

    Raises UsageError for a name with the suffix of another format.
    """
    ending = os.path.splitext(place)[1].lower()
    by_name = next((name for name, known in endings.items() if ending in known), None)
    chosen = given or by_name or next(iter(endings))
    if ending and place != "-" and by_name != chosen:
        if by_name is not None:
            what = f"--format {chosen} ends in {endings[chosen][0]}; --format {by_name} writes {ending}"
        else:
            what = f"no output format has the ending {ending}: {', '.join(known[0] for known in endings.values())}"
        raise click.UsageError(f"--output {place}: {what}")
    return chosen


def write_page(place: str, page: str) -> None:
    """Writes a page to a file and reports this with its size, or to standard output for `-`. Raises Unreadable."""
    size = len(page.encode())
    _write_or_emit(place, page, f", {size / 1e6:.1f} MB" if size >= 1e5 else f", {size / 1e3:.1f} kB")


def _write_or_emit(place: str, text: str, size: str) -> None:
    if place == "-":
        emit_report(text)
        return
    write_file(place, text)
    say(f"wrote {place}{size}")


def as_options(message: str) -> str:
    """Replaces arguments in a library message by options: `set platform= to` becomes `set --platform to`."""
    return _ARGUMENT.sub(r"set --\1 ", message)


_ARGUMENT = re.compile(r"\bset (\w+)= ")


def say(message: str) -> None:
    """Prints one line to standard error, with control characters replaced."""
    _complain(f"hlotext: {escape.line(message)}")


def _complain(text: str) -> None:
    # Where the report is held back for a pager, and both are for the same terminal, it stays in its order.
    click.echo(text, err=not (is_held() and sys.stderr.isatty()))


def read(
    place: str | ModuleFile, *, with_errors: bool = False, is_whole: bool = False, with_notes: bool = False
) -> hlo.ParseResult:
    """Returns the modules of a path, `-` or a file of a dump folder, and notes on what this release does not know.

    Other forms of a program are converted (see `hlotext.proto.held`). Raises Unreadable; but with `with_errors` or
    `with_notes`, invalid HLO is returned with its errors or notes, and StableHLO text is invalid HLO. `is_whole` also
    accepts text that ends before its entry.
    """
    if not isinstance(place, str) and place.file is None:  # a file beside the dumps, which may hold a proto
        place = place.path
    where: dict[str, Any] = {"file": place if isinstance(place, str) else place.label}
    try:
        if isinstance(place, str):
            refuse_missing([place])
            data, name = read_data(place)
            if isinstance(data, bytes) and is_foreign(data) and (not with_errors or is_json(data)):
                made = hlo.proto.converted(data, name)
                if made is not data and not is_json(data):
                    say_converted(name)
                data = made
            if is_binary(data):
                return _read_proto(data, name)
            source = as_source(data, name)
        else:
            source, name = place.source(), place.label
    except (hlo.InputError, hlo.ProtoError, ImportError) as error:
        is_named = isinstance(error, ImportError) or where["file"] in str(error)
        raise Unreadable(str(error) if is_named else f"{where['file']}: {error}", where=where) from None
    result = hlo.parse_tolerant(source.text, name=source.name)
    if not (with_errors or with_notes):
        say_misspelled(result.diagnostics)
    for diagnostic in result.diagnostics:
        if diagnostic.severity is hlo.Severity.ERROR and not with_errors:
            diagnostic = _first_error(source) or diagnostic
            where |= {"line": diagnostic.line, "column": diagnostic.column, "code": diagnostic.code}
            raise Unreadable(diagnostic.brief, str(diagnostic), where)
    if not any(diagnostic.severity is hlo.Severity.ERROR for diagnostic in result.diagnostics):
        for module in result.modules:
            if is_whole:
                refuse_missing_entry(name, module)
            elif told := assumed_entry(module, is_checked=with_errors):
                say(f"{name}: {told}")
    return result


def say_misspelled(notes: Iterable[hlo.Diagnostic]) -> None:
    """Prints the notes on names that are probably misspelled, one per name, since figures may be wrong because of them."""
    said: dict[str, str] = {}
    for note in notes:
        if is_misspelled(note) or note.code == _OUTSIDE:
            said.setdefault(f"{note.code} {note.message}", note.brief)
    for line in list(said.values())[:_MOST_MISSPELLED]:
        say(line)


def is_misspelled(note: hlo.Diagnostic) -> bool:
    """True for the note on an unknown name that is close to a known one: `addd`, in contrast to a new name of XLA."""
    return note.code in _UNKNOWN_NAMES and note.help.startswith("did you mean")


_UNKNOWN_NAMES = frozenset({"X201", "X202", "X203", "X204"})
_OUTSIDE = "X206"
"""Code of the note on text outside any module, which may be a misspelled beginning of one."""
_MOST_MISSPELLED = 3


def _first_error(source: hlo.Source) -> hlo.Diagnostic | None:
    """The error of `hlotext.parse`, which is that of every command: a tolerant reader may meet another one first."""
    try:
        hlo.parse_all(source.text, name=source.name)
    except hlo.HloSyntaxError as error:
        return error.diagnostic
    return None


def not_found(error: LookupError) -> NotFound:
    """Returns the error for a LookupError of the library.

    A KeyError or IndexError is an internal error and is raised again.
    """
    if type(error) is not LookupError:
        raise error
    return NotFound(str(error))


def say_converted(name: str) -> None:
    """Prints that a program was converted to HLO, and what to read instead."""
    say(
        f"{name}: StableHLO, converted by jaxlib: the program before compilation. For memory, cost and time, use "
        "jax.jit(f).lower(...).compile().as_text() or a dump (XLA_FLAGS=--xla_dump_to=DIR)"
    )


def say_if_converted(place: str) -> None:
    """Prints the message of `say_converted` if a file is MLIR."""
    if place == "-" or not os.path.isfile(place):
        return
    with open(place, "rb") as file:
        head = file.read(_PROBED)
    if head.startswith(MLIR_BYTECODE) or is_mlir_text(head):
        say_converted(place)


_PROBED = 4096
"""Bytes of a file that tell its form."""


def say_assumed_entry(place: str, module: hlo.Module) -> None:
    """Prints which computation is assumed to be the entry, if the module marks none."""
    if told := assumed_entry(module):
        say(f"{place}: {told}")


def refuse_missing_entry(place: str, module: hlo.Module) -> None:
    """Raises Unreadable for a text that ends before its entry, where figures of the whole program are needed.

    Otherwise prints which computation is assumed to be the entry, if the module marks none.
    """
    if missing := missing_entry(module):
        raise Unreadable(f"{place}: {missing}", where={"file": place})
    say_assumed_entry(place, module)


def _read_proto(data: bytes | str, name: str) -> hlo.ParseResult:
    """The modules of a proto. Raises Unreadable."""
    try:
        modules = tuple(hlo.proto.read_modules(data, name))
    except (hlo.ProtoError, ImportError) as error:
        raise Unreadable(str(error), where={"file": name}) from None
    if not modules:
        raise Unreadable(f"{name}contains no modules", where={"file": name})
    return hlo.ParseResult(modules[0], (), modules)


def _used_lazily(place: str, use: Callable[[tuple[hlo.Module, ...]], T]) -> tuple[T, list[str]] | None:
    """Result of `Inputs.used` for a file that can be read lazily; None if it must be read eagerly."""
    module = lazy.lazy_module.load(place, strict=False, infer=hlo.infer_shape)
    if module is None:
        return None
    try:
        return use((module,)), [note.brief for note in lazy.lazy_module.notes(module)]
    except hlo.HloSyntaxError:
        return None
    except hlo.InputError as error:
        raise Unreadable(str(error), where={"file": place}) from None


def refuse_missing(places: Iterable[str]) -> None:
    """Raises Unreadable for a word that belongs to an option rather than being a path, before output begins.

    Also for a single path that does not exist; with several paths, the others are read nevertheless.
    """
    places = list(places)
    missing = [place for place in places if place != "-" and not _exists(place)]
    told = {place: _missing_text(place) for place in missing}
    slips = [place for place in missing if told[place] != str(input_files.missing(place))]
    for place in slips or (missing if len(places) == 1 else []):
        raise Unreadable(told[place], where={"file": place})


def _exists(place: str) -> bool:
    """False for what is certainly not there; of what may not be looked at, reading says why."""
    try:
        os.lstat(place)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def _missing_text(place: str) -> str:
    said = str(input_files.missing(place))
    meant = (
        path_meant(click.get_current_context(silent=True), place) if said.startswith(f"{place} does") else ""
    )
    if meant and (" joined " in meant or " separated " in meant or not re.search("[;:] ", said)):
        return f"{place} does not exist; {meant}"
    return said


class Inputs:
    """Reads the module texts of a command one by one, with a progress bar on terminals.

    A path is a file, `-`, a dump folder or a packed one. In a folder, the texts of modules are read, `which` of each
    compilation (see `hlotext.dumps.module_texts`). Unreadable texts are reported and skipped; `finish` then ends the
    command with exit status 2.
    """

    def __init__(
        self,
        places: Iterable[str],
        *,
        with_errors: bool = False,
        is_whole: bool = False,
        which: Which = "last",
    ) -> None:
        self._with_errors, self._is_whole = with_errors, is_whole
        self.unreadable = 0
        """Inputs that could not be read so far."""
        self.has_folders = False
        """True if a path is a folder, so that there may be many modules."""
        self.texts: list[str | ModuleFile] = []
        """Inputs to read, in order."""
        self.places: list[str] = []
        """Names of the inputs in reports, with the folders that could not be read."""
        places = list(places)
        refuse_missing(places)
        for place in places:
            if not is_folder(place):
                self.texts.append(place)
                self.places.append(place)
                continue
            from hlotext.dumps.texts import module_texts, no_module  # nobody else waits for them

            self.has_folders = True
            say_outward_links(place)
            try:
                found = list(module_texts([place], which))
                if not found:
                    raise no_module(place)
            except hlo.InputError as error:
                self.places.append(place)
                self._fail(Unreadable(str(error), where={"file": place}))
            except Unreadable as error:
                self.places.append(place)
                self._fail(error)
            else:
                self.texts += found
                self.places += (text.label for text in found)

    def __iter__(self) -> Iterator[tuple[str, hlo.ParseResult]]:
        return self._each(lambda text, _: read(text, with_errors=self._with_errors, is_whole=self._is_whole))

    def used(self, use: Callable[[tuple[hlo.Module, ...]], T]) -> Iterator[tuple[str, tuple[T, list[str]]]]:
        """Yields the location of each text, with the result of `use` for its modules and a line for each unknown part.

        Large files are read lazily, so `use` should not keep nodes. If a lazily read file is invalid, it is read again
        as a whole, which reports all errors.
        """

        def read_and_use(text: str | ModuleFile, size: int) -> tuple[T, list[str]]:
            path = text if isinstance(text, str) else text.real_path
            if size >= LEAST_LAZY and path is not None and (found := _used_lazily(path, use)) is not None:
                return found
            result = read(text, with_notes=True)
            return use(result.modules), [note.brief for note in result.diagnostics]

        return self._each(read_and_use)

    def _each(self, get: Callable[[str | ModuleFile, int], T]) -> Iterator[tuple[str, T]]:
        sizes = [_size(text) for text in self.texts]
        bar = ReadingBar(sizes)
        for text, size in zip(self.texts, sizes, strict=True):
            place = text if isinstance(text, str) else text.label
            try:
                with bar.reading(place, size):
                    found = get(text, size)
            except Unreadable as error:
                self._fail(error)
                continue
            except (click.ClickException, click.exceptions.Exit, MemoryError):
                raise
            except Exception as error:
                # A fault of hlotext, which costs the other texts nothing.
                self._fail(Unreadable(internal_error(error, place), where={"file": place}))
                continue
            yield place, found

    def refuse_packed(self) -> None:
        """Raises UsageError if a text is in a packed folder, for commands that write in place."""
        if any(not isinstance(text, str) and text.archive is not None for text in self.texts):
            raise click.UsageError("cannot write in place inside an archive")

    def _fail(self, error: Unreadable) -> None:
        error.show()
        self.unreadable += 1

    def finish(self) -> None:
        """Must be called after the last file. Raises Exit if one was unreadable."""
        if self.unreadable:
            raise click.exceptions.Exit(UNREADABLE)


@contextmanager
def terminable() -> Iterator[None]:
    """Within the context, SIGTERM raises an exception, so that temporary files are removed; then the signal ends the
    process.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    own = os.getpid()

    def end(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() != own:  # a child that was forked meanwhile
            os.kill(os.getpid(), number)
        raise _Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    except _Terminated:
        os.kill(own, signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


class _Terminated(BaseException):
    """SIGTERM came."""


def internal_error(error: Exception, place: str) -> str:
    """Returns the message about an internal error with one of several texts."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{place}: internal error: {said} ({DEBUG_VARIABLE}=1 shows where)"


def say_outward_links(place: str) -> None:
    """Prints that links out of a folder are skipped, if there are any."""
    from hlotext.dumps.storage import outward_links

    found = outward_links(place) if os.path.isdir(place) else []
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        say(
            f"{', '.join(found[:3])}{more}: skipped, because it links out of the folder (hlotext --follow-links "
            "follows such links)"
        )


def is_folder(place: str) -> bool:
    """True if a path is a dump folder, or a packed one."""
    if place == "-" or not os.path.exists(place):
        return False
    if os.path.isdir(place):
        return True
    ending = os.path.basename(place).lower().partition(".")[2].replace("txt", "")
    if "t" not in ending and "zip" not in ending:
        return False  # no kind of archive, and nothing that takes time is loaded

    from hlotext.dumps.storage import is_archive

    return is_archive(place)


def _size(text: str | ModuleFile) -> int:
    """Bytes of a text as it lies there, 0 where that is not known."""
    if not isinstance(text, str):
        return text.file.size if text.file is not None else 0
    try:
        return os.stat(text).st_size
    except (OSError, ValueError):
        return 0


TRIPS = click.option(
    "--trips",
    metavar="LOOP=N",
    multiple=True,
    help="Trip count of a loop with unknown trip count, by its name or its body's.",
)
"""The option of rounds, which `trips_of` reads."""


def trips_of(given: Iterable[str]) -> dict[str, int]:
    """Parses `LOOP=N` options into trip counts by name of loop or loop body. Raises UsageError."""
    found: dict[str, int] = {}
    for one in given:
        body, _, count = one.rpartition("=")
        if not body:
            raise click.UsageError(f"--trips takes LOOP=N, not {one!r}")
        if not count.isdecimal():
            raise click.UsageError(
                f"--trips takes LOOP=N with a number of iterations, 0 or more, not {count!r}"
            )
        found[body.lstrip("%")] = int(count)
    return found
