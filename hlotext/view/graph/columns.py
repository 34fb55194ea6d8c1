"""A module as columns of numbers and words, for a page that finds neighbourhoods itself.

Instructions are numbered in the order of the text. Words are written once. Numbers are 32 bits wide and packed as they lie in
memory; sizes, which may be larger, are 64-bit floats, exact up to 2 ** 53.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any

import attrs

import hlotext as hlo
from hlotext.analysis import arrays_of, call_graph, scopes, source_locations, total_of, written_bytes
from hlotext.findings import escape
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.tables.traits import ASYNC_ROLES
from hlotext.ir.values.shape import Shape
from hlotext.syntax.printing.source_style import instruction_texts
from hlotext.view.graph.kinds import KINDS, colour_of, colour_of_opcode
from hlotext.view.graph.origins import Facts
from hlotext.view.layout_picture import LayoutPicture
from hlotext.view.page.packing import Words, packed, packed_bytes, packed_text

CHUNK = 512
"""Op lines that are packed together: one view of the page unpacks a few such chunks."""
MOST_LINE = 20_000
"""Characters of an op line that are kept."""
_PICTURE = 8
"""Rows and columns of a picture of a layout."""
_MOST_PICTURES = 600


@attrs.frozen
class Packed:
    """Packed data of a module for a page."""

    words: str
    """Names and other texts, and how the numbers are to be read."""
    numbers: str
    lines: Sequence[str]
    """Op lines, `CHUNK` of them in each."""
    pictures: str
    """SVG of the layouts of the distinct arrays, by the number of the shape."""


def columns(module: hlo.Module, why: Mapping[hlo.Instruction, Facts] | None = None) -> Packed:
    """A module as a page carries it, with what `why` tells of its operations.

    Raises what reading a large module on demand raises.
    """
    instructions = list(module.instructions())
    number = dict(zip(instructions, range(len(instructions)), strict=True))
    computations = {one: n for n, one in enumerate(module.computations)}
    named, lines, stepped = scopes(module), source_locations(module), call_graph(module).stepped
    tree = _Tree()
    shapes: dict[Shape | None, int] = {}
    words, opcodes, files, op_names = Words(), Words(), Words(), Words()
    padding: list[int] = []
    held: list[int] = []

    def shape_of(head: Any) -> int:
        size = shapes.setdefault(head.shape, len(shapes))
        if size == len(padding):
            total = total_of(head.shape)
            padding.append(total.allocated_bytes - total.unpadded_bytes)
            held.append(total.allocated_bytes)
        return size

    def line_of(place: Any) -> int:
        return files.number(escape.line(f"{place[0].file}:{place[0].line}") if place is not None else "")

    def op_name_of(metadata: Any) -> int:
        return op_names.number(escape.line(metadata.op_name) if metadata is not None else "")

    heads = _Keys([one._head for one in instructions])
    found: dict[str, array[Any]] = {
        "opcode": heads.column(lambda head: opcodes.number(head.opcode)),
        "shape": heads.column(shape_of),
        "colour": heads.column(lambda head: colour_of_opcode(head.opcode)),
        "scope": _Keys(list(map(named.of, instructions))).column(lambda scope: tree.number(scope.path)),
        "op_name": _Keys([one.metadata for one in instructions]).column(op_name_of),
        "line": _Keys(list(map(lines.get, instructions))).column(line_of),
        "extra": array("i", [-1]) * len(instructions),
        "written": array("d", [0.0]) * len(instructions),
    }
    found["bytes"] = array("d", [float(held[size]) for size in found["shape"]])
    starts, roots = array("i", [0]), array("i")
    call_starts, calls = array("i", [0]), array("i")
    for computation in module.computations:
        is_stepped = computation in stepped
        for at, one in enumerate(computation.instructions, starts[-1]):
            opcode = one._head.opcode
            if opcode in _NUMBERED:
                found["extra"][at] = _extra(one)
            elif is_stepped and (written := written_bytes(one)):
                found["written"][at] = found["bytes"][at] = written
            if opcode not in CALLS_NOTHING:
                calls.extend([computations[body] for body in one.called_computations if body in computations])
                if opcode in ASYNC_ROLES:
                    found["colour"][at] = colour_of(one)
            call_starts.append(len(calls))
        starts.append(starts[-1] + len(computation))
        roots.append(number.get(computation.root, -1) if len(computation) else -1)
    operands = [one.operands for one in instructions]
    found["operands"] = array("i", [number.get(operand, -1) for each in operands for operand in each])
    found["operand_starts"] = array("i", accumulate(map(len, operands), initial=0))
    found["calls"], found["call_starts"] = calls, call_starts
    found["computation_starts"], found["roots"] = starts, roots
    entry = computations.get(module.entry, 0) if module.computations else 0
    texts = {
        "module": escape.line(module.name),
        "entry": entry,
        "names": "\n".join([escape.line(one.name) for one in instructions]),
        "opcodes": opcodes.texts,
        "shapes": [_shown(str(shape)) if shape is not None else "?" for shape in shapes],
        "short": [_short(shape) for shape in shapes],
        "padding": padding,
        "held": held,
        "op_names": op_names.texts,
        "lines": files.texts,
        "scopes": {"parent": tree.parents, "name": [escape.line(name) for name in tree.names]},
        "computations": [escape.line(one.name) for one in module.computations],
        "chunk": CHUNK,
        "words": words.texts,
        "kinds": KINDS,
        "layout": [],
        "why": {str(number[one]): facts for one, facts in (why or {}).items() if one in number},
    }
    numbers = _joined(found, texts["layout"])
    return Packed(packed(texts), numbers, list(_chunks(module)), packed(_pictures(shapes)))


_LARGEST = (1 << 31) - 1
"""Of the numbers in a column."""
_NUMBERED = frozenset({"parameter", "get-tuple-element"})


class _Keys:
    """Objects on which columns depend, by identity: equal heads and places are nearly always one object each."""

    def __init__(self, keys: Sequence[Any]) -> None:
        self._ids = list(map(id, keys))
        self._distinct = dict(zip(self._ids, keys, strict=True))

    def column(self, number: Callable[[Any], int]) -> array[int]:
        """A column of numbers that are found once for each object, in the order of the first of each."""
        known = {name: number(key) for name, key in self._distinct.items()}
        return array("i", map(known.__getitem__, self._ids))


def _extra(one: hlo.Instruction) -> int:
    """The number of a parameter, or the element that is taken out of a tuple; else, and where no module has so many, -1."""
    number: object = None
    if one.opcode == "parameter":
        number = one.parameter_number
    elif one.opcode == "get-tuple-element":
        number = one.attributes.get("index")
    return number if isinstance(number, int) and 0 <= number <= _LARGEST else -1


def _joined(found: dict[str, array[Any]], layout: Any) -> str:
    """All columns behind each other, wide ones first so that each begins where it may; `layout` gets name, type, length."""
    parts = []
    for name, column in sorted(found.items(), key=lambda item: (item[1].typecode != "d", item[0])):
        layout.append([name, column.typecode, len(column)])
        if _IS_BIG_ENDIAN:
            column = array(column.typecode, column)
            column.byteswap()
        parts.append(column.tobytes())
    return packed_bytes(b"".join(parts))


_IS_BIG_ENDIAN = array("H", [1]).tobytes()[0] == 0


def _chunks(module: hlo.Module) -> Iterator[str]:
    texts = chain.from_iterable(map(instruction_texts, module.computations))
    while chunk := list(islice(texts, CHUNK)):
        if not escape.are_plain(chunk) or len(max(chunk, key=len)) > MOST_LINE:
            chunk = list(map(_line, chunk))
        yield packed_text("\n".join(chunk))


def _line(text: str) -> str:
    text = escape.one_line(text)
    return text if len(text) <= MOST_LINE else f"{text[:MOST_LINE]} … ({len(text):,} characters)"


def _shown(text: str, most: int = 2000) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


def _short(shape: Shape | None) -> str:
    """A shape for a box: without layout, of a tuple how many there are."""
    if shape is None:
        return "?"
    if not shape.is_tuple:
        return shape.text_without_layout()
    inside = shape.tuple_shapes
    return (
        f"({', '.join(one.text_without_layout() for one in inside)})"
        if len(inside) < 3
        else f"({len(inside)} parts)"
    )


def _pictures(shapes: Iterable[Shape | None]) -> dict[str, Any]:
    """The layouts of arrays: of a tuple its first arrays. Each picture once; of each shape the numbers of its pictures."""
    pictures: dict[Shape, int] = {}
    of: list[list[int]] = []
    for shape in shapes:
        arrays = [array_ for _, array_ in arrays_of(shape)[:1] if array_.rank] if shape is not None else []
        if len(pictures) >= _MOST_PICTURES:
            arrays = [one for one in arrays if one in pictures]
        of.append([pictures.setdefault(one, len(pictures)) for one in arrays])
    return {"of": of, "svg": [_picture(one) for one in pictures]}


def _picture(shape: Shape) -> str:
    try:
        return LayoutPicture(shape, _PICTURE, _PICTURE).svg()
    except ValueError:
        return ""


class _Tree:
    """Scopes as a tree: the number of each and that of the one around it."""

    def __init__(self) -> None:
        self.parents = [-1]
        self.names = [""]
        self._inside: dict[tuple[int, str], int] = {}

    def number(self, path: tuple[str, ...]) -> int:
        """The number of a path, those above it included."""
        at = 0
        for name in path:
            known = self._inside.get((at, name))
            if known is None:
                known = self._inside[at, name] = len(self.names)
                self.names.append(name)
                self.parents.append(at)
            at = known
        return at
