"""How findings are written down: for people, for code hosts and CI servers, as SARIF, as JSON.

The reader, the verifier and the linter say what they found in their own words; here it is an `Entry`, a plain value with
all that a report can need, and one writer for each format. Knows nothing of what was checked.
"""

from hlotext.findings import escape
from hlotext.reports.entry import Entry, Place, from_diagnostic
from hlotext.reports.github import github
from hlotext.reports.gitlab import gitlab
from hlotext.reports.human import caret, rich_caret, summary
from hlotext.reports.json import finding_json, json_report
from hlotext.reports.junit import junit
from hlotext.reports.lines import concise, concise_line, json_lines
from hlotext.reports.markdown import counts, markdown, statistics
from hlotext.reports.sarif import sarif

__all__ = [
    "Entry",
    "Place",
    "caret",
    "concise",
    "concise_line",
    "counts",
    "escape",
    "finding_json",
    "from_diagnostic",
    "github",
    "gitlab",
    "json_lines",
    "json_report",
    "junit",
    "markdown",
    "rich_caret",
    "sarif",
    "statistics",
    "summary",
]
