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
import string
import threading
from collections.abc import Iterable, Iterator
from typing import Any, cast

import attrs

from hlotext.ir import collector, opcodes
from hlotext.ir.computation import Computation
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.source import Source, Span
from hlotext.syntax import module_checks, patterns
from hlotext.syntax.attribute_rules import attribute_rules
from hlotext.syntax.errors import Diagnostic, HloSyntaxError
from hlotext.syntax.file_text import FileSource, FileText
from hlotext.syntax.header_reader import read_head
from hlotext.syntax.limits import MAX_DIAGNOSTICS
from hlotext.syntax.linker import Infer, Linker, Scope
from hlotext.syntax.reporter import Reporter
from hlotext.syntax.scanner import Scanner
from hlotext.syntax.words import unquote

_PIECE = 1 << 22
"""Bytes that are looked through at a time."""
_HELD = 1 << 24
"""Characters of the computations that a walk reads before it lets go of them."""

_UNFIT = ("\r", "\t", "\nHloModule", " map(")
"""What a file must not hold. (XLA's condition on `map` looks into the computation that is called.)"""
_COMMENT = re.compile(r"/\*(?!index=[0-9]{1,9}\*/)")
"""A comment that may go on below, or hold anything."""
_BODIES = (
    re.compile(
        r"=\{+(?:[\s/]|\Z|ROOT\b|%[\w.\-]+\s*=|[A-Za-z_][\w.\-]*\s*=\s*(?:\(|%|[a-z][\w\-]*[\[(]))", re.ASCII
    ),
    re.compile(r"computations=\{[^{}\n]*\{"),
)
"""What may be a body in place of a computation's name. (Each begins with plain characters, which Python finds fast.)"""
_START = re.compile(r"-start\(")
_IN_OPCODES = f"{string.ascii_lowercase}{string.digits}-"
_CALLEE = re.compile(r", calls=%?([\w.\-]+)", re.ASCII)
_EMPTY = re.compile(r"\n*+")
_NO_LINES = ("\n   ", "\n  }")
"""What begins no op line of a computation."""
_CLOSING = re.compile(r"\n\}(?:, execution_thread=(\"[^\"\\\n]*\"))?(?=\n|\Z)")


class UnfitFileError(Exception):
    """The file is not of the form that can be read computation by computation."""


class UnreadComputation(Computation):
    """A computation that nobody has touched: what its lines say is not there yet.

    Python asks `__getattr__` only for what is missing; when all is there, it becomes an ordinary `Computation`, so that
    neither pays anything.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name not in _FROM_LINES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        source = self.module.source if self.module is not None else None
        assert isinstance(source, LazySource)
        source.reader.fill(self)
        return getattr(self, name)


_FROM_LINES = ("_root", "name_mark", "_parts_read", "_instructions")
"""What is read from the lines of a computation. The instructions are set last: who sees them sees everything."""
_NONE: list[Instruction] = []


@attrs.frozen(eq=False, slots=False)
class LazySource(FileSource):
    """The source of a module that is read lazily."""

    reader: Reader = attrs.field(kw_only=True, repr=False)

    def walk(self, computations: Iterable[Computation], only_callers: bool) -> Iterator[Computation]:
        return self.reader.walk(computations, only_callers)

    def defining(self, computations: Iterable[Computation], name: str) -> Iterator[Computation]:
        return self.reader.defining(computations, name)


class _Linker(Linker):
    """Links one computation of a module whose computations are known: it is put beside the one of that name."""

    __slots__ = ()

    def begin(self, name: str, start: int, is_entry: bool, brace: int = -1) -> Scope:
        computation = Computation(name, [], None, "main", self.module, False, False, start, -1, brace)
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
        super().__init__(module, Reporter(Source(""), strict), infer)

    def new_linker(self, module: Module, reporter: Reporter, infer: Infer | None) -> Linker:
        return _Linker(module, reporter, infer, self._known)


class Reader:
    """Opens one file, and reads the computations of its module one by one."""

    def __init__(self, path: str, strict: bool, infer: Infer | None) -> None:
        self.text = FileText(path)
        self.source = LazySource(cast(str, self.text), path, reader=self)
        self.strict = strict
        self.infer = infer
        self.module = Module("", source=self.source, end=len(self.text))
        self._head = ""
        self._header: dict[str, Any] = {}
        """The header's attributes as they were read."""
        self._entry: Computation | None = None
        self._computations: dict[str, Computation] = {}
        self._started: set[str] = set()
        """Computations that an async-start calls."""
        self._lock = threading.RLock()
        self._idle: list[_Scanner] = []
        """Scanners that are not in use. (The check of an asynchronous operation may look into what it wraps, while its own
        computation is being read; then there are two.)"""
        self._walkers: list[int] = []
        """The threads that walk over the module, each as often as it does."""
        self._passing: list[Computation] = []
        """What was read on walks, and how long its text is."""
        self._passing_size = 0
        self._parts_kept = 0
        """How many of the module's parts belong to computations that stay."""
        self._notes: dict[tuple[str, str], Diagnostic] = {}

    # ---- opening

    def open(self) -> Module:
        """The module, with none of its computations read. Raises UnfitFileError."""
        module = self.module
        if self.text.read(0, min(9, len(self.text))) != b"HloModule":
            raise UnfitFileError
        with collector.paused():
            pieces = self._pieces()
            offset, text = next(pieces, (0, ""))
            self._read_head(text)
            position = module._header_end - offset
            current: Computation | None = None
            # Each piece ends where a line ends; what cannot be decided yet is looked at again with the next one.
            while True:
                position, current = self._index(text, offset, position, current)
                following = next(pieces, None)
                if following is None:
                    break
                rest, begin = text[position:], offset + position
                text, offset, position = rest + following[1], begin, 0
        if current is not None or text[position:].strip("\n") or not module._computations:
            raise UnfitFileError
        self._entry, self._header = module.entry, dict(module.attributes)
        return module

    def _pieces(self) -> Iterator[tuple[int, str]]:
        """The text in pieces of whole lines, each from a line end on, with their offsets."""
        offset = 0
        kept = b""
        end = len(self.text)
        while offset + len(kept) < end:
            start = offset + len(kept)
            # Doubled where a line is longer than that, so that nothing is copied often.
            data = kept + self.text.read(start, min(end, start + max(_PIECE, len(kept))))
            limit = data.rfind(b"\n") if offset + len(data) < end else len(data)
            if limit <= 0 or (not offset and offset + len(data) < end and data.find(b"\n}", 0, limit) < 0):
                kept = data  # the first piece holds the header, and a computation
                continue
            piece = data[:limit]
            if not piece.isascii():
                raise UnfitFileError
            text = piece.decode("ascii")
            self._check(text, is_first=not offset)
            yield offset, text
            offset, kept = offset + limit, data[limit:]

    def _check(self, text: str, *, is_first: bool) -> None:
        """What a file must not hold, looked for line by line. Raises UnfitFileError."""
        if any(word in text for word in _UNFIT) or _COMMENT.search(text):
            raise UnfitFileError
        if any(body.search(text, 0 if not is_first else text.find("\n")) for body in _BODIES):
            raise UnfitFileError
        for match in _START.finditer(text):
            before = text[max(0, match.start() - 40) : match.start()]
            opcode = f"{before[len(before.rstrip(_IN_OPCODES)) :]}-start"
            if opcodes.async_wrapped(opcode) is not None:
                raise UnfitFileError
            if opcode == "async-start":
                line_end = text.find("\n", match.end())
                callee = _CALLEE.search(text, match.end(), line_end if line_end >= 0 else len(text))
                if callee is None or callee[1] in self._started:
                    raise UnfitFileError
                self._started.add(callee[1])

    def _read_head(self, text: str) -> None:
        """Reads the header and the tables. Raises UnfitFileError, also for an error there."""
        module, end = self.module, text.find("\n}") + 2
        if end < 2 or "origin_recovery_table" in text[: text.find("\n")]:
            raise UnfitFileError
        self._head = text[:end]
        try:
            reporter = Reporter(Source(self._head), self.strict)
            module._header_end = read_head(module, reporter, 0)
            self._take_notes(reporter, 0)
        except HloSyntaxError:
            raise UnfitFileError from None

    def _index(
        self, text: str, offset: int, position: int, current: Computation | None
    ) -> tuple[int, Computation | None]:
        """Notes the computations of a piece; gives where to go on, and the computation whose end is still to come."""
        header, length = patterns.computation_header().match, len(text)
        while True:
            if current is not None:
                end = text.find("\n}", position)
                stop = length if end < 0 else end
                lines = text.count("\n", position, stop)
                if lines != text.count("\n  ", position, stop):
                    raise UnfitFileError
                if any(text.find(begin, position, stop) >= 0 for begin in _NO_LINES):
                    raise UnfitFileError
                position = stop
                if end < 0:
                    return position, current
                closing = _CLOSING.match(text, position)
                if closing is None:
                    raise UnfitFileError
                position = closing.end()
                current._end = offset + position
                if closing[1] is not None:
                    current.execution_thread = unquote(closing[1])
                current = None
            empty = _EMPTY.match(text, position)
            assert empty is not None
            if empty.end() == length:
                return position, None  # the end, or an empty line at the end of the piece
            match = header(text, empty.end())
            if match is None or empty.end() < position + 2:
                raise UnfitFileError
            current = self._add(match[2].removeprefix("%"), offset + match.start(), match[1] is not None)
            position = match.end()
            current._brace = offset + position - 1

    def _add(self, name: str, start: int, is_entry: bool) -> Computation:
        """Puts an unread computation into the module."""
        module = self.module
        if name in self._computations or (is_entry and module._entry is not None):
            raise UnfitFileError
        computation = UnreadComputation(name, _NONE, None, "main", module, False, False, start)
        for field in _FROM_LINES:
            delattr(computation, field)
        if is_entry:
            module._entry = computation
        module._computations.append(computation)
        self._computations[name] = computation
        return computation

    def forget(self) -> None:
        """Gives the memory of what was noted back, before the file is read as a whole."""
        self._computations.clear()
        self.module._computations.clear()
        self.module._entry = None

    # ---- reading what is touched

    def fill(self, computation: Computation) -> None:
        """Reads the lines of a computation. Raises HloSyntaxError, and does so again the next time."""
        with self._lock:
            if type(computation) is UnreadComputation:
                with collector.paused():
                    self._fill(computation)

    def _fill(self, computation: Computation) -> None:
        offset = computation._start - 2
        # With the line end behind it, so that an error at the end stands where it does in a file of one computation.
        source = Source(self.text[offset : computation._end + 1], self.source.name)
        scanner = self._idle.pop() if self._idle else self._new_scanner()
        try:
            read = self._read(scanner, computation, source)
        except HloSyntaxError as error:  # the scanner, in the middle of something, is not used again
            if error.diagnostic.source is not source:
                raise  # of a computation that was read on the way
            raise HloSyntaxError(self._moved(error.diagnostic, offset)) from None
        self._take_notes(scanner.linker.reporter, offset)
        self._idle.append(scanner)
        for instruction in read._instructions:
            instruction.computation = computation
            place = instruction._place
            if type(place) is int:
                instruction._place = place + offset
            elif place is not None:
                start, end = cast(tuple[int, int], place)
                instruction._place = start + offset, end + offset
        if computation is self._entry:
            self._check_entry(read)
        for name in _FROM_LINES:
            setattr(computation, name, getattr(read, name))
        computation.__class__ = Computation
        if threading.get_ident() in self._walkers:
            self._passing.append(computation)
            self._passing_size += computation._end - offset
        else:
            self._parts_kept = len(self.module._parts)

    def _new_scanner(self) -> _Scanner:
        """A scanner for pieces of the text, each of which it takes for all of a module without a header."""
        module = Module(self.module._name, stack_frames=self.module.stack_frames, parts=self.module._parts)
        return _Scanner(module, self.strict, self.infer, self._computations)

    def _read(self, scanner: _Scanner, computation: Computation, source: Source) -> Computation:
        """Reads one computation from its text alone, places counted in it."""
        linker, text = scanner.linker, source.text
        module = linker.module
        module.source = scanner.source = linker.reporter.source = source
        scanner.text = text
        module._end = len(text)
        end = scanner.computations(0, len(text))
        if end != computation._end - computation._start + 2 or len(module._computations) != 1:
            linker.reporter.error("X101", "this computation does not end where its text seems to end", end)
        (read,) = module._computations
        linker.computations[read._name] = computation  # the scanner forgets it when the grammar must read it
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
            module_checks.module(Reporter(Source(self._head), self.strict), shadow, has_async_start=False)
        except HloSyntaxError as error:
            raise HloSyntaxError(self._moved(error.diagnostic, 0)) from None

    # ---- reading what is let go again

    def walk(self, computations: Iterable[Computation], only_callers: bool) -> Iterator[Computation]:
        """See `Module.walk`."""
        me = threading.get_ident()
        with self._lock:
            self._walkers.append(me)
        try:
            for computation in tuple(computations):
                if only_callers and not self._may_call(computation):
                    continue
                yield computation
                if self._passing_size >= _HELD:
                    self._let_go()
        finally:
            self._let_go()
            with self._lock:
                self._walkers.remove(me)

    def _may_call(self, computation: Computation) -> bool:
        """Whether the text of a computation holds the name of an attribute that calls."""
        if type(computation) is not UnreadComputation:
            return True
        text = self._text_of(computation)
        return any(name in text for name in _calling())

    def _let_go(self) -> None:
        """Makes unread again what the only walk that goes on has read.

        Nothing where the module may hold instructions itself, since it was edited or asked for callers or names. (Facts
        are no answer to that: those that walk hold none.)
        """
        module = self.module
        with self._lock:
            if len(self._walkers) > 1:
                return
            if module.is_touched or module._callers is not None or module._by_name is not None:
                self._parts_kept = len(module._parts)
            else:
                for computation in self._passing:
                    _forget(computation)
                # What the scanners remember of texts grows with these too.
                self._idle.clear()
                del module._parts[self._parts_kept :]
            self._passing.clear()
            self._passing_size = 0

    def defining(self, computations: Iterable[Computation], name: str) -> Iterator[Computation]:
        """See `Source.defining`."""
        find = re.compile(rf"{re.escape(name)}\s*=").search
        for computation in tuple(computations):
            if type(computation) is not UnreadComputation or find(self._text_of(computation)) is not None:
                yield computation

    def _text_of(self, computation: Computation) -> str:
        return self.text[computation._start : computation._end]

    def notes(self) -> list[Diagnostic]:
        """What was read so far that is not known to this release, each thing once, in the order of the text."""
        return sorted(self._notes.values(), key=lambda note: note.span.start)[:MAX_DIAGNOSTICS]

    def _take_notes(self, reporter: Reporter, offset: int) -> None:
        """Keeps what a reporter was told of a piece of the text: of what it was told of before, the first place."""
        for note in reporter.diagnostics:
            key, moved = (note.code, note.message), self._moved(note, offset)
            if key not in self._notes or moved.span.start < self._notes[key].span.start:
                self._notes[key] = moved
        if reporter.diagnostics:
            reporter.forget()

    def _moved(self, diagnostic: Diagnostic, offset: int) -> Diagnostic:
        """What was said of a piece of the text, said of the file."""

        def span(old: Span) -> Span:
            return self.source.span(old.start + offset, old.end + offset)

        related = tuple((what, span(place)) for what, place in diagnostic.related)
        return attrs.evolve(diagnostic, span=span(diagnostic.span), related=related, source=self.source)


@functools.cache
def _calling() -> tuple[str, ...]:
    """What stands before computations that are called."""
    return tuple(f"{name}=" for name, rule in attribute_rules().items() if rule.startswith("computation"))


def _forget(computation: Computation) -> None:
    """Makes a computation unread."""
    instructions = computation._instructions
    if instructions and instructions[0]._users is not None:
        for instruction in instructions:
            instruction._users = None  # operands and users hold each other
    computation._by_name = computation._order = computation._successors = None
    computation.__class__ = UnreadComputation
    for field in _FROM_LINES:
        delattr(computation, field)


def notes(module: Module) -> list[Diagnostic]:
    """What was read so far of such a module that is not known to this release, in the order of the text."""
    return module.source.reader.notes() if isinstance(module.source, LazySource) else []


def load(path: str, *, strict: bool, infer: Infer | None) -> Module | None:
    """The module of a file, read as it is touched; None for one that is to be read as a whole."""
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
