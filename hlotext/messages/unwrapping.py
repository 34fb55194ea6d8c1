"""A log as the program wrote it: without the prefixes of loggers, without indentation, out of lines of JSON."""

from __future__ import annotations

import json
import re

_PLACE = r"[\w./+<>-]+:\d+\] ?"
_PREFIXES = re.compile(
    r"(?:"
    # Kubernetes and docker, and what runs several processes and tells them apart.
    r"\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d)? (?:std(?:out|err) [FP] )?"
    r"|\[(?:rank|worker|host|process)[ _-]?\d+\]:? ?"
    r"|\(\w+ pid=\d+(?:, ip=[\w.]+)?\) ?"
    r"|(?:worker|host|rank|pod|task)[\w.-]*\d+ *\| ?"
    # absl, with its own date and with TensorFlow's.
    rf"|[EWIF]\d{{4}} [\d:.]+ +\d+ {_PLACE}"
    rf"|\d{{4}}-\d\d-\d\d [\d:.]+: [EWIF] +(?:\d+ )?{_PLACE}"
    # Python's logging, as JAX sets it up and by default.
    rf"|\d{{4}}-\d\d-\d\d [\d:,.]+ (?:-? ?)?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) {_PLACE}"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):(?:\d{4}-\d\d-\d\d [\d:,.]+:)?[\w.]+:(?:\d+: ?)?"
    r")"
)
FATAL = "FATAL "
"""Prefix of a failed check: its level is in the prefix that is removed."""
_MOST_PREFIXES = 4
"""Prefixes of one line: a container's around a process's around a logger's."""
_KEYS = ("message", "msg", "textPayload", "log")


def lines_of(text: str) -> list[str]:
    """The lines of a log without logger prefixes and indentation."""
    found: list[str] = []
    for line in text.splitlines():
        found += _bare(line)
    return found


def _bare(line: str) -> list[str]:
    stripped = line.strip()
    for _ in range(_MOST_PREFIXES):
        match = _PREFIXES.match(stripped)
        if match is None or not match.end():
            break
        is_fatal = stripped.startswith("F") and stripped[1:2].isdigit()
        stripped = stripped[match.end() :].lstrip()
        if is_fatal and stripped.startswith("Check failed"):
            stripped = FATAL + stripped
    if stripped.startswith("{") and stripped.endswith("}"):
        message = _of_json(stripped)
        if message is not None:
            return [row for inner in message.splitlines() for row in _bare(inner)]
    return [stripped]


def _of_json(line: str) -> str | None:
    """The message of a structured log line; None for other text, such as HLO's own braces."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    if isinstance(fields.get("jsonPayload"), dict):
        fields = fields["jsonPayload"]
    return next((fields[key] for key in _KEYS if isinstance(fields.get(key), str)), None)
