"""A module's text with comments at the ends of its lines: Python line, bytes of the result, execution count."""

from __future__ import annotations

import posixpath
import re
from collections import Counter

from hlotext import layout
from hlotext.analysis import byte_text, call_graph
from hlotext.analysis.call_graph import CallGraph
from hlotext.findings import escape
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module

MARK = "//@"
"""Prefix of these comments; XLA and hlotext skip them, and `annotated` replaces them."""
_OLD = re.compile(rf"[ \t]*{MARK}[^\n]*")
_LIBRARIES = ("site-packages/", "dist-packages/", "<frozen ")


def annotated(module: Module) -> str:
    """Returns the text of a parsed, unedited module with a comment at the end of each op line: `//@ train.py:12 mlp,
    4.0 MiB, x48`.

    File, line and function are those of the innermost frame outside installed packages. Bytes include padding, and are given
    for results in memory of their own. The count is that of executions in one run of the module, `x?` if it depends on
    values. Comments from an earlier call are replaced, others are kept. Lines with several instructions get no comment.

    >>> import hlotext as hlo
    >>> text = 'ENTRY e {\\n  p = f32[4] parameter(0)\\n  ROOT n = f32[4] negate(p)  // mine\\n}'
    >>> print(annotated(hlo.parse(text)))
    ENTRY e {
      p = f32[4] parameter(0)  //@ 16 B
      ROOT n = f32[4] negate(p)  // mine  //@ 16 B
    }
    >>> annotated(hlo.parse(annotated(hlo.parse(text)))) == annotated(hlo.parse(text))
    True
    """
    text = str(module)
    graph = call_graph(module)
    ends: list[tuple[int, int, Instruction]] = []
    for i in module.instructions():
        if i.span is not None:
            end = i.span.end - module.start
            line_end = text.find("\n", end)
            ends.append((line_end if line_end >= 0 else len(text), end, i))
    shared = Counter(line_end for line_end, _, _ in ends)
    out, place = [], 0
    for line_end, end, i in sorted(ends, key=lambda row: row[:2]):
        if shared[line_end] > 1 or end < place:
            continue
        said = _said(i, graph)
        tail = _OLD.sub("", text[end:line_end])
        out += [text[place:end], tail, f"  {MARK} {said}" if said else ""]
        place = line_end
    return "".join([*out, text[place:]])


def _said(i: Instruction, graph: CallGraph) -> str:
    parts = []
    frame = next((one for one in i.frames if not any(word in one.file for word in _LIBRARIES)), None)
    if frame is not None:
        where = f"{posixpath.basename(frame.file)}:{frame.line}"
        parts.append(f"{where} {frame.function}".strip())
    computation = i.computation
    if computation in graph.stepped and i.shape is not None:
        parts.append(_bytes(i))
    if computation is not None and computation in graph.runs:
        runs = graph.runs[computation]
        parts.append("x?" if runs is None else f"x{runs}" if runs > 1 else "")
    return escape.line(", ".join(part for part in parts if part))


def _bytes(i: Instruction) -> str:
    assert i.shape is not None
    try:
        total = sum(size for _, _, size in layout.leaf_bytes(i.shape))
    except layout.LayoutError:
        return ""
    return byte_text(total) if total else ""
