"""tests/data/recovery: broken texts, all that is said of them, and what is kept.

`NAME.hlo` is the text; `NAME.golden` every diagnostic, then the modules as they print, op lines that could not be read among
them. To add a case, add a file and run pytest with --update-goldens.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from tests import support
from tests.fuzz import oracle

FOLDER = support.DATA / "recovery"

Golden = Callable[[Path, str], None]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.hlo")), ids=lambda path: path.stem)
def test_what_is_kept(path: Path, golden: Golden) -> None:
    data = path.read_bytes()
    result = hlo.parse_tolerant(data, name=path.stem)
    assert result.left_out == 0
    found = "\n".join(map(str, result.diagnostics))
    printed = "".join(module.to_text(hlo.PrintOptions.default()) for module in result.modules)
    golden(path.with_suffix(".golden"), f"{found}\n\n{printed}")
    assert not oracle.check(data)


def test_more_errors_than_are_kept() -> None:
    """The first thousand in the order of the text, and how many there were."""
    lines = "".join(f"  x{i} = f32[] negate(y{i})\n" for i in range(1_200))
    result = hlo.parse_tolerant(f"ENTRY e {{\n{lines}}}\n")
    assert [diagnostic.line for diagnostic in result.diagnostics] == list(range(2, 1_002))
    assert result.left_out == 200
    assert sum(instruction.opcode == "negate" for instruction in result.module.entry) == 1_200


def test_a_done_of_an_opcode_without_its_operand() -> None:
    """What it calls itself is not the operation that it ends."""
    text = (
        "HloModule m\nf { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }\n"
        "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT d = f32[4] abs-done(), calls=f\n}\n"
    )
    codes = [one.code for one in hlo.parse_tolerant(text).diagnostics]
    assert codes == ["X108", "X120", "X109"]
