"""One thing to say about one place of a text: what the readers, the verifier and the linter find, in one record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.findings import escape
from hlotext.findings.errors import Severity
from hlotext.ir.foreign_names import with_foreign_names
from hlotext.ir.nodes.source import Source, Span
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.values.value import Value, mimebundle

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.frames import StackFrame


@attrs.frozen
class Facts:
    """Context of a finding for reports: its instruction and text. Plain values that outlive the module."""

    file: str = "<text>"
    """The name of the text."""
    name: str = ""
    """The instruction's name; empty if there is none. Also for the next two."""
    computation: str = ""
    op_name: str = ""
    """The operation of the source program, with its scopes."""
    excerpt: tuple[str, ...] = ()
    """The source line with a caret below, truncated if long; empty if there is no text."""
    related: tuple[tuple[str, ...], ...] = ()
    """Excerpts of the related places."""
    is_in_text: bool = True
    """False if the module was built, edited or read from a proto, so that the excerpt is the op line as it prints."""


@attrs.frozen
class RepairOutcome:
    """Estimated time and memory of a module before and after a repair, made in a copy."""

    edit: str
    """The edit that was made; empty if none fits."""
    reason: str
    """Why no edit fits; empty if one was made."""
    seconds_before: float
    """Seconds of one run of the module."""
    seconds_after: float | None
    peak_before: int | None
    """Bytes of the main memory at its peak; None if memory cannot be computed."""
    peak_after: int | None


@with_foreign_names
@attrs.frozen(repr=False)
class Finding(Value, Abbreviated):
    """A message about a location in HLO text, with a severity and a stable code. `Diagnostic` is an alias."""

    code: str
    """Stable code such as `X101`."""
    severity: Severity
    message: str
    """The problem, in one sentence without a full stop."""
    span: Span
    """Location of the finding. Findings about a whole module are located at its header."""
    help: str = ""
    """Suggested remedy; empty if there is none."""
    related: tuple[tuple[str, Span], ...] = ()
    """Labels and locations of related text, such as the first definition of a name."""
    source: Source | None = attrs.field(default=None, repr=False, eq=False)
    """The text that spans refer to; None when detached. For edited or built modules, the op line as printed."""
    instruction: Instruction | None = attrs.field(default=None, repr=False, eq=False)
    """The instruction at fault, or None if not about a single instruction, for syntax errors, and when detached.
    """
    related_instructions: tuple[Instruction, ...] = attrs.field(default=(), repr=False, eq=False)
    """Other instructions involved, such as an operand of the wrong shape; empty for syntax errors and when detached."""

    rule: str = attrs.field(default="", kw_only=True)
    """Name of the lint rule, such as `exchange-in-loop`; empty outside the linter."""
    module: str = attrs.field(default="", kw_only=True)
    """Name of the module; empty if unknown."""
    frame: StackFrame | None = attrs.field(default=None, kw_only=True)
    """The responsible Python frame, set by the linter, or None if unknown."""
    is_frame_near: bool = attrs.field(default=False, kw_only=True)
    """True if the text has no frame of the instruction itself, and `frame` is that of an instruction next to it."""
    checkout: tuple[str, int] | None = attrs.field(default=None, kw_only=True)
    """File, relative to the source root, and line of the responsible Python code, or None if unknown."""
    bytes: int | None = attrs.field(default=None, kw_only=True)
    """Bytes of traffic per run of the module, or of live memory (see `is_held`), or None if unknown."""
    flops: int | None = attrs.field(default=None, kw_only=True)
    """FLOPs per run of the module, or None if unknown."""
    waste: str = attrs.field(default="", kw_only=True)
    """Kind of waste, a key of `hlotext.lint.WASTES`; empty outside the linter, and for findings without a cost.
    """
    seconds: float | None = attrs.field(default=None, kw_only=True)
    """Estimated seconds per run of the module that the repair saves, over all locations, or None if unknown."""
    peak_bytes: int | None = attrs.field(default=None, kw_only=True)
    """Estimated bytes by which the repair reduces peak memory, or None if unknown."""
    is_at_most: bool = attrs.field(default=False, kw_only=True)
    """True if the savings are upper bounds, since the compiler may do something else with the repaired program."""
    share: float = attrs.field(default=0.0, kw_only=True)
    """Relative saving, the sort key of findings: the larger of the fractions of step time and of peak memory.
    """
    is_share_of_peak: bool = attrs.field(default=False, kw_only=True)
    """True if `share` is a fraction of peak memory, False if of step time."""
    basis: str = attrs.field(default="", kw_only=True)
    """Chip and assumptions: `h100`; `v5e (default chip), assuming 32 iterations for 2 loops of unknown trip count`."""
    is_held: bool = attrs.field(default=False, kw_only=True)
    """True if `bytes` is live memory, False if it is traffic per run."""
    places: int = attrs.field(default=1, kw_only=True)
    """Number of locations with the same cause. Costs are totals over all of them."""
    other_lines: tuple[int, ...] = attrs.field(default=(), kw_only=True)
    """Lines of the first few other locations."""
    fix: str = attrs.field(default="", kw_only=True)
    """Pass that fixes the finding without changing results; empty if there is none."""
    what_if: RepairOutcome | None = attrs.field(default=None, kw_only=True)
    """Time and memory after the repair, if `Config.what_if` is set and the rule can make the edit."""
    fingerprint: str = attrs.field(default="", kw_only=True)
    """Stable identifier across recompilations; empty if none can be computed."""
    other_fingerprints: tuple[str, ...] = attrs.field(default=(), kw_only=True)
    """Fingerprints of the other locations."""
    former_fingerprints: tuple[str, ...] = attrs.field(default=(), kw_only=True, eq=False, repr=False)
    """Fingerprints under codes of earlier releases, for matching old baselines."""
    _facts: Facts | None = attrs.field(default=None, kw_only=True, repr=False, eq=False)
    """Set when detached."""

    # ---- where

    @property
    def line(self) -> int:
        """Start line, from 1."""
        return self.span.line

    @property
    def column(self) -> int:
        """Start column, in characters from 1."""
        return self.span.column

    @property
    def end_line(self) -> int:
        """End line, from 1."""
        return self.span.end_line

    @property
    def end_column(self) -> int:
        """End column, in characters from 1, exclusive."""
        return self.span.end_column

    @property
    def file(self) -> str:
        """Name of the source: the path, for a text that was read from a file; `<text>` without a source."""
        if self._facts is not None:
            return self._facts.file
        return self.source.name if self.source is not None else "<text>"

    @property
    def place(self) -> str:
        """The start of the finding as `file:line:column`; `file: %name` for an instruction that is not in the source text."""
        return self.place_of(self.span)

    def place_of(self, span: Span) -> str:
        """Returns the start of the finding's span, or of a related one, as `place` does."""
        if self._is_in_text:
            return f"{self.file}:{span.line}:{span.column}"
        return f"{self.file}: %{self.name}" if span is self.span else self.file

    @property
    def _is_in_text(self) -> bool:
        """True unless the source is one op line as it prints: of what was built, changed or read from a proto."""
        if self._facts is not None:
            return self._facts.is_in_text
        home = self.instruction.computation if self.instruction is not None else None
        return home is None or home.module is None or home.module.source is self.source

    @property
    def source_line(self) -> str:
        """The full source line at the start of the finding; empty when detached."""
        return self.source.line_at(self.span.start) if self.source is not None else ""

    # ---- what

    @property
    def name(self) -> str:
        """Name of the instruction; empty if the finding is not about an instruction."""
        return self.facts.name

    @property
    def computation(self) -> str:
        """Name of the computation that contains the instruction; empty if the finding is not about an instruction."""
        return self.facts.computation

    @property
    def op_name(self) -> str:
        """The instruction's `op_name`: the operation of the source program with its scopes. Empty if absent."""
        return self.facts.op_name

    @property
    def facts(self) -> Facts:
        """Instruction names and source excerpts for reports."""
        if self._facts is not None:
            return self._facts
        instruction = self.instruction
        is_in_text = self._is_in_text
        excerpts: list[tuple[str, ...]] = [()] * (1 + len(self.related))
        if self.source is not None:
            spans = (self.span, *(span for _, span in self.related))
            excerpts = [tuple(_excerpt_of(self.source, span, is_in_text)) for span in spans]
        if instruction is None:
            return Facts(self.file, excerpt=excerpts[0], related=tuple(excerpts[1:]))
        # Of an asynchronous wrapper often only what it runs tells where it comes from.
        metadata = instruction.metadata
        if metadata is None and (wrapped := instruction.async_wrapped_instruction) is not None:
            metadata = wrapped.metadata
        return Facts(
            file=self.file,
            name=instruction.name,
            computation=instruction.computation.name if instruction.computation is not None else "",
            op_name=metadata.op_name if metadata is not None else "",
            excerpt=excerpts[0],
            related=tuple(excerpts[1:]),
            is_in_text=is_in_text,
        )

    @property
    def brief(self) -> str:
        """The finding in one line with its help: `file:line:column: error[X101]: message (help)`."""
        help = f" ({self.help})" if self.help else ""
        return escape.one_line(f"{self.place}: {self.severity.value}[{self.code}]: {self.message}{help}")

    def detached(self) -> Finding:
        """Returns a copy without references to nodes or source text, which can be pickled and outlives the module."""
        return attrs.evolve(self, source=None, instruction=None, related_instructions=(), facts=self.facts)

    def __str__(self) -> str:
        """The full report: location, message, source line with caret, related locations, help. Safe in terminals and logs."""
        facts = self.facts
        message = escape.line(self.message)
        out = [f"{escape.line(self.place)}: {self.severity.value}[{self.code}]: {message}"]
        out += facts.excerpt
        for (what, span), lines in zip(self.related, facts.related, strict=True):
            out += (f"{escape.line(self.place_of(span))}: {escape.line(what)}", *lines)
        if self.help:
            out.append(f"  help: {escape.lines(self.help)}")
        return "\n".join(out)


Diagnostic = Finding
"""Name of a Finding in the readers and the verifier."""


@with_foreign_names
class FindingList(list[Finding]):
    """Findings in text order: a list that notebooks display as a table."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return mimebundle(self, text=_listed(self))


_MOST_LISTED = 50


def _listed(found: Sequence[Finding], left_out: int = 0) -> str:
    """Findings as people read them; of many the first."""
    left = len(found) - _MOST_LISTED + left_out
    lines = [str(finding) for finding in found[:_MOST_LISTED]]
    return "\n".join([*lines, *([f"and {left:,} more"] if left > 0 else [])]) or "nothing found"


@with_foreign_names
@attrs.frozen
class ParseResult:
    """Result of error-tolerant parsing: everything that could be parsed, and all diagnostics."""

    module: Module
    """The (first) module."""
    diagnostics: tuple[Finding, ...]
    """Errors and notes, in text order."""
    modules: tuple[Module, ...] = ()
    """All modules in the input."""
    left_out: int = 0
    """Number of diagnostics dropped beyond the first 1,000 errors and 1,000 notes."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        modules = "\n".join(map(repr, self.modules or (self.module,)))
        return mimebundle(self, text=f"{modules}\n{_listed(self.diagnostics, self.left_out)}")


_WIDTH = 160
"""Longest piece of a source line that is shown; dumps have lines of megabytes."""


def _excerpt_of(source: Source, span: Span, is_in_text: bool) -> list[str]:
    """The line of a span with a caret, without a copy of the whole line: there may be a thousand errors on a huge one.

    A line that is none of a text has no number.
    """
    text, (start, end) = source.text, source.bounds_at(span.start)
    number = f"{span.line} " if is_in_text else ""
    return _excerpt(
        lambda first, last: text[start + first : min(end, start + last)], end - start, span, number
    )


def _excerpt(piece: Callable[[int, int], str], length: int, span: Span, number: str) -> list[str]:
    """The line, of so many characters, and a caret under the span; `piece` gives what is between two columns, from 0."""
    column = span.column - 1
    first = max(0, column - _WIDTH // 2) if length > _WIDTH else 0
    # Blank for blank: the caret stands below the character that is meant.
    shown = escape.lines(piece(first, first + _WIDTH).replace("\t", " ").replace("\n", escape.REPLACEMENT))
    left = "... " if first else ""
    right = " ..." if first + _WIDTH < length else ""
    width = span.end_column - span.column if span.end_line == span.line else length - column
    carets = "^" * max(1, min(width, _WIDTH - (column - first)))
    gutter = f"{number}| "
    pad = " " * (len(gutter) - 2) + "| "
    return [f"  {gutter}{left}{shown}{right}", f"  {pad}{' ' * (len(left) + column - first)}{carets}"]
