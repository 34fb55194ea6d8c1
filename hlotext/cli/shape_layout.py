"""Layouts for `hlotext shape`: in words, in numbers and as a picture."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import click

import hlotext as hlo
from hlotext import layout
from hlotext.cli import UNREADABLE
from hlotext.cli.common import Unreadable, say, write_json
from hlotext.cli.json_output import note_error
from hlotext.cli.output import Output, TerminalColumn, TerminalTable, echo, output, shortened, terminal_width
from hlotext.ir.files import write_text
from hlotext.ir.values.types import ELEMENT_TYPES, types_meant
from hlotext.syntax import read_terms
from hlotext.view import LayoutPicture

_FAULT = 1
"""Exit status for a shape without a valid layout, or an index out of range."""
_MOST_RUNS = 20
"""Runs of a slice that the text lists; json has them all."""


_RANGE = r"\[\s*(\d+)\s*:\s*(\d+)\s*(?::\s*(\d+)\s*)?\]"


def index_of(text: str) -> tuple[int, ...]:
    """Parses `--index`: one number per dimension; none for a scalar. Raises BadParameter."""
    inner = text.strip().removeprefix("(").removesuffix(")")
    if not re.fullmatch(r"\s*(-?\d+(\s*,\s*-?\d+)*\s*,?)?\s*", inner, re.ASCII):
        raise click.BadParameter(f"{text!r} is not an index such as 0,0,3,5")
    return tuple(int(number) for number in re.findall(r"-?\d+", inner, re.ASCII))


def offset_of(text: str) -> int:
    """Parses `--offset`: bytes, decimal or 0x... Raises BadParameter."""
    try:
        return int(text, 0)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a byte offset such as 4096 or 0x1000") from None


def slice_of(text: str) -> tuple[layout.SliceRange, ...]:
    """Parses `--slice` as in HLO text, with or without `slice={` and `}`. Raises BadParameter."""
    inner = text.strip().removeprefix("slice=").removeprefix("{").removesuffix("}")
    if not re.fullmatch(rf"\s*({_RANGE}(\s*,\s*{_RANGE})*)?\s*", inner, re.ASCII):
        raise click.BadParameter(f"{text!r} is not a slice such as [0:8],[128:256]")
    found = re.findall(_RANGE, inner, re.ASCII)
    return tuple(layout.SliceRange(int(a), int(b), int(stride or 1)) for a, b, stride in found)


@attrs.frozen
class Questions:
    """Questions that the command line asks about every shape."""

    indices: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    slices: tuple[tuple[layout.SliceRange, ...], ...]
    text: bool
    svg: str | None

    @property
    def explains(self) -> bool:
        """True if the whole layout is requested."""
        return not (self.indices or self.offsets or self.slices or self.text or self.svg)


def show(shapes: tuple[str, ...], questions: Questions, output_format: str) -> None:
    """Shows the layout of each shape. Raises Exit with status 1 or 2 if one has none."""
    if questions.svg and (len(shapes) > 1 or "-" in shapes):
        raise click.UsageError("--svg draws one shape only")
    report = output()
    found: list[dict[str, Any]] = []
    status = 0
    for text in _texts(shapes):
        try:
            answers = _answer(_shape(text), questions)
        except Unreadable as error:
            error.show()
            status = UNREADABLE
        except layout.LayoutError as error:
            note_error("impossible", str(error))
            say(str(error))
            status = max(status, _FAULT)
        else:
            if output_format == "json":
                found.append(_json(answers))
            else:
                _show(report, answers)
    if output_format == "json":
        write_json({"shapes": found})
    if status:
        raise click.exceptions.Exit(status)


def _texts(shapes: tuple[str, ...]) -> Iterator[str]:
    """The texts of the command line, and for `-` the lines of standard input."""
    for text in shapes:
        if text == "-":
            lines = (line.decode("utf-8", "surrogateescape").strip() for line in sys.stdin.buffer)
            yield from filter(None, lines)
        else:
            yield text


def _shape(text: str) -> hlo.Shape:
    try:
        shape = read_terms.read_shape(text)
        for _, leaf in shape.leaves():
            if leaf.is_array and str(leaf.element_type) not in ELEMENT_TYPES:
                meant = types_meant(str(leaf.element_type))
                unknown = f"{shortened(text)}: there is no element type {leaf.element_type}"
                raise Unreadable(f"{unknown}; {meant}" if meant else unknown)
        return shape
    except hlo.HloSyntaxError as error:
        more = [
            f"`{text[span.start]}` in column {span.start + 1} {label.removeprefix('this ')}"
            for label, span in error.diagnostic.related
        ]
        told = "; ".join(
            filter(None, [f"{error.message} (column {error.column})", *more, error.diagnostic.help])
        )
        raise Unreadable(f"{shortened(text)}: {told}") from None


# ---- answers


@attrs.frozen
class _IndexAnswer:
    index: tuple[int, ...]
    position: int
    byte_offset: int
    bit: int
    """Number of the element's lowest bit in its byte; 0 unless elements share bytes."""


@attrs.frozen
class _OffsetAnswer:
    offset: int
    elements: tuple[tuple[int, ...] | None, ...]
    """Logical indices, None for padding; several where elements share a byte."""


@attrs.frozen
class _SliceAnswer:
    ranges: tuple[layout.SliceRange, ...]
    runs: tuple[tuple[int, int], ...]

    @property
    def bytes(self) -> int:
        return sum(end - start for start, end in self.runs)


@attrs.frozen
class _Answers:
    """Everything that was asked of one shape."""

    shape: hlo.Shape
    explanation: layout.ArrayExplanation | layout.TupleExplanation
    is_explained: bool
    """Nothing particular was asked, so people get the explanation."""
    indices: tuple[_IndexAnswer, ...]
    offsets: tuple[_OffsetAnswer, ...]
    slices: tuple[_SliceAnswer, ...]
    picture: str | None


def _answer(shape: hlo.Shape, questions: Questions) -> _Answers:
    """The answers for one shape; its SVG is written. Raises LayoutError, Unreadable."""
    answers = _Answers(
        shape,
        layout.explain(shape),
        questions.explains,
        tuple(_at_index(shape, index) for index in questions.indices),
        tuple(_OffsetAnswer(offset, layout.indices_at_byte(shape, offset)) for offset in questions.offsets),
        tuple(_of_slice(shape, ranges) for ranges in questions.slices),
        _picture(shape) if questions.text else None,
    )
    if questions.svg:
        _write(questions.svg, LayoutPicture(shape).svg())
    return answers


def _picture(shape: hlo.Shape) -> str:
    """The picture with as many columns as the terminal has room for."""
    width = terminal_width()
    picture = LayoutPicture(shape)
    text = picture.text()
    while width is not None and picture.most_columns > 4 and max(map(len, text.splitlines())) > width:
        picture = attrs.evolve(picture, most_columns=picture.most_columns - 1)
        text = picture.text()
    return text


def _at_index(shape: hlo.Shape, index: tuple[int, ...]) -> _IndexAnswer:
    bit_offset = layout.bit_offset(shape, index)
    return _IndexAnswer(index, layout.linear_index(shape, index), bit_offset // 8, bit_offset % 8)


def _of_slice(shape: hlo.Shape, ranges: tuple[layout.SliceRange, ...]) -> _SliceAnswer:
    return _SliceAnswer(ranges, tuple((a, b) for a, b in layout.byte_ranges(shape, ranges).tolist()))


def _write(place: str, text: str) -> None:
    if place == "-":
        echo(text)
        return
    try:
        write_text(place, text + "\n")
    except OSError as error:
        raise Unreadable(f"cannot write {place}: {error.strerror}") from None


# ---- writing them


def _json(answers: _Answers) -> dict[str, Any]:
    facts = answers.explanation.to_json()
    facts["indices"] = [attrs.asdict(answer) for answer in answers.indices]
    facts["offsets"] = [attrs.asdict(answer) for answer in answers.offsets]
    facts["slices"] = [
        {"slice": _slice_text(answer.ranges), "bytes": answer.bytes, "runs": answer.runs}
        for answer in answers.slices
    ]
    if answers.picture is not None:
        facts["picture"] = answers.picture
    return facts


def _show(report: Output, answers: _Answers) -> None:
    facts = answers.explanation.rows() if answers.is_explained else []
    facts += [(_index_text(answer.index), _place_text(answer)) for answer in answers.indices]
    facts += [(f"byte {answer.offset}", _elements_text(answer)) for answer in answers.offsets]
    if facts:
        report.heading(str(answers.shape))
        report.facts(facts)
    for answer in answers.slices:
        rows = [(str(start), str(end), str(end - start)) for start, end in answer.runs[:_MOST_RUNS]]
        size = f"{len(answer.runs):,} run{'s' * (len(answer.runs) != 1)}, {answer.bytes:,} bytes"
        title = f"{_slice_text(answer.ranges)} of {answers.shape}: {size}"
        report.table(TerminalTable(title, _RUN_COLUMNS, rows, len(answer.runs) - len(rows)))
    if answers.picture is not None:
        echo(answers.picture)


_RUN_COLUMNS = tuple(TerminalColumn(title, is_number=True) for title in ("first byte", "end", "bytes"))


def _index_text(index: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, index))})"


def _place_text(answer: _IndexAnswer) -> str:
    bit = f", bit {answer.bit}" if answer.bit else ""
    return f"byte {answer.byte_offset}{bit} (element {answer.position} in memory)"


def _elements_text(answer: _OffsetAnswer) -> str:
    return ", ".join("padding" if index is None else _index_text(index) for index in answer.elements)


def _slice_text(ranges: tuple[layout.SliceRange, ...]) -> str:
    return "{" + ", ".join(map(str, ranges)) + "}"
