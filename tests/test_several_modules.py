"""Several modules in one file: every command looks at all of them, or refuses the file and names them. None takes one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import hlotext as hlo
from hlotext.cli import COMMANDS, main

TEXT = """HloModule first, is_scheduled=true

ENTRY e {{
  p = f32[4] parameter(0)
  ROOT same = f32[4] negate(p)
}}

HloModule second, is_scheduled=true

ENTRY e2 {{
  q = f32[64] parameter(0)
  ROOT only_there = f32[64] {opcode}(q), metadata={{op_name="jit(second)/{opcode}"}}
}}
"""

ALL = {
    "show": ("show FILE", "show FILE --arguments", "show FILE -i only_there", "show FILE --format json"),
    "grep": ("grep sine(_) FILE",),
    "memory": ("memory FILE", "memory FILE --format json", "memory FILE --by scope"),
    "cost": ("cost FILE", "cost FILE --format json", "cost FILE --by scope", "cost FILE --chip v5e"),
    "triage": ("triage FILE -j 1", "triage FILE -j 1 --format json"),
    "comm": ("comm FILE", "comm FILE --format json"),
    "shape": ("shape FILE", "shape FILE --format json"),
    "thunks": ("thunks FILE --platform cpu", "thunks FILE --platform cpu --format json"),
    "table": ("table FILE -o OUT",),
    "sql": ("sql 'select name from modules' FILE",),
    "check": ("check BROKEN",),
    "verify": ("verify WRONG",),
    "lint": ("lint BROKEN",),
    "fmt": ("fmt FILE", "fmt FILE --style canonical"),
    "rewrite": ("rewrite FILE --passes dce",),
    "convert": ("convert FILE --module second -o -",),
    "extract": ("extract FILE -i only_there",),
}
"""Command lines whose answer is about the second module too."""

REFUSED = {
    "graph": ("graph FILE -o -", "graph FILE -i same --format svg -o -"),
    "report": ("report FILE -o -", "report FILE ONE -o -"),
    "diff": (
        "diff FILE OTHER",
        "diff FILE OTHER --fail-on changes",
        "diff ONE OTHER",
        "diff FILE --write-golden OUT",
    ),
    "reduce": ("reduce FILE -- true",),
    "bugreport": ("bugreport FILE -o OUT --yes",),
    "run": ("run FILE", "run ONE --against OTHER"),
    "convert": ("convert FILE -o -", "convert FILE -o OUT.pb"),
    "extract": ("extract TWICE -i only_there",),
    "memory": ("memory FILE --svg OUT",),
    "dump": (
        "dump why DUMP -i only_there",
        "dump trace DUMP -i only_there",
        "dump copies DUMP",
        "dump pass FILE OTHER --pass dce",
        "dump pass ONE OTHER --pass dce",
        "dump pass DUMP --pass cpu_after_optimizations",
        "report DUMP -o -",
        "diff DUMP DUMP",
        "memory DUMP",
    ),
}
"""Command lines that mean one module."""

WITHOUT = frozenset({"bisect", "message", "help", "lsp", "mcp", "skill"})
"""Commands that read no module."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("several")
    texts = {
        "FILE": TEXT.format(opcode="sine"),
        "OTHER": TEXT.format(opcode="cosine"),
        "ONE": TEXT.format(opcode="sine").partition("\nHloModule second")[0],
        "TWICE": TEXT.format(opcode="sine").replace("same", "only_there"),
        "WRONG": TEXT.format(opcode="sine").replace("only_there = f32[64]", "only_there = f32[65]"),
        "BROKEN": TEXT.format(opcode="sine").replace("only_there =", "only_there"),
    }
    for name, text in texts.items():
        (folder / f"{name}.hlo").write_text(text)
    dump = folder / "dump"
    dump.mkdir()
    (dump / "module_0001.first.before_optimizations.txt").write_text(texts["OTHER"])
    (dump / "module_0001.first.cpu_after_optimizations.txt").write_text(texts["FILE"])
    names = {name: str(folder / f"{name}.hlo") for name in texts}
    return names | {"DUMP": str(dump), "OUT.pb": str(folder / "out.pb"), "OUT": str(folder / "out")}


def run(line: str, places: dict[str, str]) -> Result:
    import shlex

    return CliRunner().invoke(main, [places.get(word, word) for word in shlex.split(line)])


def test_every_command_is_in_the_table() -> None:
    assert ALL.keys() | REFUSED.keys() | WITHOUT == COMMANDS.keys()


@pytest.mark.parametrize("line", [line for lines in ALL.values() for line in lines])
def test_all_of_them(line: str, places: dict[str, str]) -> None:
    if line.startswith(("table", "sql")):
        for package in ("pyarrow", "fsspec", "duckdb"):
            pytest.importorskip(package)
    result = run(line, places)
    assert "internal error" not in result.output
    assert result.exit_code == ({"verify": 1, "check": 1, "lint": 2}.get(line.split()[0], 0)), result.output
    if line.startswith("table"):
        assert {row[0] for row in rows_of(places["OUT"])} == {"first", "second"}
        return
    named = ("second", "only_there", places.get("BROKEN", "") + ":12", "sine(q)", "64]", "c9")
    assert any(word in result.output for word in named), result.output
    if line.endswith("json"):
        assert len(json.loads(result.stdout)["modules"]) == 2


def rows_of(dataset: str) -> list[list[object]]:
    asked = CliRunner().invoke(main, ["sql", "select name from modules", dataset, "--format", "json"])
    found: list[list[object]] = json.loads(asked.stdout)["rows"]
    return found


@pytest.mark.parametrize("line", [line for lines in REFUSED.values() for line in lines])
def test_or_a_refusal(line: str, places: dict[str, str]) -> None:
    result = run(line, places)
    assert result.exit_code == 2, result.output
    assert "internal error" not in result.output
    assert ("first" in result.stderr and "second" in result.stderr) or "several" in result.stderr


def test_a_timeline_says_it_of_the_step(places: dict[str, str]) -> None:
    result = run("dump timeline DUMP --format json", places)
    assert "it contains several modules" in result.stdout


def test_of_the_library(places: dict[str, str]) -> None:
    """`load` and `parse` give the first, as they say, or with `only` an error; what compares and pictures asks for one."""
    path = places["FILE"]
    with pytest.warns(
        RuntimeWarning, match="contains 2 modules, and only the first, first, is returned: use parse_all"
    ):
        assert hlo.load(path).name == "first"
    with pytest.warns(RuntimeWarning, match="<text> contains 2 modules"):
        assert hlo.parse(Path(path).read_text()).name == "first"
    for act in (
        lambda: hlo.load(path, only=True),
        lambda: hlo.parse(Path(path).read_text(), only=True),
        lambda: hlo.diff.compare(path, path),
        lambda: hlo.compiler.explain(path, path, "dce"),
    ):
        with pytest.raises(hlo.InputError, match="contains 2 modules"):
            act()
