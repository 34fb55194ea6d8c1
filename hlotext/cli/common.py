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
    """`--which`: of a folder which texts of each compilation."""
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
    """`--limit`: how many rows are shown."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"Maximum {what} (0 for no limit).",
    )


def timeout_option(default: float, what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--timeout`: for how many seconds something runs at most; `what` follows `Time limit`."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=default,
        show_default=True,
        help=f"Time limit {what}",
    )


def max_tests_option(default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--max-tests`: how often a command runs at most to reduce a module."""
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
    """`--format`, and which columns and rows of tables."""
    return table_options(_FORMAT(command))


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
    """A name that is not there: one line on standard error, exit status 1."""

    exit_code = NOT_FOUND

    def show(self, file: Any = None) -> None:
        note_error("not-found", self.message)
        say(self.message)


def age_json(age: XlaAge) -> dict[str, Any]:
    """An XLA age as JSON: the earliest and latest day, with the evidence."""
    return {
        "since": age.since.isoformat() if age.since is not None else None,
        "until": age.until.isoformat() if age.until is not None else None,
        "marks": list(age.marks),
    }


def write_file(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Writes a file whole or not at all. Raises Unreadable with the reason."""
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
    """Writes a picture to a file, and says so, or to standard output for `-`. Raises Unreadable."""
    _write_or_emit(place, text, "")


def format_of(place: str, given: str | None, endings: Mapping[str, Sequence[str]]) -> str:
    """The format of an output file: as given, else by the ending of its name, else the first of `endings`.

    Raises UsageError for a name with the ending of another format.
    """
    ending = os.path.splitext(place)[1].lower()
    by_name = next((name for name, known in endings.items() if ending in known), None)
    chosen = given or by_name or next(iter(endings))
    if ending and place != "-" and by_name != chosen:
        if by_name is not None:
            what = f"--format {chosen} ends in {endings[chosen][0]}; --format {by_name} writes {ending}"
        else:
            what = f"no format ends in {ending}: {', '.join(known[0] for known in endings.values())}"
        raise click.UsageError(f"--output {place}: {what}")
    return chosen


def write_page(place: str, page: str) -> None:
    """The same for a page, with its size."""
    size = len(page.encode())
    _write_or_emit(place, page, f", {size / 1e6:.1f} MB" if size >= 1e5 else f", {size / 1e3:.1f} kB")


def _write_or_emit(place: str, text: str, size: str) -> None:
    if place == "-":
        emit_report(text)
        return
    write_file(place, text)
    say(f"wrote {place}{size}")


def as_options(message: str) -> str:
    """A message of the library, with options in place of the arguments that it asks for: `set platform= to`."""
    return _ARGUMENT.sub(r"set --\1 ", message)


_ARGUMENT = re.compile(r"\bset (\w+)= ")


def say(message: str) -> None:
    """One line on standard error: what went wrong, or what was done. Nothing in it acts there."""
    _complain(f"hlotext: {escape.line(message)}")


def _complain(text: str) -> None:
    # Where the report is held back for a pager, and both are for the same terminal, it stays in its order.
    click.echo(text, err=not (is_held() and sys.stderr.isatty()))


def read(
    place: str | ModuleFile, *, with_errors: bool = False, is_whole: bool = False, with_notes: bool = False
) -> hlo.ParseResult:
    """The modules of a path, of `-` or of a file of a dump folder, with notes on what this release does not know.

    Other forms of a program are converted (`hlotext.proto.held`). Raises Unreadable, for text that is no HLO only unless the
    caller wants to say its errors itself (`with_notes`: its notes only); to such a caller StableHLO is text that is no HLO.
    `is_whole`: also for text that is cut before its entry.
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
            (refuse_missing_entry if is_whole else say_assumed_entry)(name, module)
    return result


def say_misspelled(notes: Iterable[hlo.Diagnostic]) -> None:
    """Says which names of a text are probably misspelled, one of each: figures of it are wrong or incomplete."""
    said: dict[str, str] = {}
    for note in notes:
        if is_misspelled(note):
            said.setdefault(f"{note.code} {note.message}", note.brief)
    for line in list(said.values())[:_MOST_MISSPELLED]:
        say(line)


def is_misspelled(note: hlo.Diagnostic) -> bool:
    """True for an unknown name that is close to a known one: new names of XLA are tolerated, but `addd` is none of them."""
    return note.code in _UNKNOWN_NAMES and note.help.startswith("did you mean")


_UNKNOWN_NAMES = frozenset({"X201", "X202", "X203", "X204"})
_MOST_MISSPELLED = 3


def _first_error(source: hlo.Source) -> hlo.Diagnostic | None:
    """The error of `hlotext.parse`, which is that of every command: a tolerant reader may meet another one first."""
    try:
        hlo.parse_all(source.text, name=source.name)
    except hlo.HloSyntaxError as error:
        return error.diagnostic
    return None


def not_found(error: LookupError) -> NotFound:
    """The error for a name that is not there, of which packages raise LookupError itself, with a sentence.

    A KeyError or IndexError that gets this far is a key that hlotext itself missed: it is raised again, as a fault.
    """
    if type(error) is not LookupError:
        raise error
    return NotFound(str(error))


def say_converted(name: str) -> None:
    """Says that a program was converted to HLO, and what is to be read instead."""
    say(
        f"{name}: StableHLO, converted by jaxlib: the program before compilation. For memory, cost and time give "
        "jax.jit(f).lower(...).compile().as_text() or a dump (XLA_FLAGS=--xla_dump_to=DIR)"
    )


def say_if_converted(place: str) -> None:
    """`say_converted` for a file of another form than HLO, which a library function converts by itself."""
    if place == "-" or not os.path.isfile(place):
        return
    with open(place, "rb") as file:
        head = file.read(_PROBED)
    if head.startswith(MLIR_BYTECODE) or is_mlir_text(head):
        say_converted(place)


_PROBED = 4096
"""Bytes of a file that tell its form."""


def say_assumed_entry(place: str, module: hlo.Module) -> None:
    """Says which computation is taken for the entry of a module that marks none."""
    if told := assumed_entry(module):
        say(f"{place}: {told}")


def refuse_missing_entry(place: str, module: hlo.Module) -> None:
    """For figures of a whole program. Raises Unreadable for a text that is cut before its entry: a helper would answer."""
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
    """Ends the command, before anything of the others is printed, for a word that is no path but belongs to an option.

    Also for the only path, if it does not exist; of several the others are read all the same. Raises Unreadable.
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
    """The modules' texts of a command, one by one: place and content; a progress bar on a terminal for long work.

    A path is a file, `-`, a dump folder or a packed one. Of a folder the texts of modules are taken, `which` of each
    compilation (see `hlotext.dumps.module_texts`); what else lies there is known to be no module. What cannot be read is
    reported and left out; `finish` then ends the command with exit status 2.
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
        """The place of each text, what `use` makes of its modules, and a line for all that this release does not know.

        Of a large file computations are read as they are touched, so `use` should keep no node. Where that meets an error,
        the file is read at once, which says it with all others.
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
        """For those who write files in place. Raises UsageError if one lies in a packed folder."""
        if any(not isinstance(text, str) and text.archive is not None for text in self.texts):
            raise click.UsageError("cannot write in place inside an archive")

    def _fail(self, error: Unreadable) -> None:
        error.show()
        self.unreadable += 1

    def finish(self) -> None:
        """To be called after the last file. Raises Exit if one was unreadable."""
        if self.unreadable:
            raise click.exceptions.Exit(UNREADABLE)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends what is in it as an exception does, so that temporary files go; then this process, as of the signal."""
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
    """Message for an internal error on one of several texts."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{place}: internal error: {said} ({DEBUG_VARIABLE}=1 shows where)"


def say_outward_links(place: str) -> None:
    """That links in a folder are not followed, since they lead out of it."""
    from hlotext.dumps.storage import outward_links

    found = outward_links(place) if os.path.isdir(place) else []
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        say(
            f"{', '.join(found[:3])}{more}: skipped, a link out of the folder (follow it with hlotext --follow-links)"
        )


def is_folder(place: str) -> bool:
    """True if a path is a dump folder, or a packed one."""
    if place == "-" or not os.path.exists(place):
        return False
    if os.path.isdir(place):
        return True
    if "t" not in os.path.basename(place).lower().partition(".")[2].replace("txt", ""):
        return False  # no kind of tar, and nothing that takes time is loaded

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
    """Trip counts by names of loops or their bodies."""
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
