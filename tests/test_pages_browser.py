"""Pages in a real browser: nothing asked of the network, nothing complained of, and what a hand does gives what it should.

How long pages take is not tested but printed, by `python -m tests.bench.pages`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.findings import escape
from hlotext.view.graph import graph_page
from tests import support
from tests.browser import MISSING, Browser, browser, executable
from tests.test_graph import ODD, STEP

pytest.importorskip("bokeh")
pytest.importorskip("jinja2")

from hlotext.view.report import ReportInput, report_input, report_page
from tests.test_report import CHIPS, CPU, GPU, TPU, hostile_page, hostile_text

pytestmark = [pytest.mark.slow, pytest.mark.skipif(executable() is None, reason=MISSING)]


LOOKS = pytest.mark.parametrize(
    ("width", "dark"), [(width, dark) for width in (1400, 800, 400) for dark in (False, True)]
)
"""The widths of a desk, a tablet and a phone, in light and dark."""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(params=[TPU, GPU, CPU], ids=lambda path: path.name.split(".")[0])
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(request.param, chip=CHIPS[request.param])), "utf-8")
    return place


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    place = tmp_path / "graph.html"
    place.write_text(graph_page(hlo.load(STEP)), "utf-8")
    return place


def quiet(window: Browser) -> bool:
    """Nothing was complained of, nothing asked for, nobody spoken to."""
    assert window.complaints == []
    assert window.requests == []
    assert window.dialogs == 0
    return True


def draw_all(window: Browser) -> None:
    window.eval("document.querySelectorAll('figure.chart[data-side]').forEach((one) => one.scrollIntoView())")
    window.wait("[...document.querySelectorAll('figure.chart[data-side]')].every((one) => one.dataset.drawn)")


@LOOKS
def test_reports_are_drawn(window: Browser, report: Path, width: int, dark: bool) -> None:
    """All charts, at both sizes and in both modes, and nothing is wider than the window."""
    window.size(width, dark=dark)
    window.open(report)
    draw_all(window)
    assert window.eval("document.documentElement.scrollWidth") <= width
    assert quiet(window)


def test_a_rectangle_tells_its_name(window: Browser, tmp_path: Path) -> None:
    """Hovering and clicking on a value of the memory chart say its name, bytes and line."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(1280)
    window.open(place)
    window.eval("document.getElementById('a-chart-memory-0').scrollIntoView()")
    window.wait("document.getElementById('a-chart-memory-0').dataset.drawn")
    window.run("window.chart = document.getElementById('a-chart-memory-0')")
    x, y = window.eval("""(() => {
        const { main, pieces } = chart.hlotext, view = Bokeh.index.find_one(main), frame = view.frame;
        const box = chart.querySelector('[data-part=main]').getBoundingClientRect(), data = pieces.data;
        return [box.left + frame.x_scale.compute((data.left[0] + data.right[0]) / 2),
                box.top + frame.y_scale.compute((data.bottom[0] + data.top[0]) / 2)];
    })()""")
    name = window.eval("chart.hlotext.data.words[chart.hlotext.data.name[0]]")
    window.mouse(x - 3, y)
    window.mouse(x, y)
    window.wait("document.querySelector('.tip').style.display === 'block'")
    assert window.eval("document.querySelector('.tip b').textContent") == name
    window.mouse(x, y, click=True)
    window.wait("chart.dataset.chosen === '0'")
    told = window.eval("chart.querySelector('.detail').textContent")
    assert told.startswith(name)
    assert "offset" in told
    assert quiet(window)


def test_keys_move_the_chart(window: Browser, report: Path) -> None:
    """Zooming, moving and going from value to value without a mouse."""
    window.size(1280)
    window.open(report)
    draw_all(window)
    window.run("window.chart = document.querySelector('figure[data-kind=memory]')")
    window.eval("chart.querySelector('.picture[tabindex]').focus()")
    whole = window.eval("chart.hlotext.range.end - chart.hlotext.range.start")
    window.key("+")
    assert window.eval("chart.hlotext.range.end - chart.hlotext.range.start") == pytest.approx(whole / 2)
    window.key("0")
    assert window.eval("chart.hlotext.range.end - chart.hlotext.range.start") == whole
    window.key("n")
    window.wait("chart.dataset.chosen === '0'")
    assert quiet(window)


def test_a_scope_opens(window: Browser, tmp_path: Path) -> None:
    """A click makes a scope as wide as the chart and tells its numbers; the button chooses what is wide."""
    place = tmp_path / "report.html"
    text = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    place.write_text(report_page(report_input(text, chip="v5e")), "utf-8")
    window.size(1280)
    window.open(place)
    draw_all(window)
    window.run("window.chart = document.getElementById('a-chart-scopes')")
    cells = window.eval("chart.querySelectorAll('.icicle button').length")
    assert cells > 1
    window.eval("chart.querySelectorAll('.icicle button')[1].click()")
    assert "flops" in window.eval("chart.querySelector('.detail').textContent")
    window.eval("chart.querySelector('.tools button').click()")
    assert window.eval("chart.querySelector('.tools button').getAttribute('aria-pressed')") == "true"
    assert quiet(window)


def test_light_and_dark(window: Browser, report: Path) -> None:
    """The button turns the page and the charts."""
    window.size(1280)
    window.open(report)
    draw_all(window)
    ground = "getComputedStyle(document.body).backgroundColor"
    chart = "document.querySelector('figure[data-kind=memory]').hlotext.main.left[0].major_label_text_color"
    before = window.eval(ground), window.eval(chart)
    window.eval("document.getElementById('theme').click()")
    after = window.eval(ground), window.eval(chart)
    assert before[0] != after[0]
    assert before[1] != after[1]
    window.run("localStorage.clear()")


def table_rows(window: Browser, table: str) -> list[list[str]]:
    """The cells of the rows that a table shows."""
    found: list[list[str]] = window.eval(
        f"[...document.getElementById('{table}').tBodies[0].rows].filter((row) => !row.hidden)"
        ".map((row) => [...row.cells].map((cell) => cell.dataset.v ?? cell.textContent))"
    )
    return found


@LOOKS
def test_every_table_sorts_and_filters(window: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    """Numbers by size, texts by name, what is empty last; words in any order; the third click restores the order."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(width, dark=dark)
    window.open(place)
    heads = window.eval("document.querySelectorAll('main .scroll th').length")
    assert heads == window.eval("document.querySelectorAll('main th[aria-sort] > button').length") > 20
    before = table_rows(window, "a-schedule-core")
    keys = window.eval("[...document.querySelectorAll('#a-schedule-core th')].map((one) => one.dataset.key)")
    column = keys.index("bytes")
    click = f"document.querySelectorAll('#a-schedule-core th button')[{column}].click()"
    window.eval(click)
    sizes = [float(row[column]) for row in table_rows(window, "a-schedule-core") if row[column]]
    assert sizes == sorted(sizes, reverse=True)
    assert window.eval(f"document.querySelectorAll('#a-schedule-core th')[{column}].ariaSort") == "descending"
    window.eval(click)
    sizes = [float(row[column]) for row in table_rows(window, "a-schedule-core") if row[column]]
    assert sizes == sorted(sizes)
    # Anywhere in the head, not on the word alone.
    window.eval(click.replace(" button", ""))
    assert table_rows(window, "a-schedule-core") == before
    name, line = before[0][0], before[0][-1]
    window.run(
        "window.field = document.getElementById('a-schedule-core').closest('details').querySelector('input')"
    )
    window.eval(f"field.value = '{line} {name[1:].upper()}'; field.dispatchEvent(new Event('input'))")
    shown = table_rows(window, "a-schedule-core")
    assert shown == [row for row in before if name[1:] in "".join(row) and line in "".join(row)] != before
    assert quiet(window)


@pytest.mark.parametrize("width", [1400, 400])
def test_a_page_of_two_fits(window: Browser, tmp_path: Path, width: int) -> None:
    """Rows of tiles are full, tables that go on fade at that side, and both buttons of a table are on one line."""
    place = tmp_path / "two.html"
    sides = [report_input(path, chip=CHIPS[path]) for path in (CPU, GPU)]
    place.write_text(report_page(*sides), "utf-8")
    window.size(width)
    window.open(place)
    assert window.eval(
        """[...document.querySelectorAll('.tiles')].every((list) => {
          const ends = new Map();
          for (const one of list.children) {
            const box = one.getBoundingClientRect();
            ends.set(Math.round(box.top), box.right);
          }
          return [...ends.values()].every((end) => Math.abs(end - list.getBoundingClientRect().right) < 2);
        })"""
    )
    window.wait(
        """[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility()).every((one) =>
          (one.scrollWidth - one.clientWidth > 1) === one.classList.contains('more-right'))"""
    )
    assert window.eval("document.documentElement.scrollWidth <= innerWidth")
    assert window.eval(
        """[...document.querySelectorAll('.filter')].filter((one) => one.checkVisibility()).every((one) =>
          new Set([...one.querySelectorAll('button')].map((button) => button.getBoundingClientRect().top)).size === 1)"""
    )
    # No open table is cut where the window is wide: what does not fit beside its other one stands below it.
    if width == 1400:
        assert window.eval("document.querySelectorAll('.pair .scroll').length") > 4
        assert window.eval("document.querySelectorAll('.pair details[open] .scroll.more-right').length") == 0
    window.run("document.querySelector('#comparison a.line, #comparison a.op').click()")
    window.wait("!document.getElementById('operation').hidden")
    # Texts of the picture keep their size.
    assert window.eval("getComputedStyle(document.querySelector('.overlay span')).fontSize") == "12px"
    assert window.eval("document.querySelector('.overlay svg').getBoundingClientRect().height") == 190
    assert quiet(window)


def test_tables_are_copied(window: Browser, tmp_path: Path) -> None:
    """The rows shown, with exact numbers; neither a spreadsheet nor a comment on a code host obeys a name."""
    place = tmp_path / "report.html"
    module = hlo.parse(
        "HloModule m\n\nENTRY e {\n  p = f32[64]{0} parameter(0)\n"
        '  a = f32[64]{0} sine(p), metadata={op_name="=1+2, \\"x\\" |<b>/sin"}\n  ROOT b = f32[64]{0} negate(a)\n}\n'
    )
    place.write_text(report_page(ReportInput("m", module, given_platform="cpu")), "utf-8")
    window.size(1280)
    window.open(place)
    table = "document.getElementById('a-scopes-cost').hlotext"
    copied = list(csv.reader(io.StringIO(window.eval(f"{table}.forms.csv()"))))
    assert copied[0][:2] == ["scope", "flops"]
    assert len(copied) == 1 + len(table_rows(window, "a-scopes-cost"))
    assert not any(cell.startswith(("=", "+", "@")) for row in copied for cell in row)
    assert any(cell.startswith("'=1+2") for row in copied for cell in row)
    assert "\\|\\<b\\>" in window.eval(f"{table}.forms.markdown()")
    assert quiet(window)


HEADING = "document.querySelector('#operation h2')?.textContent"


@LOOKS
def test_from_a_table_to_an_operation_and_back(
    window: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    """A click, a neighbour, back twice, Escape; title, address, the marked rows and the bar in the chart go along."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(width, dark=dark)
    window.open(place)
    draw_all(window)
    title = window.eval("document.title")
    window.run("window.first = document.querySelector('#a-schedule-path a.op')")
    name = window.eval("first.textContent")
    window.eval("first.focus()")
    window.key("Enter")
    window.wait(f"{HEADING} === {json.dumps(name)}")
    assert window.eval("document.title") == f"{name}: {title}"
    assert window.eval("location.hash") == f"#op={name}"
    assert window.eval("first.closest('tr').getAttribute('aria-current')") == "true"
    window.wait("document.activeElement === document.querySelector('#operation h2')")
    window.wait("[...document.querySelectorAll('#operation pre')].length > 0")
    other = window.eval("document.querySelector('#operation li a').textContent")
    window.eval("document.querySelector('#operation li a').click()")
    window.wait(f"{HEADING} === {json.dumps(other)}")
    window.wait("document.activeElement === document.querySelector('#operation h2')")
    window.run("history.back()")
    window.wait(f"{HEADING} === {json.dumps(name)}")
    window.run("history.back()")
    window.wait("document.getElementById('operation').hidden")
    assert window.eval("document.title") == title
    window.run("history.forward()")
    window.wait("!document.getElementById('operation').hidden")  # the closed panel keeps its heading
    window.wait(f"{HEADING} === {json.dumps(name)}")
    window.key("Escape")
    window.wait("document.getElementById('operation').hidden")
    assert window.eval("document.activeElement === first")
    assert window.eval("document.querySelectorAll('tr.chosen').length") == 0
    assert quiet(window)


def test_charts_and_tables_select_each_other(window: Browser, tmp_path: Path) -> None:
    """A bar of the chart marks the rows that name it and opens the panel; a row selects the bars."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(1280)
    window.open(place)
    draw_all(window)
    window.run("window.chart = document.getElementById('a-chart-lanes')")
    name = window.eval("document.querySelector('#a-schedule-path a.op').textContent")
    number = f"chart.hlotext.data.name.findIndex((n) => chart.hlotext.data.words[n] === '{name}')"
    window.eval(f"chart.hlotext.pieces.selected.indices = [{number}]; 0")
    window.wait(f"{HEADING} === '{name}'")
    assert window.eval("document.querySelector('#a-schedule-path tr.chosen a.op').textContent") == name
    other = window.eval("document.querySelectorAll('#a-schedule-path a.op')[1].textContent")
    window.eval("document.querySelectorAll('#a-schedule-path a.op')[1].click()")
    window.wait(f"{HEADING} === '{other}'")
    window.wait("document.querySelectorAll('tr.chosen').length > 0")
    picked = window.eval(
        "chart.hlotext.pieces.selected.indices.map((n) => chart.hlotext.data.words[chart.hlotext.data.name[n]])"
    )
    assert set(picked) == {other}
    assert quiet(window)


def test_a_part_of_a_result_is_told_where_it_is_clicked(window: Browser, tmp_path: Path) -> None:
    """The box below the chart is about the rectangle that was clicked, and of an operation that is looked for its largest."""
    module = tmp_path / "m.txt"
    module.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[1024]{0} parameter(0)\n"
        '  c = (f32[256]{0}, f32[4096]{0}, f32[64]{0}) custom-call(p), custom_call_target="t"\n'
        + "".join(
            f"  g{n} = f32[{size}]{{0}} get-tuple-element(c), index={n}\n" for n, size in enumerate(_PARTS)
        )
        + '  ROOT r = f32[8]{0} custom-call(g0, g1, g2), custom_call_target="u"\n}\n'
    )
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(module, platform="cpu")), "utf-8")
    window.size(1280)
    window.open(place)
    draw_all(window)
    window.run("window.chart = document.getElementById('a-chart-memory-0')")
    told = "chart.querySelector('.detail').textContent"
    window.run("location.hash = '#op=c'")
    window.wait(f"{told}.startsWith('c{{1}}')")
    for part, size in zip((2, 0, 1), ("256 B", "1.00 KiB", "16.0 KiB"), strict=True):
        number = f"chart.hlotext.data.name.findIndex((n) => chart.hlotext.data.words[n] === 'c{{{part}}}')"
        window.eval(f"chart.hlotext.pieces.selected.indices = [{number}]; 0")
        window.wait(f"{HEADING} === 'c'")
        assert window.eval(told).startswith(f"c{{{part}}}{size}")
        window.run("document.querySelector('#operation .head button').click()")
    assert quiet(window)


def test_memory_without_places_has_its_keys(window: Browser, tmp_path: Path) -> None:
    """Where the compiler's offsets are not known the live bytes are drawn alone, and a value is told without an offset."""
    text = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(text)), "utf-8")
    window.size(1280)
    window.open(place)
    draw_all(window)
    window.run("window.chart = document.getElementById('a-chart-memory-1')")
    assert window.eval("chart.querySelector('[data-part=main]').offsetHeight") == 0
    window.eval("chart.querySelector('[data-part=live]').focus()")
    window.key("n")
    told = window.eval("chart.querySelector('.detail').textContent")
    assert "steps" in told
    assert "offset" not in told
    assert quiet(window)


_PARTS = (256, 4096, 64)


def test_addresses_within_a_report(window: Browser, tmp_path: Path) -> None:
    """A link to an operation opens it, to a line its operations; one that leads nowhere says so; the search."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(1280)
    window.open(place, "#op=fusion.6")
    window.wait(f"{HEADING} === 'fusion.6'")
    window.run("location.hash = '#op=%3Cb%3Enothing'")
    window.wait(f"{HEADING} === '<b>nothing'")
    assert "hlotext graph" in window.eval("document.querySelector('#operation').textContent")
    line = window.eval("decodeURIComponent(document.querySelector('#a-lines-cost a.line').hash.slice(6))")
    window.eval("document.querySelector('#a-lines-cost a.line').click()")
    window.wait(f"{HEADING} === {json.dumps(line)}")
    window.wait("document.querySelectorAll('#operation li a').length > 0")
    window.key("Escape")
    window.key("/")
    window.text(f"fusion {line.rpartition(':')[2]}")
    window.wait("document.querySelectorAll('#found [role=option]').length > 1")
    second = window.eval("document.querySelectorAll('#found [role=option] a')[1].textContent")
    window.key("ArrowDown")
    window.key("Enter")
    window.wait(f"{HEADING} === {json.dumps(second)}")
    assert quiet(window)


def test_two_sides_have_operations_of_their_own(window: Browser, tmp_path: Path) -> None:
    """The same name before and after are two addresses."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e"), report_input(TPU, chip="v5p")), "utf-8")
    window.size(1400)
    window.open(place, "#op-b=fusion.6")
    window.wait(f"{HEADING} === 'fusion.6'")
    assert "after" in window.eval("document.querySelector('#operation p').textContent")
    assert window.eval(
        "[...document.querySelectorAll('tr.chosen')].every((row) => row.closest('[data-side=b]'))"
    )
    draw_all(window)
    assert quiet(window)


def test_a_hostile_report_does_not_act(window: Browser, tmp_path: Path) -> None:
    """No script of a name runs, no title changes, no dialog opens; the names are there as text."""
    place = tmp_path / "hostile.html"
    place.write_text(hostile_page(), "utf-8")
    window.size(1280)
    window.open(place)
    title = window.eval("document.title")
    draw_all(window)
    window.eval("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    window.eval("document.querySelectorAll('.icicle button').forEach((one) => one.click())")
    for name in ("n0", "n1", "n2", "n3", "n4", "n6"):
        window.run(f"location.hash = '#op={name}'")
        window.wait(f"{HEADING} === '{name}' && document.querySelectorAll('#operation pre').length > 0")
        window.eval("document.querySelector('#operation dd a').click()")
        window.wait(f"{HEADING} !== '{name}'")
    window.key("Escape")
    assert window.eval("document.title") == title
    assert "acted" not in title
    assert window.eval("document.querySelectorAll('img:not([src^=\"data:\"]), b[onclick]').length") == 0
    assert window.eval("document.body.textContent.includes('<img src=x')")
    assert window.eval("document.body.textContent.includes('{{ 7 * 7 }}')")
    assert window.eval("document.documentElement.scrollWidth") <= 1280
    assert quiet(window)


def test_a_hostile_graph_does_not_act(window: Browser, tmp_path: Path) -> None:
    """The same for the graph, its panel, its search and its pictures."""
    place = tmp_path / "hostile.html"
    place.write_text(graph_page(hlo.parse(hostile_text())), "utf-8")
    window.size(1280)
    window.open(place)
    title = window.eval("document.title")
    for name in ("n0", "n1", "n2", "n3", "n4", "n6"):
        window.run(f"location.hash = '#{name}'")
        window.wait(f"document.querySelector('#panel h2').textContent === '{name}'")
        window.wait("document.querySelector('#panel pre').textContent.length > 5")
    window.eval("document.getElementById('find').focus()")
    window.text("<img")
    window.wait("document.querySelectorAll('#found [role=option]').length > 0")
    assert window.eval("document.title") == title
    assert window.eval("document.querySelectorAll('#panel b, #found img').length") == 0
    assert quiet(window)


@LOOKS
def test_the_graph_is_ready(window: Browser, graph: Path, width: int, dark: bool) -> None:
    """At both sizes and in both modes."""
    window.size(width, 800, dark=dark)
    window.open(graph, "#fusion.19")
    assert window.eval("document.querySelectorAll('#graph g.node').length") > 10
    assert window.eval("document.documentElement.scrollWidth") <= width
    assert quiet(window)


def test_links_lead_to_operations(window: Browser, graph: Path) -> None:
    """The address, a click on a neighbour's name, and back."""
    window.size(1280, 800)
    window.open(graph, "#fusion.19")
    assert window.eval("document.querySelector('#panel h2').textContent") == "fusion.19"
    window.eval(
        "[...document.querySelectorAll('#panel li a')].find((a) => a.textContent === 'all-reduce.4').click()"
    )
    window.wait("document.querySelector('#panel h2').textContent === 'all-reduce.4'")
    assert window.eval("location.hash") == "#all-reduce.4"
    window.run("history.back()")
    window.wait("document.querySelector('#panel h2').textContent === 'fusion.19'")
    window.wait("document.querySelector('#panel pre').textContent.includes('%fusion.19 = f32[256,512]')")
    window.wait("document.querySelector('#panel img')?.naturalWidth > 0")
    assert quiet(window)


def test_back_and_forward_undo_and_redo(window: Browser, graph: Path) -> None:
    """From the start page to an operation, its body opened, to the scopes; each step back, each again."""
    window.size(1280, 800)
    window.open(graph)
    start = "!document.getElementById('overview').hidden && location.hash === ''"
    title = "document.querySelector('#panel h2').textContent"
    rooms = "document.querySelectorAll('#graph rect.room').length"
    closed = f"document.getElementById('overview').hidden && {title} === 'fusion.19' && {rooms} === 0"
    opened = f"document.getElementById('overview').hidden && {title} === 'fusion.19' && {rooms} === 1"
    assert window.eval(start)
    window.run("location.hash = '#fusion.19'")
    window.wait(closed)
    window.run(
        "[...document.querySelectorAll('#panel button')].find((b) => b.textContent === 'open body').click()"
    )
    window.wait(opened)
    window.run("document.getElementById('scopes').click()")
    window.wait(start)
    for way, steps in (("back", (opened, closed, start)), ("forward", (closed, opened, start))):
        for reached in steps:
            window.run(f"history.{way}()")
            window.wait(reached)
    assert window.eval(title) != "fusion.19"
    assert quiet(window)


def test_the_graph_says_what_python_says(window: Browser, graph: Path) -> None:
    """The script's neighbourhood has the nodes of the one that pictures are made from."""
    from hlotext.view.graph import neighbourhood

    window.size(1280, 800)
    for name in ("fusion.19", "all-reduce.4", "param.1"):
        window.open(graph, f"#{name}")
        shown = window.eval("[...document.querySelectorAll('#graph g.node[data-n] title')].length")
        assert shown == 0
        numbers = window.eval("[...hlotextGraph.boxes().keys()].sort((a, b) => a - b)")
        module = hlo.load(STEP)
        every = list(module.instructions())
        found = neighbourhood(module, name)
        assert [every[n].name for n in numbers] == [node.name for node in found.nodes]
        wires = window.eval("document.querySelectorAll('#graph path.edge').length")
        assert wires == len(found.edges)


def test_op_lines_are_shown_on_one_line(window: Browser, tmp_path: Path) -> None:
    """With nothing in them that is no printable character, wherever in the module's text they stand, edited or not."""
    place = tmp_path / "graph.html"
    module = hlo.parse_tolerant(
        ODD.replace("é", "é \x1b[1m \ufeff\u2028\u3000\x85\x1c ,\U0001f600 </script><b>")
    ).module
    for _ in range(2):
        place.write_text(graph_page(module), "utf-8")
        window.open(place)
        for number, one in enumerate(module.instructions()):
            window.run(f"hlotextGraph.choose({number})")
            window.wait("(document.querySelector('#panel pre')?.textContent ?? '…') !== '…'")
            shown = window.eval("document.querySelector('#panel pre').textContent")
            assert shown == escape.one_line(str(one))
        module.entry.root.name = "renamed"
    assert quiet(window)


def test_search_and_keys(window: Browser, graph: Path) -> None:
    """By opcode and by line; Enter goes there; o opens a fusion; arrows walk."""
    window.size(1280, 800)
    window.open(graph, "#fusion.19")
    window.key("/")
    window.text("programs.py:831")
    window.wait("document.querySelectorAll('#found [role=option]').length > 3")
    window.run("document.getElementById('find').value = ''")
    window.text("all-reduce.4")
    window.wait("document.querySelector('#found [role=option] b')?.textContent === 'all-reduce.4'")
    window.key("Enter")
    window.wait("document.querySelector('#panel h2').textContent === 'all-reduce.4'")
    window.key("ArrowUp")
    window.wait("document.querySelector('#panel h2').textContent !== 'all-reduce.4'")
    window.run("location.hash = '#fusion.19'")
    window.wait("document.querySelector('#panel h2').textContent === 'fusion.19'")
    window.eval("document.getElementById('canvas').focus()")
    window.key("o")
    window.wait("document.querySelectorAll('#graph rect.room').length === 1")
    assert quiet(window)


def test_texts_of_a_graph_can_be_read(window: Browser, graph: Path) -> None:
    """11 pixels, at the first look and with all of it in the window; below names there are none."""
    least = """Math.min(99, ...[...document.querySelectorAll('#graph text')]
      .filter((one) => !one.closest('.small') || one.matches('.name'))
      .filter((one) => getComputedStyle(one).display !== 'none')
      .map((one) => parseFloat(getComputedStyle(one).fontSize) * hlotextGraph.view().k))"""
    for width in (1400, 400):
        window.size(width, 800)
        window.open(graph, "#all-reduce.4")
        window.run("hlotextGraph.state.hops = 12; hlotextGraph.show()")
        assert window.eval(least) >= 11
        window.run("document.getElementById('fit').click()")
        window.key("-")
        assert window.eval("hlotextGraph.view().k") < 0.9
        assert window.eval(least) >= 11
    assert quiet(window)


def test_a_graph_opened_by_a_link_has_its_keys(window: Browser, graph: Path) -> None:
    """Without a click on it before; what nothing can be opened of says so."""
    window.size(1280, 800)
    window.open(graph, "#fusion.19")
    window.key("o")
    window.wait("document.querySelectorAll('#graph rect.room').length === 1")
    window.open(graph, "#param.1")
    window.key("o")
    window.wait("document.getElementById('status').textContent.includes('calls no computation')")
    window.open(graph, "#nosuch")
    window.wait("document.getElementById('status').textContent === 'no instruction or computation nosuch'")
    assert quiet(window)


def test_scopes_filter(window: Browser, graph: Path) -> None:
    """The overview lists a scope's operations, and the search looks in it alone."""
    window.size(1280, 800)
    window.open(graph)
    assert window.eval("document.getElementById('overview').hidden") is False
    assert window.eval("document.querySelector('#overview .says b').textContent") == "(whole module)"
    assert "(top level)" in window.eval(
        "[...document.querySelectorAll('#overview .icicle button')].map((one) => one.textContent)"
    )
    everything = window.eval("hlotextGraph.search('fusion')[1]")
    window.eval("document.querySelectorAll('#overview .icicle button')[1].click()")
    assert 0 < window.eval("hlotextGraph.search('fusion')[1]") < everything
    assert quiet(window)


@pytest.mark.parametrize("width", [1400, 800, 400])
def test_nothing_lies_over_the_graph(window: Browser, graph: Path, width: int) -> None:
    """The line of what is shown stands below it, numbers fit their fields, and controls stand in order."""
    window.size(width)
    window.open(graph, "#all-reduce.4")
    window.wait("document.getElementById('status').textContent !== ''")
    assert window.eval(
        """document.getElementById('canvas').getBoundingClientRect().bottom <=
          document.querySelector('.foot').getBoundingClientRect().top + 1"""
    )
    window.run("document.getElementById('most').value = 2000")
    # Beside the number a field has its two arrows, of some 18 pixels.
    assert window.eval(
        """[...document.querySelectorAll('input[type=number]')].every((one) => {
          const style = getComputedStyle(one), pen = document.createElement('canvas').getContext('2d');
          pen.font = style.font;
          const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 18;
          return pen.measureText(one.value).width <= room;
        })"""
    )
    middles = window.eval(
        "[...document.querySelectorAll('header.bar > *')].filter((one) => one.checkVisibility())"
        ".map((one) => one.getBoundingClientRect()).map((box) => (box.top + box.bottom) / 2)"
    )
    assert (max(middles) - min(middles) > 5) == (width == 400)
    assert window.eval("document.documentElement.scrollWidth <= innerWidth")
    # The line of Python is a way to its operations, as in a report.
    window.run("document.querySelector('#panel dd a').click()")
    window.wait("document.querySelectorAll('#found [role=option]').length > 1")
    assert quiet(window)


def test_thin_buffers_are_drawn_together(window: Browser, tmp_path: Path) -> None:
    """None is thinner than can be seen, a click on several zooms in, and one that is named elsewhere stands out."""
    draw_thin(window, tmp_path / "report.html", "")
    window.run("window.chart = document.getElementById('a-chart-memory-0'); window.h = chart.hlotext")
    high = "(row) => (h.pieces.data.top[row] - h.pieces.data.bottom[row]) * 280 / (h.main.y_range.end - h.main.y_range.start)"
    rows = window.eval("h.pieces.data.left.length")
    assert rows < 200
    assert window.eval(f"Math.min(...h.pieces.data.left.map((_, row) => ({high})(row)))") > 2.5
    assert "several thin buffers" in window.eval("chart.querySelector('.legend').textContent")
    assert "peak: " in window.eval("chart.querySelector('.legend').textContent")
    # The widest is of many buffers.
    window.run("window.wide = h.pieces.data.left.map((left, row) => h.pieces.data.right[row] - left)")
    window.run("h.pieces.selected.indices = [wide.indexOf(Math.max(...wide))]")
    window.wait("h.main.y_range.end - h.main.y_range.start < h.data.scale.heap")
    window.run("h.mark('a7')")
    assert window.eval("h.pieces.selected.indices.length") == 1
    assert quiet(window)


def test_thin_buffers_are_drawn_as_strong_as_they_are(window: Browser, tmp_path: Path) -> None:
    """Beside a buffer of 64 MiB the few bytes of many thin ones are faint, so that they do not seem to fill the place."""
    draw_thin(window, tmp_path / "report.html", "f32[4096,4096]{1,0:T(8,128)}")
    drawn = "document.getElementById('a-chart-memory-0').hlotext.pieces.data"
    shown = window.eval(f"{drawn}.top.map((top, n) => [top - {drawn}.bottom[n], {drawn}.alpha[n]])")
    assert [alpha for high, alpha in shown if high > 32 << 20] == [0.8]
    assert max(alpha for high, alpha in shown if high < 32 << 20) < 0.2
    assert quiet(window)


def test_buffers_that_fill_little_are_seen(window: Browser, tmp_path: Path) -> None:
    """Where nothing that is shown fills its place by far, all of it is drawn stronger, and the legend says so."""
    draw_thin(window, tmp_path / "report.html", "")
    chart = "document.getElementById('a-chart-memory-0')"
    assert window.eval(f"Math.max(...{chart}.hlotext.pieces.data.alpha)") == pytest.approx(0.8)
    assert "opacity ×" in window.eval(f"{chart}.querySelector('.legend').textContent")
    draw_thin(window, tmp_path / "report.html", "f32[4096,4096]{1,0:T(8,128)}")
    assert "opacity ×" not in window.eval(f"{chart}.querySelector('.legend').textContent")
    assert quiet(window)


def draw_thin(window: Browser, place: Path, wide: str) -> None:
    """Opens the report of a module with 200 thin buffers, and one of another shape."""
    lines, last = [], "p"
    if wide:
        lines.append(f'  w = {wide} custom-call(p), custom_call_target="t"')
        lines.append('  v = f32[64]{0:T(256)} custom-call(w), custom_call_target="t"')
        last = "v"
    for n in range(200):
        lines.append(
            f'  a{n} = f32[{64 + n % 3}]{{0:T(256)}} custom-call({last}), custom_call_target="t", '
            f'metadata={{op_name="jit(f)/{"mlp" if n % 2 else "attention"}/t"}}'
        )
        last = f"a{n}"
    body = "\n".join(lines)
    place.write_text("")
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[64]{0:T(256)} parameter(0)\n"
        f"{body}\n  ROOT r = f32[64]{{0:T(256)}} custom-call({last}, {', '.join(f'a{n}' for n in range(0, 190, 2))}), "
        'custom_call_target="t"\n}\n'
    )
    place.write_text(report_page(ReportInput("m", module, given_platform="tpu")), "utf-8")
    window.size(1280)
    window.open(place)
    draw_all(window)


def builds_of_a_few(place: Path) -> Path:
    """A page of five builds with a long name, a wide shape, a gap and a module that is gone."""
    pytest.importorskip("pyarrow")
    from hlotext.tables.figures import FIGURES
    from hlotext.tables.history import BuildStep, Coming, Grown, History, ModuleHistory, NewFinding
    from hlotext.view.report import builds_page

    builds = tuple(f"2026-11-2{n}" for n in range(5))
    shape = f"({', '.join(f'bf16[{n},128]{{1,0:T(8,128)(2,1)}}' for n in range(40))})"
    grown = (
        Grown("multiply_reduce_fusion.1234.clone.5", "fusion kLoop", shape, 4 << 20, 0.0, 152, "m.py", 7),
    )
    name = "jit_transformer_train_step_with_remat@fsdp"
    values: dict[str, dict[str, float]] = {
        one: dict.fromkeys((*builds[:2], builds[4]), 1.0) for one in FIGURES
    }
    values["peak_bytes"] = {builds[0]: 1e6, builds[1]: 1e6, builds[4]: 3e6}
    kept = ModuleHistory(
        name, dict.fromkeys(values["flops"], "m.txt"), values, "", {builds[2]: "not readable"}
    )
    gone = ModuleHistory("jit_lost", {builds[0]: "x.txt"}, {one: {builds[0]: 1.0} for one in FIGURES})
    new = NewFinding(
        "warning",
        "C108",
        "an all-gather of which half is used " * 4,
        "all-gather.1",
        "/a/long/way/to/m.py",
        7,
    )
    steps = (BuildStep(name, builds[4], builds[1], "peak_bytes", 1e6, 3e6, grown, findings=(new,)),)
    comings = (Coming("jit_lost", builds[1], builds[0], "gone"), Coming(name, builds[4], builds[1], "back"))
    found = History(builds, (kept, gone), steps, ((builds[2], "m.txt", "it ends early"),), (), comings)
    place.write_text(builds_page(found, fail_on=("peak_bytes",)), "utf-8")
    return place


@LOOKS
def test_builds_keep_names_in_view(window: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    """Scrolled to the right rows have their names, shapes take no lines, and builds are named below their marks."""
    window.size(width, dark=dark)
    window.open(builds_of_a_few(tmp_path / "builds.html"))
    assert window.eval("document.documentElement.scrollWidth") <= width
    tops = window.eval("document.querySelector('#newest').getBoundingClientRect().top")
    assert tops < window.eval("document.querySelector('#steps').getBoundingClientRect().top")
    if width == 400:  # trends and findings, which say what happened, are not out of sight
        assert window.eval(
            """[...document.querySelectorAll('table.trend svg, table.cards td')].filter((one) => one.checkVisibility())
              .every((one) => one.getBoundingClientRect().right <= innerWidth)"""
        )
        assert window.eval("document.querySelectorAll('table.cards td[data-key=message]').length") == 1
    window.run("document.querySelectorAll('.scroll').forEach((one) => { one.scrollLeft = 1e6; })")
    assert window.eval(
        """[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility()).every((one) => {
          const room = one.getBoundingClientRect(), isStacked = innerWidth <= 600 && one.querySelector('.cards, .wide');
          return [...one.querySelectorAll('tr > :first-child')].every((cell) => {
            const box = cell.getBoundingClientRect();
            return Math.abs(box.left - room.left) < 3 && (isStacked || box.width < room.width / 2);
          });
        })"""
    )
    rows = "[...document.querySelectorAll('[data-table=operations] tbody tr')].map((one) => one.offsetHeight)"
    assert 0 < max(window.eval(rows)) < (130 if width == 400 else 100)
    assert window.eval("document.querySelector('td.shape').textContent.endsWith('more)')")
    off = window.eval(
        """[...document.querySelectorAll('table.trend')].flatMap((table) => {
          const marks = [...table.querySelector('svg').querySelectorAll('rect')].map((one) => {
            const box = one.getBoundingClientRect();
            return [one.textContent.split(':')[0].split(' in ')[1], (box.left + box.right) / 2];
          });
          return [...table.querySelectorAll('td.axis span')].filter((one) => one.checkVisibility()).map((one) => {
            const box = one.getBoundingClientRect();
            return Math.abs((box.left + box.right) / 2 - new Map(marks).get(one.textContent));
          });
        })"""
    )
    assert len(off) >= 4
    assert max(off) < 2
    assert window.eval("document.querySelectorAll('.legend i.unread, .legend i.absent').length") == 3
    pasted = "[...document.querySelectorAll('pre.paste, code.command')]"
    assert window.eval(f"{pasted}.length && {pasted}.every((one) => one.nextSibling.matches('button.copy'))")
    assert quiet(window)


@pytest.mark.parametrize("width", [1400, 400])
def test_an_operation_of_a_build_is_told_where_it_is_clicked(
    window: Browser, tmp_path: Path, width: int
) -> None:
    """In view whatever is scrolled, with a command to copy; Escape closes it."""
    window.size(width)
    window.open(builds_of_a_few(tmp_path / "builds.html"))
    window.run("document.querySelector('#newest a.op').click()")
    window.wait("document.querySelector('.operation:target') !== null")
    box = window.eval("JSON.stringify(document.querySelector('.operation:target').getBoundingClientRect())")
    place = json.loads(box)
    assert place["left"] >= 0
    assert place["right"] <= width
    assert 0 < place["top"] < place["bottom"] <= 900
    assert window.eval("document.querySelector('.operation:target button.copy').checkVisibility()")
    window.key("Escape")
    window.wait("document.querySelector('.operation:target') === null")
    assert quiet(window)


def test_findings_of_two_stand_below_each_other_on_a_phone(window: Browser, tmp_path: Path) -> None:
    """Under one row of column names, with what to do about them in view."""
    place = tmp_path / "report.html"
    both = [report_input(TPU, chip="v5e"), report_input(TPU, chip="v5e")]
    for number, subject in enumerate(both):
        one = hlo.Finding(
            "C104",
            hlo.Severity.WARNING,
            "what it is " * 18,
            hlo.Span(0, 1, 1, 1, 1, 2),
            help=f"{number} what to do",
        )
        subject.__dict__["findings"] = [one]
    place.write_text(report_page(*both), "utf-8")
    window.size(400)
    window.open(place)
    found = json.loads(
        window.eval("""JSON.stringify([...document.querySelectorAll('[data-table=lint-findings]')].map((table) => {
          const room = table.closest('.scroll').getBoundingClientRect(), help = table.querySelector('td[data-key=help]');
          return [room.width, table.tHead.offsetHeight, room.bottom - help.getBoundingClientRect().bottom];
        }))""")
    )
    assert len(found) == 2
    for wide, names, below in found:
        assert wide > 300
        assert names < 60
        assert below >= 0
    assert window.eval(
        "[...document.querySelectorAll('table.cards td')].every((one) => one.getBoundingClientRect().right <= innerWidth)"
    )
    assert quiet(window)


def test_a_line_tells_what_its_row_does(window: Browser, tmp_path: Path) -> None:
    """The time that was clicked; its operations with theirs; of what sends, what each device sends."""
    place = tmp_path / "report.html"
    subject = report_input(STEP, chip="v5e")
    place.write_text(report_page(subject), "utf-8")
    window.size(1280)
    window.open(place)
    time = window.eval("document.querySelector('#a-answers-lines td.bar').innerText.trim()")
    window.eval("document.querySelector('#a-answers-lines a.line').click()")
    window.wait("document.querySelector('#operation dd') !== null")
    told = window.eval("document.querySelector('#operation dl').textContent")
    assert f"on the critical path{time}" in told
    window.wait("document.querySelector('#operation li') !== null")
    assert re.search(r"\d [mun]?s, ", window.eval("document.querySelector('#operation li').textContent"))
    flow = next(iter(subject.carried.values()))
    name = next(one.name for one, found in subject.carried.items() if found is flow)
    window.run(f"location.hash = '#op={name}'")
    window.wait(f"{HEADING} === {json.dumps(name)}")
    user = "document.querySelector('#operation li a').click()"
    window.wait("document.querySelector('#operation li a') !== null")
    window.eval(user)
    window.wait(f"{HEADING} !== {json.dumps(name)}")
    window.wait(f"document.querySelector('#operation').textContent.includes({json.dumps(flow.sized)})")
    assert quiet(window)


@pytest.mark.parametrize("width", [800, 400])
def test_findings_are_cards_where_there_is_little_room(window: Browser, tmp_path: Path, width: int) -> None:
    """The sentence has the width of the table, and nothing is to the right of it."""
    place = tmp_path / "report.html"
    text = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    subject = report_input(text, chip="v5e")
    one = hlo.Finding(
        "C104", hlo.Severity.WARNING, "what it is " * 20, hlo.Span(0, 1, 1, 1, 1, 2), bytes=4096, waste="sent"
    )
    subject.__dict__["findings"] = [one] * 3
    place.write_text(report_page(subject), "utf-8")
    window.size(width)
    window.open(place)
    assert window.eval(
        """[...document.querySelectorAll('#a-lint-findings')].every((table) => {
          const room = table.closest('.scroll'), cells = [...table.querySelectorAll('td[data-key=message]')];
          return cells.length === 3 && room.scrollWidth <= room.clientWidth &&
            cells.every((cell) => cell.offsetWidth > 0.9 * room.clientWidth);
        })"""
    )
    assert quiet(window)


def test_tables_are_cards_on_a_phone(window: Browser, tmp_path: Path) -> None:
    """What each number is stands before it, and the Python line needs no scrolling."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(400)
    window.open(place)
    window.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert window.eval("document.querySelectorAll('table.wide').length") > 5
    assert window.eval(
        """[...document.querySelectorAll('table.wide')].every((table) =>
          [...table.querySelectorAll('tbody td')].every((cell) => cell.getBoundingClientRect().right <= innerWidth) &&
          [...table.querySelectorAll('tbody td.n:not(:empty)')].every((cell) =>
            getComputedStyle(cell, '::before').content.includes(cell.dataset.title)))"""
    )
    assert quiet(window)


@pytest.mark.parametrize("width", [1400, 400])
def test_reports_keep_names_in_view(window: Browser, tmp_path: Path, width: int) -> None:
    """The first column of every table stays where its rows are scrolled, and leaves room for others."""
    place = tmp_path / "report.html"
    place.write_text(report_page(report_input(TPU, chip="v5e")), "utf-8")
    window.size(width)
    window.open(place)
    window.run("document.querySelectorAll('.scroll').forEach((one) => { one.scrollLeft = 1e6; })")
    assert window.eval(
        """[...document.querySelectorAll('.scroll')].filter((one) => one.checkVisibility()).every((one) => {
          const room = one.getBoundingClientRect();
          return [...one.querySelectorAll('tr > :first-child')].every((cell) => {
            const box = cell.getBoundingClientRect();
            const isStacked = innerWidth <= 480 && one.querySelector('.cards, .wide');  // nothing is beside it
            return box.left > room.left - 2 && box.left < room.left + 3 && (isStacked || box.width < 0.6 * room.width);
          });
        })"""
    )
    assert quiet(window)
