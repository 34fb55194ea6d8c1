"""Op lines as a page carries them: the text of the module in packed blocks, out of which its script cuts one line at a time.

A block holds pieces with a NUL between them. A piece is some text without meaning, and then the lines of instructions that
follow each other, each behind a line end; what comes after the last of them has no meaning either.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import hlotext as hlo
from hlotext.findings import escape
from hlotext.syntax.printing.source_style import op_lines
from hlotext.view.page.packing import FAST, Column, packed_text

MOST_LINE = 20_000
"""Characters of an op line that are kept."""
BLOCK = 1 << 18
"""Characters after which a block ends: a click unpacks one of them."""


def packed_lines(module: hlo.Module) -> tuple[list[str], dict[str, Column]]:
    """Returns the op lines of a module as compressed blocks, and the first instruction of each piece and first piece of
    each block.
    """
    blocks: list[str] = []
    pieces, first_pieces = array("i"), array("i")
    waiting: list[str] = []
    size = 0
    for first, piece in _pieces(module):
        if not waiting:
            first_pieces.append(len(pieces))
        pieces.append(first)
        waiting.append(piece)
        size += len(piece)
        if size >= BLOCK:
            blocks.append(packed_text("\0".join(waiting), FAST))
            waiting, size = [], 0
    if waiting:
        blocks.append(packed_text("\0".join(waiting), FAST))
    return blocks, {"pieces": pieces, "blocks": first_pieces}


def _pieces(module: hlo.Module) -> Iterator[tuple[int, str]]:
    """Pieces with the number of their first instruction: whole computations, unless they are larger than a block."""
    first = 0
    for computation in module.computations:
        text, count = op_lines(computation), len(computation)
        if "\0" in text:
            text = text.replace("\0", escape.REPLACEMENT)
        if len(text) > MOST_LINE:
            lines = text.split("\n")[1 : count + 1]
            if len(max(lines, key=len, default="")) > MOST_LINE:
                lines = list(map(_cut, lines))
                text = "\n".join(("", *lines))
            if len(text) > BLOCK:
                yield from _in_parts(first, lines)
                first += count
                continue
        yield first, text
        first += count


def _in_parts(first: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    begin = size = 0
    for number, line in enumerate(lines, 1):
        size += len(line)
        if size > BLOCK or number == len(lines):
            yield first + begin, "\n".join(("", *lines[begin:number]))
            begin, size = number, 0


def _cut(line: str) -> str:
    if len(line) <= MOST_LINE:
        return line
    line = escape.one_line(line)
    return line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]} … ({len(line):,} characters)"
