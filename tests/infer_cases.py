"""The cases of shape inference under tests/data/infer: op lines, with computations by name.

A line is a whole op line. In `ok/` the shape that it states is the inferred one; in `err/` the line that
follows, after `!`, says what is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import hlotext as hlo
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcode_rows import examples
from tests import support

FOLDER = support.DATA / "infer"

COMPUTATIONS = {
    "ADD": examples.ADD,
    "LESS": examples.LESS,
    "NEGATE": examples.NEGATE,
    "SCAN": examples.SCAN_STEP,
    "PAIR": "{ a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3) "
    "ROOT z = (f32[], s32[]) tuple(a, i) }",
}
"""What `{ADD}` and the like stand for in a case."""


def files(folder: str) -> list[Path]:
    """The files of `ok` or `err`."""
    return sorted((FOLDER / folder).glob("*.txt"))


def op_lines(path: Path) -> list[str]:
    """The cases of a file, without comments and messages."""
    return [line for line in path.read_text().splitlines() if line[:1] not in ("", "#", " ")]


def expanded(line: str) -> str:
    """A case with the computations written out."""
    return re.sub(r"\{([A-Z]+)\}", lambda match: COMPUTATIONS[match[1]], line)


def read(line: str) -> Instruction:
    """The instruction of a case."""
    return hlo.parse_instruction(expanded(line))
