"""Padding that layouts add to arrays: `hlotext memory --by scope`."""

from __future__ import annotations

from hlotext.analysis import byte_text
from hlotext.memory import usage
from hlotext.view.report.parts import Missing, PageTable, Section, columns_of, cut
from hlotext.view.report.report_input import ReportInput

_GROUPS = columns_of("report.padding_groups")
_ARRAYS = columns_of("report.padding_arrays")
_LEAST = 0.01
"""Share of the peak below which padding is not worth a section."""


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on padding bytes live at the peak, by scope and by array. Raises MemoryModelError."""
    shown = subject.memory
    space = usage.space_usage(shown, 0)
    arrays = usage.live_arrays(shown, 0, space.peak_time)
    if not space.padding:
        return Missing("padding", "Padding", f"nothing live at the peak of {space.name} is padded")
    if space.padding < _LEAST * space.peak:
        said = f"{byte_text(space.padding)} of the {byte_text(space.peak)} live at the peak"
        return Missing("padding", "Padding", f"{said} of {space.name} is padding, less than 1%")
    groups = [group for group in usage.group_by(arrays, "scope") if group.padding]
    groups.sort(key=lambda group: -group.padding)
    rows = [(g.name, g.bytes, g.padding, g.padding / g.bytes, g.arrays, g.largest) for g in groups]
    padded = [array for array in arrays if array.padding]
    padded.sort(key=lambda array: -(array.padding or 0))
    cells = [
        (
            a.label,
            a.padding or 0,
            a.bytes,
            a.padding_factor,
            a.layout,
            a.scope,
            usage.line_text(a.place),
        )
        for a in cut(padded, 50)
    ]
    return Section(
        "padding",
        "Padding",
        f"{byte_text(space.padding)} of the {byte_text(space.peak)} live at the peak of {space.name} is padding (hatched).",
        tables=[
            PageTable("padding-scopes", "Padding at the peak by scope", _GROUPS, cut(rows), len(rows)),
            PageTable(
                "padding-arrays", "Arrays with the most padding", _ARRAYS, cells, len(padded), is_open=False
            ),
        ],
    )
