"""Real builds, three of which are broken and two worse: page, history and ready queries name these two and no other."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import support
from tests.cli_support import run
from tests.nightly_builds import Plan, name_of, program

pytest.importorskip("jax")
pytest.importorskip("jinja2")
pytest.importorskip("bokeh")
pytest.importorskip("pyarrow")
pytest.importorskip("duckdb")

from hlotext.tables.figures import TABLES
from hlotext.tables.history import history
from hlotext.view.report import builds_page

pytestmark = pytest.mark.slow
PLAN = Plan(10)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of builds that JAX compiled just now."""
    place = tmp_path_factory.mktemp("nightly")
    command = [sys.executable, "-m", "tests.nightly_builds", str(place), str(PLAN.builds)]
    subprocess.run(command, cwd=support.ROOT, check=True, capture_output=True)
    result = run("table", place / "builds", "-o", place / "tables", "--tables", ",".join(TABLES), "-j", "1")
    assert result.exit_code == 2, "three inputs are broken"
    return place / "tables"


def test_both_worse_builds_are_named_and_no_other(dataset: Path) -> None:
    """With the operation that brought it and its line; the memory in the one, the collective in the other."""
    found = history(str(dataset))
    assert len(found.builds) == PLAN.builds
    assert sorted(build for build, _, _ in found.unreadable) == sorted(map(name_of, PLAN.broken))
    assert {(one.module, one.build) for one in found.steps} == {
        ("jit_train_step", name_of(PLAN.keeps)),
        ("jit_train_step", name_of(PLAN.gathers)),
    }
    by = {(one.build, one.figure): one for one in found.steps}
    memory = by[name_of(PLAN.keeps), "peak_bytes"]
    source = program(PLAN.keeps, PLAN).splitlines()
    assert memory.is_worse
    assert "jnp.stack(seen)" in source[(memory.grown[0].line or 0) - 1]
    sent = by[name_of(PLAN.gathers), "wire_bytes"]
    assert sent.is_worse
    assert sent.grown[0].label == "all-gather"
    assert sent.grown[0].line is not None
    assert (name_of(PLAN.gathers), "findings") not in by, (
        "it saves 1.7% of the peak, too little for a finding"
    )
    page = builds_page(found)
    assert re.findall(r'<article class="step (\w+)"', page) == ["worse", "worse"]
    for one in (memory, sent):
        assert f"model.py:{one.grown[0].line}" in re.sub(r"<wbr>", "", page)


def test_the_ready_queries_agree(dataset: Path) -> None:
    """`slower` names both, `since` the collective, `unreadable` the broken ones."""

    def asked(query: str) -> list[dict[str, object]]:
        document = json.loads(run("sql", "--query", query, dataset, "--format", "json").stdout)
        names = [column["name"] for column in document["columns"]]
        return [dict(zip(names, row, strict=True)) for row in document["rows"]]

    slower = asked("slower")
    assert {row["build"] for row in slower} == {name_of(PLAN.keeps), name_of(PLAN.gathers)}
    assert {row["operation"] for row in slower if row["figure"] == "wire_bytes"} == {"all-gather"}
    assert all(row["line"] and row["percent"] != 0 for row in slower if row["figure"] != "findings")
    assert [row["since"] for row in asked("since")] == [name_of(PLAN.gathers)]
    assert sorted(str(row["build"]) for row in asked("unreadable")) == sorted(map(name_of, PLAN.broken))


def test_it_fails_against_the_last_good_build(dataset: Path, tmp_path: Path) -> None:
    """And no longer once both steps are accepted."""
    page, accepted = tmp_path / "page.html", tmp_path / "accepted.txt"
    result = run("report", dataset, "-o", page, "--fail-on", "peak_bytes,wire_bytes")
    assert result.exit_code == 1
    assert "peak memory" in result.stderr
    assert "bytes sent" in result.stderr
    accepted.write_text("\n".join(f"* {name_of(one)} *  # meant" for one in (PLAN.keeps, PLAN.gathers)))
    assert run("report", dataset, "-o", page, "--fail-on", "any", "--accepted", accepted).exit_code == 0
