"""Findings as JUnit's XML, which every CI server shows as test results: a suite for each file, a failure for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from hlotext.findings import escape
from hlotext.reports.entry import Entry


def junit(entries: Sequence[Entry], files: Sequence[str]) -> str:
    """The document. A file without findings is one test that passed."""
    root = ET.Element("testsuites", name="hlotext", tests=str(0), failures=str(len(entries)))
    by_file: dict[str, list[Entry]] = {file: [] for file in files}
    for entry in entries:
        by_file.setdefault(entry.file, []).append(entry)
    tests = 0
    for file, found in by_file.items():
        cases = max(1, len(found))
        tests += cases
        suite = ET.SubElement(
            root, "testsuite", name=escape.line(file), tests=str(cases), failures=str(len(found)), errors="0"
        )
        if not found:
            ET.SubElement(suite, "testcase", name="hlotext", classname=escape.line(file))
        for entry in found:
            suite.append(_case(entry))
    root.set("tests", str(tests))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(entry: Entry) -> ET.Element:
    name = f"{entry.code} {entry.instruction or entry.title} (line {entry.line})"
    case = ET.Element(
        "testcase", name=escape.line(name), classname=escape.line(entry.file), line=str(entry.line)
    )
    failure = ET.SubElement(case, "failure", type=entry.code, message=escape.line(entry.message))
    failure.text = escape.lines(entry.text or entry.message)
    return case
