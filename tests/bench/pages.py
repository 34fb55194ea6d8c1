"""How large pages are and how fast: `python -m tests.bench.pages [FILE ...] [--chip NAME]`.

For a program of 12,632 temporaries, made here, the chart of memory alone; then for each file (without files the largest of
the corpus) the graph page and the report: seconds of processor time to make, megabytes. With a browser also milliseconds
to ready, and to draw neighbourhoods of 60, 300 and 1,000 operations, the best of three. The machine is named with its load,
since these mean little without.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import hlotext as hlo
from hlotext.view.graph import graph_page
from hlotext.view.report import ReportInput, report_input, report_page
from hlotext.view.report.page import chart_style
from hlotext.view.report.sections import memory as memory_section
from tests.browser import Browser, browser, executable
from tests.support import corpus_files

BUFFERS = 12_632
_DRAWN = """[60, 300, 1000].map((most) => {
  hlotextGraph.state.most = most; hlotextGraph.state.hops = 12;
  return Math.min(...[1, 2, 3].map(() => hlotextGraph.show()));
})"""


def machine() -> str:
    """Processor, cores, Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.machine()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores{load}, Python {platform.python_version()}"


def buffers(count: int) -> hlo.Module:
    """A scheduled program whose temporaries are written forwards and read backwards, as activations are."""
    half = count // 2
    forward = "".join(
        f'  v{n} = f32[{64 + n % 900}]{{0}} custom-call(p), custom_call_target="t", '
        f'metadata={{op_name="jit(step)/layer_{n % 40}/dot" source_file="train.py" source_line={n % 200 + 1}}}\n'
        for n in range(half)
    )
    back = "".join(
        f"  w{n} = f32[{64 + n % 500}]{{0}} custom-call(v{half - 1 - n}, {f'w{n - 1}' if n else 'p'}), "
        f'custom_call_target="t"\n'
        for n in range(count - half)
    )
    return hlo.parse(
        "HloModule buffers, is_scheduled=true\n\nENTRY e {\n  p = f32[64]{0} parameter(0)\n"
        f"{forward}{back}  ROOT r = f32[64]{{0}} copy(p)\n}}\n"
    )


def main() -> None:
    arguments = sys.argv[1:]
    chip = None
    if "--chip" in arguments:
        at = arguments.index("--chip")
        chip = arguments[at + 1]
        del arguments[at : at + 2]
    files = [Path(name) for name in arguments] or sorted(
        corpus_files(), key=lambda path: path.stat().st_size
    )[-2:]
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "page.html"
        if executable() is None:
            run(files, chip, place, None)
            return
        with browser() as window:
            window.size(1280)
            run(files, chip, place, window)


def run(files: list[Path], chip: str | None, place: Path, window: Browser | None) -> None:
    """All rows."""
    made = ReportInput("buffers", buffers(BUFFERS), given_platform="cpu")
    made.cost.run  # noqa: B018 - what other sections need as well
    made.memory  # noqa: B018
    begun = time.process_time()
    section = memory_section.section(made)
    style = chart_style(section.charts)
    blobs = [style.data(chart) for chart in section.charts]
    took = time.process_time() - begun
    count = len(section.charts[0].data["first"])
    print(
        f"memory chart of {count:,} temporaries: {took:.2f} s of processor time, {sum(map(len, blobs)) / 1e6:.2f} MB of data"
    )
    begun = time.process_time()
    page = report_page(made)
    show(f"report of {count:,} temporaries", page, time.process_time() - begun, place, window)
    for file in files:
        begun = time.process_time()
        module = hlo.load(file)
        read = time.process_time() - begun
        size = sum(1 for _ in module.instructions())
        print(f"\n{file.name}: {size:,} instructions, read in {read:.2f} s")
        begun = time.process_time()
        page = graph_page(module)
        show("graph", page, time.process_time() - begun, place, window)
        if window is not None and window.eval("globalThis.hlotextGraph.boxes().size") == 0:
            window.run("hlotextGraph.focusOn(hlotextGraph.largest())")
        if window is not None:
            drawn = window.eval(_DRAWN)
            print(f"  60, 300, 1,000 operations drawn in {', '.join(f'{ms:.0f}' for ms in drawn)} ms")
        begun = time.process_time()
        page = report_page(report_input(file, chip=chip))
        show("report", page, time.process_time() - begun, place, window)


def show(name: str, page: str, took: float, place: Path, window: Browser | None) -> None:
    """One page."""
    place.write_text(page, "utf-8")
    ready = ""
    if window is not None:
        window.open(place)
        ready = f", ready in {window.ready()} ms"
    print(f"  {name}: made in {took:.2f} s of processor time, {len(page.encode()) / 1e6:.2f} MB{ready}")


if __name__ == "__main__":
    main()
