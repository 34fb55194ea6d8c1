"""`hlotext help opcode`: the opcode table for people and programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlotext.ir.tables import opcodes
from tests.cli_support import GOLDEN, run, run_json

GOLDENS = {
    "opcode_dot": ["dot"],
    "opcode_conditional": ["conditional"],
    "opcode_json": ["compare", "--format", "json"],
}


@pytest.mark.parametrize("case", GOLDENS)
def test_golden(case: str, golden: Callable[[Path, str], None]) -> None:
    """Some opcodes in full."""
    result = run("opcodes", *GOLDENS[case])
    assert (result.exit_code, result.stderr) == (0, "")
    golden(GOLDEN / f"{case}.txt", result.stdout)


def test_the_list_has_every_opcode() -> None:
    """One line for each row of the table, with what it does."""
    text = run("opcodes").stdout
    for row in opcodes.OPCODES.values():
        (line,) = (line for line in text.splitlines() if line.split()[:1] == [row.name])
        assert line.endswith(row.doc)
    assert [row["name"] for row in run_json("opcodes")["opcodes"]] == list(opcodes.OPCODES)


@pytest.mark.parametrize("name", opcodes.OPCODES)
def test_one_opcode(name: str) -> None:
    """Its attributes, those of every instruction, and its example are all there."""
    row = opcodes.OPCODES[name]
    text = run("opcodes", name).stdout
    assert text.startswith(f"{name}\n")
    assert row.example in text
    (facts,) = run_json("opcodes", name)["opcodes"]
    assert (facts["name"], facts["example"], facts["shape_rule"]) == (name, row.example, row.shape_rule)
    for use, shown in zip(row.attributes, facts["attributes"], strict=True):
        assert (shown["name"], shown["required"]) == (use.name, use.required)
        assert f"\n  {use.name} " in text
    for use in opcodes.common_attributes(row):
        assert f"\n  {use.name} " in text
    assert "AttributeUse" not in text


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("reduce-scater", "reduce-scatter"),
        ("gather", None),
        ("ALL-reduce", "all-reduce"),
        ("convolve", "convolution"),
        ("call-start", "short form of an async-start that wraps call"),
        ("qqqqqq", ""),
    ],
)
def test_words_that_are_no_opcode(word: str, hint: str | None) -> None:
    """A wrong usage, and what may be meant."""
    result = run("opcodes", word)
    if hint is None:
        assert result.exit_code == 0
        return
    assert (result.exit_code, result.stdout) == (2, "")
    line, _ = result.stderr.splitlines()
    assert word in line
    assert hint in line
