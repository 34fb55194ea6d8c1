"""Every format of a report: the same findings, as each reader of the format wants them."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import hlotext as hlo
from hlotext import lint, reports
from hlotext.findings.codes import Code
from hlotext.findings.errors import Severity
from hlotext.findings.finding import Facts, Finding
from hlotext.ir.nodes.source import Span
from hlotext.reports import FindingsReport
from tests import support

ODD = "a, b: 100% <of> 'it'\n\x00\udc80 | é"


def found(
    code: str, severity: Severity, message: str, file: str, place: tuple[int, ...] = (1, 1, 1, 1), **more: Any
) -> Finding:
    """A finding whose module has gone."""
    facts = Facts(file, more.pop("name", ""), more.pop("computation", ""), more.pop("op_name", ""))
    return Finding(code, severity, message, Span(0, 0, *place), facts=facts, **more)


FINDINGS = [
    found("C101", Severity.WARNING, "it runs 8 times", "dumps/a b.txt", (3, 5, 3, 9), help="do not", module="m",
          computation="body", name="ag", op_name="jit(f)/x", fingerprint="f1", bytes=12),
    found("C101", Severity.WARNING, "it runs 9 times", "dumps/a b.txt", (7, 1, 1, 1), fingerprint="f1"),
    found("X101", Severity.ERROR, ODD, "/tmp/ü.txt", (1, 1, 2, 1)),
    found("G101", Severity.NOTE, "unknown", "clean.txt"),
]  # fmt: skip
FILES = ["dumps/a b.txt", "/tmp/ü.txt", "clean.txt", "nothing.txt"]


class Described(Code):
    """A code whose page needs no file."""

    def page(self) -> str:
        return f"# {self.name}"


CODES = {
    "C101": Described("C101", Severity.WARNING, "an all-gather in a loop"),
    "X101": Described("X101", Severity.ERROR, "unexpected token"),
    "G101": Described("G101", Severity.NOTE, "a loop"),
}


def report(
    findings: Sequence[Finding] = FINDINGS, files: Sequence[str] = FILES, gone: int = 0
) -> FindingsReport:
    return FindingsReport(findings, files, CODES.__getitem__, "1.0", gone)


def test_sarif_is_valid() -> None:
    """By the schema of SARIF 2.1.0; results refer to rules that are there."""
    jsonschema = pytest.importorskip("jsonschema")
    log = json.loads(reports.sarif(report()))
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    jsonschema.validate(log, schema)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [finding.code for finding in FINDINGS]
    assert run["results"][0]["partialFingerprints"] == {"hlotext/v1": "f1"}


def test_an_empty_sarif_is_valid() -> None:
    """A run without findings is a run."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    jsonschema.validate(json.loads(reports.sarif(report([]))), schema)


def test_github_annotations() -> None:
    """One workflow command a line, properties and data escaped, as the runner's parser splits them."""
    lines = reports.github(report()).splitlines()
    assert lines[0] == (
        "::warning file=dumps/a b.txt,line=3,endLine=3,col=5,endColumn=9,title=C101 an all-gather in a loop"
        "::it runs 8 times%0Ado not"
    )
    assert len(lines) == len(FINDINGS)
    assert [line.split(" ", 1)[0] for line in lines] == ["::warning", "::warning", "::error", "::notice"]
    properties, data = lines[2].removeprefix("::error ").split("::", 1)
    assert dict(pair.split("=", 1) for pair in properties.split(","))["file"] == "/tmp/ü.txt"
    assert data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") == ODD.replace(
        "\x00", "\ufffd"
    ).replace("\udc80", "\ufffd")


def test_junit_opens() -> None:
    """A suite for each file, also for those without findings; counts add up; characters that XML lacks are replaced."""
    root = ET.fromstring(reports.junit(report()))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == FILES
    assert [(suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("2", "2"),
        ("1", "1"),
        ("1", "1"),
        ("1", "0"),
    ]
    assert (root.get("tests"), root.get("failures")) == ("5", "4")
    failure = suites["/tmp/ü.txt"].find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "X101"
    assert failure.text == str(FINDINGS[2])


def test_gitlab() -> None:
    """Path, line, severity; every fingerprint once."""
    rows = json.loads(reports.gitlab(report()))
    assert [row["severity"] for row in rows] == ["minor", "minor", "major", "info"]
    assert rows[0]["location"] == {"path": "dumps/a b.txt", "lines": {"begin": 3, "end": 3}}
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    assert json.loads(reports.gitlab(report(FINDINGS[1:])))[0]["fingerprint"] == rows[0]["fingerprint"]


def test_json_lines() -> None:
    """Each line is the finding of the JSON report."""
    lines = [json.loads(line) for line in reports.json_lines(report()).splitlines()]
    assert lines == json.loads(reports.json(report()))["findings"]
    assert (lines[0]["code"], lines[0]["bytes"], lines[0]["fingerprint"]) == ("C101", 12, "f1")


def test_concise() -> None:
    """One line for each, whatever the message holds."""
    lines = reports.concise(report()).splitlines()
    assert lines[0] == "dumps/a b.txt:3:5: warning[C101]: it runs 8 times"
    assert len(lines) == len(FINDINGS)


def test_markdown_and_statistics() -> None:
    """Counts by code, the most frequent first; nothing breaks out of a table."""
    text = reports.markdown(report(gone=1))
    assert text.startswith(
        "### hlotext: 1 error, 2 warnings, 1 note in 4 files\n\n1 known finding no longer occurs.\n"
    )
    assert "| C101 | 2 | an all-gather in a loop |" in text
    assert "\\<of\\>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {3, 4}
    assert reports.statistics(report()).splitlines()[0] == "2  C101  an all-gather in a loop"
    assert reports.markdown(report([])) == "### hlotext: no findings in 4 files\n"


def test_long_markdown_is_cut() -> None:
    """A comment holds the first findings and says how many more there are."""
    text = reports.markdown(report(FINDINGS * 30))
    assert "and 100 more" in text
    assert len(text) < 10_000


@pytest.mark.parametrize("name", reports.WRITERS)
def test_every_writer_ends_its_last_line(name: str) -> None:
    """And of nothing found it writes nothing, or a document."""
    assert reports.WRITERS[name](report()).endswith("\n")
    assert reports.WRITERS[name](report([])).endswith("\n") or not reports.WRITERS[name](report([]))


def test_a_detached_finding_says_the_same() -> None:
    """In every format, without module and text."""
    text = (
        "HloModule m\n\nENTRY %e (p: f32[2]) -> f64[3] {\n"
        "  %p = f32[2]{0} parameter(0)\n  %c = f64[2]{0} convert(%p)\n  ROOT %n = f64[2]{0} sine(%c)\n}\n"
    )
    right = hlo.parse(text.replace("f64[3]", "f64[2]"))
    wrong = hlo.parse(
        "HloModule m\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[3] add(x, x)\n}", name="b.txt"
    )
    attached = [*hlo.parse_tolerant(text, name="a.txt").diagnostics, *hlo.verify(wrong)]
    attached += hlo.lint.run(right, hlo.lint.Config(select=("ALL",), **support.SAY_ALL))
    assert {finding.code[0] for finding in attached} >= {"X", "V"}
    assert any(finding.rule for finding in attached)
    detached = [pickle.loads(pickle.dumps(finding.detached())) for finding in attached]
    assert detached == attached
    for write in reports.WRITERS.values():
        for with_origin in (False, True):
            pair = [
                FindingsReport(found, FILES, hlo.lint.code_of, "1", 0, with_origin)
                for found in (attached, detached)
            ]
            assert write(pair[0]) == write(pair[1])


def test_the_names_of_the_record() -> None:
    """One class, whoever finds."""
    assert hlo.Diagnostic is hlo.lint.Finding is Finding


def test_a_module_that_is_no_text_has_no_lines() -> None:
    """A finding in it is at an instruction; of the op line that is shown, the line number would be that of no file."""
    pytest.importorskip("google.protobuf")
    text = (support.DATA / "lint" / "G105.txt").read_text()
    (finding,) = lint.run(hlo.load(hlo.parse(text).to_proto()), select="G105", file="m.hlo")
    for one in (finding, pickle.loads(pickle.dumps(finding.detached()))):
        assert one.place == "m.hlo: %c"
        assert str(one).splitlines()[:2] == [
            "m.hlo: %c: note[G105]: " + one.message,
            "  | " + str(finding.instruction),
        ]
        assert one.brief == f"m.hlo: %c: note[G105]: {one.message} ({one.help})"
        report = FindingsReport([one], ["m.hlo"], lint.code_of, "1")
        assert "(line" not in reports.WRITERS["junit"](report)
        assert "m.hlo:1" not in reports.WRITERS["markdown"](report)
