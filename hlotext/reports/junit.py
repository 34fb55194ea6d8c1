"""Findings as JUnit's XML, which every CI server shows as test results: a suite for each file, a failure for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.findings import escape
from hlotext.findings.finding import Finding
from hlotext.ir.lazy_imports import late_module
from hlotext.reports.human import full_text
from hlotext.reports.report import FindingsReport

if TYPE_CHECKING:
    from xml.etree import ElementTree as ET
else:
    ET = late_module("xml.etree.ElementTree")


def junit(report: FindingsReport) -> str:
    """Formats findings as JUnit XML. A file without findings is one passed test."""
    root = ET.Element("testsuites", name="hlotext", tests=str(0), failures=str(len(report.findings)))
    by_file: dict[str, list[Finding]] = {file: [] for file in report.files}
    for finding in report.findings:
        by_file.setdefault(finding.file, []).append(finding)
    tests = 0
    for file, found in by_file.items():
        cases = max(1, len(found))
        tests += cases
        suite = ET.SubElement(
            root, "testsuite", name=escape.line(file), tests=str(cases), failures=str(len(found)), errors="0"
        )
        if not found:
            ET.SubElement(suite, "testcase", name="hlotext", classname=escape.line(file))
        for finding in found:
            suite.append(_case(finding, report))
    root.set("tests", str(tests))
    if report.total is not None and report.total != len(report.findings):
        # No attribute for it in Jenkins' schema, and a suite of its own would count.
        root.insert(0, ET.Comment(f" {len(report.findings)} of {report.total} findings shown "))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _case(finding: Finding, report: FindingsReport) -> ET.Element:
    where = f" (line {finding.line})" if finding.facts.is_in_text else ""
    name = f"{finding.code} {finding.name or report.code_of(finding.code).title}{where}"
    # No attributes beside these: servers check the document against Jenkins' junit-10.xsd.
    case = ET.Element("testcase", name=escape.line(name), classname=escape.line(finding.file))
    failure = ET.SubElement(case, "failure", type=finding.code, message=escape.line(finding.message))
    failure.text = full_text(finding, report.with_origin)
    return case
