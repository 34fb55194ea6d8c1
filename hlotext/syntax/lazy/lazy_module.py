"""Modules of which only what is touched is read: for dumps of hundreds of megabytes.

Opening such a file takes one pass that notes where each computation begins and ends. The computations are there at once,
by name; the instructions of one are read when somebody first asks for them, by the same scanner and with the same checks as
in a file that is read as a whole. It is the form in which XLA writes text that makes this possible: computations are
separated by empty lines, and each op line begins a line. A file of any other form, or in which one computation says what
others there are (bodies in place of names, short spellings of asynchronous operations), is read as a whole.

Errors in the header, names of computations that stand twice, and everything about where computations begin and end are found
when the file is opened. What is wrong inside a computation is found when it is first touched, and so are a callee that is
not defined and, when the entry is touched, an alias that the entry's result does not have.
"""

from __future__ import annotations

import functools
import os
import re
import stat
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, cast

import attrs

from hlotext.findings.errors import HloSyntaxError
from hlotext.findings.finding import Diagnostic
from hlotext.ir import foreign_name_tables, foreign_names, gc_control
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source, Span
from hlotext.syntax import module_checks
from hlotext.syntax.fast.scanner import Scanner
from hlotext.syntax.language.grammar import attribute_rules
from hlotext.syntax.lazy.file_index import Index, UnfitFileError
from hlotext.syntax.linking.linker import Infer, Linker
from hlotext.syntax.linking.scope import Scope
from hlotext.syntax.source.file_text import FileSource, FileText
from hlotext.syntax.source.limits import MAX_DIAGNOSTICS
from hlotext.syntax.source.reporter import Reporter

_HELD = 1 << 24
"""Characters of the computations that a walk reads before it lets go of them."""
_REMEMBERED = 50_000
"""Parts of op lines that the scanners remember on a walk before they are let go too."""
_RUN = 1 << 20
"""Characters of the computations that a walk reads at once."""


class _AloneError(Exception):
    """One of several computations must be read by itself."""


class UnreadComputation(Computation):
    """A computation whose lines have not been read yet.

    The first access to a missing attribute (`__getattr__`) reads it and makes it an ordinary `Computation`, so that
    read computations have no overhead.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in _FROM_LINES:
            meant = foreign_name_tables.FOREIGN["Computation"].get(name, "")
            raise AttributeError(foreign_names.message("Computation", name, meant))
        source = self.module.source if self.module is not None else None
        assert isinstance(source, LazySource)
        source.reader.fill(self)
        return getattr(self, name)


_FROM_LINES = ("_root", "_name_mark", "_parts_read", "_instructions")
"""Fields that are read from the lines of a computation. The instructions are set last: who sees them sees everything."""


@attrs.frozen(eq=False, slots=False)
class LazySource(FileSource):
    """The source of a module that is read lazily."""

    lets_go: ClassVar[bool] = True
    reader: Reader = attrs.field(kw_only=True, repr=False)

    def read_all(self, computations: Iterable[Computation]) -> None:
        self.reader.read_all(computations)

    def walk(self, computations: Iterable[Computation], only_callers: bool) -> Iterator[Computation]:
        return self.reader.walk(computations, only_callers)

    def defining(self, computations: Iterable[Computation], name: str) -> Iterator[Computation]:
        return self.reader.defining(computations, name)


class _Linker(Linker):
    """Links one computation of a module whose computations are known: it is put beside the one of that name."""

    def begin(self, name: str, start: int, is_entry: bool, brace: int = -1) -> Scope:
        computation = Computation(name, module=self.module, start=start, brace=brace)
        if is_entry:
            self.module._entry = computation
        self.module._computations.append(computation)
        return Scope(computation)


class _Scanner(Scanner):
    """Reads one computation at a time, for which the text and the module are set anew each time."""

    def __init__(
        self, module: Module, strict: bool, infer: Infer | None, known: dict[str, Computation]
    ) -> None:
        self._known = known
        self.is_run = False
        """True while several computations are read."""
        super().__init__(module, Reporter(Source(""), strict), infer)

    def new_linker(self, module: Module, reporter: Reporter, infer: Infer | None) -> Linker:
        return _Linker(module, reporter, infer, self._known)

    def _rest(self, start: int, end: int) -> int:
        if self.is_run:
            raise _AloneError  # the grammar, which is slow, should read no more than it must
        return super()._rest(start, end)


class Reader:
    """Keeps a file open and reads the computations of its module on demand."""

    def __init__(self, path: str, strict: bool, infer: Infer | None) -> None:
        self.text = FileText(path)
        self.source = LazySource(cast(str, self.text), path, reader=self)
        self.strict = strict
        self.infer = infer
        self.module = Module("", source=self.source, end=len(self.text), header_start=0)
        self._index = Index(self.text, self.module, _unread)
        self._computations = self._index.computations
        self._header: dict[str, Any] = {}
        """The header's attributes as they were read."""
        self._entry: Computation | None = None
        self._lock = threading.RLock()
        with _LISTING:
            _READERS.add(self)
        self._idle: list[_Scanner] = []
        """Scanners that are not in use. (The check of an asynchronous operation may look into what it wraps, while its own
        computation is being read; then there are two.)"""
        self._walkers: list[int] = []
        """The threads that walk over the module, each as often as it does."""
        self._passing: list[Computation] = []
        """Computations read on walks, and the length of their text."""
        self._passing_size = 0
        self._parts_kept = 0
        """Number of the module's parts that belong to computations that stay loaded."""
        self._notes: dict[tuple[str, str], Diagnostic] = {}

    # ---- opening

    def open(self) -> Module:
        """Returns the module, with all computations unread. Raises UnfitFileError."""
        with gc_control.gc_paused():
            notes = self._index.make(strict=self.strict)
        self._take_notes(notes, 0)
        self._entry, self._header = self.module.entry, dict(self.module._attributes)
        return self.module

    def forget(self) -> None:
        """Frees the index, before the file is read as a whole."""
        self._computations.clear()
        self.module._computations.clear()
        self.module._entry = None

    # ---- reading what is touched

    def fill(self, computation: Computation) -> None:
        """Reads the lines of a computation. Raises HloSyntaxError if they are invalid, also on later calls."""
        with self._lock:
            if type(computation) is UnreadComputation:
                with gc_control.gc_paused():
                    self._fill([computation])

    def read_all(self, computations: Iterable[Computation]) -> None:
        """Reads these computations. Raises HloSyntaxError if one is invalid."""
        for run in self._runs(tuple(computations)):
            self._fill_run(run)
            for computation in run:
                self.fill(computation)

    def _runs(self, computations: Iterable[Computation]) -> Iterator[list[Computation]]:
        """The computations, unread ones that stand side by side together, forwards or backwards, as far as they are short."""
        run: list[Computation] = []
        for computation in computations:
            is_next = run and (
                computation._start == run[-1]._end + 2 or computation._end + 2 == run[-1]._start
            )
            if run and not (is_next and abs(computation._start - run[0]._start) <= _RUN):
                yield run
                run = []
            run.append(computation)
            if type(computation) is not UnreadComputation:
                yield run
                run = []
        if run:
            yield run

    def _fill_run(self, run: list[Computation]) -> None:
        """Reads several computations at once, as far as that works: three times as quick as one by one.

        Where anything is wrong none of them is read: it is said when the one that is wrong is touched itself.
        """
        if len(run) > 1:
            with self._lock, gc_control.gc_paused(), suppress(HloSyntaxError, _AloneError):
                self._fill(sorted(run, key=lambda computation: computation._start))

    def _fill(self, run: list[Computation]) -> None:
        first, last = run[0], run[-1]
        offset = first._start - 2
        # With the line end behind it, so that an error at the end stands where it does in a file of one computation.
        source = Source(self.text[offset : last._end + 1], self.source.name)
        scanner = self._idle.pop() if self._idle else self._new_scanner()
        scanner.is_run = len(run) > 1
        try:
            read = self._read(scanner, run, source)
        except (
            HloSyntaxError,
            _AloneError,
        ) as error:  # the scanner, in the middle of something, is not used again
            for computation in run:
                self._computations[computation._name] = computation  # it may have forgotten one
            if isinstance(error, _AloneError) or error.diagnostic.source is not source:
                raise  # of a computation that was read on the way
            raise HloSyntaxError(self._moved(error.diagnostic, offset)) from None
        if self._entry in run:
            self._check_entry(read[run.index(self._entry)])
        reporter = scanner.linker.reporter
        if reporter.diagnostics:
            self._take_notes(reporter.diagnostics, offset)
        else:
            self._idle.append(scanner)  # one that noted something might not note it again
        for computation, found in zip(run, read, strict=True):
            if type(computation) is UnreadComputation:  # not read on the way
                _move(found, computation, offset)
                if threading.get_ident() in self._walkers:
                    self._passing.append(computation)
                    self._passing_size += computation._end - computation._start
                else:
                    self._parts_kept = len(self.module._parts)

    def _new_scanner(self) -> _Scanner:
        """A scanner for pieces of the text, each of which it takes for all of a module without a header."""
        module = Module(self.module._name, stack_frames=self.module.stack_frames, parts=self.module._parts)
        return _Scanner(module, self.strict, self.infer, self._computations)

    def _read(self, scanner: _Scanner, run: list[Computation], source: Source) -> list[Computation]:
        """Reads computations from their text alone, places counted in it."""
        linker, text = scanner.linker, source.text
        module = linker.module
        module._source = scanner.source = linker.reporter.source = source
        scanner.text = text
        module._end = len(text)
        end = scanner.computations(0, len(text))
        offset = run[0]._start - 2
        read = list(module._computations)
        if end != run[-1]._end - offset or [c._end + offset for c in read] != [c._end for c in run]:
            linker.reporter.error("X101", "this computation does not end where its text appears to end", end)
        for computation in run:
            # The scanner forgets one when the grammar must read it.
            linker.computations[computation._name] = computation
        linker.finish_module()
        module._computations.clear()
        module._entry = None
        return read

    def _check_entry(self, read: Computation) -> None:
        """Checks the header against the entry, whose instructions are not in the module yet."""
        module = self.module
        shadow = Module(
            module._name, self._header, [read], read, source=self.source, header_end=module._header_end
        )
        try:
            module_checks.module(Reporter(Source(self._index.head), self.strict), shadow)
        except HloSyntaxError as error:
            raise HloSyntaxError(self._moved(error.diagnostic, 0)) from None

    # ---- reading what is let go again

    def walk(self, computations: Iterable[Computation], only_callers: bool) -> Iterator[Computation]:
        """Implements `Module.walk`."""
        me = threading.get_ident()
        with self._lock:
            self._walkers.append(me)
        try:
            found = tuple(computations)
            for run in self._runs(filter(self._may_call, found) if only_callers else found):
                self._fill_run(run)
                yield from run
                if self._passing_size >= _HELD:
                    self._let_go()
        finally:
            self._let_go(is_end=True)
            with self._lock:
                self._walkers.remove(me)

    def _may_call(self, computation: Computation) -> bool:
        """True if the text of a computation contains the name of an attribute that calls."""
        if type(computation) is not UnreadComputation:
            return True
        text = self._text_of(computation)
        return any(name in text for name in _calling())

    def _let_go(self, *, is_end: bool = False) -> None:
        """Makes unread again what the only walk that goes on has read.

        Nothing where the module may hold instructions itself, since it was edited or asked for callers or names. (Facts
        are no answer to that: those that walk hold none.)
        """
        module = self.module
        with self._lock:
            if len(self._walkers) > 1:
                return
            if module.is_modified or module._callers is not None or module._by_name is not None:
                self._parts_kept = len(module._parts)
            else:
                for computation in self._passing:
                    _forget(computation)
                # The scanners' caches of texts grow with the module's parts.
                if is_end or len(module._parts) - self._parts_kept > _REMEMBERED:
                    self._idle.clear()
                    del module._parts[self._parts_kept :]
            self._passing.clear()
            self._passing_size = 0

    def defining(self, computations: Iterable[Computation], name: str) -> Iterator[Computation]:
        """Implements `Source.defining`."""
        find = re.compile(rf"{re.escape(name)}\s*=").search
        for computation in tuple(computations):
            if type(computation) is not UnreadComputation or find(self._text_of(computation)) is not None:
                yield computation

    def _text_of(self, computation: Computation) -> str:
        return self.text[computation._start : computation._end]

    def notes(self) -> list[Diagnostic]:
        """Returns the notes on unknown parts read so far, without duplicates, in text order."""
        return sorted(self._notes.values(), key=lambda note: note.span.start)[:MAX_DIAGNOSTICS]

    def _take_notes(self, notes: list[Diagnostic], offset: int) -> None:
        """Keeps what was noted on a piece of the text; of what was noted before, the first place."""
        for note in notes:
            key, moved = (note.code, note.message), self._moved(note, offset)
            if key not in self._notes or moved.span.start < self._notes[key].span.start:
                self._notes[key] = moved

    def _moved(self, diagnostic: Diagnostic, offset: int) -> Diagnostic:
        """Translates a diagnostic of a piece of the text to offsets of the file."""

        def span(old: Span) -> Span:
            return self.source.span(old.start + offset, old.end + offset)

        related = tuple((what, span(place)) for what, place in diagnostic.related)
        return attrs.evolve(diagnostic, span=span(diagnostic.span), related=related, source=self.source)


@functools.cache
def _calling() -> tuple[str, ...]:
    """Text before the names of called computations."""
    return tuple(f"{name}=" for name, rule in attribute_rules().items() if rule.startswith("computation"))


def _unread(name: str, module: Module, start: int) -> Computation:
    """A computation that begins at an offset and has not been read."""
    computation = UnreadComputation(name, module=module, start=start)
    for field in _FROM_LINES:
        delattr(computation, field)
    return computation


def _move(read: Computation, computation: Computation, offset: int) -> None:
    """Makes an unread computation what was read of it, places counted from an offset on."""
    for instruction in read._instructions:
        instruction._computation = computation
        place = instruction._place
        if isinstance(place, tuple):
            start, end = place
            instruction._place = start + offset, end + offset
    for name in _FROM_LINES:
        setattr(computation, name, getattr(read, name))
    computation.__class__ = Computation


def _forget(computation: Computation) -> None:
    """Makes a computation unread."""
    instructions = computation._instructions
    if instructions and instructions[0]._users is not None:
        for instruction in instructions:
            instruction._users = None  # operands and users hold each other
    computation._by_name = computation._order = computation._successors = None
    if computation._module is not None and computation._module.source is not None:
        computation._module.source.forget_lines(computation._brace)
    computation.__class__ = UnreadComputation
    for field in _FROM_LINES:
        delattr(computation, field)


_READERS: weakref.WeakSet[Reader] = weakref.WeakSet()
_LISTING = threading.Lock()
_HELD_LOCKS: list[Any] = []


def _before_fork() -> None:
    """Waits until no other thread reads: the child would wait for ever for a lock that such a thread holds."""
    _LISTING.acquire()
    _HELD_LOCKS.append(_LISTING)
    for lock in [reader._lock for reader in _READERS]:
        lock.acquire()
        _HELD_LOCKS.append(lock)


def _after_fork() -> None:
    while _HELD_LOCKS:  # none, where another thread imported this file during the fork
        _HELD_LOCKS.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def notes(module: Module) -> list[Diagnostic]:
    """Returns the notes on unknown parts of a lazily read module found so far, in text order; none for other modules."""
    return module.source.reader.notes() if isinstance(module.source, LazySource) else []


def load(path: str, *, strict: bool, infer: Infer | None) -> Module | None:
    """Returns the module of a file, read lazily; None if the file must be read as a whole."""
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or not found.st_size or not hasattr(os, "pread"):
            return None
        reader = Reader(path, strict, infer)
    except (OSError, ValueError):
        return None  # whoever reads it as a whole says what is wrong
    try:
        return reader.open()
    except (OSError, UnfitFileError):
        reader.forget()
        return None
