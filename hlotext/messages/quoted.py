"""Pieces of HLO, of tracebacks and of numbers as messages quote them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"([\d.]+) ?(?:([KMGTP])?i?B?)")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
SIZE = r"\d[\d.]*\s?(?:[KMGTP]i?)?B?"
"""A size as XLA prints it: `16.89G`, `512B`, `16000000`."""
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)(ns|us|ms|s))?")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_FRAME = re.compile(r'File\s+"([^"\n]+)",\s+line\s+(\d+),\s+in\s')
_LOCATION = re.compile(r'\("([^"]+\.py)":(\d+):')
_NAMED_LINE = re.compile(
    r"(tracing the function \S+ at |being traced[^\n]{0,80} at )?([^\s\"'()<>\[\]]+\.py):(\d+)"
)
_METADATA = re.compile(r"(op_name|source_file)=\"((?:[^\"\\]|\\.)*)\"|(stack_frame_id|source_line)=(\d+)")
_NOT_THE_PROGRAM = ("/site-packages/", "/dist-packages/", "<frozen ", "<string>")


def size(text: str) -> float | None:
    """Parses a size such as `1.5GiB` and returns bytes; None if it cannot be parsed. Units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip().replace(" ", ""))
    if match is None:
        return None
    try:
        return float(match[1]) * (_UNITS[match[2]] if match[2] else 1)
    except ValueError:
        return None


def duration(text: str) -> float | None:
    """Parses a duration of absl, such as `2m12.85s` or `150ms`, and returns seconds; None if it cannot be parsed."""
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        return None
    hours, minutes, rest, unit = match.groups()
    try:
        return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest or 0) * _SECONDS.get(unit, 1.0)
    except ValueError:
        return None


def braced(text: str, start: int, end: int) -> str | None:
    """Returns the text from an opening brace or parenthesis at `start` to its closing one; None if it is not closed."""
    opening = text[start]
    depth = 0
    for match in _PAIRS[opening].finditer(text, start, end):
        depth += 1 if match[0] == opening else -1
        if not depth:
            return text[start : match.end()]
    return None


_PAIRS = {"{": re.compile(r"[{}]"), "(": re.compile(r"[()]")}


def shape_at(text: str, start: int, end: int) -> str | None:
    """Returns the shape that starts at an offset, with its layout, or a whole tuple; None if there is no shape."""
    if text.startswith("(", start, end):
        return braced(text, start, end)
    match = _ARRAY.match(text, start, end)
    if match is None:
        return None
    layout = braced(text, match.end(), end) if text.startswith("{", match.end(), end) else ""
    return match[0] + (layout or "")


_ARRAY = re.compile(r"[a-z][a-z0-9]*\[[\d,<=?\s]*\]")
_OP_LINE = re.compile(r"(?:ROOT\s+)?%?([\w.\-]+)\s=\s")


def op_line(text: str, start: int, end: int) -> tuple[str, str | None] | None:
    """Returns name and shape of the first op line between two offsets; None if there is no op line."""
    match = _OP_LINE.search(text, start, end)
    return (match[1], shape_at(text, match.end(), end)) if match is not None else None


def metadata(text: str, start: int, end: int) -> dict[str, str | int]:
    """Returns the first `op_name`, `stack_frame_id`, `source_file` and `source_line` between two offsets, as far as
    present.
    """
    found: dict[str, str | int] = {}
    for match in _METADATA.finditer(text, start, end):
        key = match[1] or match[3]
        found.setdefault(key, match[2] if match[1] else int(match[4]))
    return found


def frame(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Returns file and line of the last traceback frame between two offsets that is the program's own; None if there is
    none.
    """
    found = None
    for match in _FRAME.finditer(text, start, end):
        if is_of_the_program(match[1]):
            found = match[1], int(match[2])
    return found


def last_frame(text: str, start: int, end: int) -> str | None:
    """Returns the last frame of a traceback as `FILE:LINE`, with FILE relative to site-packages; None if it is the
    program's own.
    """
    frames = list(_FRAME.finditer(text, start, end))
    if not frames or is_of_the_program(frames[-1][1]):
        return None
    return f"{frames[-1][1].rpartition('-packages/')[2]}:{frames[-1][2]}"


def named_line(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Returns the first `FILE.py:LINE` between two offsets that is the program's own, as file and line; None if there
    is none.
    """
    for match in _NAMED_LINE.finditer(text, start, end):
        if is_of_the_program(match[2]) and match[1] is None:
            return match[2], int(match[3])
    return None


def location(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Returns file and line of the innermost location in an MLIR `loc(...)` that is the program's own; None if there is
    none.
    """
    for match in _LOCATION.finditer(text, start, end):
        if is_of_the_program(match[1]):
            return match[1], int(match[2])
    return None


def is_of_the_program(file: str) -> bool:
    """True if a file is neither in an installed package nor part of Python."""
    return not any(part in file for part in _NOT_THE_PROGRAM) and not re.search(r"/lib/python3\.\d+/", file)
