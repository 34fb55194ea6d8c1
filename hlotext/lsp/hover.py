"""Hovers: an instruction, a computation or a shape in a few lines. Text of the module is quoted, never rendered."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from lsprotocol import types

import hlotext as hlo
from hlotext import layout
from hlotext.analysis import byte_text, call_graph, responsible_frame, total_of
from hlotext.findings import escape
from hlotext.lsp.facts import Facts
from hlotext.lsp.reading import View
from hlotext.syntax import read_terms

Row = tuple[str, str]

_SHAPE = re.compile(r"[a-z]\w*\[[\d,<=?]*\](?:\{[^{}\s]*\})?")
_NEAR = 400
"""Number of characters on each side of the cursor that are searched for a shape; a longer shape is not found."""
_MOST_TEXT = 200


def hover(view: View, position: types.Position, is_markdown: bool) -> types.Hover | None:
    """Returns the hover at a position; None if there is none."""
    shape = _shape_at(view, position)
    if shape is not None:
        start, end, rows = shape
        where = view.document.range(start, end)
        return types.Hover(_content(view.document.text[start:end], rows, is_markdown), where)
    target = view.target(position)
    if target is None or target.node is None:
        return None
    if isinstance(target.node, hlo.Computation):
        title, rows = target.node.name, list(computation_rows(target.node))
    else:
        title, rows = target.node.name, list(instruction_rows(target.node, view.reading.facts))
    where = view.document.range(target.word.start, target.word.end)
    return types.Hover(_content(title, rows, is_markdown), where)


def _content(title: str, rows: Iterable[Row], is_markdown: bool) -> types.MarkupContent:
    lines = [_cut(f"{name}: {text}" if name else text) for name, text in rows]
    if not is_markdown:
        return types.MarkupContent(
            types.MarkupKind.PlainText, "\n".join(map(escape.line, (_cut(title), *lines)))
        )
    items = "\n".join(f"- {escape.markdown(line)}" for line in lines)
    return types.MarkupContent(types.MarkupKind.Markdown, f"**{escape.markdown(_cut(title))}**\n\n{items}")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ... ({len(text):,} characters)"


def instruction_rows(instruction: hlo.Instruction, facts: Facts | None) -> Iterator[Row]:
    """Yields facts about an instruction, the most useful first."""
    shape, home = instruction.shape, instruction.computation
    yield "opcode", instruction.opcode + (" (root)" if instruction.is_root else "")
    if shape is None:
        yield "shape", "omitted in the text"
    else:
        yield "shape", str(shape)
        size = total_of(shape)
        if size.arrays:
            padding = size.allocated_bytes - size.unpadded_bytes
            arrays = f" in {size.arrays:,} arrays" if size.arrays > 1 else ""
            share = (
                f", {byte_text(padding)} of it padding ({padding / size.allocated_bytes:.0%})"
                if padding
                else ""
            )
            yield "bytes", f"{byte_text(size.allocated_bytes)}{arrays}{share}"
        if not shape.is_tuple:
            yield from _layout_rows(shape)
    if home is not None and home.module is not None:
        yield "computation", _use_text(home)
    if facts is None:
        yield "cost and memory", "not computed yet"
    else:
        yield "cost", facts.cost_text(instruction)
        for line in facts.memory_text(instruction):
            yield "memory", line
    frame = responsible_frame(instruction)
    if frame is not None:
        function = f" in {frame.function}" if frame.function else ""
        yield "Python", f"{frame.file}:{frame.line}{function}"
    metadata = instruction.metadata
    if metadata is not None and metadata.op_name:
        yield "op_name", metadata.op_name
    users = instruction.users
    if users:
        names = ", ".join(user.name for user in users[:4])
        yield "users", f"{len(users):,}: {names}{', ...' if len(users) > 4 else ''}"


def _use_text(computation: hlo.Computation) -> str:
    assert computation.module is not None
    graph = call_graph(computation.module)
    runs = graph.runs.get(computation, 0)
    count = (
        "trip count depends on run-time values"
        if runs is None
        else f"runs {runs:,} times"
        if runs != 1
        else "runs once"
    )
    return f"{computation.name} ({graph.use(computation)}, {count})"


def _layout_rows(shape: hlo.Shape) -> Iterator[Row]:
    if shape.layout is None:
        return
    try:
        explained = layout.explain(shape)
    except layout.LayoutError as error:
        yield "layout", str(error)
        return
    for name, text in explained.rows()[2:]:
        if name not in ("allocated", "values alone", "padding", "XLA reports", ""):
            yield "layout" if name in ("format", "in memory") else name, text


def computation_rows(computation: hlo.Computation) -> Iterator[Row]:
    """Yields facts about a computation."""
    module = computation.module
    assert module is not None
    yield "computation", _use_text(computation)
    opcodes = Counter(instruction.opcode for instruction in computation)
    common = ", ".join(f"{count:,} {opcode}" for opcode, count in opcodes.most_common(6))
    yield "instructions", f"{len(computation):,}: {common}{', ...' if len(opcodes) > 6 else ''}"
    if len(computation):
        yield "result", str(computation.root.shape)
    callers = module.callers_of(computation)
    if callers:
        names = ", ".join(caller.name for caller in callers[:4])
        yield "callers", f"{len(callers):,}: {names}{', ...' if len(callers) > 4 else ''}"


def _shape_at(view: View, position: Any) -> tuple[int, int, list[Row]] | None:
    """The shape under the cursor in words."""
    offset = view.document.offset(position)
    text = view.document.text
    start, end = view.document.line_bounds(position.line)
    start, end = max(start, offset - _NEAR), min(end, offset + _NEAR)
    for found in _SHAPE.finditer(text, start, end):
        if found.start() <= offset < found.end():
            try:
                return found.start(), found.end(), layout.explain(read_terms.read_shape(found[0])).rows()
            except (hlo.HloSyntaxError, layout.LayoutError):
                return None
    return None
