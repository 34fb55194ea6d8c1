"""Inlay hints of the visible lines: shapes of operands, bytes of the result, the Python line."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from lsprotocol import types

import hlotext as hlo
from hlotext.analysis import byte_text, responsible_frame, total_of
from hlotext.findings import escape
from hlotext.lsp.reading import View, find_name

_MOST_LINES = 500
"""Maximum number of instructions with hints in one answer; a request for a whole file gets those at its beginning."""
_MOST_OPERANDS = 16
_MOST_SHAPE = 48
_FAR = 4_000
"""Number of characters of a line that are searched for operands."""


def inlay_hints(view: View, params: Any) -> list[types.InlayHint]:
    """Returns hints for the instructions in a range of lines."""
    start, _ = view.document.line_bounds(params.range.start.line)
    _, end = view.document.line_bounds(params.range.end.line)
    shown = view.reading.instructions_between(view.before(start), view.before(end))
    found: list[types.InlayHint] = []
    for instruction in itertools.islice(shown, _MOST_LINES):
        found += (
            _hint(view, place, f"{label} ", False)
            for place, label in _operand_hints(view.reading.text, instruction)
        )
        if label := _line_hint(instruction):
            found.append(_hint(view, instruction.bounds[1], f"  {label}", True))
    return found


def _hint(view: View, place: int, label: str, is_padded: bool) -> types.InlayHint:
    return types.InlayHint(
        view.document.position(view.after(place)),
        escape.line(label),
        kind=types.InlayHintKind.Type,
        padding_left=is_padded or None,
    )


def _operand_hints(text: str, instruction: hlo.Instruction) -> Iterator[tuple[int, str]]:
    """Positions of operands whose shape the text omits, with that shape."""
    first, last = instruction.bounds
    place = text.find(f" {instruction.opcode}(", first, last)
    if place < 0 or instruction.opcode in ("parameter", "constant"):
        return
    place += len(instruction.opcode) + 2
    stop = min(last, place + _FAR)
    for operand in instruction.operands[:_MOST_OPERANDS]:
        found = find_name(text, operand.name, place, stop)
        if found is None:
            return
        begin, place = found
        begin -= text[begin - 1] == "%"
        if operand.shape is not None and re.search(r"[(,]\s*$", text[max(first, begin - 20) : begin]):
            yield begin, _short(operand.shape)


def _short(shape: hlo.Shape) -> str:
    text = str(shape.without_layout())
    return text if len(text) <= _MOST_SHAPE else f"{text[: _MOST_SHAPE - 3]}..."


def _line_hint(instruction: hlo.Instruction) -> str:
    parts = []
    if instruction.shape is not None and (size := total_of(instruction.shape).allocated_bytes):
        parts.append(byte_text(size))
    if (frame := responsible_frame(instruction)) is not None:
        file = re.split(r"[\\/]", frame.file)[-1]
        parts.append(f"{file}:{frame.line}")
    return ", ".join(parts)
