"""Modules of several builds as programs: several of one name are told apart by file, then by arguments; or it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
    assert found.unjudged == []


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


def test_the_page_compares_texts_of_one_program(dataset: Path) -> None:
    """The command of a step names the two texts that differ."""
    pytest.importorskip("jinja2")
    from hlotext.tables.history import history
    from hlotext.view.report import builds_page

    text = builds_page(history(str(dataset)))
    for model, old, new in (("lm", "n1", "n2"), ("moe", "n3", "n4")):
        file = f"{model}/module_0001.jit_train_step.after_optimizations.txt"
        assert f"/{old}/{file} " in text
        assert f"/{new}/{file}</code>" in text
    assert Page(text).tables
