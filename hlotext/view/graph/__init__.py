"""Graphs of modules: an interactive page, and static pictures of a neighborhood."""

from hlotext.view.graph.drawing import as_dot, as_svg
from hlotext.view.graph.neighbourhood import MOST, Edge, Neighbourhood, Rest, neighbourhood
from hlotext.view.graph.origins import origins
from hlotext.view.graph.page import graph_page

__all__ = [
    "MOST",
    "Edge",
    "Neighbourhood",
    "Rest",
    "as_dot",
    "as_svg",
    "graph_page",
    "neighbourhood",
    "origins",
]
