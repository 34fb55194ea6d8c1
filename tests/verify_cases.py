"""The cases of the verifier under tests/data/verify, and the examples in the documentation of its codes.

A file holds the cases of one code, `---` between them; a case is a module or an op line. Lines that start with `#` say
what it shows. Lines `// edit: STATEMENT` change the module after it was read, for what no text can say. In `err/` the
lines that start with `    ! ` are what is found.
"""

from __future__ import annotations

import re
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.mesh import AxisRef
from hlotext.ir.values.named_sharding import DimensionSharding
from tests import support

FOLDER = support.DATA / "verify"
_EDIT = "// edit: "
_FOUND = "    ! "


def cases(path: Path) -> list[str]:
    """The cases of a file, without what is found."""
    texts = path.read_text().split("\n---\n")
    return [
        "\n".join(line for line in text.splitlines() if not line.startswith(_FOUND)).rstrip("\n")
        for text in texts
    ]


def read(case: str) -> Module:
    """The module of a case, after its edits."""
    lines = ["" if line.startswith("#") else line for line in case.splitlines()]
    module = hlo.parse("\n".join(lines), name="case")

    def find(name: str) -> Instruction:
        found = module.find(name)
        assert isinstance(found, Instruction), name
        return found

    names = {
        "AxisRef": AxisRef,
        "DimensionSharding": DimensionSharding,
        "attrs": attrs,
        "hlo": hlo,
        "i": find,
        "module": module,
        "touch": support.touch,
    }
    for line in lines:
        if line.startswith(_EDIT):
            exec(line.removeprefix(_EDIT), names)
    return module


def with_findings(case: str) -> str:
    """The case with what is found behind it."""
    found = [_line(diagnostic) for diagnostic in hlo.verify(read(case))]
    return "\n".join([case, *found])


def _line(diagnostic: hlo.Diagnostic) -> str:
    place = f"{diagnostic.line}:{diagnostic.column}-{diagnostic.span.end_column}"
    related = "".join(f"; {what} ({span})" for what, span in diagnostic.related)
    help = f" [{diagnostic.help}]" if diagnostic.help else ""
    return f"{_FOUND}{place} {diagnostic.code} {diagnostic.message}{help}{related}"


def examples(page: str) -> tuple[str, str]:
    """The wrong and the right example of a code's page."""
    wrong, right = re.findall(r"^```hlo\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return wrong, right
