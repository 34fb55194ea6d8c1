"""Self-contained HTML reports of a module, a compilation, or a dataset of builds.

Need the extra `report`, and raise ImportError with a hint without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext.ir.lazy_imports import lazy_submodules
from hlotext.view.report.builds_text import benchmark, builds_comment, figure_texts
from hlotext.view.report.report_input import ReportInput, report_input

if TYPE_CHECKING:
    from hlotext.view.report.builds import builds_page
    from hlotext.view.report.page import report_page

HINT = "reports need an extra: pip install 'hlotext[report]'"
_opened = lazy_submodules(__name__, builds=("builds_page",), page=("report_page",))


def __getattr__(name: str) -> Any:
    try:
        return _opened(name)
    except ImportError as error:
        raise ImportError(HINT) from error


__all__ = [
    "HINT",
    "ReportInput",
    "benchmark",
    "builds_comment",
    "builds_page",
    "figure_texts",
    "report_input",
    "report_page",
]
