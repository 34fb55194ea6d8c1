"""Where the readers say what is wrong: raise at the first error, or collect everything."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hlotext import findings
from hlotext.findings.errors import HloSyntaxError, Severity
from hlotext.ir.caches import lazy_regex
from hlotext.ir.spelling import did_you_mean
from hlotext.syntax.source.limits import MAX_COMPARED_WORDS, MAX_DIAGNOSTICS, MAX_MESSAGE

if TYPE_CHECKING:
    from hlotext.findings.finding import Diagnostic
    from hlotext.ir.nodes.source import Source

Place = tuple[str, int, int | None]
"""A message about a related position, its start and its end."""


class TrialError(Exception):
    """Raised at an error if the reporter is in a trial, in which the error is not reported."""


class Reporter:
    """Collects the diagnostics of a text."""

    def __init__(self, source: Source, strict: bool = False, tolerant: bool = False) -> None:
        self.source = source
        self.strict = strict
        """Notes count as errors."""
        self.tolerant = tolerant
        """Errors are collected, not raised."""
        self.is_trying = False
        """Whoever reads only tries whether all is right; what is said where it is not matters little."""
        self.diagnostics: list[Diagnostic] = []
        """Diagnostics in the order in which they were found."""
        self._said: set[tuple[object, ...]] = set()
        """Lines may be read twice, by both readers; what was said is not said again."""
        self._counts = dict.fromkeys(Severity, 0)
        """Number of diagnostics by severity, kept or not."""
        self._compared = 0
        """Known words that were compared with misspelt ones."""
        self._meant: dict[tuple[str, tuple[str, ...]], str] = {}
        """Cached suggestions: one unknown opcode often occurs on many lines."""
        self._lengths = _ByLength(())
        """The words that were known last."""

    def error(
        self,
        code: str,
        message: str,
        start: int,
        end: int | None = None,
        help: str = "",
        related: Iterable[Place] = (),
    ) -> None:
        """Raises HloSyntaxError, or in tolerant mode records the error.

        Without `end`, the location is the word at `start`, also for related places. Raises TrialError in a trial.
        """
        self.end_trial()
        diagnostic = self._make(code, Severity.ERROR, message, start, end, help, related)
        if not self.tolerant:
            raise HloSyntaxError(diagnostic) from None
        self._keep(diagnostic, (code, diagnostic.span, diagnostic.message))

    def last_error_end(self) -> int:
        """Returns the end offset of the last error; -1 if there is none."""
        if not self._counts[Severity.ERROR]:
            return -1
        errors = (one for one in reversed(self.diagnostics) if one.severity is Severity.ERROR)
        return next((one.span.end for one in errors), -1)

    @contextmanager
    def speculate(self) -> Iterator[None]:
        """Within the context, the first error raises TrialError."""
        tolerant, self.tolerant, self.is_trying = self.tolerant, False, True
        try:
            yield
        finally:
            self.tolerant, self.is_trying = tolerant, False

    def end_trial(self) -> None:
        """Raises TrialError in a trial. For callers that need time to describe an error."""
        if self.is_trying:
            raise TrialError

    @property
    def is_full(self) -> bool:
        """True if further errors are only counted."""
        return self.tolerant and self._counts[Severity.ERROR] >= MAX_DIAGNOSTICS

    def leave_out(self) -> None:
        """Counts an error that is not recorded because of `is_full`."""
        self._counts[Severity.ERROR] += 1

    def note(self, code: str, message: str, start: int, end: int | None = None, help: str = "") -> None:
        """Records a note, once per subject; in strict mode reports it as an error."""
        if self.strict:
            self.error(code, message, start, end, help)
        elif (code, message) not in self._said:
            self._keep(self._make(code, Severity.NOTE, message, start, end, help, ()), (code, message))

    def _keep(self, diagnostic: Diagnostic, key: tuple[object, ...]) -> None:
        if key in self._said:
            return
        self._counts[diagnostic.severity] += 1
        if self._counts[diagnostic.severity] <= MAX_DIAGNOSTICS:
            self._said.add(key)
            self.diagnostics.append(diagnostic)

    def take(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Records diagnostics of another reporter for the same text."""
        for found in diagnostics:
            is_note = found.severity is Severity.NOTE
            self._keep(
                found, (found.code, found.message) if is_note else (found.code, found.span, found.message)
            )

    def count(self, severity: Severity) -> int:
        """Returns the number of diagnostics of a severity, recorded or not."""
        return self._counts[severity]

    @property
    def left_out(self) -> int:
        """Number of errors and notes that were not recorded."""
        return sum(max(0, count - MAX_DIAGNOSTICS) for count in self._counts.values())

    def did_you_mean(self, word: str, known: Collection[str]) -> str:
        """Returns a sentence that suggests the nearest known word; empty if none is near."""
        room = MAX_COMPARED_WORDS - self._compared
        if room <= 0 or len(word) > 100:
            return ""
        # Looking at the length of a word costs a hundredth of comparing it.
        self._compared += len(known) // 100
        if not self._lengths.follows(known):
            self._lengths = _ByLength(known)
        near = self._lengths.near(word, min(room, 2_000))
        self._compared += len(near)
        if len(near) > _MANY:
            return did_you_mean(word, near)
        key = word, tuple(near)
        if key not in self._meant:
            self._meant[key] = did_you_mean(word, near)
        return self._meant[key]

    def _make(
        self,
        code: str,
        severity: Severity,
        message: str,
        start: int,
        end: int | None,
        help: str,
        related: Iterable[Place],
    ) -> Diagnostic:
        text = self.source.text
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}..."
        start = max(0, min(start, len(text)))
        end = min(len(text), word_end(text, start) if end is None else max(end, start + 1))
        places = tuple(
            (what, self.source.span(first, word_end(text, first) if last is None else last))
            for what, first, last in related
        )
        return findings.finding.Diagnostic(
            code, severity, message, self.source.span(start, end), help, places, self.source
        )


_WORD = lazy_regex(r"%?-?[A-Za-z0-9_.][A-Za-z0-9_.\-]*|->|<=")


def word_end(text: str, start: int) -> int:
    """Returns the end of the word at an offset; the next offset if there is no word."""
    match = _WORD().match(text, start)
    return start + 1 if match is None else match.end()


_MANY = 100
"""Words beyond which what was meant is not remembered."""


class _ByLength:
    """Known words by their length, in their order; grows with what is known."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._count = 0
        self._words: dict[int, list[tuple[int, str]]] = {}

    def follows(self, known: Collection[str]) -> bool:
        """True if these words include the cached ones. Words removed since are detected by `near`."""
        return known is self._known and len(known) >= self._count

    def near(self, word: str, most: int) -> list[str]:
        """The first words that are about as long as one."""
        if len(self._known) > self._count:
            for name in itertools.islice(self._known, self._count, None):
                self._words.setdefault(len(name), []).append((self._count, name))
                self._count += 1
        room = 1 + len(word) // 3
        found: list[tuple[int, str]] = []
        for length in range(max(0, len(word) - room), len(word) + room + 1):
            found += self._words.get(length, ())[:most]
        found.sort()
        return [name for _, name in found[:most] if name in self._known]
