"""Modules of several builds as programs: several of one name are told apart by file, then by arguments; or it is said."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hlotext.analysis.formatting import format_change
from hlotext.findings.shape_texts import short_shape
from hlotext.tables.programs import Row, Text, programs, signed_names
from tests.cli_support import run
from tests.pages import Page

A, B, C = "4 x 1 f32[64]", "4 x 1 f32[128]", "4 x 1 f32[256]"


def told(*texts: tuple[str, str, str | None]) -> dict[str, dict[str, str]]:
    """By program and build the path, or how else it stands, of build, path and arguments; None for what is unreadable."""
    rows = [
        Text(f"{build}:{path}:{n}", "step" if known is not None else None, build, path, known)
        for n, (build, path, known) in enumerate(texts)
    ]
    found: dict[str, dict[str, str]] = {}
    for one in programs(rows):
        found.setdefault(one.program, {})[one.build] = _shown(one)
    return found


def _shown(row: Row) -> str:
    return row.module.split(":")[1] if row.module is not None else f"{row.status} {row.why}".strip()


CASES: dict[str, tuple[list[tuple[str, str, str | None]], dict[str, dict[str, str]]]] = {
    "one name, one program, whatever its file is called": (
        [("b1", "/d/b1/step.txt", A), ("b2", "/d/b2/step.txt", B), ("b3", "/tmp/b3/x/other.txt", B)],
        {"step": {"b1": "/d/b1/step.txt", "b2": "/d/b2/step.txt", "b3": "/tmp/b3/x/other.txt"}},
    ),
    "the folder tells": (
        [
            ("b1", "/d/b1/lm/s.txt", A),
            ("b1", "/d/b1/moe/s.txt", A),
            ("b2", "/d/b2/moe/s.txt", B),
            ("b2", "/d/b2/lm/s.txt", A),
        ],
        {
            "step@lm": {"b1": "/d/b1/lm/s.txt", "b2": "/d/b2/lm/s.txt"},
            "step@moe": {"b1": "/d/b1/moe/s.txt", "b2": "/d/b2/moe/s.txt"},
        },
    ),
    "never two of one name in a build, but neither file nor arguments are the same": (
        [("b1", "/d/b1/lm/s.txt", A), ("b2", "/d/b2/moe/s.txt", B)],
        {"step@lm": {"b1": "/d/b1/lm/s.txt"}, "step@moe": {"b2": "/d/b2/moe/s.txt"}},
    ),
    "folders of builds that have nothing in common": (
        [
            ("b1", "/tmp/x1/lm/s.txt", A),
            ("b1", "/tmp/x1/moe/s.txt", B),
            ("b2", "/tmp/x2/lm/s.txt", C),
            ("b2", "/tmp/x2/moe/s.txt", B),
        ],
        {
            "step@lm": {"b1": "/tmp/x1/lm/s.txt", "b2": "/tmp/x2/lm/s.txt"},
            "step@moe": {"b1": "/tmp/x1/moe/s.txt", "b2": "/tmp/x2/moe/s.txt"},
        },
    ),
    "one folder, one function for several sizes, and numbers that moved": (
        [
            ("b1", "/d/b1/module_0003.step.txt", A),
            ("b1", "/d/b1/module_0007.step.txt", B),
            ("b2", "/d/b2/module_0004.step.txt", B),
            ("b2", "/d/b2/module_0007.step.txt", A),
        ],
        {
            "step@module_0003": {"b1": "/d/b1/module_0003.step.txt", "b2": "/d/b2/module_0007.step.txt"},
            "step@module_0007": {"b1": "/d/b1/module_0007.step.txt", "b2": "/d/b2/module_0004.step.txt"},
        },
    ),
    "the same arguments twice, and numbers that stayed": (
        [(b, f"/d/{b}/module_{n}.step.txt", A) for b in ("b1", "b2") for n in ("0003", "0007")],
        {
            f"step@module_{n}": {b: f"/d/{b}/module_{n}.step.txt" for b in ("b1", "b2")}
            for n in ("0003", "0007")
        },
    ),
    "the same arguments twice, and numbers that moved: nobody can tell": (
        [
            ("b1", "/d/b1/module_0003.step.txt", A),
            ("b2", "/d/b2/module_0004.step.txt", A),
            ("b2", "/d/b2/module_0008.step.txt", A),
            ("b3", "/d/b3/module_0004.step.txt", A),
            ("b3", "/d/b3/module_0008.step.txt", A),
        ],
        {
            "step@module_0003": {
                "b1": "/d/b1/module_0003.step.txt",
                "b2": "untold step@module_0004 or step@module_0008",
                "b3": "untold step@module_0004 or step@module_0008",
            },
            "step@module_0004": {"b2": "/d/b2/module_0004.step.txt", "b3": "/d/b3/module_0004.step.txt"},
            "step@module_0008": {"b2": "/d/b2/module_0008.step.txt", "b3": "/d/b3/module_0008.step.txt"},
        },
    ),
    "a file that cannot be read is that of its program; one that is not there is nothing": (
        [
            ("b1", "/d/b1/lm/s.txt", A),
            ("b1", "/d/b1/moe/s.txt", A),
            ("b2", "/d/b2/lm/s.txt", None),
            ("b3", "/d/b3/lm/s.txt", A),
        ],
        {
            "step@lm": {"b1": "/d/b1/lm/s.txt", "b2": "unreadable", "b3": "/d/b3/lm/s.txt"},
            "step@moe": {"b1": "/d/b1/moe/s.txt"},
        },
    ),
    "one file of two modules": (
        [("b1", "/d/b1/s.txt", A), ("b1", "/d/b1/s.txt", B), ("b2", "/d/b2/s.txt", B), ("b2", "/d/b2/s.txt", A)],
        {"step:1": {"b1": "/d/b1/s.txt", "b2": "/d/b2/s.txt"}, "step:2": {"b1": "/d/b1/s.txt", "b2": "/d/b2/s.txt"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_programs(case: str) -> None:
    texts, expected = CASES[case]
    assert told(*texts) == expected


def test_arguments_are_asked_for_where_files_do_not_tell() -> None:
    """Reading them takes time, which a dataset with one file for each name does not need."""
    one = [Text(f"{n}", "step", f"b{n}", f"/d/b{n}/step.txt") for n in range(3)]
    assert signed_names(one) == set()
    assert signed_names([*one, Text("x", "step", "b1", "/d/b1/step.txt")]) == {"step"}
    assert signed_names([*one, Text("x", "step", "b7", "/d/b7/other.txt")]) == {"step"}


def test_labels_do_not_break_lines_of_accepted_steps() -> None:
    texts = [Text(f"{n}", "s", "b", f"/d/b/{folder}/s.txt") for n, folder in enumerate(("a b#c\n", "d"))]
    assert {one.program for one in programs(texts)} == {"s@a_b_c_", "s@d"}


def program(size: int, extra: int = 0) -> str:
    """A module that writes so many elements, and so often again."""
    more = "".join(f"  t{n} = f32[{size}]{{0}} tanh(p)\n" for n in range(extra))
    return (
        f"HloModule jit_train_step, is_scheduled=true\n\nENTRY e {{\n  p = f32[{size}]{{0}} parameter(0)\n"
        f"{more}  ROOT r = f32[{size}]{{0}} negate(p)\n}}\n"
    )


BUILDS: dict[str, dict[str, str]] = {
    "n1": {"lm": program(64), "moe": program(4096, 1)},
    "n2": {"lm": program(64, 2), "moe": program(4096, 1)},
    "n3": {"moe": program(4096, 1)},
    "n4": {"moe": program(4096, 3), "fsdp": program(32)},
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two programs of one name; one grows and is gone then, the other grows later, when a third one comes."""
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    place = tmp_path_factory.mktemp("programs")
    for build, models in BUILDS.items():
        for name, text in models.items():
            folder = place / "dumps" / build / name
            folder.mkdir(parents=True)
            (folder / "module_0001.jit_train_step.after_optimizations.txt").write_text(text)
    tables = "modules,instructions,buffers,times,costs,collectives,findings"
    assert run("table", place / "dumps", "-o", place / "tables", "--tables", tables, "-j", "1").exit_code == 0
    return place / "tables"


def asked(dataset: Path, query: str, *given: str) -> list[dict[str, object]]:
    """The rows of a ready query."""
    parameters = [word for one in given for word in ("-p", one)]
    document = json.loads(run("sql", "--query", query, dataset, "--format", "json", *parameters).stdout)
    names = [column["name"] for column in document["columns"]]
    return [dict(zip(names, row, strict=True)) for row in document["rows"]]


LM, MOE, FSDP = "jit_train_step@lm", "jit_train_step@moe", "jit_train_step@fsdp"


def test_the_history_has_one_trend_for_each(dataset: Path) -> None:
    """Nothing is added up, and each step names the texts of its own program."""
    from hlotext.tables.history import history

    found = history(str(dataset))
    counts = {one.name: dict(one.values["instructions"]) for one in found.modules}
    assert counts == {LM: {"n1": 2, "n2": 4}, MOE: {"n1": 3, "n2": 3, "n3": 3, "n4": 5}, FSDP: {"n4": 2}}
    assert {(one.module, one.build, one.before_build) for one in found.steps} == {
        (LM, "n2", "n1"),
        (MOE, "n4", "n3"),
    }
    assert {one.header_name for one in found.modules} == {"jit_train_step"}
    accepted = history(str(dataset), ["jit_train_step n2 *  # all of that name", f"{MOE} n4 instructions"])
    assert {(one.module, one.figure) for one in accepted.steps if one.accepted is None} == {
        (MOE, one.figure) for one in found.steps if one.module == MOE and one.figure != "instructions"
    }
    comings = [(one.module, one.build, one.before_build, one.kind) for one in found.comings]
    assert comings == [(LM, "n3", "n2", "gone"), (FSDP, "n4", "n3", "new")]
    assert [(one.module, one.build) for one in found.missing] == [(LM, "n3")]
    assert not history(str(dataset), [f"{LM} n3 missing  # meant"]).missing


def test_a_missing_module_fails_until_it_is_accepted(dataset: Path, tmp_path: Path) -> None:
    """Not in the build alone in which it is gone; figures do not ask for it, and the page has the line that accepts it."""
    pytest.importorskip("jinja2")
    page, accepted = tmp_path / "page.html", tmp_path / "accepted.txt"
    failed = run("report", dataset, "-o", page, "--fail-on", "missing")
    assert failed.exit_code == 1
    assert f"{LM}: missing: not in n4 since n3; the last build with it is n2" in failed.stderr
    text = page.read_text()
    assert "1 module missing" in text
    (line,) = set(re.findall(rf"{LM} \S+ missing", text))
    accepted.write_text(f"{line}  # moved\n")
    assert run("report", dataset, "-o", page, "--fail-on", "missing", "--accepted", accepted).exit_code == 0
    assert ": moved" in page.read_text()
    assert run("report", dataset, "-o", page, "--fail-on", "wire_bytes").exit_code == 0
    assert run("report", dataset, "-o", page, "--fail-on", "lost").exit_code == 2


def test_the_ready_queries_tell_them_apart(dataset: Path) -> None:
    """As the history does."""
    assert {(row["module"], row["build"], row["before_build"]) for row in asked(dataset, "slower")} == {
        (LM, "n2", "n1"), (MOE, "n4", "n3")
    }  # fmt: skip
    assert asked(dataset, "modules-changed", "build=n3") == [{"change": "gone", "module": LM}]
    assert asked(dataset, "modules-changed") == [{"change": "appeared", "module": FSDP}]
    assert {row["module"] for row in asked(dataset, "appeared", "build=n2")} == {LM}
    assert {row["module"] for row in asked(dataset, "gone", "build=n3")} == {LM}
    assert [
        (row["module"], row["instructions_before"], row["instructions"]) for row in asked(dataset, "grew")
    ] == [(MOE, 3, 5)]
    since = asked(dataset, "since", "opcode=tanh")
    assert [(row["module"], row["since"], row["before"], row["now"]) for row in since] == [
        (LM, "n2", 0, 2), (MOE, "n4", 1, 3)
    ]  # fmt: skip


def page_of(dataset: Path) -> str:
    """The page of a dataset."""
    pytest.importorskip("jinja2")
    from hlotext.tables.history import history
    from hlotext.view.report import builds_page

    return builds_page(history(str(dataset)))


def test_the_page_compares_texts_of_one_program(dataset: Path) -> None:
    """The command of a step names the two texts that differ; what is told apart by its file has it said."""
    text = page_of(dataset)
    for model, old, new in (("lm", "n1", "n2"), ("moe", "n3", "n4")):
        file = f"{model}/module_0001.jit_train_step.after_optimizations.txt"
        assert f"/{old}/{file} " in text
        assert f"/{new}/{file}</code>" in text
    assert "<code>jit_train_step</code> is the name of 3 modules" in text


def test_a_module_that_is_gone_costs_neither_less_nor_the_same(dataset: Path) -> None:
    """It has a card of its own and no newest value; its trend is broken by marks that the legend explains."""
    text = page_of(dataset)
    cards = re.findall(
        r'<article class="step (\w+)".*?<code>(.*?)</code>.*?<p class="dim">(.*?)</p>', text, re.DOTALL
    )
    assert [(kind, name.replace("<wbr>", ""), lead) for kind, name, lead in cards] == [
        ("worse", MOE, "compared with n3, the previous build"),
        ("new", FSDP, "not in any earlier build"),
        ("gone", LM, "not in this build; the last one with it is n2"),
        ("worse", LM, "compared with n1, the previous build"),
    ]
    (part,) = (one for one in text.split("<section ") if f'aria-label="metrics of {LM}"' in one)
    assert "not in n4; the last build with it is n2" in part
    assert "n3: not in the build" in part
    assert re.findall(r'<line class="(\w+)"', part) == ["absent"] * 2 * part.count("<svg")
    assert re.findall(r'<li><i class="(\w+)"></i>', part) == ["worse", "absent"]
    rows = re.findall(r'<td class="n">(.*?)</td><td class="n">(.*?)</td>', part)
    assert set(rows) == {("not in it", "")}


def test_the_page_judges_the_newest_build_as_the_command_does(dataset: Path, tmp_path: Path) -> None:
    """What fails, against which build, in which figures; also where nothing is asked to hold."""
    place = tmp_path / "page.html"
    result = run("report", dataset, "-o", place, "--fail-on", "instructions,peak_bytes")
    assert result.exit_code == 1
    assert f"{MOE}: instructions 3 -> 5 since n3, the last good build" in result.stderr
    text = place.read_text("utf-8")
    assert "n4 fails" in text
    assert re.search(r"<code>--fail-on instructions,peak_bytes</code>: [12] metrics? above", text)
    rows = {row["figure"]: row for row in Page(text).tables["newest-verdict"].records()}
    told = rows["instructions"]
    assert (told["module"], told["good"], told["value"]) == (MOE, 3, 5)
    assert '3 <span class="of">n3</span>' in text
    assert told["change"] == pytest.approx(200 / 3)
    assert str(told["build"]).split() == ["n4", "+66.7%"]
    accepted = tmp_path / "accepted.txt"
    accepted.write_text(f"{MOE} n4 *\n{LM} n3 missing")
    assert run("report", dataset, "-o", place, "--fail-on", "any", "--accepted", accepted).exit_code == 0
    assert "n4 passes" in place.read_text("utf-8")


def test_a_figure_that_fell_and_is_above_the_last_good_build_is_no_progress() -> None:
    """Its card says so; and what the newest build lacks is named beside the verdict."""
    pytest.importorskip("jinja2")
    pytest.importorskip("pyarrow")
    from hlotext.tables.figures import FIGURES
    from hlotext.tables.history import BuildStep, Coming, History, ModuleHistory
    from hlotext.view.report import builds_comment, builds_page

    none: dict[str, dict[str, float]] = {name: {} for name in FIGURES}
    flops = none | {"flops": {"a": 1.0, "b": 4.0, "c": 3.0}}
    steps = (BuildStep("m", "b", "a", "flops", 1.0, 4.0), BuildStep("m", "c", "b", "flops", 4.0, 3.0))
    lost = ModuleHistory("lost", {"a": "x", "b": "x"}, none)
    modules = (ModuleHistory("m", dict.fromkeys("abc", "y"), flops), lost)
    found = History(("a", "b", "c"), modules, steps, (), (), (Coming("lost", "c", "b", "gone"),))
    text = builds_page(found)
    assert '<article class="step above"' in text
    assert "better than before, worse than in a" in text
    assert "c is above the last good build" in text
    assert "<code>lost</code>: not in c; the last build with it is b" in text
    assert "lost: not compared: not in c" in builds_comment(found, ["flops"])
    only = builds_page(History(("a", "b", "c"), (lost,), (), (), (), found.comings))
    assert "c could not be fully evaluated" in only


def test_changes_are_told_in_numbers_that_people_read() -> None:
    assert [format_change(one) for one in (0.125, -0.0849, 1410.5, 9, 0, -1e-9)] == [
        "+12.5%", "−8.49%", "1,412 times", "10 times", "none", "−<0.001%"
    ]  # fmt: skip


def test_signs_stand_before_numbers_alone() -> None:
    """What is below what is told has none: it was `+<1 ns` and `-0.0%`."""
    pytest.importorskip("jinja2")
    from hlotext.view.report.parts import PageColumn

    seconds = PageColumn("k", "t", "seconds", is_signed=True)
    assert [seconds.text(one) for one in (3e-10, -3e-10, 2e-9, -2e-9)] == ["<1 ns", "<1 ns", "+2 ns", "−2 ns"]
    share = PageColumn("k", "t", "share", is_signed=True)
    assert [share.text(one) for one in (-0.0002, 1410.5, 0.0)] == ["−0.02%", "1,412 times", "none"]


def test_the_column_that_decides_stands_beside_the_names() -> None:
    """Where there is room for two columns, these are them; the rows stay as they are."""
    pytest.importorskip("jinja2")
    from hlotext.view.report.parts import PageTable, columns_of

    for name in ("comparison_counts", "costs_lines", "costs_scopes", "collectives_why", "builds_operations"):
        columns = columns_of(f"report.{name}")
        table = PageTable("t", "t", columns, [[1] * len(columns)])
        assert sorted(table.shown) == list(range(len(columns)))
        assert table.shown[0] == 0
        assert columns[table.shown[1]].is_second


def test_long_shapes_are_cut_to_a_line() -> None:
    shape = f"({', '.join(f'/*index={n}*/f32[{n},64]{{1,0:T(8,128)}}' for n in range(1, 33))})"
    assert short_shape(shape, 36) == "(f32[1,64], f32[2,64], … 30 more)"
    assert short_shape("f32[8]{0:T(128)}", 36) == "f32[8]{0:T(128)}"
