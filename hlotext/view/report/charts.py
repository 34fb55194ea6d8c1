"""Charts that bokeh draws, as its JSON: rectangles of memory, lanes of the schedule.

They use the canvas alone (bokeh's other backend compiles code, which the page's policy forbids) and no scripts of bokeh's own
kind: colours of the ground, bytes on axes, hovering and choosing are in `assets/report.js`. Models are numbered anew in the
order of the document, so that the same chart is the same text.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
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

from hlotext.view.page.colours import LANE_COLOURS, OTHERS, PALETTE
from hlotext.view.report.parts import Chart

_BINARY = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
_LEFT = 78
"""Pixels left of both pictures of memory, whose steps stand above each other."""
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def document(chart: Chart) -> dict[str, Any]:
    """The JSON of a chart's bokeh document, and the numbers of its roots by the part of the page that each goes to."""
    parts = _memory(chart.data) if chart.kind == "memory" else _lanes(chart.data)
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


def _memory(data: Mapping[str, Any]) -> dict[str, Any]:
    moments = max(1, data["moments"])
    steps = Range1d(0, moments, bounds=(0, moments))
    low, high = _outline(data, moments)
    top = max([*high, 1.0])
    live = _figure(steps, Range1d(0, 1.12 * top), 120, _moving(), name="live")
    static = np.full(len(low), float(data["static"]))
    live.varea(x=low, y1=static, y2=high, fill_color=PALETTE[0], fill_alpha=0.3)
    live.varea(x=low, y1=np.zeros(len(low)), y2=static, fill_color=OTHERS, fill_alpha=0.25)
    live.line(x=low, y=high, line_color=PALETTE[0], line_width=1.5)
    live.yaxis.ticker = AdaptiveTicker(base=1024, mantissas=_BINARY, desired_num_ticks=3)
    live.xaxis.visible = False
    first = np.asarray(data["first"], dtype=np.int32)
    last = np.asarray(data["last"], dtype=np.int32)
    offset = np.asarray(data["offset"], dtype=np.float64)
    size = np.asarray(data["bytes"], dtype=np.float64)
    palette = (*PALETTE, OTHERS)
    source = ColumnDataSource(
        {
            "left": first,
            "right": last + 1,
            "bottom": offset,
            "top": offset + size,
            "colour": [palette[number] for number in data["colour"]],
        },
        name="pieces",
    )
    heap = float(max(data["heap"], 1))
    hover, tap = HoverTool(tooltips=None), TapTool()
    places = _figure(steps, Range1d(0, heap, bounds=(0, heap)), 340, [*_moving(), hover, tap], name="places")
    drawn = _quads(places, source)
    hover.renderers = tap.renderers = [drawn]
    places.yaxis.ticker = AdaptiveTicker(base=1024, mantissas=_BINARY)
    places.xaxis.axis_label = "step of the schedule"
    places.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    for part in (live, places):
        mark = Span(location=data["peak"]["time"] + 0.5, dimension="height", line_dash="dashed", name="mark")
        part.add_layout(mark)
    return {"live": live, "main": places}


def _quads(part: Any, source: ColumnDataSource) -> Any:
    """Rectangles that look the same whether another is chosen or not."""
    return part.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        source=source,
        fill_color="colour",
        fill_alpha=0.8,
        line_color="colour",
        line_alpha=0.9,
        line_width=0.5,
        nonselection_fill_alpha=0.8,
        nonselection_line_alpha=0.9,
        selection_fill_alpha=1.0,
        selection_line_width=2.5,
        selection_line_alpha=1.0,
        hover_fill_alpha=1.0,
        hover_line_alpha=1.0,
        hover_line_width=2,
        name="quads",
    )


def _outline(data: Mapping[str, Any], moments: int) -> tuple[Any, Any]:
    """The live total as steps: each change twice, what was before and what is then."""
    times, sizes = data["timeline"]
    at = np.repeat(np.asarray([*times, moments], dtype=np.float64), 2)[1:-1]
    return at, np.repeat(np.asarray(sizes, dtype=np.float64), 2)


def _lanes(data: Mapping[str, Any]) -> dict[str, Any]:
    lanes, total = data["lanes"], float(data["seconds"])
    factor, unit = next((row for row in _UNITS if total >= row[0]), _UNITS[-1])
    whole = total / factor
    lane = np.asarray(data["lane"], dtype=np.float64)
    words = data["words"]
    source = ColumnDataSource(
        {
            "left": np.asarray(data["begin"], dtype=np.float64) / factor,
            "right": np.asarray(data["end"], dtype=np.float64) / factor,
            "bottom": len(lanes) - 1 - lane + 0.12,
            "top": len(lanes) - 1 - lane + 0.88,
            "colour": [LANE_COLOURS.get(words[number], OTHERS) for number in data["kind"]],
        },
        name="pieces",
    )
    hover, tap = HoverTool(tooltips=None), TapTool()
    part = _figure(
        Range1d(0, whole, bounds=(0, whole)),
        Range1d(0, len(lanes)),
        90 + 34 * len(lanes),
        [
            PanTool(dimensions="width"),
            WheelZoomTool(dimensions="width", modifiers={"ctrl": True}),
            hover,
            tap,
        ],
        name="places",
    )
    drawn = _quads(part, source)
    hover.renderers = tap.renderers = [drawn]
    part.yaxis.ticker = FixedTicker(ticks=[n + 0.5 for n in range(len(lanes))])
    part.yaxis.major_label_overrides = {
        len(lanes) - 1 - n + 0.5: _short(name) for n, name in enumerate(lanes)
    }
    part.ygrid.grid_line_color = None
    part.xaxis.axis_label = f"time ({unit}), estimated"
    return {"main": part}


def _short(lane: str) -> str:
    """The name of a lane where there is little room; tables have all of it."""
    return lane if len(lane) <= 14 else f"{lane[:6]}…{lane[-7:]}"


@functools.cache
def script() -> str:
    """BokehJS as the installed package has it, without its backend for GPUs, widgets and tables.

    It may stand in a `<script>`: nothing in it ends one.
    """
    found = Resources(mode="inline", components=["bokeh"], minified=True)
    return "\n".join(found.js_raw).replace("</script", "<\\/script")
