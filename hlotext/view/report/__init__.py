"""A report of a module or a compilation as one HTML file: `report_page(subject("dump/"))`. Needs the extra `report`."""

from __future__ import annotations

from hlotext.view.report.subject import ReportInput, subject

HINT = "reports need the extra: pip install 'hlotext[report]'"

__all__ = ["HINT", "ReportInput", "report_page", "subject"]


def report_page(*subjects: ReportInput, title: str | None = None) -> str:
    """The report of one module, or of two side by side, as one HTML page that works offline.

    The same page for the same input, byte for byte. A section that the input cannot give is left out, with one line why.
    Raises ImportError with a hint without the extra `report`; ValueError for more than two subjects or none.
    """
    try:
        import bokeh
        import jinja2
    except ImportError as error:
        raise ImportError(HINT) from error
    del bokeh, jinja2
    from hlotext.view.report.page import report_page as render

    return render(*subjects, title=title)
