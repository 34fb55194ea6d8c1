"""A log as the program wrote it: without colors, prefixes of loggers and folds, and out of lines of JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence

_LEVEL = r"(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)"
_PLACE = r"[\w./+<>-]+:\d+\] ?"
_DAY = r"\d{4}[-/]\d\d[-/]\d\d"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = re.compile(
    r"(?:"
    # absl, with its own date and with TensorFlow's.
    rf"[EWIF]\d{{4}} [\d:.]+ +\d+ {_PLACE}"
    rf"|{_DAY} [\d:.]+: [EWIF] +(?:\d+ )?{_PLACE}"
    # Python's logging, as JAX sets it up, by default, and in common formats; loguru.
    rf"|{_DAY} [\d:,.]+ (?:-? ?)?{_LEVEL} {_PLACE}"
    rf"|{_LEVEL}:(?:{_DAY} [\d:,.]+:)?[\w.]+:(?:\d+: ?)?"
    rf"|(?:{_DAY} [\d:,.]+ )?(?:- )?[\w.]+ - {_LEVEL} - "
    rf"|(?:{_DAY} [\d:,.]+ )?\| {_LEVEL} *\| (?:[\w.<>]+:[\w.<>]+:\d+ - )?"
    # Kubernetes, docker, journals, and what runs several processes and tells them apart.
    rf"|{_DAY}T[\d:.,]+{_ZONE} (?:std(?:out|err) [FP] )?"
    rf"|\[?{_DAY}[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?{_ZONE}\]?:? "
    r"|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]? "
    r"|[A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \S+ [\w./@-]+(?:\[\d+\])?: "
    r"|\[\d+,\d+\]<std(?:out|err)>: ?"
    r"|\[(?!Compiling|SPMD)(?=[^\]]*[A-Za-z])[\w./:+@ -]{1,80}\](?:: ?| )"
    r"|\(\w[\w()=.-]* ?pid=\d+(?:, ip=[\w.:]+)?\) ?"
    r"|[\w.@/:-]+ *\| "
    r"|\d{1,4}: "
    r")"
)
_COLORS = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|\[\d{1,3}(?:;\d{1,3})*m"
)
"""Escape sequences, and those of colors without their first character, which copying loses."""
_PARTIAL = re.compile(r"\S+ std(?:out|err) P ")
"""Kubernetes' prefix of a piece of a line that goes on."""
FATAL = "FATAL "
"""Prefix of a failed check: its level is in the prefix that is removed."""
_MOST_PREFIXES = 4
"""Prefixes of one line: a container's around a process's around a logger's."""
_KEYS = ("message", "msg", "textPayload", "log", "text", "MESSAGE")
_RECORD = re.compile(r'Traceback |File "|\d+\. Size: |={5,}')
"""Beginnings of lines that continue no other."""
_NARROWEST = 20
_LONG_WORD = 12
_MOST_FOLDED = 8 << 20
"""Characters of a log whose folds are looked for."""


def plain_texts(text: str) -> Iterator[str]:
    """Yields the log without line prefixes, in the forms that it may have had before its lines were wrapped, the
    likeliest first.

    Lines are wrapped at a number of columns, inside words or at blanks, which may include some of the prefixes. Lines
    at least that long are joined with the next one.
    """
    levels = [_whole_lines(text)]
    while len(levels) <= _MOST_PREFIXES:
        lines = [inner for line in levels[-1] for inner in _without_one(line)]
        if lines == levels[-1]:
            break
        levels.append(lines)
    as_is = _finished(levels[-1])
    if len(text) > _MOST_FOLDED:
        yield as_is
        return
    certain: list[str] = []
    possible = [as_is]
    for lines in levels:
        width = max(map(len, lines), default=0)
        if width >= _NARROWEST:
            (certain if _is_folded(lines, width) else possible).append(_finished(_unfolded(lines, width)))
        width = max((len(line.rstrip()) for line in lines if " " in line.strip()), default=0)
        if width >= _NARROWEST:
            possible.append(_finished(_unwrapped(lines, width)))
    yield from dict.fromkeys((*certain, *possible))


def _whole_lines(text: str) -> list[str]:
    """The lines without colors; those that a container's runtime has cut are whole again."""
    found: list[str] = []
    pending: list[str] = []
    for line in _COLORS.sub("", text).splitlines():
        if pending:
            match = _PREFIXES.match(line)
            pending.append(line[match.end() :] if match is not None else line)
        if _PARTIAL.match(line):
            pending = pending or [line]
        elif pending:
            found.append("".join(pending))
            pending = []
        else:
            found.append(line)
    return [*found, *(["".join(pending)] if pending else [])]


def _without_one(line: str) -> list[str]:
    """A line without its first prefix; the lines in a line of JSON."""
    stripped = line.lstrip()
    if stripped.startswith("{") and stripped.rstrip().endswith("}"):
        message = _of_json(stripped)
        if message is not None:
            return message.splitlines() or [""]
    match = _PREFIXES.match(stripped)
    if match is None or not match.end():
        return [line]
    rest = stripped[match.end() :]
    is_fatal = stripped.startswith("F") and stripped[1:2].isdigit()
    return [FATAL + rest if is_fatal and rest.lstrip().startswith("Check failed") else rest]


def _finished(lines: Iterable[str]) -> str:
    """Lines without any prefix, and without indentation."""
    for _ in range(_MOST_PREFIXES):
        lines = [inner for line in lines for inner in _without_one(line)]
    return "\n".join(line.strip() for line in lines)


def _is_folded(lines: Sequence[str], width: int) -> bool:
    """True if several lines have the greatest length, more than are a little shorter, and a word goes on behind one."""
    long = {
        (line, after)
        for line, after in itertools.pairwise(lines)
        if width - len(line) < _LONG_WORD and _goes_on(after)
    }
    full = {(line, after) for line, after in long if len(line) == width}
    in_words = any(line[-1].isalnum() and after[0].isalnum() for line, after in full)
    return len({line for line, _ in full}) > 1 and 2 * len(full) > len(long) and in_words


def _unfolded(lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines of exactly the width together with the next one. A blank at the end may have been removed."""
    pending = ""
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        pending += line
        if len(line) == width and _goes_on(after):
            continue
        if len(line) == width - 1 and _goes_on(after) and not after[:1].isspace() and pending != line:
            pending += " "
            continue
        yield pending
        pending = ""


def _unwrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    """Lines together with the next one whose first word had no more room."""
    pending = ""
    for number, line in enumerate(lines):
        after = lines[number + 1].strip() if number + 1 < len(lines) else ""
        first = after.partition(" ")[0]
        pending += line.rstrip() if not pending else line.strip()
        if _goes_on(after) and len(line.rstrip()) + 1 + len(first) > width:
            pending += _joint(line.strip(), first, width)
            continue
        yield pending
        pending = ""


def _joint(line: str, first: str, width: int) -> str:
    """The separator of two pieces: a blank, or nothing where a word was too long for a line or had a hyphen."""
    last = line.rpartition(" ")[2]
    is_hyphen = last.endswith("-") and last[-2:-1].isalnum() and first[:1].isalnum()
    return "" if is_hyphen or len(last) + len(first) > width else " "


def _goes_on(line: str) -> bool:
    """True if a line may be the rest of the one before."""
    stripped = line.lstrip()
    if not stripped or _RECORD.match(stripped):
        return False
    match = _PREFIXES.match(stripped)
    return match is None or not match.end()


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
