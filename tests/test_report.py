"""`hlotext report`: every number is the command's, the page is reproducible, and no text of a module acts in it."""

from __future__ import annotations

import functools
import html
import itertools
import json
import lzma
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import hlotext as hlo
from tests import support
from tests.cli_support import run, run_json

pytest.importorskip("bokeh")
pytest.importorskip("jinja2")

from hlotext import cost
from hlotext.analysis import byte_text, source_locations
from hlotext.analysis.chips import CHIPS as CHIP_ROWS
from hlotext.analysis.scopes import TOP
from hlotext.cost.analysis import UNKNOWN_LINE
from hlotext.memory import usage
from hlotext.reports.human import percent
from hlotext.view.page.colours import KIND_COLOURS, PALETTE, colour_number, scope_colours
from hlotext.view.page.packing import unpacked
from hlotext.view.report import ReportInput, report_input, report_page
from hlotext.view.report.answers import answers
from hlotext.view.report.headline import tiles
from hlotext.view.report.operations import MOST
from hlotext.view.report.places import Places, short_names
from hlotext.view.report.templates import shown as shown_text
from hlotext.view.report.time_parts import COPIES, LAUNCH
from tests.pages import Page

DUMPS = support.DATA / "dumps"
TPU, GPU, CPU = (DUMPS / f"{name}.mlp_train.tar.xz" for name in ("tpu", "gpu", "cpu"))
CHIPS: dict[Path, str | None] = {TPU: "v5e", GPU: "h100", CPU: None}


@functools.cache
def page(path: Path, chip: str | None) -> Page:
    return Page(report_page(report_input(path, chip=chip)))


@pytest.fixture(params=[TPU, GPU, CPU], ids=lambda path: path.name.split(".")[0])
def dump(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


def rows_of(path: Path, table: str) -> list[dict[str, Any]]:
    return page(path, CHIPS.get(path)).tables[f"a-{table}"].records()


def command(name: str, path: Path, *more: str) -> Any:
    (document,) = run_json(name, path, *more)["modules"]
    return document


def agree(shown: list[dict[str, Any]], told: list[Mapping[str, Any]], *keys: str) -> None:
    """The rows of a page begin as those of a command's JSON, in the same order."""
    assert shown
    for mine, theirs in zip(shown, told, strict=False):
        for key in keys:
            value = theirs[key]
            assert mine[key] == (shown_text(value) if isinstance(value, str) else value), (key, mine)


def module_of(path: Path, tmp_path: Path) -> Path:
    """The final HLO of a packed folder as a file, for commands that take files."""
    module = report_input(path).module
    # Under its own name, which tells that it was dumped and so how old the XLA is.
    place = tmp_path / Path(module.source.name if module.source is not None else "module.txt").name
    place.write_text(str(module))
    return place


def test_memory_is_what_the_command_says(dump: Path) -> None:
    """Spaces, what lives at the peak, the live total at every step."""
    chip = CHIPS[dump]
    told = command("memory", dump, "--limit", "0", "--timeline", *(["--chip", chip] if chip else []))
    spaces = [space for space in told["memory_spaces"] if space["needed"]]
    keys = "name", "static", "heap", "needed", "peak", "fragmentation", "padding"
    agree(rows_of(dump, "memory-spaces"), spaces, *keys)
    assert sum(row["count"] for row in told["live_alike"]) == told["live_count"] > 0
    agree(
        rows_of(dump, "memory-live-0"),
        told["live_alike"],
        "bytes",
        "first",
        "last",
        "kind",
        "layout",
        "scope",
    )
    charts = dict(page(dump, chip).charts())
    data = charts["a-chart-memory-0"]
    times, sizes = data["timeline"]
    line: list[int] = []
    for step in range(data["moments"]):
        line.append(sizes[times.index(step)] if step in times else line[-1])
    assert line == told["timeline"]
    assert data["peak"]["bytes"] == max(line)


def test_costs_are_what_the_command_says(dump: Path, tmp_path: Path) -> None:
    """By scope and by line, and the tree's root is the run."""
    place = module_of(dump, tmp_path)
    for key, table in (("scope", "scopes-cost"), ("line", "lines-cost")):
        told = {row["name"]: row for row in command("cost", place, "--by", key)["parts"]}
        shown = rows_of(dump, table)
        assert len(shown) == len(told)
        for row in shown:
            assert row["flops"] == told[row["name"]]["flops"]
            assert row["bytes_accessed"] == told[row["name"]]["bytes_accessed"]
    run_ = command("cost", place)["run"]
    data = dict(page(dump, CHIPS[dump]).charts()).get("a-chart-scopes")
    if data is not None:
        assert data["flops"][0] == pytest.approx(run_["flops"], rel=1e-12)
        assert data["bytes"][0] == pytest.approx(run_["bytes_accessed"], rel=1e-12)


@pytest.mark.parametrize("path", [TPU, GPU], ids=["tpu", "gpu"])
def test_times_are_what_the_command_says(path: Path, tmp_path: Path) -> None:
    """The core's instructions, the critical path, and the lanes from begin to end."""
    told = command("time", module_of(path, tmp_path), "--chip", str(CHIPS[path]))
    agree(
        rows_of(path, "schedule-core"),
        told["instructions"],
        "name",
        "seconds",
        "runs",
        "bound",
        "flops",
        "bytes",
    )
    longest = sorted(told["critical_path"], key=lambda step: -step["seconds"])
    assert [row["seconds"] for row in rows_of(path, "schedule-path")] == [s["seconds"] for s in longest][:50]
    data = dict(page(path, CHIPS[path]).charts())["a-chart-lanes"]
    assert data["seconds"] == told["seconds"]
    assert max(data["end"]) == pytest.approx(told["seconds"])


@pytest.mark.parametrize("path", [TPU, GPU], ids=["tpu", "gpu"])
def test_a_lines_time_is_that_of_all_units(path: Path, tmp_path: Path) -> None:
    """Core, links and copy engines: no step of the critical path takes longer than its line, nor than its scope."""
    told = command("time", module_of(path, tmp_path), "--chip", str(CHIPS[path]))
    busy = (
        sum(told["busy"].values())
        if isinstance(told["busy"], dict)
        else sum(b["seconds"] for b in told["busy"])
    )
    for table in ("lines-cost", "scopes-cost"):
        assert sum(float(row["seconds"] or 0) for row in rows_of(path, table)) == pytest.approx(busy)


def test_steps_of_a_tpu_are_bound_by_what_they_do() -> None:
    """Not by the start of kernels, of which its core has none; the note says what the chip's bound counts."""
    assert {row["bound"] for row in rows_of(TPU, "schedule-core")} <= {"compute", "memory", "unknown"}
    assert "excludes launch overhead and latency" in page(TPU, "v5e").text
    assert "us of launch overhead per kernel" in page(GPU, "h100").text


def test_bounds_of_fast_memory_say_what_they_count() -> None:
    """They lie above heap and peak of its space in the table below."""
    (fact,) = re.findall(r"<dt>VMEM in total</dt>\s*<dd>([^<]*)</dd>", page(TPU, "v5e").text)
    assert "which heap and peak exclude" in fact


def test_passes_are_what_the_command_says(dump: Path) -> None:
    """Each step that changed something, with its numbers."""
    told = [
        step
        for step in run_json("dump", "timeline", dump)["steps"]
        if step["changes"] is not None
        and step["index"]
        and any(step["changes"][kind] for kind in ("added", "removed", "changed", "renamed"))
    ]
    shown = rows_of(dump, "passes-steps")
    assert len(shown) == len(told)
    for mine, theirs in zip(shown, told, strict=True):
        assert mine["index"] == theirs["index"]
        assert mine["pass"] == theirs["pass"]
        for kind in ("added", "removed", "changed", "renamed"):
            assert (mine[kind] or 0) == len(theirs["changes"][kind])
        assert mine["bytes"] == theirs["changes"]["bytes"]


def test_thunks_are_what_the_command_says() -> None:
    """Kinds after the command-buffer pass, and the runs."""
    told = command("thunks", GPU, "--command-buffers")
    assert {row["kind"]: row["count"] for row in rows_of(GPU, "thunks-kinds")} == told["counts"]
    shown = rows_of(GPU, "thunks-runs")
    assert [row["count"] for row in shown] == [len(one["ids"]) for one in told["runs"]]
    assert [row["is_captured"] == "yes" for row in shown] == [one["is_captured"] for one in told["runs"]]


def test_collectives_are_what_the_command_says() -> None:
    """The matrix by axis and kind, and each operation."""
    path = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    told = command("comm", path)
    found = Page(report_page(report_input(path, chip="v5e")))
    shown = found.tables["a-collectives-matrix"].records()
    expected = {(row["along"], row["kind"]): (row["bytes"], row["operations"]) for row in told["matrix"]}
    assert {(row["along"], row["kind"]): (row["bytes"], row["operations"]) for row in shown} == expected
    agree(found.tables["a-collectives-flows"].records(), told["operations"], "name", "sent_bytes", "runs")
    waits = {row["name"]: row for row in command("time", path, "--chip", "v5e")["transfers"]}
    for row in found.tables["a-collectives-waits"].records():
        assert row["exposed_seconds"] == waits[str(row["name"])]["exposed_seconds"]


def test_the_same_page_twice(dump: Path) -> None:
    """Byte for byte, in one process, whatever was drawn before."""
    assert report_page(report_input(dump, chip=CHIPS[dump])) == page(dump, CHIPS[dump]).text


def test_two_side_by_side() -> None:
    """Both sides have their sections; the comparison has the totals of `hlotext diff`."""
    found = Page(report_page(report_input(CPU), report_input(GPU)))
    assert {"a-memory-spaces", "b-memory-spaces", "ab-comparison-changes"} <= set(found.tables)
    spaces = {row["name"]: row for row in found.tables["ab-differences-spaces"].records()}
    for key in ("needed", "peak"):
        sides = [found.tables[f"{side}-memory-spaces"].records()[0][key] for side in "ab"]
        assert [spaces[f"memory, {key}"]["before"], spaces[f"device memory, {key}"]["after"]] == sides
    totals = {
        row["name"]: row
        for name, table in found.tables.items()
        if name.startswith("ab-") and "old" in table.keys
        for row in table.records()
    }
    assert totals["operations"]["old"] == sum(1 for _ in report_input(CPU).module.instructions())


def test_what_a_file_cannot_tell_is_said() -> None:
    """No empty section, a line for each with the reason."""
    text = report_page(
        report_input(
            support.CORPUS / "cpu" / "barrier_and_scopes_inline_frames.cpu_1.after_optimizations.txt"
        )
    )
    for words in ("pass the dump folder", "--chip NAME", "sends nothing to other devices"):
        assert words in text
    assert 'id="passes"' not in text


HOSTILE = (
    "</script><script>document.title='acted'</script>",
    "<img src=x onerror=alert(1)>",
    "quote\\\"'><b onclick=alert(1)>",
    "line\\u2028separator",
    "\x1b]0;title\x07\x1b[31m",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 10_000,
)


def hostile_text() -> str:
    """A module whose operations, files and functions are called what no page should obey."""
    lines = []
    previous = "p"
    for number, name in enumerate(HOSTILE):
        op_name = name.replace('"', "'")
        lines.append(
            f"  n{number} = f32[64,128]{{1,0}} negate({previous}), "
            f'metadata={{op_name="jit(f)/{op_name}/neg" source_file="{op_name}.py" source_line={number + 1}}}'
        )
        previous = f"n{number}"
    body = "\n".join(lines)
    return (
        "HloModule hostile, is_scheduled=true\n\nENTRY e {\n"
        f"  p = f32[64,128]{{1,0}} parameter(0)\n{body}\n  ROOT r = f32[64,128]{{1,0}} abs({previous})\n}}\n"
    )


def hostile_page() -> str:
    module = hlo.parse(hostile_text())
    return report_page(ReportInput("</title><script>alert(1)</script>", module, given_platform="cpu"))


def test_hostile_names_make_no_markup() -> None:
    """As a parser of HTML reads the page, there is no tag, attribute or script that is not ours."""
    text = hostile_page()
    found = Page(text)
    scripts = [attributes for tag, attributes in found.tags if tag == "script"]
    ours = report_page(
        report_input(
            support.CORPUS / "cpu" / "barrier_and_scopes_inline_frames.cpu_1.after_optimizations.txt"
        )
    )
    kinds = {tag for tag, _ in Page(ours).tags}
    assert {tag for tag, _ in found.tags} <= kinds | {"figure", "figcaption", "output", "i"}
    assert all(attributes.get("class") in ("data", "operations") or not attributes for attributes in scripts)
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert "acted" not in "".join(part for part in text.split("<script") if part.startswith(">"))
    assert "\x1b" not in text
    assert "x" * 400 not in text


def test_operations_are_embedded_with_their_facts(dump: Path) -> None:
    """Operations that tables name, and their neighbours: text, memory, cost and time as in commands; every link resolves."""
    found = page(dump, CHIPS[dump])
    (packed,) = re.findall(r'class="operations" data-side="a">([^<]*)<', found.text)
    data = unpacked(packed)
    rows = {row["name"]: row for row in data["rows"]}
    assert len(rows) == len(data["rows"]) <= MOST
    links = {
        unquote(str(attributes["href"]).removeprefix("#op="))
        for tag, attributes in found.tags
        if tag == "a" and attributes.get("class") == "op"
    }
    assert links
    assert links <= set(rows)
    module = report_input(dump).module
    for name, row in rows.items():
        one = module.instruction(name)
        assert row["text"].startswith(str(one)[:40].strip())
        assert [data["rows"][n]["name"] for n in row["operands"] if isinstance(n, int)] == [
            o.name for o in one.operands[:12] if o.name in rows
        ]
    chip = CHIPS[dump]
    for told in command("memory", dump, *(["--chip", chip] if chip else []))["live"]:
        if told["first"] is not None and told["name"] in rows and not told["index"]:
            assert [told["first"], told["last"]] in [life[4] for life in rows[told["name"]]["life"]]
    assert any("why" in row for row in rows.values())


def test_lives_are_told_of_memory_that_files_beside_the_text_tell(tmp_path: Path) -> None:
    """As of memory that is computed from the text."""
    for path in (support.DATA / "memory" / "cpu.mlp_train.cpu_1").glob("*.txt.xz"):
        (tmp_path / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    subject_ = report_input(tmp_path)
    assert not subject_.memory.is_computed
    (packed_rows,) = re.findall(r'class="operations" data-side="a">([^<]*)<', report_page(subject_))
    assert any("life" in row for row in unpacked(packed_rows)["rows"])


def test_arguments_have_their_names_in_the_program(tmp_path: Path) -> None:
    """In tables, the search and the panel; the link has the instruction's. Padding is told where there is some."""
    place = tmp_path / "m.txt"
    place.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n"
        "  param.2 = f32[8,64]{1,0:T(8,128)} parameter(0), metadata={op_name=\"p[0]['w']\"}\n"
        "  q = f32[256]{0:T(256)} parameter(1)\n"
        '  ROOT t = f32[8,64]{1,0:T(8,128)} custom-call(param.2, q), custom_call_target="t"\n}\n'
    )
    text = report_page(report_input(place, platform="tpu"))
    (cell,) = set(re.findall(r'<td class="code" data-name="param.2"[^>]*>.*?</td>', text))
    assert 'href="#op=param.2"' in cell
    assert "p[0]['w']" in html.unescape(cell.replace("<wbr>", ""))
    (packed_rows,) = re.findall(r'class="operations" data-side="a">([^<]*)<', text)
    rows = {row["name"]: row for row in unpacked(packed_rows)["rows"]}
    assert rows["param.2"]["shown"] == "p[0]['w']"
    assert [rows[name]["padding"] for name in ("param.2", "q")] == [8 * 64 * 4, 0]


def test_what_is_embedded_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of tables come first; what is cut off has no link."""
    monkeypatch.setattr("hlotext.view.report.operations.MOST_NAMED", 3)
    monkeypatch.setattr("hlotext.view.report.operations.MOST", 4)
    text = report_page(report_input(TPU, chip="v5e"))
    (packed,) = re.findall(r'class="operations" data-side="a">([^<]*)<', text)
    rows = unpacked(packed)["rows"]
    assert len(rows) == 4
    assert {unquote(name) for name in re.findall(r'href="#op=([^"]+)"', text)} <= {
        row["name"] for row in rows
    }


def test_a_name_that_several_have_leads_nowhere() -> None:
    """Rather no link than one to another operation."""
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nbody {\n  x = f32[4]{0} parameter(0)\n  ROOT a = f32[4]{0} sine(x)\n}\n\n"
        "ENTRY e {\n  p = f32[4]{0} parameter(0)\n  a = f32[4]{0} call(p), to_apply=body\n  ROOT b = f32[4]{0} negate(a)\n}\n"
    )
    links = set(
        re.findall(r'href="#op=([^"]+)"', report_page(ReportInput("m", module, given_platform="cpu")))
    )
    assert "a" not in links
    assert "b" in links


def test_the_policy_names_every_script() -> None:
    """Nothing runs but the scripts that came with the page; no eval, no requests."""
    text = page(CPU, None).text
    policy = next(
        str(attributes["content"])
        for tag, attributes in Page(text).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.split("style-src")[0]
    assert "http" not in policy


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    """To a file, with what it says on standard error; a folder without the module is told."""
    place = tmp_path / "report.html"
    result = run("report", CPU, "-o", place)
    assert result.exit_code == 0, result.stderr
    assert place.read_text("utf-8") == page(CPU, None).text
    assert "MB" in result.stderr
    assert run("report", CPU, "-m", "nosuch", "-o", place).exit_code == 1
    assert run("report", tmp_path / "nothing", "-o", place).exit_code == 2
    assert run("report", CPU, CPU, CPU, "-o", place).exit_code == 2
    assert result.stdout == ""


def test_padding_is_what_the_command_says() -> None:
    """By scope, at the peak of the main memory."""
    told = command("memory", TPU, "--by", "scope", "--chip", "v5e")
    groups = {row["name"]: row for row in told["groups"]}
    shown = rows_of(TPU, "padding-scopes")
    assert {row["name"] for row in shown} == {name for name, row in groups.items() if row["padding"]}
    for row in shown:
        for key in ("bytes", "padding", "arrays", "largest"):
            assert row[key] == groups[str(row["name"])][key]


def test_differences_are_what_the_command_says(tmp_path: Path) -> None:
    """Totals of both sides and what is between them."""
    paths = []
    for number, dump_ in enumerate((CPU, GPU)):
        place = tmp_path / f"{number}.txt"
        place.write_text(str(report_input(dump_).module))
        paths.append(place)
    result = run("diff", *paths, "--format", "json")
    told = json.loads(result.stdout)["totals"]
    found = Page(report_page(*(report_input(place) for place in paths)))
    shown = [
        row
        for name, table in found.tables.items()
        if name.startswith("ab-comparison") and "old" in table.keys
        for row in table.records()
    ]
    assert len(shown) == len(told)
    for row in shown:
        total = told[str(row["name"]).replace(" ", "_")]
        assert (row["old"], row["new"], row["difference"]) == (
            total["old"],
            total["new"],
            total["difference"],
        )


def test_findings_are_what_the_command_says(tmp_path: Path) -> None:
    """Codes, messages and bytes, the costliest first."""
    dump_ = support.CORPUS / "tpu" / "callback_io.v5e_2x2x1.after_optimizations.txt"
    result = run("lint", dump_, "--format", "json", "--isolated")
    told = json.loads(result.stdout)
    rows = told["findings"] if isinstance(told, dict) else told
    text = report_page(report_input(dump_))
    found = Page(text).tables.get("a-lint-findings")
    assert rows
    (said,) = re.findall(r"<dt>found</dt>\s*<dd>([^<]*)</dd>", text)
    for severity in ("error", "warning", "note"):
        count = sum(row["severity"] == severity for row in rows)
        assert (f"{count} {severity}" in said) == bool(count)
    expected = sorted((row["code"], row.get("bytes") or 0) for row in rows)
    assert found is not None
    assert sorted((str(r["code"]), int(float(r.get("bytes") or 0))) for r in found.records()) == expected
    # What to do has a column of its own: the two as one sentence were overlong.
    helped = {row["help"] for row in rows if row.get("help")}
    assert helped
    assert {str(row["help"]) for row in found.records() if row["help"]} == helped


def test_savings_have_their_share_and_the_chip_that_they_are_of() -> None:
    """As the linter says them, in the table and in the tile; a chip that the text does not tell is called a default."""
    place = support.DATA / "lint" / "faults" / "fault_double.cpu_1.after_optimizations.txt.xz"
    subject = report_input(place)
    text = report_page(subject)
    timed = [one for one in subject.findings if one.seconds]
    (basis,) = {one.basis for one in timed}
    assert "default chip" in basis
    assert f"<dt>times</dt><dd>estimated for {basis}</dd>" in text
    most = max(timed, key=lambda one: one.seconds or 0.0)
    (saved,) = re.findall(f"<span>the largest saves ([^<]*), estimated for {re.escape(basis)}</span>", text)
    assert f"({percent(most.share)} of the step)" in saved
    rows = Page(text).tables["a-lint-findings"].records()
    assert [row["share"] for row in rows] == [one.share for one in subject.findings]
    clean = ReportInput("m", hlo.parse("HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n"))
    assert '<li><span>findings</span><b>1 → 0 <i class="better">−1</i></b>' in report_page(subject, clean)


def test_equal_arrays_of_layers_are_one_row(tmp_path: Path) -> None:
    """In the page as in the JSON, with how many they are and the bytes of all."""
    lines = "".join(f'  a{n} = f32[64]{{0}} sine(p), metadata={{op_name="f/sin"}}\n' for n in range(5))
    every = ", ".join(f"a{n}" for n in range(5))
    place = tmp_path / "layers.txt"
    place.write_text(
        "HloModule layers, is_scheduled=true\n\nENTRY e {\n  p = f32[64]{0} parameter(0)\n"
        f'{lines}  ROOT r = f32[64]{{0}} custom-call({every}), custom_call_target="sum"\n}}\n'
    )
    (row,) = (row for row in rows_of(place, "memory-live-0") if row["count"] == 5)
    (told,) = (
        row for row in command("memory", place, "--platform", "cpu")["live_alike"] if row["count"] == 5
    )
    assert row["bytes"] == told["bytes"] == 5 * 256
    assert row["label"] == f"{told['name']} ..." == "a0 ..."


def test_source_lines_are_shown_with_their_costs(tmp_path: Path) -> None:
    """Lines with what `cost` gives them and those around; never a file outside of the folder, by a link neither."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("SECRET\n" * 20)
    folder = tmp_path / "project"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "model.py").write_text("".join(f"line {n} <b>\n" for n in range(1, 21)))
    (folder / "linked.py").symlink_to(tmp_path / "outside" / "secret.py")
    names = (
        "/build/pkg/model.py",
        "../outside/secret.py",
        str(tmp_path / "outside" / "secret.py"),
        "linked.py",
    )
    lines = "".join(
        f'  a{n} = f32[64,64]{{1,0}} sine(p), metadata={{source_file="{name}" source_line=9}}\n'
        for n, name in enumerate(names)
    )
    module = hlo.parse(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[64,64]{1,0} parameter(0)\n"
        f'{lines}  ROOT r = f32[64,64]{{1,0}} custom-call(a0, a1, a2, a3), custom_call_target="t"\n}}\n'
    )
    subject_ = ReportInput("m", module, given_platform="cpu", source=str(folder))
    text = report_page(subject_)
    assert "SECRET" not in text
    assert "3 files of the module not found in the folder" in text
    assert "line 9 &lt;b&gt;" in text
    assert "line 6 &lt;b&gt;" in text
    assert "line 5 &lt;b&gt;" not in text
    (row,) = re.findall(r'<tr data-line="/build/pkg/model.py:9".*?</tr>', text)
    assert f'data-v="{int(subject_.cost.by("line")["/build/pkg/model.py:9"].bytes_accessed)}"' in row
    # Only columns that hold something, and no way to sort by the text of a program.
    (heads,) = re.findall(r'<th scope="col" class="n">line</th>.*?</tr>', text)
    assert re.findall(r">([a-z ]+)</th>", heads) == ["line", "source", "bytes"]
    assert '<th scope="col" data-sort="none">source</th>' in heads


def test_places_are_named_as_shortly_as_they_can_be(tmp_path: Path) -> None:
    """The folder that all share is cut off what is shown, not off what is copied, nor off the link."""
    assert short_names(["/a/p/train.py", "/a/p/model/layers.py", "/a/p/data/layers.py", "x.py"]) == {
        "/a/p/train.py": "train.py",
        "/a/p/model/layers.py": "model/layers.py",
        "/a/p/data/layers.py": "data/layers.py",
        "x.py": "x.py",
    }
    assert short_names(["b.py", "/a/b.py"]) == {"b.py": "b.py", "/a/b.py": "a/b.py"}
    assert Places({"/a/b.py": "b.py"}).short("/a/b.py:5 → 9") == "b.py:5 → 9"
    place = tmp_path / "m.txt"
    place.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n"
        '  ROOT a = f32[8]{0} sine(p), metadata={op_name="t" source_file="/a/b/train.py" source_line=3}\n}\n'
    )
    text = report_page(report_input(place))
    cell = min(re.findall(r'<td class="text short" data-full="/a/b/train.py:3"[^>]*>.*?</td>', text))
    assert 'href="#line=%2Fa%2Fb%2Ftrain.py%3A3"' in cell
    assert ">train.py:3</a>" in cell


def test_what_both_sides_lack_is_said_once(tmp_path: Path) -> None:
    """With the side where only one of them lacks it; the table of how often it was right is in the contents."""
    place = tmp_path / "m.txt"
    place.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[8]{0} parameter(0)\n}\n")
    text = report_page(report_input(place), report_input(place))
    listed = re.findall(r"<li><b>([^<]*)</b>", text[text.index('id="left-out"') :])
    assert "Source" in listed
    assert len(listed) == len(set(listed))
    one = report_page(report_input(place, platform="tpu", chip="v5e"))
    assert ('id="accuracy"' in one) == ('<a href="#accuracy">' in one)


def test_the_largest_differences_of_two_sides_come_first(tmp_path: Path) -> None:
    """Live bytes, moved bytes and times that differ, by size whichever side has more; equal rows are left out."""
    paths = []
    for number, width in enumerate((256, 512)):
        place = tmp_path / f"{number}.txt"
        place.write_text(
            f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  p = f32[{width},64]{{1,0}} parameter(0)\n"
            "  q = f32[64]{0} parameter(1)\n"
            f'  a = f32[{width},64]{{1,0}} sine(p), metadata={{op_name="big/sin" source_file="m.py" source_line=1}}\n'
            '  b = f32[64]{0} sine(q), metadata={op_name="same/sin" source_file="m.py" source_line=2}\n'
            f'  ROOT r = f32[{width}]{{0}} custom-call(a, b), custom_call_target="t", '
            'metadata={op_name="t" source_file="m.py" source_line=3}\n}\n'
        )
        paths.append(place)
    sides = [report_input(place, chip="v5e", platform="tpu") for place in paths]
    found = Page(report_page(*sides))
    moved = found.tables["ab-differences-moved"].records()
    assert "m.py:2" not in {row["name"] for row in moved}
    sizes = [abs(float(row["difference"] or 0)) for row in moved]
    assert sizes == sorted(sizes, reverse=True)
    for row in moved:
        old, new = (one.cost.by("line")[str(row["name"])].bytes_accessed for one in sides)
        assert (row["before"], row["after"], row["difference"]) == (old, new, new - old)
    assert {"ab-differences-live", "ab-differences-times"} <= set(found.tables)
    assert found.text.count('<div class="overlay"') == 1
    for name in ("live", "moved", "times"):
        table = found.tables[f"ab-differences-{name}"]
        *above, total = [*table.rows, *table.feet]
        for column in (1, 2, 3):
            assert sum(float(row[column] or 0) for row in above) == pytest.approx(float(total[column] or 0))
    live = found.tables["ab-differences-live"]
    spaces = [usage.space_usage(one.memory, 0) for one in sides]
    assert live.feet[-1][:3] == ["all", *(float(space.peak) for space in spaces)]
    # The arguments count as arguments, whatever values are in their memory at the peak.
    arguments = next(row for row in live.records() if row["name"] == "(arguments)")
    assert [arguments[key] for key in ("before", "after")] == [float(one.arguments) for one in spaces]
    same = Page(report_page(sides[0], sides[0]))
    assert not [name for name in same.tables if "differences" in name]


def scoped(place: Path, width: int, *, is_donated: bool) -> Path:
    """A module with two scopes, whose argument holds the result or does not."""
    alias = ", input_output_alias={ {}: (0, {}, may-alias) }" if is_donated else ""
    place.write_text(
        f"HloModule m, is_scheduled=true{alias}\n\nENTRY e {{\n"
        "  param.7 = f32[8,4096]{1,0} parameter(0), metadata={op_name=\"p['w']\"}\n"
        f'  a = f32[{width},64]{{1,0}} custom-call(param.7), custom_call_target="t", metadata={{op_name="jit(f)/mlp/up"}}\n'
        f'  b = f32[{width},64]{{1,0}} custom-call(a), custom_call_target="t", '
        'metadata={op_name="jit(f)/attention/qk/dot"}\n'
        '  ROOT r = f32[8,4096]{1,0} custom-call(b), custom_call_target="t", metadata={op_name="jit(f)/mlp/down"}\n}\n'
    )
    return place


def test_a_scope_has_one_colour_and_both_sides_one_scale(tmp_path: Path) -> None:
    """In the charts of memory and of scopes, before and after."""
    sides = [
        report_input(scoped(tmp_path / f"{width}.txt", width, is_donated=width > 64), platform="cpu")
        for width in (64, 512)
    ]
    charts = dict(Page(report_page(*sides)).charts())
    memory_charts = [charts[f"{key}-chart-memory-0"] for key in "ab"]
    trees = [charts[f"{key}-chart-scopes"] for key in "ab"]
    seen: dict[str, set[int]] = {}
    for data in memory_charts:
        for scope, number in zip(data["scope"], data["colour"], strict=True):
            seen.setdefault(data["words"][scope], set()).add(number)
    for data in trees:
        names = [data["words"][number] for number in data["name"]]
        for n, parent in enumerate(data["parent"]):
            if parent == 0:
                seen.setdefault(names[n], set()).add(data["colour"][n])
    assert {"mlp", "attention"} <= {name.split("/")[0] for name in seen}
    assert all(len(numbers) == 1 for numbers in seen.values()), seen
    assert memory_charts[0]["legend"] == memory_charts[1]["legend"]
    for pair in (memory_charts, trees):
        assert pair[0]["scale"] == pair[1]["scale"]
    assert memory_charts[0]["scale"]["heap"] == max(data["heap"] for data in memory_charts)


def test_scopes_without_a_colour_have_that_of_the_scope_around_them() -> None:
    """What is small counts for what is around it; of two charts the smaller one counts as much."""
    small = {f"a/part_{n}": 1.0 for n in range(20)}
    colours = scope_colours([{**small, "b": 80.0}, {"c/x": 1e-6}])
    assert set(colours) == {"a", "b", "c/x", TOP}
    assert colour_number("a/part_3/deep", colours) == colours["a"]
    assert colour_number("c", colours) == colour_number("", colours) == len(PALETTE) + 1


def test_the_top_level_has_the_same_colour_on_every_page() -> None:
    """However much of a chart is in no scope."""
    found = [scope_colours([{TOP: share, "a": 1.0}]) for share in (0.01, 100.0)]
    assert found[0] == found[1]
    assert colour_number(TOP, found[0]) == len(PALETTE)


def test_a_comparison_says_why_the_peak_differs(tmp_path: Path) -> None:
    """Above all what is held for results, once arguments hold them; as bars, the largest first."""
    sides = [
        report_input(scoped(tmp_path / f"{is_donated}.txt", 64, is_donated=is_donated), platform="cpu")
        for is_donated in (False, True)
    ]
    text = html.unescape(report_page(*sides))
    assert "memory: the peak is 272 KiB before and 160 KiB after, −112 KiB (−41.2%)" in text
    assert (
        "Mainly: results in their own memory −128 KiB, because argument buffers hold 128 KiB of the results after and 0 B "
        "before; "
        "mlp +16.0 KiB."
    ) in text
    bars = re.findall(
        r'<dt>([^<]*)(?:<small>([^<]*)</small>)?</dt><dd class="(more|less)"><i style="width:([0-9.]+)%"',
        text,
    )
    (results, mlp) = bars
    assert results == ("results in their own memory", "", "less", "50.0")
    assert mlp[::2] == ("mlp", "more")
    assert mlp[1]  # the array that makes most of it


def test_the_memory_of_an_argument_has_its_name(tmp_path: Path) -> None:
    """Also where a result that it is donated to is in it at the peak."""
    place = scoped(tmp_path / "m.txt", 64, is_donated=True)
    text = html.unescape(report_page(report_input(place, platform="cpu")))
    rows = Page(text).tables["a-memory-live-0"].records()
    assert [row["label"] for row in rows if row["kind"] == "argument 0, result"] == ["param.7"]
    assert "p['w']" in text.replace("<wbr>", "")


def test_a_comparison_says_what_it_is_and_leads_on(tmp_path: Path) -> None:
    """Title, changes of the figures at the top, links from lines and operations to the side that has them."""
    paths = []
    for number, (opcode, width) in enumerate((("sine", 64), ("cosine", 128))):
        place = tmp_path / f"{number}.txt"
        place.write_text(
            f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  p = f32[{width}]{{0}} parameter(0)\n"
            f"  r{number} = f32[{width}]{{0}} {opcode}(p), "
            f'metadata={{op_name="t" source_file="m.py" source_line=3}}\n'
            f"  ROOT t = (f32[{width}]{{0}}) tuple(r{number})\n}}\n"
        )
        paths.append(place)
    text = report_page(*(report_input(place) for place in paths))
    assert "<title>Comparison of m: hlotext report</title>" in text
    assert "<h1>Comparison of m</h1>" in text
    tiles = {title: rest for title, *rest in TILE.findall(text)}
    assert tiles["bytes moved"][0] == "516 B → 1.00 KiB"
    assert tiles["bytes moved"][1] == "worse"
    assert tiles["bytes moved"][2].startswith("+")
    assert tiles["instructions"] == ["3", "", "unchanged"]
    comparison = text[text.index('id="comparison"') : text.index("</section>", text.index('id="comparison"'))]
    assert 'href="#line=m.py%3A3"' in comparison
    assert 'href="#op=r0"' in comparison or 'href="#op-b=r1"' in comparison


TILE = re.compile(r'<li><span>([^<]*)</span><b>([^<]*?) *(?:<i(?: class="(worse|better)")?>([^<]*)</i>)?</b>')
"""A figure at the top: its title, text, whether its change is for the worse, and the change."""


def gathered(place: Path, width: int, *, is_gathered: bool) -> Path:
    """A module that gathers what it multiplies in a loop, or multiplies its part."""
    gather = (
        f"  g = f32[256,{width}]{{1,0}} all-gather(p), dimensions={{0}}, replica_groups={{{{0,1,2,3}}}}, channel_id=1, "
        "use_global_device_ids=true\n"
    )
    rows, name = (256, "g") if is_gathered else (64, "p")
    place.write_text(
        f"HloModule m, is_scheduled=true, num_partitions=4\n\nENTRY e {{\n  p = f32[64,{width}]{{1,0}} parameter(0)\n"
        f"{gather if is_gathered else ''}"
        f"  d = f32[{rows},{rows}]{{1,0}} dot({name}, {name}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}\n"
        "  z = f32[] constant(0)\n  ROOT r = (f32[], f32[64,"
        f"{width}]{{1,0}}) tuple(z, p)\n}}\n"
    )
    return place


def test_both_sides_have_the_same_figures_and_what_differs_most_comes_first(tmp_path: Path) -> None:
    """Also those that are 0 on one side; tables in the order of the figures, the costliest changes first."""
    paths = [
        gathered(tmp_path / f"{is_gathered}.txt", 64, is_gathered=is_gathered)
        for is_gathered in (True, False)
    ]
    sides = [report_input(place, platform="cpu") for place in paths]
    text = report_page(*sides)
    tiles = TILE.findall(text)
    titles = [title for title, *_ in tiles]
    assert len(titles) == len(set(titles))
    assert {"findings", "sent"} <= set(titles)
    assert ("sent", "48.0 KiB → 0 B", "better", "−100%") in tiles
    section = text[text.index('id="comparison"') : text.index("</section>", text.index('id="comparison"'))]
    ids = re.findall(r'<table id="ab-([^"]*)"', section)
    assert ids[0] == "differences-sent"
    assert ids[1] == "comparison-changes"
    assert ids.index("comparison-flops") < ids.index("comparison-counts")
    rows = Page(text).tables["ab-comparison-changes"].records()
    assert str(rows[0]["title"]).startswith("changed: result 16x smaller (dot)")
    assert float(rows[0]["flops"] or 0) < 0, "what differs, not what is touched"


def test_the_line_of_a_group_is_the_one_that_differs_most(tmp_path: Path) -> None:
    """With its share and the number of lines; that of most operations, or of the largest, may not differ at all."""
    paths = []
    for number, width in enumerate((64, 128)):
        wide = f"f32[4,{width}]{{1,0}}"
        at = 'metadata={op_name="t" source_file="m.py" source_line='
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_text(
            f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  p = {wide} parameter(0)\n"
            f"  s = f32[1,{width // 16}]{{1,0}} parameter(1)\n"
            f"  a = {wide} sine(p), {at}7}}\n  b = {wide} cosine(a), {at}7}}\n"
            f"  c = f32[1,{width // 16}]{{1,0}} tanh(s), {at}3}}\n"
            f"  d = f32[1,{width // 16}]{{1,0}} sine(c), {at}3}}\n  e = f32[1,{width // 16}]{{1,0}} cosine(d), {at}3}}\n"
            f"  ROOT t = ({wide}, f32[1,{width // 16}]{{1,0}}) tuple(b, e)\n}}\n"
        )
    rows = (
        Page(report_page(*(report_input(place) for place in paths))).tables["ab-comparison-changes"].records()
    )
    row = next(row for row in rows if "result 2x larger" in str(row["title"]))
    assert row["place"] == "m.py:7"
    assert 0.9 < float(row["place_share"] or 0) < 1
    assert float(row["lines"] or 0) >= 2
    assert float(row["bytes"] or 0) > 0


def test_lines_that_moved_are_compared_with_themselves(tmp_path: Path) -> None:
    """A comment above the program changes no figure of any line; a line that changed says where it was and is."""
    paths = []
    for number, width in enumerate((256, 256, 512)):
        at = 1 + 2 * number
        place = tmp_path / f"{number}.txt"
        place.write_text(
            f"HloModule m, is_scheduled=true\n\nENTRY e {{\n  p = f32[{width},64]{{1,0}} parameter(0)\n"
            "  q = f32[64]{0} parameter(1)\n"
            f'  a = f32[{width},64]{{1,0}} sine(p), metadata={{op_name="sin" source_file="m.py" source_line={at}}}\n'
            f'  b = f32[64]{{0}} sine(q), metadata={{op_name="sin" source_file="m.py" source_line={at + 2}}}\n'
            f'  ROOT r = f32[64]{{0}} custom-call(a, b), custom_call_target="t", '
            f'metadata={{op_name="t" source_file="m.py" source_line={at + 4}}}\n}}\n'
        )
        paths.append(place)
    sides = [report_input(place, platform="tpu") for place in paths]
    assert "ab-differences-moved" not in Page(report_page(*sides[:2])).tables
    moved = Page(report_page(sides[0], sides[2])).tables["ab-differences-moved"].records()
    assert {row["name"] for row in moved} == {"m.py:1", "m.py:5 → 9", "m.py:5"}


NO_CHIP = support.CORPUS / "gpu" / "complex64.h100_1x1x1.after_optimizations.txt"


def test_the_first_screen_answers_what_is_large_and_what_is_slow() -> None:
    """Rows of the memory with most temporaries, of lines and of steps, as further down; without a chip what to give."""
    found = page(TPU, "v5e").tables
    peak, path = found["a-answers-peak"].records(), found["a-answers-path"].records()
    # Arguments aside the main memory holds next to nothing, so that the fast one is told.
    below = found["a-memory-live-1"].records()[:3]
    assert [(row["label"], row["bytes"]) for row in peak] == [(row["label"], row["bytes"]) for row in below]
    steps = found["a-schedule-path"].records()[:3]
    assert path == [{name: step[name] for name in path[0]} for step in steps]
    bare = Page(report_page(report_input(NO_CHIP)))
    assert "the module does not name its chip; set --chip" in bare.text
    assert "a-answers-path" not in bare.tables
    assert "Python lines that move the most bytes, with their flops" in bare.text
    assert "Slowest Python lines, by time on the critical path" in page(TPU, "v5e").text
    moved = bare.tables["a-answers-moved"].records()[0]
    assert moved["bytes"] == max(
        float(row["bytes_accessed"] or 0) for row in bare.tables["a-lines-cost"].records()
    )


@pytest.mark.parametrize("path", [NO_CHIP, CPU], ids=["gpu", "cpu"])
def test_without_a_chip_the_time_is_that_of_the_findings(path: Path) -> None:
    """One chip is assumed for both, and said in the same words."""
    subject = report_input(path)
    (tile,) = (one for one in tiles(subject) if one.title == "minimum time")
    chip = "h100 (default chip)" if path is NO_CHIP else "cpu (default chip)"
    assert chip in tile.detail
    assert tile.value == cost.estimate(subject.module, CHIP_ROWS[chip.split(" ")[0]]).seconds
    assert all(chip in one.basis for one in subject.findings if one.seconds)
    (heading,) = (one.title for column in answers(subject) for one in column if one.title.startswith("Time"))
    assert f"{tile.text} on {chip}" in heading


@pytest.mark.parametrize("path", [TPU, GPU], ids=["tpu", "gpu"])
def test_the_time_is_what_its_parts_are(path: Path, tmp_path: Path) -> None:
    """Work, launches and waits add up to the least time, at the top as in the lanes; so do the lines of the critical path."""
    subject = report_input(path, chip=CHIPS[path])
    estimate = subject.estimate
    assert estimate is not None
    parts = subject.time_parts.run
    assert sum(parts.values()) == pytest.approx(estimate.seconds)
    waits = sum(time for kind, time in parts.items() if kind.startswith("stalled"))
    assert waits == pytest.approx(estimate.exposed)
    data = dict(page(path, CHIPS[path]).charts())["a-chart-lanes"]
    drawn: dict[str, float] = defaultdict(float)
    columns = ("lane", "begin", "end", "low", "high", "launch", "kind")
    for lane, begin, end, low, high, launch, kind in zip(*(data[name] for name in columns), strict=True):
        if lane == 0:
            name = LAUNCH if launch else data["words"][kind]
            drawn[name] += (end - begin) * (high - low)
            assert name in KIND_COLOURS
    assert dict(drawn) == pytest.approx({kind: time for kind, time in parts.items() if time}, abs=1e-12)
    launches = sum(one.runs for one in estimate.instructions if one.least.launch)
    assert (LAUNCH in parts) == (path is GPU)
    assert (f"{launches:,} kernels launched in one run, 1.00 us each" in page(path, CHIPS[path]).text) == (
        path is GPU
    )
    lines = page(path, CHIPS[path]).tables["a-answers-lines"].records()
    of_line: dict[str, float] = defaultdict(float)
    places = source_locations(subject.module)
    for step in estimate.critical_path:
        place = places.get(step.instruction)
        of_line[f"{place[0].file}:{place[0].line}" if place is not None else UNKNOWN_LINE] += step.seconds
    assert [row["seconds"] for row in lines] == pytest.approx(sorted(of_line.values(), reverse=True)[:3])


def test_a_loop_is_drawn_by_what_it_runs(tmp_path: Path) -> None:
    """Its time in layers of the kinds of its body, each kernel's launch apart."""
    path = support.CORPUS / "gpu" / "ode_integrator.h100_1x1x1.after_optimizations.txt"
    subject = report_input(path, chip="h100")
    estimate = subject.estimate
    assert estimate is not None
    loops = [step for step in estimate.walk.steps if step.instruction.opcode == "while"]
    assert loops
    for loop in loops:
        parts = subject.time_parts.of(loop)
        assert sum(part.seconds for part in parts) == pytest.approx(loop.end - loop.begin)
        kernels = sum(part.seconds for part in parts if part.is_launch)
        assert kernels > sum(part.seconds for part in parts if not part.is_launch)
        assert {part.kind for part in parts} <= {"compute-bound", "memory-bound", COPIES}


def test_kinds_of_time_look_different() -> None:
    """On light and on dark ground; what waits is not drawn as work."""
    for colours in zip(*KIND_COLOURS.values(), strict=True):
        grounds = [tuple(int(one[n : n + 2], 16) for n in (1, 3, 5)) for one in colours]
        names = list(KIND_COLOURS)
        for n, m in itertools.combinations(range(len(names)), 2):
            apart = sum((a - b) ** 2 for a, b in zip(grounds[n], grounds[m], strict=True)) ** 0.5
            # The same colour on the core and in a lane beside it, where both say that copies take time.
            same = {names[n], names[m]} == {"copies", "copy, fully exposed"}
            assert apart > 18 or same, (names[n], names[m])


def test_what_a_program_needs_of_a_memory_is_said_with_what_is_left(tmp_path: Path) -> None:
    """Or by how much it is too much."""
    place = tmp_path / "m.txt"
    text = (
        "HloModule m, is_scheduled=true, entry_computation_layout={(f32[%d]{0:T(1024)})->f32[%d]{0:T(1024)}}\n\n"
        "ENTRY e {\n  p = f32[%d]{0:T(1024)} parameter(0)\n  ROOT a = f32[%d]{0:T(1024)} sine(p)\n}\n"
    )
    for elements, said in (
        (1 << 28, "needs 2.00 GiB of 15.8 GiB HBM, 13.8 GiB left"),
        (1 << 32, "needs 32.0 GiB of HBM, 16.2 GiB more than its 15.8 GiB"),
    ):
        place.write_text(text % (elements, elements, elements, elements))
        found = page_of(place, "v5e")
        assert said in found
        assert ('<h3 class="error">HBM' in found) == (elements > 1 << 30)


def page_of(place: Path, chip: str) -> str:
    """The text of a report."""
    return report_page(report_input(place, chip=chip, platform="tpu"))


ASYNC = support.CORPUS / "tpu" / "sharded_sort_fft_conv.v5e_2x2x1.after_optimizations.txt"


def test_fusions_tell_the_collective_that_they_carry() -> None:
    """Kind, bytes and axis, of the fusion that starts one, those that go on with it and the one that ends it."""
    subject = report_input(ASYNC, chip="v5e")
    found = subject.carried
    fusions = {one: carried for one, carried in found.items() if one.opcode == "fusion"}
    roles = {carried.role for carried in fusions.values()}
    assert {"starts", "waits for"} <= roles
    for one, carried in fusions.items():
        inside = [node for body in one.called_computations for node in body if node.opcode == carried.kind]
        assert inside, "it holds the collective itself"
        size = carried.flow.sent
        assert size is not None
        assert f"{byte_text(size)} sent by each device" in carried.text
        assert carried.flow.row in carried.text
        if carried.role == "waits for":
            start = carried.flow.communication.fusion
            assert start is not None
            assert start.name in carried.text
            assert start is not one
    assert {flow.communication.fusion for flow in subject.traffic.flows} - {None} <= set(fusions)
    blob = re.search(r'class="operations" data-side="a">([^<]*)<', report_page(subject))
    assert blob is not None
    told = {row["name"]: row.get("carries") for row in unpacked(blob[1])["rows"]}
    assert any(told.get(one.name) == carried.text for one, carried in fusions.items())


def test_a_comparison_says_where_its_figures_differ(tmp_path: Path) -> None:
    """The lines that make most of each change, with the operation on the side that has more of it."""
    paths = [
        gathered(tmp_path / f"{is_gathered}.txt", 64, is_gathered=is_gathered)
        for is_gathered in (False, True)
    ]
    for path in paths:
        text = path.read_text()
        for name, line in (("g", 3), ("d", 5)):
            at = f', metadata={{op_name="t" source_file="m.py" source_line={line}}}\n'
            text = re.sub(rf"(  {name} = .*)\n", rf"\g<1>{at}", text)
        path.write_text(text)
    found = Page(report_page(*(report_input(path, chip="v5e") for path in paths)))
    rows = found.tables["ab-comparison-where"].records()
    first = {row["figure"]: row for row in reversed(rows)}
    assert first["sent"] == {
        "figure": "sent",
        "change": "+48.0 KiB of +48.0 KiB",
        "line": "m.py:3",
        "operation": "g",
        "what": "0 → 1 transfer; all-gather along axis_0",
    }
    assert (first["flops"]["line"], first["flops"]["operation"]) == ("m.py:5", "d")
    assert first["minimum time"]["line"] == "m.py:3"
    assert found.text.index("comparison-where") < found.text.index('id="comparison"')
    assert 'href="#op-b=g"' in found.text
    same = Page(report_page(*(report_input(paths[0], chip="v5e") for _ in range(2))))
    assert "ab-comparison-where" not in same.tables


def test_a_comparison_counts_the_results_in_their_own_memory(tmp_path: Path) -> None:
    """Two that are donated in one of both, beside one that is in neither."""
    paths = []
    for name, alias in (("plain", ""), ("donated", ", input_output_alias={ {0}: (0, {}), {1}: (1, {}) }")):
        path = tmp_path / f"{name}.txt"
        path.write_text(f"""HloModule m, is_scheduled=true{alias}

ENTRY e {{
  a = f32[65536]{{0}} parameter(0)
  b = f32[32768]{{0}} parameter(1)
  n = f32[65536]{{0}} negate(a)
  m = f32[32768]{{0}} negate(b)
  s = f32[8]{{0}} slice(m), slice={{[0:8]}}
  ROOT t = (f32[65536]{{0}}, f32[32768]{{0}}, f32[8]{{0}}) tuple(n, m, s)
}}
""")
        paths.append(path)
    found = Page(report_page(*(report_input(path, chip="v5e", platform="tpu") for path in paths)))
    (row,) = (row for row in found.tables["ab-comparison-where"].records() if row["figure"] == "peak memory")
    assert row["line"] == "results in their own memory"
    before, after = (
        sum(one.held_for == "results" for one in report_input(path, platform="tpu").memory.allocations)
        for path in paths
    )
    assert before - after == 2
    assert row["what"] == f"{before} → {after} arrays"


def test_memories_are_drawn_to_one_scale() -> None:
    """To what there is of each, however little a program needs; the parts are still named."""
    subject = report_input(TPU, chip="v5e")
    (memory, _) = answers(subject)
    for answer in memory:
        parts = {part.name: part.percent for part in answer.bar}
        assert parts["left"] > 0
        assert sum(parts.values()) == pytest.approx(100, abs=1)
        assert len(parts) > 1
    assert {part.name: part.percent for part in memory[0].bar}["left"] > 80


def test_time_at_the_top_level_is_drawn() -> None:
    """The parts of the tree of scopes are as long as the whole, by time as by bytes."""
    tree = dict(page(TPU, "v5e").charts())["a-chart-scopes"]
    for metric in ("bytes", "seconds"):
        parts = sum(value for value, parent in zip(tree[metric], tree["parent"], strict=True) if parent == 0)
        assert parts == pytest.approx(tree[metric][0])


def test_places_that_a_search_chose_are_not_told() -> None:
    """In fast memory only how much lives, since the compiler's offsets are not in the text."""
    path = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    found = Page(report_page(report_input(path)))
    spaces = {data["space"]: data["is_placed"] for name, data in found.charts() if "memory" in name}
    assert spaces == {"HBM": True, "VMEM": False} or spaces == {"VMEM": False}
    blob = re.search(r'class="operations" data-side="a">([^<]*)<', found.text)
    assert blob is not None
    lives = [life for row in unpacked(blob[1])["rows"] for life in row.get("life", ())]
    assert {life[3] for life in lives if life[1] == "VMEM"} == {None}


def test_a_lines_transfers_stand_apart() -> None:
    """Seconds of links and copy engines beside those of the whole line."""
    path = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"
    found = Page(report_page(report_input(path, chip="v5e"))).tables
    told = command("time", path, "--chip", "v5e")["transfers"]
    rows = found["a-lines-cost"].records()
    assert sum(float(row["transfer_seconds"] or 0) for row in rows) == pytest.approx(
        sum(one["seconds"] or 0 for one in told)
    )
    assert all(float(row["transfer_seconds"] or 0) <= float(row["seconds"] or 0) for row in rows)


def test_memory_of_comparators(tmp_path: Path) -> None:
    """What is live within an applied computation only lies in memory spaces that the program itself may not use."""
    (tmp_path / "m.txt").write_text("""HloModule m, is_scheduled=true

larger {
  a = s32[]{:T(128)S(6)} parameter(0)
  b = s32[]{:T(128)S(6)} parameter(1)
  n = s32[]{:T(128)S(6)} negate(a)
  ROOT m = s32[]{:T(128)S(6)} maximum(n, b)
}

ENTRY e {
  p = s32[1024]{0:T(1024)} parameter(0)
  z = s32[]{:T(128)} constant(0)
  ROOT r = s32[]{:T(128)} reduce(p, z), dimensions={0}, to_apply=larger
}
""")
    assert "larger" in report_page(report_input(tmp_path / "m.txt", platform="tpu"))


@pytest.mark.parametrize(("name", "is_free"), [("sorting", True), ("scatters", False)])
def test_memory_that_is_free_at_the_peak_is_explained_where_there_is_any(name: str, is_free: bool) -> None:
    path = support.ROOT / f"corpus/gpu/{name}.h100_1x1x1.after_optimizations.txt"
    (answer,) = next(iter(answers(report_input(path))))
    part = "allocated, free at the peak"
    assert (part in {one.name for one in answer.bar}) == is_free
    assert (f"{part.capitalize()}: gaps between buffers" in answer.remark) == is_free
