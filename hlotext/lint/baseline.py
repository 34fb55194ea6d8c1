"""Findings that are known and accepted: a file of fingerprints, so that CI fails only on what is new."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from hlotext.findings.finding import Finding
from hlotext.syntax.source.inputs import missing

_VERSION = 1


class BaselineError(ValueError):
    """Raised for a file that is not a baseline, or cannot be read. The message is one line that names the file."""


@attrs.frozen
class Entry:
    """An entry of a baseline file: a fingerprint, and the number of findings that it covers.

    Comparison uses these two fields. `code`, `module` and `message` describe the findings for readers of the file.
    """

    fingerprint: str
    code: str
    count: int
    """Number of locations with this fingerprint."""
    module: str
    message: str


@attrs.frozen
class Comparison:
    """Result of comparing findings with a baseline: new, known and missing ones."""

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    gone: tuple[Entry, ...]
    """Baseline entries that no longer occur, with the number of missing findings."""


@attrs.frozen
class Baseline:
    """Known findings, identified by fingerprint."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Baseline:
        """Creates a baseline that covers all locations of these findings."""
        first: dict[str, Finding] = {}
        counts: Counter[str] = Counter()
        for finding in findings:
            for key in _fingerprints(finding):
                first.setdefault(key, finding)
                counts[key] += 1
        entries = (Entry(key, f.code, counts[key], f.module, f.message) for key, f in first.items())
        return cls(tuple(sorted(entries, key=lambda entry: (entry.code, entry.module, entry.fingerprint))))

    def compare(self, findings: Iterable[Finding]) -> Comparison:
        """Splits findings into new and known findings, and lists the baseline entries that no longer occur."""
        left = Counter({entry.fingerprint: entry.count for entry in self.entries})
        new: list[Finding] = []
        known: list[Finding] = []
        for finding in findings:
            is_known = True
            former = [old for old in finding.former_fingerprints if left[old] > 0]
            for key in _fingerprints(finding):
                if not left[key] and former:
                    key = former.pop(0)
                is_known = is_known and left[key] > 0
                left[key] -= left[key] > 0
            (known if is_known else new).append(finding)
        gone = (attrs.evolve(e, count=left[e.fingerprint]) for e in self.entries if left[e.fingerprint] > 0)
        return Comparison(tuple(new), tuple(known), tuple(gone))

    def to_text(self) -> str:
        """Serializes the baseline as JSON with one finding per line, so that diffs are readable."""
        rows = ",\n    ".join(json.dumps(attrs.asdict(entry), ensure_ascii=True) for entry in self.entries)
        return f'{{\n  "version": {_VERSION},\n  "findings": [\n    {rows}\n  ]\n}}\n'

    @classmethod
    def from_text(cls, text: str, name: str = "<baseline>") -> Baseline:
        """Parses a baseline written by `to_text`.

        Raises BaselineError, whose message begins with `name`, if the text is not a baseline.
        """
        try:
            data = json.loads(text)
            if data["version"] != _VERSION:
                raise BaselineError(
                    f"{name}: version {data['version']} of baselines is not known to this release"
                )
            rows = data["findings"]
            return cls(tuple(map(_entry, rows)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, BaselineError):
                raise
            why = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
            why = "it is not JSON" if isinstance(error, json.JSONDecodeError) else why
            raise BaselineError(f"{name} is not a baseline: {why}") from None

    @classmethod
    def load(cls, path: Path) -> Baseline:
        """Loads a baseline file. Raises BaselineError if it is not a baseline or cannot be read."""
        try:
            return cls.from_text(path.read_text("utf-8"), str(path))
        except FileNotFoundError:
            raise BaselineError(f"{missing(str(path))} (lint's --write-baseline {path} makes one)") from None
        except (OSError, UnicodeDecodeError) as error:
            raise BaselineError(
                f"{path} cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None


def _entry(row: Any) -> Entry:
    """One row of a file. Raises KeyError for what is missing, TypeError for what is of another type."""
    values = {field.name: row[field.name] for field in attrs.fields(Entry)}
    for name, value in values.items():
        kind = int if name == "count" else str
        if type(value) is not kind:
            raise TypeError(f"{name} of a finding is {type(value).__name__}, not {kind.__name__}")
    return Entry(**values)


def _fingerprints(finding: Finding) -> tuple[str, ...]:
    """Those of all places of a finding."""
    return (finding.fingerprint, *finding.other_fingerprints)
