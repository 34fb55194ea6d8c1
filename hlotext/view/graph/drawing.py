"""The neighbourhood of an operation as SVG, which needs no script, and as text for graphviz."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import hlotext as hlo
from hlotext.analysis import byte_text
from hlotext.analysis.entries import program_name
from hlotext.findings import escape
from hlotext.view.graph.kinds import colour_of
from hlotext.view.graph.layered import layered
from hlotext.view.graph.neighbourhood import Edge, Neighbourhood, Rest, size_of
from hlotext.view.page.colours import PALETTE
from hlotext.view.svg_style import opening, style

_WIDE, _HIGH = 196.0, 44.0
_MARGIN = 16.0
_MOST_LABELS = 4
"""Labels at one operation: of more none is readable."""
_STYLE = style(
    "graph",
    {
        "text": "font:600 12px ui-monospace,Menlo,Consolas,monospace;fill:#16191f",
        ".more": "font:11.5px system-ui,sans-serif;fill:#596273",
        ".label": "font:11.5px system-ui,sans-serif;fill:#596273",
        ".ground": "fill:#fff",
        ".box": "fill:#fff;stroke:#c3cad4;stroke-width:1.2",
        ".focus": "fill:#e3eefb;stroke:#0b62c4;stroke-width:2",
        ".rest": "fill:#eceff3;stroke:#c3cad4",
        ".edge": "fill:none;stroke:#596273;opacity:.65",
        ".copied": "stroke-dasharray:7 4",
    },
    {
        "text": "fill:#e8ebf0",
        ".more,.label": "fill:#9aa5b6",
        ".ground": "fill:#11141a",
        ".box": "fill:#191d25;stroke:#475266",
        ".focus": "fill:#1b2b42;stroke:#7db7ff",
        ".edge": "stroke:#9aa5b6",
        ".rest": "fill:#222833;stroke:#475266",
    },
)


def short(text: str, most: int) -> str:
    """Returns a text with its middle replaced by an ellipsis if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    end = (most - 1) * 9 // 20
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"


def as_svg(found: Neighbourhood) -> str:
    """Returns a drawing of the operations as SVG text for light and dark themes.

    Edge widths show bytes; tooltips have details.
    """
    number = {node: n for n, node in enumerate(found.nodes)}
    pairs = [(number[edge.source], number[edge.target]) for edge in found.edges]
    plan = layered([(_WIDE, _HIGH)] * len(found.nodes), pairs)
    width, height = plan.width + 2 * _MARGIN, plan.height + 2 * _MARGIN
    title = f"{len(found.nodes)} operations around {_label(found.focus)}"
    out = [
        opening(
            "graph",
            f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img"',
            title,
        ),
        _STYLE,
        '<defs><marker id="hlotext-graph-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 .6L8 4L0 7.4z" fill="#7a8494"/></marker></defs>',
        '<rect class="ground" width="100%" height="100%"/>',
        f'<g transform="translate({_MARGIN:g} {_MARGIN:g})">',
    ]
    labelled = Counter(edge.target for edge in found.edges if edge.labels)
    for n, path in enumerate(plan.paths):
        edge = found.edges[n]
        out += _edge(edge, path, n, has_label=bool(edge.labels) and labelled[edge.target] <= _MOST_LABELS)
    for n, node in enumerate(found.nodes):
        out += _node(node, node is found.focus, *plan.centres[n])
    for rest in found.rest:
        out += _rest(rest, *plan.centres[number[rest.instruction]])
    return "\n".join([*out, "</g></svg>\n"])


def _label(node: hlo.Instruction) -> str:
    return program_name(node) or node.name


def _edge(edge: Edge, path: Sequence[tuple[float, float]], number: int, *, has_label: bool) -> Iterator[str]:
    text = f"M{path[0][0]:.1f} {path[0][1]:.1f}"
    for (ax, ay), (bx, by) in itertools.pairwise(path):
        half = (by - ay) / 2
        text += f"C{ax:.1f} {ay + half:.1f} {bx:.1f} {by - half:.1f} {bx:.1f} {by:.1f}"
    wide = max(1.0, min(7.0, 1 + 0.32 * math.log2(max(1.0, edge.bytes / 1024))))
    said = f"{_label(edge.source)} to {_label(edge.target)}: {byte_text(edge.bytes)}"
    said += ", with a copy in between" if edge.is_copied else ""
    told = f"<title>{escape.html(said)}</title>"
    kind = "edge copied" if edge.is_copied else "edge"
    yield f'<path class="{kind}" d="{text}" stroke-width="{wide:.1f}" marker-end="url(#hlotext-graph-arrow)">{told}</path>'
    if has_label:
        label = f"{len(edge.labels)} parts" if len(edge.labels) > 2 else " ".join(edge.labels)
        x, y = path[-1]
        yield f'<text class="label" x="{x + 4:.1f}" y="{y - (9 if number % 2 else 20):.1f}">{escape.html(label)}</text>'


def _node(node: hlo.Instruction, is_focus: bool, x: float, y: float) -> Iterator[str]:
    left, top = x - _WIDE / 2, y - _HIGH / 2
    size = size_of(node)
    shape = _shape_text(node)
    tail = f" · {byte_text(size)}" if size else ""
    is_told = node.name.startswith(node.opcode) or (
        node.opcode == "parameter" and node.name.startswith("param")
    )
    lead = "" if is_told or len(node.opcode) + 1 + len(shape) + len(tail) > 29 else f"{node.opcode} "
    colour = PALETTE[colour_of(node)]
    name = node.name if _label(node) == node.name else f"{_label(node)} ({node.name})"
    said = f"{name}: {node.opcode} {short(str(node.shape) if node.shape is not None else '?', 200)}"
    second = short(lead + shape, max(9, 29 - len(tail))) + tail
    yield f"<g><title>{escape.html(said)}</title>"
    yield (
        f'<rect class="box{" focus" if is_focus else ""}" x="{left:.1f}" y="{top:.1f}" width="{_WIDE:g}" '
        f'height="{_HIGH:g}" rx="8"/><rect x="{left + 1.5:.1f}" y="{top + 7:.1f}" width="4" height="{_HIGH - 14:g}" '
        f'rx="2" fill="{colour}"/>'
    )
    yield f'<text x="{left + 13:.1f}" y="{top + 18:.1f}">{escape.html(short(_label(node), 24))}</text>'
    yield f'<text class="more" x="{left + 13:.1f}" y="{top + 34:.1f}">{escape.html(second)}</text></g>'


def _shape_text(node: hlo.Instruction) -> str:
    shape = node.shape
    if shape is None:
        return "?"
    if not shape.is_tuple:
        return shape.text_without_layout()
    return f"({len(shape.tuple_shapes)} parts)"


def _rest(rest: Rest, x: float, y: float) -> Iterator[str]:
    """Yields the number of hidden operands or users, at the upper or lower edge of a box."""
    sign, top = ("▾", y + _HIGH / 2) if rest.way == "users" else ("▴", y - _HIGH / 2)
    text = f"{sign}{rest.count:,}"
    wide = 8 + 7 * len(text)
    left = x + _WIDE / 2 - wide - 8
    yield (
        f'<rect class="rest" x="{left:.1f}" y="{top - 8:.1f}" width="{wide}" height="16" rx="8"/>'
        f'<text class="label" x="{left + wide / 2:.1f}" y="{top + 4:.1f}" text-anchor="middle">{text}'
        f"<title>{rest}</title></text>"
    )


def as_dot(found: Neighbourhood) -> str:
    """Returns the operations and edges as text for Graphviz (`dot -Tpng`)."""
    number = {node: n for n, node in enumerate(found.nodes)}
    out = ["digraph neighbourhood {", '  node [shape=box, style=rounded, fontname="monospace"];']
    for node, n in number.items():
        label = f"{_label(node)}\n{node.opcode} {_shape_text(node)} {byte_text(size_of(node))}"
        more = ", penwidth=2" if node is found.focus else ""
        out.append(f"  n{n} [label={_quoted(label)}{more}];")
    for edge in found.edges:
        style = ", style=dashed" if edge.is_copied else ""
        label = " ".join((*edge.labels[:2], byte_text(edge.bytes)))
        out.append(f"  n{number[edge.source]} -> n{number[edge.target]} [label={_quoted(label)}{style}];")
    for n, rest in enumerate(found.rest):
        own = number[rest.instruction]
        out.append(f"  r{n} [label={_quoted(str(rest))}, style=dashed];")
        out.append(f"  n{own} -> r{n};" if rest.way == "users" else f"  r{n} -> n{own};")
    return "\n".join([*out, "}\n"])


def _quoted(text: str) -> str:
    """A string of graphviz: quotes and backslashes escaped, of which labels make line ends."""
    safe = escape.lines(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{safe}"'
