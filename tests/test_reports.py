"""Every format of a report: the same findings, as each reader of the format wants them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from hlotext import reports
from hlotext.findings.errors import Severity
from hlotext.reports import Entry
from tests import support

ODD = "a, b: 100 % <of> 'it'\n\x00\udc80 | é"
ENTRIES = [
    Entry("C101", "an all-gather in a loop", Severity.WARNING, "it runs 8 times", "dumps/a b.txt", 3, 5, 3, 9,
          help="do not", module="m", computation="body", instruction="ag", op_name="jit(f)/x", fingerprint="f1",
          properties={"bytes": 12}),
    Entry("C101", "an all-gather in a loop", Severity.WARNING, "it runs 9 times", "dumps/a b.txt", 7, fingerprint="f1"),
    Entry("X101", "a token that cannot stand here", Severity.ERROR, ODD, "/tmp/ü.txt", 1, 1, 2, 1, text="several\nlines"),
    Entry("G101", "a loop", Severity.NOTE, "unknown", "clean.txt"),
]  # fmt: skip
FILES = ["dumps/a b.txt", "/tmp/ü.txt", "clean.txt", "nothing.txt"]


def test_sarif_is_valid() -> None:
    """By the schema of SARIF 2.1.0; results refer to rules that are there."""
    jsonschema = pytest.importorskip("jsonschema")
    log = json.loads(reports.sarif(ENTRIES, "1.0", lambda code: f"# {code}"))
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    jsonschema.validate(log, schema)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [entry.code for entry in ENTRIES]
    assert run["results"][0]["partialFingerprints"] == {"hlotext/v1": "f1"}


def test_an_empty_sarif_is_valid() -> None:
    """A run without findings is a run."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((support.DATA / "reports" / "sarif-schema-2.1.0.json").read_text("utf-8"))
    jsonschema.validate(json.loads(reports.sarif([], "1.0", str)), schema)


def test_github_annotations() -> None:
    """One workflow command a line, properties and data escaped, as the runner's parser splits them."""
    lines = reports.github(ENTRIES).splitlines()
    assert lines[0] == (
        "::warning file=dumps/a b.txt,line=3,endLine=3,col=5,endColumn=9,title=C101 an all-gather in a loop"
        "::it runs 8 times%0Ado not"
    )
    assert len(lines) == len(ENTRIES)
    assert [line.split(" ", 1)[0] for line in lines] == ["::warning", "::warning", "::error", "::notice"]
    properties, data = lines[2].removeprefix("::error ").split("::", 1)
    assert dict(pair.split("=", 1) for pair in properties.split(","))["file"] == "/tmp/ü.txt"
    assert data.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") == ODD.replace(
        "\x00", "\ufffd"
    ).replace("\udc80", "\ufffd")


def test_junit_opens() -> None:
    """A suite for each file, also for those without findings; counts add up; characters that XML lacks are replaced."""
    root = ET.fromstring(reports.junit(ENTRIES, FILES))
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
    assert failure.text == "several\nlines"


def test_gitlab() -> None:
    """Path, line, severity; every fingerprint once."""
    rows = json.loads(reports.gitlab(ENTRIES))
    assert [row["severity"] for row in rows] == ["minor", "minor", "major", "info"]
    assert rows[0]["location"] == {"path": "dumps/a b.txt", "lines": {"begin": 3, "end": 3}}
    assert len({row["fingerprint"] for row in rows}) == len(rows)
    assert json.loads(reports.gitlab(ENTRIES[1:]))[0]["fingerprint"] == rows[0]["fingerprint"]


def test_json_lines() -> None:
    """Each line is the finding of the JSON report."""
    lines = [json.loads(line) for line in reports.json_lines(ENTRIES).splitlines()]
    assert lines == json.loads(reports.json_report(ENTRIES, FILES, "1.0"))["findings"]
    assert (lines[0]["code"], lines[0]["bytes"], lines[0]["fingerprint"]) == ("C101", 12, "f1")


def test_concise() -> None:
    """One line for each, whatever the message holds."""
    lines = reports.concise(ENTRIES).splitlines()
    assert lines[0] == "dumps/a b.txt:3:5: warning[C101]: it runs 8 times"
    assert len(lines) == len(ENTRIES)


def test_markdown_and_statistics() -> None:
    """Counts by code, the most frequent first; nothing breaks out of a table."""
    text = reports.markdown(ENTRIES, 4, gone=1)
    assert text.startswith(
        "### hlotext: 1 error, 2 warnings, 1 note in 4 files\n\n1 known finding has gone.\n"
    )
    assert "| C101 | 2 | an all-gather in a loop |" in text
    assert "\\<of\\>" in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {3, 4}
    assert reports.statistics(ENTRIES).splitlines()[0] == "2  C101  an all-gather in a loop"
    assert reports.markdown([], 4) == "### hlotext: nothing found in 4 files\n"


def test_long_markdown_is_cut() -> None:
    """A comment holds the first findings and says how many more there are."""
    text = reports.markdown(ENTRIES * 30, 4)
    assert "and 100 more" in text
    assert len(text) < 10_000
