"""Writers of findings: readable text, formats of code hosts and CI servers, SARIF, JSON.

Parser, verifier and linter all report `Finding`s. Each format has one writer, a function of a `FindingsReport`. Module
text is escaped by `escape`, so that it is inert in the output.
"""

from hlotext.findings import escape
from hlotext.reports.counted import STATISTICS, counted_document
from hlotext.reports.github import github
from hlotext.reports.gitlab import gitlab
from hlotext.reports.human import coloured, concise, concise_line, full, full_text, summary
from hlotext.reports.json import document, finding_json, json, json_lines
from hlotext.reports.junit import junit
from hlotext.reports.markdown import counts, markdown, statistics
from hlotext.reports.report import FindingsReport
from hlotext.reports.sarif import sarif

WRITERS = {
    "full": full,
    "concise": concise,
    "json": json,
    "json-lines": json_lines,
    "junit": junit,
    "github": github,
    "gitlab": gitlab,
    "sarif": sarif,
    "markdown": markdown,
}
"""The formats. Each writer accepts a `FindingsReport` and returns a text that ends with a line break, or is empty."""

__all__ = [
    "STATISTICS",
    "WRITERS",
    "FindingsReport",
    "coloured",
    "concise",
    "concise_line",
    "counted_document",
    "counts",
    "document",
    "escape",
    "finding_json",
    "full",
    "full_text",
    "github",
    "gitlab",
    "json",
    "json_lines",
    "junit",
    "markdown",
    "sarif",
    "statistics",
    "summary",
]
