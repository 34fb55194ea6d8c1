"""HTML for notebooks, without scripts: modules, instructions, shapes, findings, memory, cost and differences.

Cut and foldable: of a long text the first lines, of tables the first rows. Colours can be read on white and on black, since
a cell does not know on which it stands. All text of modules goes through `escape.html` or the lexer.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter

from hlotext import cost, diff, layout, memory
from hlotext.analysis import byte_text, total_of
from hlotext.analysis.formatting import format_count, pluralize, seconds
from hlotext.diff.report import difference, figures, totals
from hlotext.findings import escape
from hlotext.findings.finding import Finding, FindingList, ParseResult
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Layout, Shape
from hlotext.ir.values.sharding import Sharding
from hlotext.memory import usage
from hlotext.proto.traces import Trace, TracedModule
from hlotext.view import memory_picture
from hlotext.view.layout_picture import LayoutPicture
from hlotext.view.pygments_lexer import HloLexer
from hlotext.view.svg_style import in_notebook

MOST_LINES = 200
MOST_ROWS = 12
_MOST_LINE = 600
"""Characters of a line of text."""
_STYLE = """<style>
.hlotext{font-size:13px;line-height:1.45;max-width:100%}
.hlotext pre{white-space:pre;overflow:auto;max-height:420px;font-size:12px;margin:4px 0;padding:6px 8px;border-left:3px solid #7b849466}
.hlotext table{border-collapse:collapse;margin:4px 0;font-size:12px}
.hlotext th,.hlotext td{text-align:left!important;padding:2px 10px 2px 0;border-bottom:1px solid #7b849444;vertical-align:top;max-width:60ch;overflow-wrap:anywhere}
.hlotext td.n,.hlotext th.n{text-align:right!important;font-variant-numeric:tabular-nums;white-space:nowrap}
.hlotext th,.hlotext .d{color:#7b8494;font-weight:500}
.hlotext summary{cursor:pointer;color:#7b8494}
.hlotext svg{max-width:760px;height:auto;background:#fff}
[data-jp-theme-light="false"] .hlotext svg[class^="hlotext-"],.vscode-dark .hlotext svg[class^="hlotext-"]{background:none}
.hlotext .k,.hlotext .kp,.hlotext .kc{color:#9a5fb4;font-weight:600}.hlotext .kt{color:#b8562a}.hlotext .nv{color:#2f80c8}
.hlotext .nf{color:#2b8a57;font-weight:600}.hlotext .na{color:#7b8494}.hlotext .s{color:#a0791a}.hlotext .mi,.hlotext .m{color:#b8562a}.hlotext .c{color:#7b8494}
</style>"""  # noqa: E501 - a style


def html(value: object) -> str | None:
    """Returns HTML of a value for a notebook; None for other types, and if a library error occurs."""
    drawn = next((draw for kind, draw in _DRAWN if isinstance(value, kind)), None)
    if drawn is None:
        return None
    try:
        return in_notebook(f'{_STYLE}<div class="hlotext">{drawn(value)}</div>')
    except (ValueError, LookupError, ArithmeticError):
        return None


# ---- parts


@functools.cache
def _highlighter() -> Callable[[str], str]:
    lexer, formatter = HloLexer(), HtmlFormatter(nowrap=True)
    return lambda text: str(highlight(text, lexer, formatter))


def _code(lines: Sequence[str], total: int | None = None) -> str:
    """Lines of HLO in colours; how many more there are."""
    shown = [line if len(line) <= _MOST_LINE else f"{line[:_MOST_LINE]} ..." for line in lines[:MOST_LINES]]
    left = (len(lines) if total is None else total) - len(shown)
    text = _highlighter()(escape.lines("\n".join(shown)))
    more = f'<div class="d">and {left:,} more lines</div>' if left > 0 else ""
    return f"<pre>{text}</pre>{more}"


def _table(titles: Sequence[str], rows: Sequence[Sequence[Any]], total: int | None = None) -> str:
    """A table; texts of modules are escaped here. Titles that begin with `#` are of numbers."""
    if not rows:
        return ""
    kinds = [' class="n"' if title.startswith("#") else "" for title in titles]
    head = "".join(
        f"<th{kind}>{escape.html(title.removeprefix('#'))}</th>"
        for kind, title in zip(kinds, titles, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{kind}>{escape.html(_cut(str(cell)))}</td>" for kind, cell in zip(kinds, row, strict=True)
        )
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    left = (len(rows) if total is None else total) - min(len(rows), MOST_ROWS)
    more = f'<div class="d">and {left:,} more</div>' if left > 0 else ""
    return f"<table><tr>{head}</tr>{body}</table>{more}"


def _cut(text: str, most: int = 160) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"


def _folded(title: str, content: str, *, is_open: bool = False) -> str:
    if not content:
        return ""
    return f"<details{' open' if is_open else ''}><summary>{escape.html(title)}</summary>{content}</details>"


def _head(name: str, what: str) -> str:
    return f'<b>{escape.html(_cut(name))}</b> <span class="d">{escape.html(_cut(what, 400))}</span>'


# ---- nodes


def _instruction(one: Instruction) -> str:
    def rows(members: Iterable[Instruction]) -> list[tuple[str, str, str, str]]:
        return [
            (m.name, m.opcode, m.shape.text_without_layout() if m.shape is not None else "?", _bytes(m))
            for m in members
        ]

    titles = ("name", "opcode", "shape", "#bytes")
    frames = [(f"{f.file}:{f.line}", f.function) for f in one.frames]
    text = " ".join(str(one).split())
    return (
        _code([text])
        + _folded(f"operands ({len(one.operands)})", _table(titles, rows(one.operands)), is_open=True)
        + _folded(f"users ({len(one.users)})", _table(titles, rows(one.users)))
        + _folded("Python, innermost first", _table(("line", "function"), frames))
        + _folded("layout", _picture(one.shape))
    )


def _bytes(one: Instruction) -> str:
    total = total_of(one.shape)
    return byte_text(total.allocated_bytes) if total.arrays else ""


def _marked(one: Instruction) -> str:
    """An op line, with the word ROOT once, whether its own text has it or not."""
    text = " ".join(str(one).split())
    return f"ROOT {text}" if one.is_root and not text.startswith("ROOT ") else text


def _computation(one: Computation) -> str:
    what = f"computation of {len(one):,} instructions"
    lines = [_marked(i) for i in one.instructions[:MOST_LINES]]
    return _head(one.name, what) + _folded("text", _code(lines, len(one)), is_open=len(one) <= 40)


def _module(one: Module) -> str:
    counts = Counter(i.opcode for i in one.instructions())
    what = f"module of {sum(counts.values()):,} instructions in {len(one.computations):,} computations" + (
        ", scheduled" if one.is_scheduled else ""
    )
    rows = [(c.name, f"{len(c):,}", c.root.opcode if len(c) else "") for c in one.computations]
    rows.sort(key=lambda row: -int(row[1].replace(",", "")))
    lines = str(one).splitlines()
    return (
        _head(one.name, what)
        + _folded("opcodes", _table(("opcode", "#number"), counts.most_common(40), len(counts)))
        + _folded(
            "computations, largest first", _table(("name", "#instructions", "root"), rows), is_open=True
        )
        + _folded("text", _code(lines))
    )


# ---- values


def _shape(one: Shape) -> str:
    facts = ""
    try:
        total = total_of(one)
        padding = total.allocated_bytes - total.unpadded_bytes
        facts = byte_text(total.allocated_bytes) + (f", {byte_text(padding)} padding" if padding else "")
    except ValueError:
        pass
    return _head(str(one), facts) + _folded("memory layout", _picture(one), is_open=one.is_array)


def _picture(shape: Shape | None) -> str:
    if shape is None or not shape.is_array or not shape.rank:
        return ""
    try:
        return LayoutPicture(shape).svg()
    except layout.LayoutError:
        return ""


def _layout(one: Layout) -> str:
    order = ", ".join(map(str, one.minor_to_major))
    rows = [("minor to major", order or "none")]
    if one.tiles:
        rows.append(("tiles", "".join(map(str, one.tiles))))
    if one.memory_space:
        rows.append(("memory space", str(one.memory_space)))
    return _head(f"{{{str(one).strip('{}')}}}", "layout") + _table(("part", "value"), rows)


def _sharding(one: Sharding) -> str:
    return _head(str(one), "sharding")


def _finding(one: Finding) -> str:
    rows = [("place", one.place), *((("help", one.help),) if one.help else ())]
    if one.bytes is not None:
        rows.append(("bytes", byte_text(one.bytes)))
    line = one.source_line.strip()
    return (
        _head(f"{one.code} {one.severity.value}", one.message)
        + _table(("", ""), rows)
        + (_code([line]) if line else "")
    )


def _findings(found: Sequence[Finding], left_out: int = 0) -> str:
    counts = Counter(one.severity.value for one in found)
    said = ", ".join(pluralize(number, severity) for severity, number in counts.items())
    rows = [(one.code, one.place, one.name, one.message) for one in found]
    titles = ("code", "place", "instruction", "message")
    return _head("findings", said or "none") + _table(titles, rows, len(rows) + left_out)


def _parsed(one: ParseResult) -> str:
    modules = "".join(_module(module) for module in (one.modules or (one.module,))[:MOST_ROWS])
    left = len(one.modules) - MOST_ROWS
    more = f'<div class="d">and {left:,} more modules</div>' if left > 0 else ""
    return modules + more + _findings(one.diagnostics, one.left_out)


# ---- what modules come to


def _memory(one: memory.Assignment) -> str:
    name = one.module.name if one.module is not None else "memory"
    spaces = [usage.space_usage(one, space) for space in one.memory_spaces()]
    needed = [s for s in spaces if s.needed]
    rows = [
        (s.name, byte_text(s.static), byte_text(s.heap), byte_text(s.peak), byte_text(s.padding))
        for s in needed
    ]
    how = "computed from the text" if one.is_computed else "read from XLA's files"
    content = _head(name, f"memory, {how}" + "".join(f"; {note}" for note in one.notes))
    content += _table(("space", "#static", "#heap", "#peak", "#padding"), rows)
    if needed:
        live = usage.live_arrays(one, 0, one.peak(0).time)
        cells = [
            (a.label, byte_text(a.bytes), a.kind, a.shape, a.scope, usage.line_text(a.place)) for a in live
        ]
        titles = ("value", "#bytes", "kind", "shape", "scope", "line")
        content += _folded("live at the peak", _table(titles, cells), is_open=True)
        content += _folded("offsets over time", memory_picture.offsets_svg(one, 0, 1500))
    return content


def _cost(one: cost.Analysis) -> str:
    run = one.run
    said = f"{run.mark}{format_count(run.flops)} flops and {byte_text(int(run.bytes_accessed))} in one run"
    content = _head(one.module.name, said)
    for key in ("scope", "line", "opcode"):
        rows = [
            (name, format_count(part.flops), byte_text(int(part.bytes_accessed)))
            for name, part in one.by(key).items()
        ]
        content += _folded(f"by {key}", _table((key, "#flops", "#bytes"), rows), is_open=key == "scope")
    return content


def _diff(one: diff.Diff) -> str:
    counts = one.changes.counts()
    said = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("added", "removed", "changed") if counts[kind])
    groups = [(title, f"{len(changes):,}", changes[0].name) for title, changes in one.changes.folded()]
    rows = [(total.name.replace("_", " "), *figures(total), difference(total)) for total in totals(one)]
    return (
        _head(f"{one.old.name} and {one.new.name}", said or "equal, ignoring names and order")
        + _table(("what", "#operations", "for example"), groups)
        + _folded("totals", _table(("total", "#before", "#after", "#difference"), rows), is_open=True)
    )


def _trace(one: Trace) -> str:
    said = pluralize(len(one.modules), "program")
    if one.others:
        said += f", and {pluralize(len(one.others), 'program')} without a module"
    rows = [
        (
            module.name,
            "" if module.runs is None else f"{module.runs:,}",
            "" if module.seconds is None else seconds(module.seconds),
            f"{len(module.times):,}",
            ", ".join(module.devices[:4]),
        )
        for module in one.modules
    ]
    titles = ("program", "#runs", "#time of all runs", "#operations", "devices")
    return _head("trace", said) + _table(titles, rows)


def _traced(one: TracedModule) -> str:
    times = sorted(one.times.items(), key=lambda item: -item[1].seconds)
    rows = [
        (name, seconds(time.seconds), f"{time.count:,}", time.devices[0].device if time.devices else "")
        for name, time in times
    ]
    runs = "runs not distinguished" if one.runs is None else pluralize(one.runs, "run")
    kind = "#kernels" if one.counts_kernels else "#times"
    return _head(one.name, f"program, {runs}") + _table(("operation", "#time", kind, "slowest device"), rows)


_DRAWN: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (Module, _module),
    (Computation, _computation),
    (Instruction, _instruction),
    (Shape, _shape),
    (Layout, _layout),
    (Sharding, _sharding),
    (Finding, _finding),
    (FindingList, _findings),
    (ParseResult, _parsed),
    (memory.Assignment, _memory),
    (cost.Analysis, _cost),
    (diff.Diff, _diff),
    (Trace, _trace),
    (TracedModule, _traced),
)
