"""Charts that bokeh draws, as its JSON: live bytes and rectangles of memory, lanes of the schedule.

What stands here is the same for every chart of a kind, and is made once: a document without data. The numbers of a chart, its
scales, bytes on axes, colours of the ground, hovering and choosing are in `assets/bokeh_charts.js`, which gives each document
its data. They use the canvas alone (bokeh's other backend compiles code, which the page's policy forbids) and no scripts of
bokeh's own kind. Models are numbered anew in the order of the document, so that the same chart is the same text.
"""

from __future__ import annotations

import functools
from typing import Any

from bokeh.document import Document
from bokeh.models import (
    AdaptiveTicker,
    BasicTickFormatter,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    PanTool,
    Range1d,
    Span,
    TapTool,
    WheelZoomTool,
)
from bokeh.plotting import figure
from bokeh.resources import Resources

from hlotext.view.page.colours import PALETTE

_BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
_LEFT = 78
"""Pixels left of both pictures of memory, whose steps stand above each other."""
LIVE_HEIGHT = 170
"""Pixels of the picture of live bytes."""


@functools.cache
def document(kind: str) -> dict[str, Any]:
    """The JSON of the bokeh document of such a chart, and the numbers of its roots by the part of the page for each."""
    parts = _memory() if kind == "memory" else _lanes()
    page = Document()
    for part in parts.values():
        page.add_root(part)
    names: dict[str, str] = {}
    content = _renumbered(page.to_json(deferred=False), names)
    return {"document": content, "roots": {place: names[part.id] for place, part in parts.items()}}


def _renumbered(value: Any, names: dict[str, str]) -> Any:
    """The same with models numbered in the order in which they stand there."""
    if isinstance(value, list):
        return [_renumbered(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, one in value.items():
        if key == "id" and isinstance(one, str):
            found[key] = names.setdefault(one, f"m{len(names)}")
        else:
            found[key] = _renumbered(one, names)
    return found


def _figure(x: Range1d, y: Range1d, height: int, tools: list[Any], **more: Any) -> Any:
    """A figure without decoration of its own."""
    found = figure(
        x_range=x,
        y_range=y,
        height=height,
        min_width=200,
        sizing_mode="stretch_width",
        output_backend="canvas",
        tools=tools,
        toolbar_location=None,
        min_border_left=_LEFT,
        min_border_right=14,
        **more,
    )
    found.outline_line_color = None
    found.border_line_color = None
    # The ground is the page's own: light or dark.
    found.border_fill_color = None
    found.background_fill_color = None
    found.axis.axis_line_color = None
    found.axis.major_tick_line_color = None
    found.axis.minor_tick_line_color = None
    found.axis.major_label_text_font_size = "12px"
    found.axis.axis_label_text_font_size = "12px"
    found.axis.axis_label_text_font_style = "normal"
    found.grid.grid_line_alpha = 0.6
    return found


def _moving() -> list[Any]:
    """Dragging moves, the wheel with the control key zooms, so that the page scrolls with the wheel alone."""
    return [PanTool(), WheelZoomTool(modifiers={"ctrl": True})]


def _memory() -> dict[str, Any]:
    steps = Range1d(0, 1)
    live = _figure(steps, Range1d(0, 1), LIVE_HEIGHT, _moving(), name="live")
    layers = ColumnDataSource({"xs": [], "ys": [], "colour": [], "alpha": []}, name="layers")
    live.patches("xs", "ys", source=layers, fill_color="colour", fill_alpha="alpha", line_color=None)
    total = ColumnDataSource({"x": [], "y": []}, name="total")
    live.line("x", "y", source=total, line_color=PALETTE[0], line_width=1.2, name="outline")
    live.yaxis.ticker = AdaptiveTicker(base=1024, mantissas=_BINARY, desired_num_ticks=3)
    live.xaxis.visible = False
    hover, tap = HoverTool(tooltips=None), TapTool()
    places = _figure(steps, Range1d(0, 1), 340, [*_moving(), hover, tap], name="places")
    hover.renderers = tap.renderers = [_quads(places)]
    places.yaxis.ticker = AdaptiveTicker(base=1024, mantissas=_BINARY)
    places.xaxis.axis_label = "step of the schedule"
    places.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    for part in (live, places):
        part.add_layout(Span(location=0, dimension="height", line_dash="dashed", name="mark"))
    return {"live": live, "main": places}


def _quads(part: Any) -> Any:
    """Rectangles that look the same whether another is chosen or not."""
    columns = ("left", "right", "bottom", "top", "colour", "alpha")
    return part.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        source=ColumnDataSource({name: [] for name in columns}, name="pieces"),
        fill_color="colour",
        fill_alpha="alpha",
        line_color="colour",
        line_alpha="alpha",
        line_width=0.5,
        nonselection_fill_alpha="alpha",
        nonselection_line_alpha="alpha",
        selection_fill_alpha=1.0,
        selection_line_width=2.5,
        selection_line_alpha=1.0,
        hover_fill_alpha=1.0,
        hover_line_alpha=1.0,
        hover_line_width=2,
        name="quads",
    )


def _lanes() -> dict[str, Any]:
    hover, tap = HoverTool(tooltips=None), TapTool()
    moving = [PanTool(dimensions="width"), WheelZoomTool(dimensions="width", modifiers={"ctrl": True})]
    part = _figure(Range1d(0, 1), Range1d(0, 1), 200, [*moving, hover, tap], name="places")
    quads = _quads(part)
    # A short span is not wider than its time: many are as wide as a line.
    quads.glyph.line_width = 0
    hover.renderers = tap.renderers = [quads]
    part.yaxis.ticker = FixedTicker(ticks=[])
    part.ygrid.grid_line_color = None
    part.xaxis.axis_label = "time"
    return {"main": part}


@functools.cache
def script() -> str:
    """BokehJS as the installed package has it, without its backend for GPUs, widgets and tables.

    It may stand in a `<script>`: nothing in it ends one.
    """
    found = Resources(mode="inline", components=["bokeh"], minified=True)
    return "\n".join(found.js_raw).replace("</script", "<\\/script")
