"""From text to modules: what kind of text it is, and which reader reads which part."""

from __future__ import annotations

import importlib
import itertools
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import attrs

from hlotext import findings
from hlotext.findings.errors import HloSyntaxError, Severity
from hlotext.ir import gc_control
from hlotext.ir.caches import lazy_regex
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.source import Source
from hlotext.ir.spelling import did_you_mean, text_or_path
from hlotext.ir.tables import opcodes
from hlotext.syntax import hints, linking, reading, recovery
from hlotext.syntax.fast.header_reader import Recover, read_head
from hlotext.syntax.fast.scanner import Scanner
from hlotext.syntax.language import patterns
from hlotext.syntax.language.boundaries import is_module, next_module
from hlotext.syntax.linking.linker import Infer, Linker
from hlotext.syntax.source.inputs import InputError, decode, unpack
from hlotext.syntax.source.reporter import Reporter, TrialError, word_end

if TYPE_CHECKING:
    from hlotext.findings.finding import Diagnostic, ParseResult
    from hlotext.syntax.reading.records import InstructionRecord, ModuleRecord

Reader = Literal["fast", "reference"]


def as_source(text: str | bytes, name: str = "<text>") -> Source:
    """Returns a source for text, or for bytes, which may be compressed. Bytes that cannot be decompressed are read as
    text.

    Raises TypeError for other types.
    """
    if isinstance(text, bytes):
        with suppress(InputError):
            text = unpack(text, name)
        return Source(decode(text), name)
    if not isinstance(text, str):
        misfits = importlib.import_module("hlotext.ir.misfits")  # only failures need it
        raise TypeError(f"text must be str or bytes, not {type(text).__name__}{misfits.text_hint(text)}")
    return Source(text, name)


def read_modules(
    source: Source, *, strict: bool = False, infer: Infer | None = None, reader: Reader = "fast"
) -> tuple[list[Module], list[Diagnostic]]:
    """Returns all modules of a text, and notes. Raises HloSyntaxError at the first error."""
    reporter = Reporter(source, strict)
    return _read(source, reporter, infer, reader), reporter.diagnostics


def read_tolerantly(source: Source, infer: Infer | None = None) -> ParseResult:
    """Returns all modules of a text, and all errors and notes."""
    reporter = Reporter(source, tolerant=True)
    modules = _read(source, reporter, infer, "fast")
    found = sorted(reporter.diagnostics, key=lambda diagnostic: diagnostic.span.start)
    return findings.finding.ParseResult(modules[0], tuple(found), tuple(modules), reporter.left_out)


def _read(source: Source, reporter: Reporter, infer: Infer | None, reader: Reader) -> list[Module]:
    with gc_control.gc_paused():
        return _Reading(source, reporter, infer, reader).modules()


_EXPLAINED = 1 << 16
"""Length of text up to which what is wrong is said by the grammar: a tenth of a second."""


class _Reading:
    """Reads one text."""

    def __init__(self, source: Source, reporter: Reporter, infer: Infer | None, reader: Reader) -> None:
        self.source = source
        self.text = source.text
        self.reporter = reporter
        self.infer = infer
        self.reader = reader

    def modules(self) -> list[Module]:
        """Every module; at least one, empty when nothing could be read."""
        start = self._skip(1 if self.text.startswith("\ufeff") else 0)
        kind = self._kind(start)
        if kind in ("nothing", "instruction") and (later := next_module(self.text, start)) < len(self.text):
            self._note_foreign(start)
            kind, start = "module", later
        if kind == "instruction" and (module := self._single(start)) is not None:
            return [module]
        if kind == "nothing":
            self._reject(start)
            computation = _COMPUTATION_LINE().search(self.text, start)
            if computation is None:
                return [self._module("", 0)]
            start = computation.start()
        return self._all(start)

    def _all(self, start: int) -> list[Module]:
        """The modules from an offset on, the first of which may have no header."""
        found: list[Module] = []
        while start < len(self.text):
            if found and not is_module(self.text, start):
                self._note_foreign(start)
                start = next_module(self.text, start)
                continue
            module, end = self._one(start)
            found.append(module)
            start = self._skip(end)
        # Text between and around modules belongs to the one before it, so that all of them joined are the source.
        for this, following in itertools.pairwise(found):
            this._end = following._start
        found[0]._start, found[-1]._end = 0, len(self.text)
        if len(found) == 1 and found[0]._header_end < found[0]._start:
            found[0]._header_end = found[0]._start
        return found

    def _skip(self, start: int) -> int:
        match = patterns.blank().match(self.text, start)
        return match.end() if match is not None else start

    def _kind(self, start: int) -> str:
        """Kind of the text at an offset: a module, a module without a header, one op line, or unknown."""
        if self.text.startswith("HloModule", start):
            return "module"
        if _HEADERLESS().match(self.text, start):
            return "nothing" if _TEXT_PROTO().match(self.text, start) else "headerless"
        return "instruction" if _OP_LINE().match(self.text, start) else "nothing"

    def _note_foreign(self, start: int) -> None:
        """Notes the line of a text between modules that belongs to none."""
        line = self.source.line(self.source.position(start)[0])
        self.reporter.note("X206", "text outside any module", start, start + len(line))

    def _reject(self, start: int) -> None:
        text = self.text
        if start >= len(text):
            nothing = "contains only whitespace and comments" if text else "is empty"
            self.reporter.error("X123", f"the text {nothing}", 0, help=_WRITTEN)
            return
        kind = hints.foreign_text.guess_format(text)
        message = f"not HLO text; it looks like {kind}" if kind else "not HLO text"
        help, end = "", text.find("\n", start)
        inside = _INSIDE_A_LINE().search(text, start) if kind in ("", hints.foreign_text.LOG) else None
        if inside is not None:
            line = self.source.position(inside.start())[0]
            before = self.text[self.text.rfind("\n", 0, inside.start()) + 1 : inside.start()]
            what = "the log prefix" if kind else f"the text before it, {before[:40]!r},"
            help = f"`HloModule` is within line {line}: remove {what} from each line of the module"
            help += ", or let XLA write it with --xla_dump_to=DIR" if kind else ""
        elif kind == hints.foreign_text.LOG:
            help = "`hlotext message` explains compiler messages in a log"
        if not kind and inside is None and text_or_path(text.strip()) == "path":
            help = "this is a path; use hlotext.load(path)"
        elif kind and "`" not in kind and ";" not in kind and not help:  # it says no way itself
            help = _READ
        elif not kind and inside is None:
            stop = word_end(text, start)
            help = did_you_mean(text[start : min(stop, start + 40)], ["HloModule"]) or _FORM
            if re.fullmatch(r"[\w.\-]+", text.strip()) is not None and help is _FORM:
                help = f"hlotext.load(path) reads a file; {_FORM}"
            if _COMPUTATION_LINE().search(text, start) is not None:
                # A module but for its header: in an editor that is a slip of the hand, and the line is known.
                if help is not _FORM:
                    message, end = "the header line must start with `HloModule`", stop
                else:
                    message = "missing header line `HloModule NAME` before this line"
        self.reporter.error("X123", message, start, end, help)

    def _module(self, name: str, start: int) -> Module:
        header_start = start if self.text.startswith("HloModule", start) else -1
        return Module(
            name,
            source=self.source,
            start=start,
            header_end=start,
            end=len(self.text),
            header_start=header_start,
        )

    # ---- modules

    def _one(self, start: int) -> tuple[Module, int]:
        """One module, with or without a header; gives it and the offset behind it."""
        if self.reader == "reference":
            return self._by_reference(start)
        module = self._module("", start)
        if not self.reporter.tolerant:
            try:
                return self._strictly(module, start)
            except HloSyntaxError:
                if len(self.text) - start > _EXPLAINED:
                    raise
                return self._by_reference(start)  # which knows best what may have been meant
        errors = self.reporter.count(Severity.ERROR)
        position = self._head(module, start, recovery.head_recovery.recover_head)
        scanner = Scanner(module, self.reporter, self.infer)
        # Valid text is read as by `parse`; guesses begin with the line where that fails.
        try:
            with self.reporter.speculate():
                end = scanner.computations(position, len(self.text))
        except TrialError:
            end = recovery.tolerant_scanner.TolerantScanner.after(scanner).go_on(len(self.text))
            if self.reporter.count(Severity.ERROR) == errors:
                self.reporter.take(self._first_error(start))
        self._finish(module, scanner.linker)
        return module, end

    def _first_error(self, start: int) -> list[Diagnostic]:
        """Diagnostics of `parse` for the module at an offset."""
        reading = _Reading(self.source, Reporter(self.source), self.infer, "fast")
        try:
            reading._strictly(reading._module("", start), start)
        except HloSyntaxError as failure:
            return [failure.diagnostic]
        return []

    def _strictly(self, module: Module, start: int) -> tuple[Module, int]:
        """One module by the fast reader. Raises HloSyntaxError at the first error."""
        position = self._head(module, start, None)
        scanner = Scanner(module, self.reporter, self.infer)
        end = scanner.computations(position, len(self.text))
        self._finish(module, scanner.linker)
        return module, end

    def _head(self, module: Module, start: int, recover: Recover | None) -> int:
        """Reads the header, if there is one; gives the offset behind it."""
        position = start
        if self.text.startswith("HloModule", start):
            position = read_head(module, self.reporter, start, recover)
        module._header_end = position
        return position

    def _by_reference(self, start: int) -> tuple[Module, int]:
        """The same by the grammar alone."""
        rule = "module" if self.text.startswith("HloModule", start) else "headerless_module"
        stop = next_module(self.text, start)
        module = self._module("", start)
        linker = Linker(module, self.reporter, self.infer)
        try:
            record: ModuleRecord = reading.reference.parse(self.source, rule, start, stop)
        except reading.reference.ParseError as failure:
            linker.add_partial(failure.read)
            end = failure.read.end_of_computations(self.text, stop)
            if end is None:
                failure.report(self.reporter)
            if failure.read.head is not None:
                module._header_end = failure.read.head.header_end
            self._finish(module, linker)
            return module, stop if end is None else end
        if record.name:
            linking.head_linker.link_head(module, self.reporter, record)
        module._header_end = record.header_end
        for computation in record.computations:
            linker.add_computation(computation)
        self._finish(module, linker)
        return module, record.end

    def _finish(self, module: Module, linker: Linker) -> None:
        linker.finish_module()
        if not module._name and module._computations:
            module._name = f"module_{module.entry.name}"

    def _single(self, start: int) -> Module | None:
        """One op line on its own: a module of one computation, its unknown operands the parameters, as XLA reads it.

        None for what proves to be the rest of a computation whose beginning is missing.
        """
        module = self._module("_", start)
        module._start, module._header_end = 0, 0
        linker = Linker(module, self.reporter, self.infer)
        scope = linker.begin("_", -1, is_entry=True)
        del linker.computations["_"]  # a line that names `_` means one that stands elsewhere
        scope.takes_unknown = True
        scope.computation._is_sugared = True
        module._attributes["is_scheduled"] = True
        try:
            record: InstructionRecord = reading.reference.parse(self.source, "single_instruction", start)
        except reading.reference.ParseError as failure:
            if _MORE_LINES().search(self.text, start) is not None:
                if self.reporter.tolerant:
                    return None
                help = hints.hints.outside_computation(self.text, start)
                self.reporter.error("X101", "instruction outside any computation", start, None, help)
            call = _CALL().match(self.text, start)
            if call is not None and not (opcodes.opcode(call[1]) or opcodes.async_wrapped(call[1])):
                self._reject(start)  # `print("hi")` is no op line
                return module
            failure.report(self.reporter)
            linker.add_bad(scope, start, len(self.text), "", None, is_root=False)
            return module
        scope.computation._root = linker.add_instruction(
            scope, attrs.evolve(record, is_root=False, start=start)
        )
        linker.finish(scope)
        self._finish(module, linker)
        return module


_READ = "give HLO text, .hlo.pb, .hlo.json or StableHLO"
_WRITTEN = "XLA_FLAGS=--xla_dump_to=DIR dumps HLO, and `jax.jit(f).lower(...).compile().as_text()` returns it"
_FORM = "a module starts with `HloModule NAME`; a single instruction has the form `NAME = SHAPE OPCODE(...)`"
_WORD = rf"%?{patterns.IDENTIFIER}"
_HEADERLESS = lazy_regex(
    rf"ENTRY{patterns.WORD_END}|{_WORD}\s*\{{|{_WORD}\s*\((?:[^=<]|<=?)*\)\s*->", re.DOTALL
)
_TEXT_PROTO = lazy_regex(r"[a-z]\w*\s*\{\s*\n\s*[a-z]\w*(?::[ \t]|\s*\{[ \t]*\r?\n\s*[a-z]\w*:[ \t])")
"""The beginning of a proto in text form, which looks like a computation: `name {`, then `field: value`."""
_INSIDE_A_LINE = lazy_regex(rf"(?<=[^\w\n])HloModule {_WORD}")
_OP_LINE = lazy_regex(rf"(?:ROOT\s+)?(?:{_WORD}\s*=\s|\(|[a-z]\w*\s*\[|[a-z][\w\-]*\s*\()")
_CALL = lazy_regex(r"([a-z][\w\-]*)\s*\(")
"""An op line without name and shape, if its word is an opcode."""
_COMPUTATION_LINE = lazy_regex(
    rf"^(?:ENTRY[ \t]+{_WORD}|{_WORD}[ \t]*\((?=[^\r\n]*->[^\r\n]*\{{[ \t]*\r?$)|{_WORD} \{{[ \t]*\r?$)",
    re.ASCII | re.MULTILINE,
)
"""The header of a computation, as it is looked for behind text that is none."""
_MORE_LINES = lazy_regex(rf"[\r\n][ \t]*+(?:(?:ROOT[ \t]++)?+{_WORD}[ \t]*=[ \t]|\}}|ENTRY\b)", re.ASCII)
"""Text after an op line inside a computation."""
