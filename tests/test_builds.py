"""`hlotext report DATASET`: each step with its first build, operation and line; nothing else; gaps; accepted lines."""

from __future__ import annotations

import html
import itertools
import json
import lzma
import re
from pathlib import Path

import attrs
import pytest

from tests import support
from tests.cli_support import run
from tests.pages import Page

pytest.importorskip("jinja2")
pytest.importorskip("bokeh")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from hlotext.syntax.source.inputs import InputError
from hlotext.tables.figures import FIGURES
from hlotext.tables.figures import TABLES as NEEDED
from hlotext.tables.history import BuildStep, Grown, History, ModuleHistory, NewFinding, Regression, history
from hlotext.view.report import benchmark, builds_comment, builds_page, figure_texts
from hlotext.view.report.builds_text import cause_of
from hlotext.view.report.builds_verdict import worst
from hlotext.view.report.templates import codes

TABLES = ",".join(NEEDED)


def program(extra: str = "", width: int = 64, line: int = 3, name: str = "step") -> str:
    """A scheduled module; `extra` are op lines between the product and the root."""
    return (
        f"HloModule {name}, is_scheduled=true, num_partitions=4\n\nENTRY e {{\n  p = f32[64,{width}]{{1,0}} parameter(0)\n"
        f'  a = f32[64,{width}]{{1,0}} tanh(p), metadata={{op_name="layer/tanh" source_file="m.py" source_line={line}}}\n'
        f"{extra}  ROOT r = f32[64,{width}]{{1,0}} negate(a)\n}}\n"
    )


GATHER = (
    "  g = f32[256,64]{1,0} all-gather(a), dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=1, "
    "use_global_device_ids=true, "
    'metadata={op_name="layer/gather" source_file="m.py" source_line=9}\n'
)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight builds of two modules: one broken at 3, an all-gather from 5 on, lines that move in every build."""
    place = tmp_path_factory.mktemp("builds")
    for build in range(1, 9):
        folder = place / "dumps" / f"b{build}"
        folder.mkdir(parents=True)
        text = program(GATHER if build >= 5 else "", line=build)
        (folder / "train.after_optimizations.txt").write_text(text if build != 3 else text[:150])
        (folder / "eval.after_optimizations.txt").write_text(program(name="other", line=2 * build))
    result = run("table", place / "dumps", "-o", place / "tables", "--tables", TABLES, "-j", "1")
    assert result.exit_code == 2, "one input is broken"
    return place / "tables"


def test_the_first_build_of_each_step_is_named(dataset: Path) -> None:
    """With the operation and its line, and no other build; what could not be read is a gap and no step."""
    found = history(str(dataset))
    assert found.builds == tuple(f"b{n}" for n in range(1, 9))
    assert {(one.module, one.build, one.before_build) for one in found.steps} == {("step", "b5", "b4")}
    assert "wire_bytes" in {one.figure for one in found.steps}
    for one in found.steps:
        assert [(each.name, each.file, each.line) for each in one.grown] == [("g", "m.py", 9)]
    assert [(build, Path(path).name) for build, path, _ in found.unreadable] == [
        ("b3", "train.after_optimizations.txt")
    ]
    assert "b3" not in found.modules[1].values["instructions"]


def test_the_ready_query_agrees(dataset: Path) -> None:
    """`sql --query slower` gives the same builds, figures, values and operations."""
    document = json.loads(run("sql", "--query", "slower", dataset, "--format", "json").stdout)
    names = [column["name"] for column in document["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in document["rows"]]
    told = {
        (
            row["module"],
            row["build"],
            row["figure"],
            row["before"],
            row["value"],
            row["operation"],
            row["line"],
        )
        for row in rows
    }
    shown = {
        (one.module, one.build, one.figure, one.before, one.value, one.grown[0].name, one.grown[0].line)
        for one in history(str(dataset)).steps
        if one.is_worse
    }
    assert told == shown


def test_figures_are_those_of_the_commands(dataset: Path, tmp_path: Path) -> None:
    """Peak, flops, bytes sent of a build as `memory`, `cost` and `comm` give them."""
    place = tmp_path / "train.after_optimizations.txt"
    place.write_text(program(GATHER, line=8))
    module = next(one for one in history(str(dataset)).modules if one.name == "step")
    cost = json.loads(run("cost", place, "--format", "json").stdout)["modules"][0]
    assert module.values["flops"]["b8"] == cost["run"]["flops"]
    comm = json.loads(run("comm", place, "--format", "json").stdout)["modules"][0]
    assert module.values["wire_bytes"]["b8"] == sum(row["bytes"] for row in comm["matrix"])


def test_the_page_and_its_exit_status(dataset: Path, tmp_path: Path) -> None:
    """`--fail-on` against the last good build, until the step is accepted; the same page twice."""
    place, accepted = tmp_path / "page.html", tmp_path / "accepted.txt"
    result = run("report", dataset, "-o", place, "--fail-on", "wire_bytes,peak_bytes")
    assert result.exit_code == 1
    assert "bytes sent" in result.stderr
    text = place.read_text("utf-8")
    assert text == builds_page(history(str(dataset)), fail_on=("wire_bytes", "peak_bytes"))
    assert re.findall(r'<article class="step (\w+)"', text) == ["worse"]
    (operations,) = (table for name, table in Page(text).tables.items() if name.endswith("-operations"))
    assert [row["operation"] for row in operations.records()] == ["g"]
    (lines,) = re.findall(ALL_LINES, text, re.DOTALL)
    accepted.write_text("# meant\n" + "\n".join(f"{line}  # for the new loss" for line in lines.splitlines()))
    result = run("report", dataset, "-o", place, "--fail-on", "any", "--accepted", accepted)
    assert result.exit_code == 0, result.stderr
    assert '<article class="step accepted"' in place.read_text("utf-8")
    assert "for the new loss" in place.read_text("utf-8")
    accepted.write_text("step b5\n")
    assert run("report", dataset, "-o", place, "--accepted", accepted).exit_code == 2
    assert run("report", dataset, "-o", place, "--fail-on", "speed").exit_code == 2


ALL_LINES = r'Lines that accept all changes</summary><pre class="paste">(.*?)</pre>'


def test_the_lines_of_the_verdict_accept_all_of_it(tmp_path: Path) -> None:
    """A figure that rose twice and a module that is lost: with the lines at the top the build passes."""
    texts = {
        "b1": {"step": program(), "eval": program(name="other")},
        "b2": {"step": program(GATHER), "eval": program(name="other")},
        "b3": {"step": program(GATHER, width=128)},
    }
    for build, modules in texts.items():
        (tmp_path / "dumps" / build).mkdir(parents=True)
        for name, text in modules.items():
            (tmp_path / "dumps" / build / f"{name}.after_optimizations.txt").write_text(text)
    dataset, place, accepted = tmp_path / "tables", tmp_path / "page.html", tmp_path / "accepted.txt"
    run("table", tmp_path / "dumps", "-o", dataset, "--tables", TABLES, "-j", "1")
    assert run("report", dataset, "-o", place, "--fail-on", "any").exit_code == 1
    (lines,) = re.findall(ALL_LINES, place.read_text("utf-8"), re.DOTALL)
    assert {line.split()[1] for line in lines.splitlines()} == {"b2", "b3"}
    accepted.write_text(lines)
    result = run("report", dataset, "-o", place, "--fail-on", "any", "--accepted", accepted)
    assert result.exit_code == 0, result.stderr
    assert "Lines that accept" not in place.read_text("utf-8")


def of_two(place: Path, first: str, second: str) -> History:
    """The history of two builds of one module."""
    return of_builds(place, {"b1": first, "b2": second})


def of_builds(place: Path, texts: dict[str, str]) -> History:
    """The history of builds of one module."""
    for build, text in texts.items():
        (place / "dumps" / build).mkdir(parents=True)
        (place / "dumps" / build / "step.after_optimizations.txt").write_text(text)
    run("table", place / "dumps", "-o", place / "tables", "--tables", TABLES, "-j", "1")
    return history(str(place / "tables"))


def test_a_cause_of_flops_has_them_and_alike_operations_are_counted(tmp_path: Path) -> None:
    """What holds most is named for the peak, with how many there are, and the product for the flops."""
    wide = "".join(
        f'  b{n} = f32[64,4096]{{1,0}} broadcast(c), dimensions={{}}, metadata={{op_name="wide/b" source_line=5}}\n'
        for n in range(3)
    )
    product = (
        "  d = f32[64,64]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        'metadata={op_name="layer/dot" source_file="m.py" source_line=7}\n'
    )
    found = of_two(tmp_path, program(), program(f"  c = f32[] constant(1)\n{wide}{product}"))
    grown = {one.figure: one.grown[0] for one in found.steps if one.grown}
    assert (grown["flops"].name, grown["flops"].alike, grown["flops"].more_flops) == ("d", 1, 2 * 64**3)
    written = grown["instructions"]
    assert (written.name, written.alike, written.more_bytes) == ("b0", 3, 3 * 64 * 4096 * 4)
    comment = builds_comment(found, list(FIGURES))
    assert "3 broadcast operations of one scope, +1.00 MiB" in comment
    assert re.search(r"\| flops \|.*\| d f32", comment)
    rows = {
        row["operation"]: row
        for n, t in Page(builds_page(found)).tables.items()
        if "operations" in n
        for row in t.records()
    }
    assert rows["b0"]["alike"] == 3


def test_the_cause_of_a_peak_holds_most_of_it_and_an_update_in_place_writes_the_update(
    tmp_path: Path,
) -> None:
    """Four arrays of 1 MiB, one after the other, write more than one of 2 MiB, and hold less at the peak."""
    wide = "".join(
        f'  b{n} = f32[64,4096]{{1,0}} broadcast(c), dimensions={{}}, metadata={{op_name="wide/b"}}\n'
        for n in range(4)
    )
    extra = (
        f"  c = f32[] constant(1)\n  i = s32[] constant(0)\n{wide}  x = f32[64,8192]{{1,0}} broadcast(c), dimensions={{}}, "
        'metadata={op_name="big/x"}\n  s = f32[64,8]{1,0} slice(a), slice={[0:64], [0:8]}, metadata={op_name="small/s"}\n'
        '  u = f32[64,8192]{1,0} dynamic-update-slice(x, s, i, i), metadata={op_name="small/u"}\n'
    )
    found = of_two(tmp_path, program(), program(extra))
    (step,) = (one for one in found.steps if one.figure == "peak_bytes")
    assert [(one.name, one.more_held) for one in step.grown[:2]] == [("x", 2 << 20), ("s", 2048)]
    assert cause_of(step).detail == ", broadcast, +2.00 MiB"
    assert [one.more_held for one in step.grown] == sorted(
        (one.more_held for one in step.grown), reverse=True
    )
    grown = {one.name: one for each in found.steps for one in each.grown}
    assert (grown["u"].more_bytes, grown["u"].more_held) == (64 * 8 * 4, 0)
    assert operations_of(found)["b2"][0] == "x"


def test_a_new_finding_is_the_cause(tmp_path: Path) -> None:
    """A step without donation: page and comment name the finding; warnings are counted as lint does."""
    place = support.DATA / "lint" / "faults" / "fault_cache_not_donated.cpu_1.after_optimizations.txt.xz"
    text = lzma.decompress(place.read_bytes()).decode()
    donated = text.replace(
        "is_scheduled=true", "is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }", 1
    )
    found = of_two(tmp_path, donated, text)
    (peak,) = (one for one in found.steps if one.figure == "peak_bytes")
    assert "M103" in {one.code for one in peak.findings}
    shown = next(t for n, t in Page(builds_page(found)).tables.items() if n.endswith("-findings"))
    assert "M103" in {row["code"] for row in shown.records()}
    (row,) = re.findall(r"\| peak memory \|.*", builds_comment(found, ["peak_bytes"]))
    assert "M103" in row
    path = tmp_path / "dumps" / "b2" / "step.after_optimizations.txt"
    told = json.loads(run("lint", path, "--format", "json", "--isolated").stdout)["findings"]
    counted = sum(one["severity"] != "note" for one in told)
    assert found.modules[0].values["findings"]["b2"] == counted
    assert len(told) > 0


def test_a_finding_that_is_gone_is_no_cause_of_the_newest_build(tmp_path: Path) -> None:
    """One warning took the place of another: the newest is the cause, in its build, and the older is said to be gone."""
    faults = support.DATA / "lint" / "faults"
    texts = {"b1": program(name="jit_step")}
    for build, name in (("b2", "fault_cache_not_donated.cpu_1"), ("b3", "fault_one_hot.cpu_1")):
        text = lzma.decompress((faults / f"{name}.after_optimizations.txt.xz").read_bytes()).decode()
        texts[build] = re.sub("HloModule [^,]*", "HloModule jit_step", text, count=1)
    found = of_builds(tmp_path, texts | {"b4": texts["b3"]})
    (old,) = [one for one in found.findings_since("jit_step", "b1") if one.code == "M103"]
    assert (old.build, old.gone_build) == ("b2", "b3")
    (new,) = [one for one in found.findings_since("jit_step", "b2") if one.severity == "warning"]
    assert (new.build, new.gone_build) == ("b3", "")
    text = builds_page(found)
    (row,) = [r for r in Page(text).tables["newest-verdict"].records() if r["figure"] == "warnings"]
    assert str(row["cause"]).startswith(f"{new.code}: ")
    assert str(row["cause"]).endswith("; M103 of b2 no longer occurs since b3")
    assert str(row["build"]).split() == ["b3"]
    gone = [t for n, t in Page(text).tables.items() if n.endswith("-gone")]
    assert [[r["code"] for r in t.records() if r["severity"] != "note"] for t in gone] == [["M103"]]
    for line in re.findall(r"\| (?:peak memory|warnings) \|.*", builds_comment(found, list(FIGURES))):
        assert "| M103" not in line


def test_figures_that_differ_look_different() -> None:
    """Rounded to three digits they may be one text, which no change explains."""
    assert figure_texts("flops", 99_860_520, 99_881_000) == ("99,860,520", "99,881,000")
    assert figure_texts("flops", 1e6, 2e6) == ("1.00 M", "2.00 M")
    assert figure_texts("flops", 1e6, 1e6) == ("1.00 M", "1.00 M")


def test_formats_for_other_programs(dataset: Path) -> None:
    """A list of name, unit and value; a comment with its marker."""
    rows = json.loads(run("report", dataset, "-o", "-", "--format", "benchmark").stdout)
    assert {"name", "unit", "value", "extra"} == set(rows[0])
    assert {row["value"] for row in rows if row["name"] == "step: bytes sent"} == {3 * 64 * 64 * 4}
    comment = run("report", dataset, "-o", "-", "--format", "markdown").stdout
    assert comment.startswith("<!-- hlotext:builds -->\n")
    assert "m.py:9" in comment


def made(values: list[float | None], accepted: tuple[int, ...] = ()) -> History:
    """One module whose peak has these values, with steps at each change."""
    known = [(n, value) for n, value in enumerate(values) if value is not None]
    steps = tuple(
        BuildStep("m", str(b), str(a), "peak_bytes", x, y, (), "" if b in accepted else None)
        for (a, x), (b, y) in itertools.pairwise(known)
        if x != y
    )
    figures: dict[str, dict[str, float]] = {name: {} for name in FIGURES} | {
        "peak_bytes": {str(n): value for n, value in known}
    }
    return History(tuple(map(str, range(len(values)))), (ModuleHistory("m", {}, figures),), steps, (), ())


def operations_of(found: History) -> dict[str, list[str]]:
    """The operations of each build's card, as they stand there."""
    text = builds_page(found)
    builds = re.findall(r'<h3><a href="#(step-[0-9]+)">([^<]*)</a>', text)
    tables = Page(text).tables
    return {
        build: [str(row["operation"]) for row in tables[f"{card}-operations"].records()]
        for card, build in builds
        if f"{card}-operations" in tables
    }


def test_a_build_has_what_it_added_and_not_what_moved(tmp_path: Path) -> None:
    """A new collective is the first of its build, also where a dozen others write more; under another scope it is none."""
    wide = "".join(
        f'  b{n} = f32[64,{4096 + n}]{{1,0}} broadcast(c), dimensions={{}}, metadata={{op_name="w{n}/b"}}\n'
        for n in range(12)
    )
    one = f"  c = f32[] constant(1)\n{GATHER}{wide}"
    sine = '  s = f32[64,64]{1,0} sine(a), metadata={op_name="late/s" source_file="m.py" source_line=5}\n'
    moved = one.replace("layer/gather", "layer/deep/gather").replace("w3/b", "other/b")
    texts = {"b1": program(), "b2": program(one), "b3": program(f"{moved}{sine}")}
    found = of_builds(tmp_path, texts)
    shown = operations_of(found)
    assert shown["b2"][0] == "g"
    assert len(shown["b2"]) == 10
    assert shown["b3"] == ["s"]
    assert "and 4 more" in builds_page(found), "13 kinds and the constant"
    # What made a figure worse is told of the build where it rose, not of the newest.
    (row,) = re.findall(r"\| bytes sent \|.*", builds_comment(found, ["wire_bytes"]))
    assert "| b2 (new) |" in row
    assert "g f32" in row
    assert "m.py:9 |" in row
    (told,) = (
        row
        for row in Page(builds_page(found)).tables["newest-verdict"].records()
        if row["figure"] == "bytes sent"
    )
    assert (str(told["build"]).split()[0], told["place"]) == ("b2", "m.py:9")


def tpu(gather: bool, count: int = 2) -> str:
    """A scheduled step for TPU: all-reduces of line 3, before them the starts of gathers of line 9 which all of it hides."""
    wide = "f32[512,512]{1,0:T(8,128)}"
    groups = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"

    def at(scope: str, line: int) -> str:
        return f'metadata={{op_name="{scope}" source_file="m.py" source_line={line}}}'

    starts = "".join(
        f"  begin{n} = (f32[512,512]{{1,0:T(8,128)}}, f32[2048,512]{{1,0:T(8,128)}}) all-gather-start(p), dimensions={{0}}, "
        f"{groups}, {at(f'layer_{n}/gather', 9)}\n"
        for n in range(count)
    )
    dones = "".join(
        f"  d{n} = f32[2048,512]{{1,0:T(8,128)}} all-gather-done(begin{n}), {at(f'layer_{n}/gather', 9)}\n"
        for n in range(count)
    )
    return (
        "HloModule step, is_scheduled=true, num_partitions=4\n\nsum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        f"  ROOT z = f32[] add(x, y)\n}}\n\nENTRY e {{\n  p = {wide} parameter(0)\n{starts if gather else ''}"
        f"  r = {wide} all-reduce(p), {groups}, to_apply=sum, {at('loss/sum', 3)}\n"
        f"{dones if gather else ''}  ROOT n = {wide} negate(r)\n}}\n"
    )


def test_what_only_waits_behind_a_transfer_is_not_blamed_for_it(tmp_path: Path) -> None:
    """Two new gathers occupy the link, and what the all-reduce behind them waits longer is theirs, of one line together."""
    found = of_two(tmp_path, tpu(gather=False), tpu(gather=True))
    (step,) = (one for one in found.steps if one.figure == "least_seconds")
    cause = cause_of(step)
    assert (cause.place, cause.name) == ("m.py:9", "begin0")
    assert ", 2 all-gather operations of one line, +" in cause.detail
    mine = [one for one in step.grown if one.line == 9]
    assert sum(one.more_seconds for one in mine) == pytest.approx(step.value - step.before, rel=0.01)
    assert not any(one.more_seconds for one in step.grown if one.line == 3)
    (sent,) = (one for one in found.steps if one.figure == "wire_bytes")
    assert cause_of(sent).detail == ", 2 all-gather operations of one line, +6.00 MiB"
    text = builds_page(found)
    assert "Minimum time is estimated for v5e." in text
    shown = next(table for name, table in Page(text).tables.items() if name.endswith("-operations"))
    assert {row["operation"]: row["more_sent"] for row in shown.records()}["begin0"] == 3 << 20


def test_a_part_of_more_than_the_rise_says_what_others_fell() -> None:
    grown = Grown("c", "copy-start", "f32[4]", 0, 0.0, 1, "m.py", 3, more_seconds=3e-6)
    step = BuildStep("m", "b", "a", "least_seconds", 5e-6, 6e-6, (grown,))
    assert cause_of(step).detail == ", copy-start, +3.00 us, others −2.00 us"
    assert cause_of(attrs.evolve(step, value=8e-6)).detail == ", copy-start, +3.00 us"


def test_the_worst_is_what_costs_and_not_what_is_counted() -> None:
    """One warning, where there was none, is not worse than twice the memory; alone it is."""
    warned = Regression("m", "findings", "a", 0.0, 1.0)
    assert worst([Regression("m", "peak_bytes", "a", 1.0, 2.0), warned]).text == "+100%"
    assert worst([warned]).text == "new"


def test_a_measure_that_is_worse_in_another_figure_says_so() -> None:
    """Its least time was good at twice the memory."""
    found = made([5, 10, 5])
    times = {"0": 3.0, "1": 2.0, "2": 3.0}
    (module,) = found.modules
    faster = attrs.evolve(module, values={**module.values, "least_seconds": times})
    slower = BuildStep("m", "2", "1", "least_seconds", 2.0, 3.0)
    page = builds_page(attrs.evolve(found, modules=(faster,), steps=(*found.steps, slower)))
    assert '<span class="of">1, where more: peak memory</span>' in page


def test_memory_that_is_held_is_the_cause_before_operations_that_write_less() -> None:
    grown = Grown("slice", "async slice", "f32[4]", 4096, 0.0, 1, "m.py", 3)
    held = NewFinding("warning", "M103", "not donated", "p", "m.py", 7, 1 << 20)
    step = BuildStep("m", "b", "a", "peak_bytes", 1.0, 2.0, (grown,), findings=(held,))
    assert cause_of(step).name == "M103"
    assert cause_of(attrs.evolve(step, figure="least_seconds")).name == "slice"
    assert cause_of(attrs.evolve(step, grown=(attrs.evolve(grown, more_held=1 << 21),))).name == "slice"


def test_what_is_to_be_pasted_is_whole() -> None:
    """Lines that accept and commands are never shortened, whatever their length; names still are."""
    name = "module_" + "x" * 400
    text = builds_page(named(name))
    (lines,) = re.findall(ALL_LINES, text, re.DOTALL)
    assert lines.splitlines() == [f"{name} 1 peak_bytes"]
    command = f"hlotext diff {'a' * 400} b"
    assert f'<code class="command">{command}</code>' in codes(f"see `{command}`")
    assert len(codes(f"`{name * 3}`")) < 400


def named(name: str) -> History:
    """A module of that name whose peak rose."""
    found = made([5, 7])
    steps = tuple(attrs.evolve(one, module=name) for one in found.steps)
    return attrs.evolve(found, modules=(attrs.evolve(found.modules[0], name=name),), steps=steps)


def test_what_costs_less_is_not_accepted_but_better() -> None:
    """A line for all figures of a build fits falls too, which need none."""
    text = builds_page(made([5, 7, 6], accepted=(1, 2)))
    assert re.findall(r'<article class="step (\w+)"', text) == ["better", "accepted"]
    models = text[text.index('id="model-1"') :]
    assert re.findall(r'class="dot (\w+)"', models) == ["accepted", "better"]
    assert "all regressions are accepted" in text


def test_what_is_counted_is_changes_and_the_dashed_line_is_named() -> None:
    """A figure that rose twice is two changes for the worse, above the last good build in one figure."""
    text = builds_page(made([5, 7, 9]))
    assert "changes for the worse, most recently in 2" in text
    assert "in 1 metric." in text
    assert '<line class="good"' in text
    assert ">trend, dashed: baseline</th>" in text


@pytest.mark.parametrize(
    ("values", "accepted", "good"),
    [
        ([5, 5, 7], (), 5),
        ([5, 7, 7, 7], (), 5),
        ([5, 7, None, 8], (1,), 7),
        ([5, 7, 5], (), None),
        ([5, 7, 7], (1,), None),
        ([5, 3, 4], (), 3),
        ([5, 7, None], (), None),
        ([5, None, 7], (), 5),
    ],
)
def test_the_last_good_build(
    values: list[float | None], accepted: tuple[int, ...], good: float | None
) -> None:
    """A rise that nobody accepted stays one until it is gone; a fall is the new measure; a gap says nothing."""
    found = made(values, accepted).regressions(["peak_bytes"])
    assert [one.good for one in found] == ([] if good is None else [good])


def test_names_do_not_act() -> None:
    """Neither in the page, nor in the comment; which is cut by whole rows."""
    name = "</title><script>alert(1)</script>|@all `x`"
    names = [f"{name}{n}" for n in range(900)]
    values = {figure: {"a": 1.0, "b": 2.0} for figure in FIGURES}
    steps = tuple(BuildStep(one, "b", "a", "flops", 1.0, 2.0) for one in names)
    found = History(("a", "b"), tuple(ModuleHistory(one, {}, values) for one in names), steps, (), ())
    page = builds_page(attrs.evolve(found, modules=found.modules[:3], steps=steps[:3]))
    assert page.count("<script>") == 1
    assert "<script>alert" not in page
    comment = builds_comment(found, list(FIGURES))
    assert len(comment) < 61_000
    assert "more rows" in comment
    assert "<script>" not in comment
    assert json.loads(benchmark(found))


def test_operations_lead_to_what_is_told_of_them(dataset: Path) -> None:
    """From the verdict and from tables, where the page has it: what it is, its line, commands with the build's own text."""
    found = history(str(dataset))
    text = builds_page(found)
    targets = set(re.findall(r'class="operation" id="([^"]*)"', text))
    links = re.findall(r'<a class="op" href="#([^"]*)">', text)
    assert links
    assert set(links) <= targets, "a link leads somewhere"
    assert text.index('<a class="op"') < text.index('id="steps"'), "the verdict has some"
    panel = text[text.index('class="operation"') :]
    panel = html.unescape(panel[: panel.index('class="more"')])
    (module,) = (one for one in found.modules if one.name == "step")
    assert f"hlotext show {module.paths['b5']} -i g" in panel
    assert "new all-gather" in panel
    assert re.search(r"m\.py:\d+", panel)


def test_a_build_that_passes_shows_its_trends_and_its_baseline(dataset: Path, tmp_path: Path) -> None:
    """Before the changes: what changed first, since when it is what it may be, and who accepted it why."""
    (lines,) = re.findall(ALL_LINES, builds_page(history(str(dataset))), re.DOTALL)
    accepted = [f"{line}  # agreed <b>with</b> all" for line in lines.splitlines()]
    found = history(str(dataset), accepted)
    text = builds_page(found)
    verdict = text[text.index('id="newest"') : text.index('id="steps"')]
    assert "b8 passes" in verdict
    trends = Page(text).tables["newest-trends"].rows
    assert len(trends) >= 3
    assert verdict.index("<svg") < verdict.index('id="accepted"')
    changed = {FIGURES[one.figure][0] for one in found.steps}
    assert {(str(row[0]), str(row[1])) for row in trends[: len(changed)]} == {
        ("step", one) for one in changed
    }
    assert "since <a href" in verdict
    assert "accepted: agreed &lt;b&gt;with&lt;/b&gt; all" in verdict
    assert "<b>with" not in text
    count = len(accepted)
    assert f"Baseline: {count} accepted change{'s' if count > 1 else ''}, newest in b5" in verdict
    assert '<a href="#accepted">Baseline</a>' in text
    worse = builds_page(history(str(dataset)))
    assert "newest-trends" not in Page(worse).tables
    assert 'href="#accepted"' not in worse


def test_trends_have_a_scale_and_say_what_changed(dataset: Path) -> None:
    """Both ends of the scale, which does not begin at 0; at a change both figures, and the operation with its line."""
    text = builds_page(history(str(dataset)))
    (told,) = set(re.findall(r"<title>bytes sent in b5: ([^<]*)</title></a>", text))
    old, new = re.match(r"(.*) → (.*) \(", html.unescape(told)).groups()  # type: ignore[union-attr]
    assert "; g, " in told
    assert re.search(r"m\.py:\d+", told)
    trend = text[text.index(told) :]
    assert f'<span class="high">{new}</span><span class="low">{old}</span>' in trend


def test_a_folder_without_builds(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        history(str(tmp_path))


def test_a_trend_is_steps_over_named_builds(tmp_path: Path) -> None:
    """No slopes; builds on the axis; steps counted as the command counts them; a figure that no build has says why."""
    found = of_two(tmp_path, program(), program(GATHER.replace('"m.py"', '"/a/b/m.py"')))
    assert found.steps
    text = builds_page(found)
    trends = re.findall(r'<svg [^>]*aria-label="[^"]*".*?</svg>', text, re.DOTALL)
    assert trends
    for trend in trends:
        line = re.findall(r'<path d="([^"]*)"', trend)[0]
        assert set(re.findall("[A-Za-z]", line)) <= set("MVH")
        assert re.findall(r"<rect[^>]*><title>[a-z ]+ in (b[12]): ", trend) == ["b1", "b2"]
    assert re.findall(r'<span style="left:([0-9.]+)%" title="b[12]">(b[12])</span>', text)[:2] == [
        ("25.0", "b1"),
        ("75.0", "b2"),
    ]
    # Lines of Python have short names and lead nowhere, as the page embeds no operations.
    assert 'data-full="/a/b/m.py:9"' in text
    assert ' title="/a/b/m.py:9">m.py:9</td>' in text
    assert "#line=" not in text
    tiles = dict(re.findall(r"<li><span>([^<]*)</span><b>([^<]*)</b>", text))
    assert tiles["worst"] == "new", "nothing was sent before"
    assert tiles["not accepted"] == str(sum(one.is_worse for one in found.steps))
    missing = attrs.evolve(
        found,
        modules=tuple(attrs.evolve(one, values={**one.values, "least_seconds": {}}) for one in found.modules),
    )
    assert "minimum time is unknown for all builds" in builds_page(missing)
