"""How findings are written down: for people, for GitHub, as SARIF, as JSON.

The reader, the verifier and the linter say what they found in their own words; here it is an `Entry`, a plain value with
all that a report can need, and one writer for each format. Knows nothing of what was checked.
"""

from hlotext.reports.entry import Entry, Place, from_diagnostic
from hlotext.reports.github import github
from hlotext.reports.human import caret, rich_caret, summary
from hlotext.reports.json import json_report
from hlotext.reports.sarif import sarif

__all__ = [
    "Entry",
    "Place",
    "caret",
    "from_diagnostic",
    "github",
    "json_report",
    "rich_caret",
    "sarif",
    "summary",
]
