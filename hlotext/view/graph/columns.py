"""A module as columns of numbers and words, for a page that finds neighbourhoods itself.

Instructions are numbered in the order of the text. What those with equal heads share is there once for each head, and what
the script can compute it does: users, sizes by shape, the beginnings of lists from their lengths.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

import hlotext as hlo
from hlotext.analysis import arrays_of, call_graph, scopes, source_locations, total_of, written_bytes
from hlotext.analysis.census import census, numbered
from hlotext.analysis.origins import SourceLocation
from hlotext.findings import escape
from hlotext.ir.tables.traits import ASYNC_ROLES
from hlotext.ir.values.shape import Shape
from hlotext.view.graph.kinds import KINDS, colour_of, colour_of_opcode
from hlotext.view.graph.op_lines import packed_lines
from hlotext.view.graph.origins import Facts
from hlotext.view.layout_picture import LayoutPicture
from hlotext.view.page.packing import Column, Words, packed, packed_columns, packed_text

_PICTURE = 8
"""Rows and columns of a picture of a layout."""
_MOST_PICTURES = 600
_LARGEST = (1 << 31) - 1
"""Of the numbers in a column."""


def columns(module: hlo.Module, why: Mapping[hlo.Instruction, Facts] | None = None) -> Mapping[str, str]:
    """Returns the data of a module as a page embeds it, compressed, by name. `why` has facts about operations.

    `words` are texts used several times, and the layout of `numbers`; `names` are those of the instructions; `pictures`
    are SVGs of the layouts of the distinct arrays, by shape number; `lines-0` etc. are op lines. Raises HloSyntaxError
    if a large module that is read on demand is invalid.
    """
    lines, found = packed_lines(module)
    number, computations = numbered(module), {one: n for n, one in enumerate(module.computations)}
    described, texts = _described(module)
    found |= described | _operands(module) | _calls(module, computations) | _written(module)
    found["computation_size"] = [len(one) for one in computations]
    found["root"] = [number.get(one.root, -1) if len(one) else -1 for one in computations]
    layout, numbers = packed_columns(found)
    texts |= {
        "module": escape.line(module.name),
        "entry": computations.get(module.entry, 0) if computations else 0,
        "computations": [escape.line(one.name) for one in computations],
        "kinds": KINDS,
        "layout": layout,
        "why": {str(number[one]): facts for one, facts in (why or {}).items() if one in number},
    }
    names = "\n".join(escape.each_line([one._name for one in census(module).instructions]))
    return {
        "words": packed(texts),
        "names": packed_text(names),
        "numbers": numbers,
        "pictures": packed(_pictures(dict.fromkeys(head.shape for head in census(module).heads.distinct))),
        **{f"lines-{n}": block for n, block in enumerate(lines)},
    }


def _described(module: hlo.Module) -> tuple[dict[str, Column], dict[str, Any]]:
    """Properties that instructions share with others, as numbers, and the texts that these mean."""
    found, named, places = census(module), scopes(module).shared, source_locations(module)
    shapes: dict[Shape | None, int] = {}
    opcodes, op_names, lines, tree = Words(), Words(), Words(), _Tree()
    heads = [
        (opcodes.number(head.opcode), shapes.setdefault(head.shape, len(shapes)))
        for head in found.heads.distinct
    ]
    totals = list(map(total_of, shapes))
    columns: dict[str, Column] = {
        "head": found.heads.numbers,
        "head_opcode": [opcode for opcode, _ in heads],
        "head_shape": [shape for _, shape in heads],
        "element": list(map(_element, found.by_opcode.get("get-tuple-element", ()))),
        "scope": _taken(named.numbers, lambda n: tree.number(named.distinct[n].path)),
        "line": _taken(places.numbers, lambda n: lines.number(_place(places.pairs[n][0]) if n >= 0 else "")),
        "op_name": _taken(
            found.attributes.numbers, lambda n: op_names.number(_op_name(found.attributes.distinct[n]))
        ),
    }
    return columns, {
        "opcodes": opcodes.texts,
        "colours": list(map(colour_of_opcode, opcodes.texts)),
        "shapes": [_shown(str(shape)) if shape is not None else "?" for shape in shapes],
        "short": list(map(_short, shapes)),
        "padding": [total.allocated_bytes - total.unpadded_bytes for total in totals],
        "held": [total.allocated_bytes for total in totals],
        "op_names": op_names.texts,
        "lines": lines.texts,
        "scopes": {"parent": tree.parents, "name": [escape.line(name) for name in tree.names]},
        "wrapped": {
            str(numbered(module)[one]): colour_of(one)
            for opcode, rows in found.by_opcode.items()
            if opcode in ASYNC_ROLES
            for one in rows
        },
    }


def _taken(numbers: Sequence[int], number: Callable[[int], int]) -> Column:
    """Other numbers in place of these, each found once, in the order of the first of each."""
    used = list(dict.fromkeys(numbers))
    of = np.zeros(max(used, default=0) + 2, np.int32)  # -1 is the last
    of[used] = list(map(number, used))
    return of[np.asarray(numbers, np.int32)]


def _place(location: SourceLocation) -> str:
    return escape.line(f"{location.file}:{location.line}")


def _op_name(one: hlo.Instruction) -> str:
    return escape.line(one.metadata.op_name) if one.metadata is not None else ""


def _element(one: hlo.Instruction) -> int:
    """The element that is taken out of a tuple; -1 where no module has so many."""
    number: object = one._attributes.get("index")
    return number if isinstance(number, int) and 0 <= number <= _LARGEST else -1


def _operands(module: hlo.Module) -> dict[str, Column]:
    """The number of operands of each instruction, and how far before it each stands; strangers stand at -1."""
    operands = [one._operands for one in census(module).instructions]
    counts = np.fromiter(map(len, operands), np.int32, len(operands))
    numbers = map(numbered(module).get, chain.from_iterable(operands), repeat(-1))
    found = np.fromiter(numbers, np.int32, int(counts.sum()))
    return {
        "operand_count": counts,
        "operand": np.repeat(np.arange(len(counts), dtype=np.int32), counts) - found,
    }


def _calls(module: hlo.Module, computations: Mapping[hlo.Computation, int]) -> dict[str, Column]:
    """Calls in the order of the text: the instruction, and the number of the computation."""
    callers, called, first = array("i"), array("i"), 0
    callees = call_graph(module).callees
    for computation in computations:
        for edge in callees.get(computation, ()):
            if edge.callee in computations:
                callers.append(first + edge.place)
                called.append(computations[edge.callee])
        first += len(computation)
    return {"caller": callers, "called": called}


def _written(module: hlo.Module) -> dict[str, Column]:
    """The instructions that run one by one and write memory of their own, and the bytes of each."""
    stepped, first = call_graph(module).stepped, 0
    writers, written = array("i"), array("d")
    for computation in module.computations:
        if computation in stepped:
            for place, one in enumerate(computation, first):
                if size := written_bytes(one):
                    writers.append(place)
                    written.append(size)
        first += len(computation)
    return {"writer": writers, "written_bytes": written}


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
