"""The table of how often answers are XLA's: made from what the checks print, linked from what is estimated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hlotext.view import accuracy
from tests.accuracy import rows_of
from tests.support import ROOT

_COLUMNS = """          cpu      gpu      tpu      all
cause right          9/10  90.00%   8/8  100.00%   3/4   75.00%   20/22   90.91%
all hold
"""
_PLAIN = """bytes exact                  491 of   494   99.39%  bar  0.97
chip from the dump           494 of   494  100.00%  bar   1.0
"""
_PLATFORMS = """     item                           right      of            files of
tpu  live ranges                     5919    5919  100.00 %     60 60
tpu  offsets without VMEM            4915    4921   99.88 %     59 60
"""
_THUNKS = """                         exact of   thunks right of
gpu    predicted             9    9          158    158  100.00 %
gpucb  predicted            13   13          270    272  100.00 %
"""
_VERSIONS = """cpu  0.10.2  thunks predicted                           11     12   91.67 %     5    6
cpu  0.12.0.1 thunks predicted                           90     90  100.00 %    15   15
tpu  0.10.2  memory model allocations outside VMEM       30     31   96.77 %     2    3
tpu  0.10.2  memory model offsets                         1      2   50.00 %     0    1
"""
_PASSES = json.dumps(
    [
        {"pass": "algsimp", "platform": "cpu", "after": "a", "verdict": "equal"},
        {"pass": "algsimp", "platform": "cpu", "after": "a", "verdict": "near"},
        {"pass": "algsimp", "platform": "cpu", "verdict": "equal"},
        {"pass": "cse", "platform": "tpu", "after": "a", "verdict": "equal", "xla": "0.12.0.1"},
    ]
)


@pytest.mark.parametrize(
    ("check", "text", "wanted"),
    [
        ("identity", _COLUMNS, [("cause of an operation", "cpu", 9, 10), ("cause of an operation", "gpu", 8, 8),
                                ("cause of an operation", "tpu", 3, 4)]),
        ("tpu_cost", _PLAIN, [("TPU cost: bytes", "tpu", 491, 494), ("chip from the dump", "tpu", 494, 494)]),
        ("memory", _PLATFORMS, [("memory: lives", "tpu", 5919, 5919), ("memory: offsets", "tpu", 4915, 4921)]),
        ("thunks", _THUNKS, [("thunks", "gpu", 428, 430)]),
        ("versions", _VERSIONS, [("thunks", "cpu", 11, 12), ("memory: allocations", "tpu", 30, 31)]),
        ("cost", "cost_visible.json: 1059 of 1060\n", [("cost of modules", "all", 1059, 1060)]),
        ("passes", _PASSES, [("steps of algebraic simplification", "cpu", 1, 2), ("steps of other passes", "tpu", 1, 1)]),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_output(check: str, text: str, wanted: list[tuple[str, str, int, int]]) -> None:
    found = [(row.answer, row.platform, row.right, row.of) for row in rows_of(check, "0.10.2", text)]
    assert found == wanted


def test_the_table_has_rows_of_both_releases() -> None:
    rows = accuracy.rows()
    assert {"0.10.2", "0.12.0.1"} <= {row.release for row in rows}
    assert all(0 <= row.right <= row.of for row in rows)
    titles, lines = accuracy.table(rows)
    assert all(len(line) == len(titles) for line in lines)
    assert {line[:2] for line in lines} == {row[:2] for row in rows}


def test_links_of_the_documentation_lead_to_rows() -> None:
    anchors = {row.anchor for row in accuracy.rows()}
    for page in (ROOT / "docs").rglob("*.md"):
        if "tables" not in page.parts:
            for link in re.findall(r"accuracy\.html#([\w-]+)", page.read_text("utf-8")):
                assert link in anchors, page.name


def test_reports_link_what_they_say_to_its_row(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("bokeh")
    from hlotext.view import report

    text = ROOT / "corpus" / "tpu" / "mlp_forward.v5e_2x2x1.after_codegen.txt"
    page = report.report_page(report.report_input(text))
    links = set(re.findall(r'href="#(accuracy-[\w-]+)"', page))
    assert links
    assert links <= set(re.findall(r'<tr id="([\w-]+)"', page))
