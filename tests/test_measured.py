"""`hlotext report --trace`: measured times beside the least ones, per run and device, furthest above first."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.proto.runs import runs_of
from hlotext.proto.traces import DeviceTime, OpTime, TracedModule
from tests.cli_support import run
from tests.pages import Page

pytest.importorskip("jinja2")
pytest.importorskip("bokeh")

from hlotext.analysis.chips import chip
from hlotext.view.report import ReportInput, report_page

TEXT = """HloModule step, is_scheduled=true

ENTRY e {
  p = f32[1024,1024]{1,0} parameter(0)
  a = f32[1024,1024]{1,0} sine(p)
  b = f32[1024,1024]{1,0} cosine(a)
  ROOT c = f32[1024,1024]{1,0} custom-call(b), custom_call_target="t"
}
"""


def traced(times: dict[str, list[tuple[int, float]]], runs: int | None = None) -> TracedModule:
    """A program whose operations had so many kernels and seconds on each of several devices."""
    found = {
        name: OpTime(
            tuple(
                sorted(
                    (
                        DeviceTime(f"/device:GPU:{n}", count, seconds)
                        for n, (count, seconds) in enumerate(rows)
                    ),
                    key=lambda one: -one.seconds,
                )
            ),
            7,
            0.5,
        )
        for name, rows in times.items()
    }
    return TracedModule("step", 3, runs, None, found, None)


def test_rows_are_of_one_run_on_the_slowest_device() -> None:
    """Never a sum over devices; what has no bound comes last; names that are no operation of their own are told."""
    trace = traced(
        {"a": [(5, 0.5), (5, 1.0)], "b": [(5, 5.0), (5, 2.0)], "c": [(10, 50.0)], "x.1": [(5, 1.0)]}
    )
    page = Page(
        report_page(
            ReportInput("m", hlo.parse(TEXT), given_platform="gpu", given_chip=chip("h100"), traced=trace)
        )
    )
    rows = page.tables["a-measured-rows"].records()
    shown = {row["name"]: row for row in rows}
    assert shown["a"]["seconds"] == 0.2
    assert shown["b"]["seconds"] == 1.0
    assert shown["c"]["kernels"] == 10
    assert [row["name"] for row in rows][:2] == ["c", "b"] or shown["c"]["least_seconds"] is None
    for name in "ab":
        assert shown[name]["ratio"] == pytest.approx(
            float(shown[name]["seconds"] or 0) / float(shown[name]["least_seconds"] or 1)
        )
    assert "inferred" in page.text
    assert "x.1" in page.text


@pytest.mark.parametrize(
    ("counts", "known", "expected"),
    [([5, 5, 10], None, (5, True)), ([5, 5], 4, (4, False)), ([], None, None), ([3, 6], None, (3, True))],
)
def test_runs(counts: list[int], known: int | None, expected: tuple[int, bool] | None) -> None:
    """As the trace tells them, else those of most operations, the fewer where it is even."""
    found = runs_of(traced({f"a{n}": [(count, 1.0)] for n, count in enumerate(counts)}, known))
    assert (found and (found.count, found.is_inferred)) == expected


def test_what_runs_in_a_loop_does_not_count_runs() -> None:
    """An operation of eight rounds has eight kernels in each run."""
    found = runs_of(traced({"a": [(40, 1.0)], "b": [(40, 1.0)], "c": [(5, 1.0)]}), {"a": 8, "b": 8})
    assert found is not None
    assert found.count == 5


def test_a_trace_of_other_programs(tmp_path: Path) -> None:
    """Is told with the names that it holds; what is no trace, too."""
    place = tmp_path / "m.txt"
    place.write_text(TEXT)
    trace = Path(__file__).parent / "data" / "proto" / "two_programs.xplane.pb"
    result = run("report", place, "--trace", trace, "-o", tmp_path / "x.html")
    assert result.exit_code == 1
    assert "contains no program step" in result.stderr
    assert run("report", place, "--trace", place, "-o", tmp_path / "x.html").exit_code == 2
