"""Pictures of modules and layouts as SVG and text, and HTML pages of graphs and reports."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.view.graph import as_dot, as_svg, graph_page, neighbourhood
    from hlotext.view.layout_picture import LayoutPicture
    from hlotext.view.report import report_page
    from hlotext.view.report.report_input import report_input

__all__ = ["LayoutPicture", "as_dot", "as_svg", "graph_page", "neighbourhood", "report_input", "report_page"]

__getattr__ = lazy_submodules(
    __name__,
    "graph",
    "layout_picture",
    "memory_picture",
    "pygments_lexer",
    "report",
    "sharding_picture",
    graph=("as_dot", "as_svg", "graph_page", "neighbourhood"),
    layout_picture=("LayoutPicture",),
    report=("report_page", "report_input"),
)
