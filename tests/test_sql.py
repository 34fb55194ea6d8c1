"""SQL over tables: ready queries, formats, builds beside each other, and what a query may not do."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint, tables
from hlotext.tables import queries
from tests.cli_support import run
from tests.support import ROOT
from tests.test_farm import TEXT

pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("duckdb")
pytest.importorskip("fsspec")

GATHER = """HloModule jit_gather

ENTRY main {
  x = f32[64] parameter(0)
  ROOT g = f32[128] all-gather(x), replica_groups={{0,1}}, dimensions={0}, metadata={op_name="jit(f)/layer/ag"}
}
"""
PLAIN = """HloModule jit_gather

ENTRY main {
  x = f32[64] parameter(0)
  ROOT g = f32[64] negate(x), metadata={op_name="jit(f)/layer/neg"}
}
"""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three builds: in the second an all-gather comes, in the third a module grows, another goes."""
    folder = tmp_path_factory.mktemp("sql")
    for number, build in enumerate(("2026-11-20", "2026-11-21", "2026-11-22")):
        place = folder / "dumps" / build
        place.mkdir(parents=True)
        (place / "gather.after_optimizations.txt").write_text(PLAIN if not number else GATHER, "utf-8")
        grown = TEXT.format(name="jit_grows", size=64 if number < 2 else 256)
        (place / "grows.after_optimizations.txt").write_text(grown, "utf-8")
        if number < 2:
            (place / "old.after_optimizations.txt").write_text(TEXT.format(name="jit_old", size=2), "utf-8")
    (place / "broken.after_optimizations.txt").write_text("HloModule", "utf-8")
    out = str(folder / "tables")
    assert run("table", str(folder / "dumps"), "-o", out, "-j", "1", "-q").exit_code == 2
    return out


def asked(*arguments: str, status: int = 0) -> list[dict[str, str]]:
    """The rows of `hlotext sql`, by way of CSV."""
    result = run("sql", *arguments, "--format", "csv")
    assert result.exit_code == status, result.stderr
    return list(csv.DictReader(io.StringIO(result.stdout)))


def test_since_when_there_is_more_of_an_opcode(dataset: str) -> None:
    """The all-gather came with the second build, and once."""
    assert asked("--query", "since", dataset) == [
        {
            "module": "jit_gather",
            "since": "2026-11-21",
            "before_build": "2026-11-20",
            "before": "0",
            "now": "1",
        }
    ]
    assert asked("--query", "since", "-p", "opcode=all-reduce", dataset) == []


def test_what_changed_between_two_builds(dataset: str) -> None:
    """The last two without being told, others on demand."""
    [grown] = asked("--query", "grew", dataset)
    assert (grown["module"], grown["written_before"], grown["written"], grown["percent"]) == (
        "jit_grows", "256", "1024", "300.0"
    )  # fmt: skip
    assert asked("--query", "modules-changed", dataset) == [{"change": "gone", "module": "jit_old"}]
    old = ("-p", "build=2026-11-21", "-p", "old=2026-11-20")
    [came] = asked("--query", "appeared", *old, "-p", "opcode=all-gather", dataset)
    assert (came["operation"], came["shape"], came["scope"], came["more_bytes"]) == (
        "all-gather", "f32[128]", "layer", "512"
    )  # fmt: skip
    [went] = asked("--query", "gone", *old, dataset)
    assert (went["operation"], went["before"], went["now"]) == ("negate", "1", "0")
    assert [(row["build"], row["inputs"], row["unreadable"]) for row in asked("--query", "builds", dataset)] == [
        ("2026-11-20", "3", "0"), ("2026-11-21", "3", "0"), ("2026-11-22", "3", "1")
    ]  # fmt: skip
    [broken] = asked("--query", "unreadable", dataset)
    assert "X1" in broken["error"]


@pytest.mark.parametrize("name", queries.names())
def test_ready_queries(name: str, dataset: str) -> None:
    """Each has a title and says its parameters, runs as it is, and with every parameter."""
    found = queries.query(name)
    assert found.title
    assert {one.name for one in found.parameters} == set(re.findall(r"\$(\w+)", found.sql))
    result = run("sql", "--query", name, dataset, "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["columns"]
    assert run("sql", "--query", name, "--show").stdout == found.sql


def test_costs_of_operations(tmp_path: Path) -> None:
    """A row for each operation that runs, fusions with what is in them; together they cost what the module does."""
    path = ROOT / "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
    rows = asked("--query", "costs", str(path))
    module = hlo.load(path)
    run_cost = hlo.cost.analyze(module).run
    assert sum(float(row["flops"]) for row in rows) == pytest.approx(run_cost.flops)
    assert sum(float(row["bytes_accessed"]) for row in rows) == pytest.approx(run_cost.bytes_accessed)
    assert "fused" not in " ".join(row["computation"] for row in rows)
    seconds = sum(one.seconds for one in hlo.cost.estimate(module, "v5e").instructions)
    assert sum(float(row["seconds"] or 0) for row in rows) >= seconds * 0.999
    fusion = next(row for row in rows if row["name"] == "convolution_add_fusion")
    assert float(fusion["flops"]) > 0


def test_questions_to_modules_without_a_dataset(tmp_path: Path) -> None:
    """Files are read for the query; one that cannot be read is said, and the others are there."""
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text(GATHER, "utf-8")
    query = "select opcode, count(*) as n from instructions group by opcode order by opcode"
    expected = [{"opcode": "all-gather", "n": "2"}, {"opcode": "parameter", "n": "2"}]
    assert asked(query, *map(str, files)) == expected
    (tmp_path / "c.txt").write_text("nothing", "utf-8")
    assert asked(query, *map(str, files), str(tmp_path / "c.txt"), status=2) == expected


def test_formats(dataset: str, tmp_path: Path) -> None:
    """The same rows in every one; text is aligned, cut, and says so."""
    query = "select m.name, i.dims, sum(i.bytes) as s, 0.5 as half, null as no from instructions i join modules m "
    query += "using (module) where i.opcode = 'all-gather' group by all order by all"
    document = json.loads(run("sql", query, dataset, "--format", "json").stdout)
    assert [column["type"] for column in document["columns"]][:3] == ["VARCHAR", "BIGINT[]", "HUGEINT"]
    assert document["rows"] == [["jit_gather", [128], 1024, 0.5, None]]
    [row] = asked(query, dataset)
    assert row == {"name": "jit_gather", "dims": "[128]", "s": "1024", "half": "0.5", "no": ""}
    out = tmp_path / "found.parquet"
    assert run("sql", query, dataset, "--format", "parquet", "-o", str(out)).exit_code == 0
    assert pq.read_table(out).to_pylist()[0]["dims"] == [128]
    text = run("sql", "select name, bytes from instructions order by name, bytes", dataset, "-n", "3").stdout
    assert len(text.splitlines()) == 6
    assert "... and " in text
    assert asked("select 'nan'::float8 as a, [1.5, null] as b", dataset) == [{"a": "", "b": "[1.5, null]"}]


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{file}')",
        "select * from read_parquet('{dataset}/modules/*')",
        "select * from '{file}'",
        "select * from glob('/*')",
        "select content from read_text('{file}')",
        "copy modules to '{file}'",
        "attach '{file}' as other",
        "install httpfs",
        "load httpfs",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "select 1; select 2",
        "export database '{file}'",
        "select * from queries",
        "pragma nosuch",
        "select getenv('HOME')",
        "selec",
        "",
    ],
)
def test_queries_reach_nothing_else(query: str, dataset: str, tmp_path: Path) -> None:
    """Neither files nor the network nor Python's variables, also not those of a query that somebody sent."""
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n", "utf-8")
    result = run("sql", query.format(file=file, dataset=dataset), dataset)
    assert result.exit_code == 2
    assert "internal error" not in result.stderr
    assert file.read_text("utf-8") == "a\n1\n"
    assert not result.stdout


def test_nothing_of_a_text_acts_on_a_terminal(tmp_path: Path) -> None:
    """Names of a module are shown, not obeyed."""
    file = tmp_path / "m.txt"
    file.write_text(
        'HloModule m\n\nENTRY e {\n  ROOT a = f32[] parameter(0), metadata={op_name="x\x1b[31m"}\n}\n',
        "utf-8",
    )
    result = run("sql", "select op_name from instructions", str(file))
    assert result.exit_code == 0, result.stderr
    assert "\x1b" not in result.stdout
    assert "x\N{REPLACEMENT CHARACTER}[31m" in result.stdout


def test_wrong_command_lines(dataset: str) -> None:
    """One line, and what there is instead."""
    for arguments, status, message in (
        ([], 2, "missing query"),
        (["select 1"], 2, "missing argument DATASET|FILE|DIR"),
        (["--query", "nosuch", dataset], 2, "no predefined query 'nosuch'; there are appeared"),
        (["--query", "since", "-p", "x=1", dataset], 2, "the query has no parameter x; it has opcode"),
        (["--query", "since", "-p", "opcode", dataset], 2, "-p takes NAME=VALUE"),
        (["select * from modules where build = $b", dataset], 2, "query error"),
        (["select 1", "nosuch"], 2, "nosuch does not exist"),
        (["select 1", dataset, "--format", "parquet"], 2, "parquet needs -o FILE"),
    ):
        result = run("sql", *arguments)
        assert result.exit_code == status, arguments
        assert message in " ".join(result.stderr.split())


def test_the_baseline_of_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the newest build knows is what `lint --write-baseline` would have written of its modules."""
    monkeypatch.chdir(tmp_path)
    for build in ("b1", "b2"):
        (tmp_path / "dumps" / build).mkdir(parents=True)
        for name in ("conditionals", *(["callback_io"] if build == "b2" else [])):
            source = ROOT / f"corpus/tpu/{name}.v5e_2x2x1.after_optimizations.txt"
            (tmp_path / "dumps" / build / source.name).write_bytes(source.read_bytes())
    result = run("lint", "dumps/b2", "--isolated", "--baseline", str(tmp_path))
    assert (result.exit_code, "is not a dataset" in result.stderr) == (2, True)
    assert run("table", "dumps", "-o", "tables", "-j", "1").exit_code == 0
    result = run("lint", "dumps/b2", "--isolated", "--baseline", "tables")
    assert (result.exit_code, "lacks findings of build b2" in result.stderr) == (2, True)
    assert run("table", "dumps", "-o", "tables", "--tables", "findings", "-j", "1").exit_code == 0
    assert run("lint", "dumps/b2", "--isolated", "--write-baseline", "known.json").exit_code == 0
    assert tables.dataset_baseline.baseline("tables") == lint.Baseline.load(Path("known.json"))
    assert tables.dataset_baseline.baseline("tables").entries
    result = run("lint", "dumps/b2", "--isolated", "--baseline", "tables")
    assert (result.exit_code, "known finding" in result.stderr) == (0, True)
    assert len(tables.dataset_baseline.baseline("tables", "b1").entries) < len(
        tables.dataset_baseline.baseline("tables").entries
    )
    rows = asked("--query", "new-findings", "tables")
    assert rows
    assert asked("--query", "new-findings", "-p", "build=b2", "-p", "old=b2", "tables") == []


@pytest.mark.parametrize("output_format", ["text", "csv", "json"])
@pytest.mark.parametrize(
    "query",
    [
        "select * from instructions",
        "select [1, 2] as a, [[1.5], null] as b, {'k': 1} as c, map(['a'], [1]) as d, [true] as e",
        "select 1::decimal(9, 2) as a, 1::hugeint as b, null::integer as c, 'nan'::double as d, union_value(n := 2) as e",
        "select date '2026-01-01' as a, interval 3 days as b, 'x'::blob as c, uuid() as d, time '01:02:03' as e",
        "select unnest([1, 2]::integer[]) as a, [1, 2]::integer[2] as b, row(1, 'x') as c, 'a'::enum('a', 'b') as d",
    ],
)
def test_values_of_every_type_are_shown(query: str, output_format: str, dataset: str) -> None:
    result = run("sql", query, dataset, "--format", output_format)
    assert result.exit_code == 0, result.output


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    """Four builds of two modules; in the third the file of one breaks off, in the fourth a module is gone."""
    for number, build in enumerate(("b1", "b2", "b3", "b4")):
        place = tmp_path / "dumps" / build
        place.mkdir(parents=True)
        text = TEXT.format(name="jit_cut", size=8)
        (place / "cut.after_optimizations.txt").write_text(text[: len(text) // 2] if number == 2 else text)
        if number < 3:
            (place / "gone.after_optimizations.txt").write_text(TEXT.format(name="jit_gone", size=8))
    out = str(tmp_path / "tables")
    assert run("table", str(tmp_path / "dumps"), "-o", out, "-j", "1", "-q", "--tables", "all").exit_code == 2
    return out


@pytest.mark.parametrize("query", ["gone", "appeared", "grew", "modules-changed", "new-findings"])
def test_what_cannot_be_read_is_not_gone(query: str, nightly: str) -> None:
    """It is compared with the last build that could be read, which is said."""
    for build in ("b3", "b4"):
        result = run("sql", "--query", query, "-p", f"build={build}", nightly, "--format", "csv")
        assert result.exit_code == 0, result.stderr
        assert "jit_cut" not in result.stdout
        assert "build b3: " in result.stderr
        assert "cut.after_optimizations.txt could not be read; their modules are compared" in result.stderr
        is_gone = build == "b4" and query in ("gone", "modules-changed")
        assert ("jit_gone" in result.stdout) is is_gone, result.stdout
    assert "could not be read" not in run("sql", "--query", query, "-p", "build=b2", nightly).stderr


@pytest.mark.parametrize(
    ("query", "given", "read", "left_out"),
    [
        ("bytes-by-opcode", (), "(2026-11-22)", "2026-11-21, 2026-11-20"),
        ("appeared", (), "(2026-11-22 against 2026-11-21)", "2026-11-20"),
        ("bytes-by-opcode", ("-p", "build=2026-11-21"), "(2026-11-21)", ""),
        ("builds", (), "", ""),
    ],
)
def test_the_builds_that_a_query_reads_are_named(
    query: str, given: tuple[str, ...], read: str, left_out: str, dataset: str
) -> None:
    """Of several builds the newest are read: the title names them, and a line those left out."""
    result = run("sql", "--query", query, *given, dataset)
    assert result.exit_code == 0, result.stderr
    title = result.stdout.splitlines()[0]
    assert title.endswith(read)
    assert read or "2026" not in title
    said = f"builds not shown: {left_out} (-p build=NAME selects one)"
    assert said in " ".join(result.stderr.split()) if left_out else "left out" not in result.stderr


def test_totals_say_what_is_missing(nightly: str) -> None:
    result = run("sql", "--query", "bytes-by-opcode", "-p", "build=b3", nightly)
    assert "their modules are not counted" in result.stderr


@pytest.mark.parametrize(
    ("query", "given", "meant"),
    [
        ("gone", "build=b5", "no build is named b5; there are b1, b2, b3, b4"),
        ("gone", "old=2030-01-01", "no build is named 2030-01-01; there are b1, b2, b3, b4"),
        ("since", "opcode=all-gahter", "no opcode is named all-gahter: did you mean `all-gather`?"),
        ("appeared", "opcode=tanhh", "did you mean `tanh`?"),
    ],
)
def test_a_parameter_that_names_nothing(query: str, given: str, meant: str, nightly: str) -> None:
    result = run("sql", "--query", query, "-p", given, nightly)
    assert result.exit_code == 2
    assert meant in " ".join(result.stderr.split())


def test_no_cell_of_csv_is_a_formula(nightly: str, tmp_path: Path) -> None:
    query = "select '=1+1' as a, '+x' as b, '-x' as c, '@x' as d, -1 as e, '-' || chr(9) as f, chr(9) || 'x' as \"=g\""
    shown = run("sql", query, nightly, "--format", "csv").stdout
    assert shown.splitlines()[1].startswith("'=1+1,'+x,'-x,'@x,-1,")
    place = tmp_path / "x.csv"
    assert run("sql", query, nightly, "--format", "csv", "-o", str(place)).exit_code == 0
    rows = list(csv.reader(io.StringIO(place.read_text())))
    assert rows == [
        ["a", "b", "c", "d", "e", "f", "'=g"],
        ["'=1+1", "'+x", "'-x", "'@x", "-1", "'-\t", "'\tx"],
    ]


ENDLESS = "select count(*) from range(1000000000000) a"


def test_a_query_has_bounds(dataset: str) -> None:
    """Of time and of memory; what does not fit is no file either."""
    result = run("sql", "--timeout", "0.05", ENDLESS, dataset)
    assert (result.exit_code, "it took longer than 0.05 s" in result.stderr) == (2, True)
    result = run("sql", "--memory", "20MB", "select list(a) from range(100000000) t(a)", dataset)
    assert (result.exit_code, "Out of Memory" in result.stderr) == (2, True)
    result = run("sql", "--memory", "much", "select 1", dataset)
    assert (result.exit_code, "query error" in result.stderr) == (2, True)
    assert run("sql", "--timeout", "1000", "--memory", "1GB", "select 1", dataset).exit_code == 0


@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_a_signal_leaves_nothing_behind(tmp_path: Path) -> None:
    """The tables that were read for one question go. The query never ends, so the signal comes while it runs, or before."""
    (tmp_path / "a.hlo").write_text(TEXT.format(name="a", size=8))
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = [sys.executable, "-m", "hlotext", "sql", ENDLESS, str(tmp_path / "a.hlo")]
    with subprocess.Popen(command, env=os.environ | {"TMPDIR": str(folder)}) as child:
        while not list(folder.glob("*/*")):
            assert child.poll() is None
        child.terminate()
        assert child.wait() == -signal.SIGTERM
    assert list(folder.iterdir()) == []


def test_a_query_is_read_before_the_modules(tmp_path: Path) -> None:
    """Tables of many modules take minutes: a slip in the query is told before."""
    said = run("sql", "selct 1", tmp_path / "missing.hlo")
    assert said.exit_code == 2
    assert "query error: " in said.stderr
    assert "selct" in said.stderr


def test_what_was_not_built_is_blank_and_said(tmp_path: Path) -> None:
    """Zeros for what nobody counted were taken for figures."""
    (tmp_path / "gather.after_optimizations.txt").write_text(GATHER, "utf-8")
    source, out = str(tmp_path / "gather.after_optimizations.txt"), str(tmp_path / "tables")
    assert run("table", source, "-o", out, "-j", "1", "-q", "--tables", "modules,instructions").exit_code == 0
    result = run("sql", "--query", "figures", out, "--format", "json")
    document = json.loads(result.stdout)
    figures = dict(zip((one["name"] for one in document["columns"]), *document["rows"], strict=True))
    assert {figures[name] for name in ("peak_bytes", "flops", "wire_bytes", "findings")} == {None}
    missing = "buffers,collectives,costs,findings,times"
    assert f"to build: hlotext table INPUTS -o {out} --append --tables {missing}" in result.stderr
    asked = run("sql", "select peak_bytes from modules", source, "-j", "1")
    assert asked.exit_code == 0
    assert "not built" not in asked.stderr  # the table that it takes was made for the query


@pytest.mark.parametrize("statement", ["drop table modules", "insert into modules values (1)"])
def test_tables_are_read_only(dataset: str, statement: str) -> None:
    result = run("sql", statement, dataset)
    assert result.exit_code == 2
    assert f"the tables are read-only: {statement.split()[0].upper()} is not allowed" in result.stderr


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("5050372.0::double", "5,050,372"),
        ("0.25::double", "0.25"),
        ("1e300::double", "1e+300"),
        ("1.5::decimal(4,1)", "1.5"),
    ],
)
def test_whole_numbers_are_written_out(value: str, shown: str) -> None:
    """Bytes and FLOPs are floats in tables."""
    assert (
        run(
            "sql", f"select {value} as bytes", ROOT / "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"
        ).stdout.split()[-1]
        == shown
    )


def test_operations_hold_what_costs_and_times_have_by_id(tmp_path: Path) -> None:
    """Who asks which operations take most needs no join, and a dataset without options has the answer."""
    (tmp_path / "grows.after_optimizations.txt").write_text(TEXT.format(name="jit_grows", size=64), "utf-8")
    source, out = str(tmp_path / "grows.after_optimizations.txt"), str(tmp_path / "tables")
    query = "select name, bytes_accessed, flops from operations order by bytes_accessed desc, name"
    found = asked(query, source, "-j", "1")
    run_cost = hlo.cost.analyze(hlo.load(source)).run
    assert sum(float(row["bytes_accessed"]) for row in found) == run_cost.bytes_accessed > 0
    assert run("table", source, "-o", out, "-j", "1", "-q").exit_code == 0
    assert asked(query, out) == found
    assert run("table", source, "-o", f"{out}2", "-j", "1", "-q", "--tables", "instructions").exit_code == 0
    said = run("sql", query, f"{out}2").stderr
    assert "costs, times: tables were not built" in said


SHARED = """HloModule m

half {
  p = f32[64] parameter(0)
  ROOT s = f32[64] sine(p)
}

inner {
  p = f32[64] parameter(0)
  ROOT f = f32[64] fusion(p), kind=kLoop, calls=half
}

ENTRY e {
  a = f32[64] parameter(0)
  x = f32[64] fusion(a), kind=kLoop, calls=inner
  y = f32[64] fusion(x), kind=kLoop, calls=half
  ROOT n = f32[64] negate(y)
}
"""


def test_costs_by_instruction_are_those_of_operations(tmp_path: Path) -> None:
    """Fusions of one body share its cost."""
    (tmp_path / "m.txt").write_text(SHARED, "utf-8")
    for path in (tmp_path / "m.txt", ROOT / "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"):
        found = hlo.cost.analyze(hlo.load(path))
        own = found.by("instruction")
        query = "select name, sum(flops) as flops, sum(bytes_accessed) as bytes from operations group by name"
        assert {
            row["name"]: (float(row["flops"]), float(row["bytes"])) for row in asked(query, str(path))
        } == {name: pytest.approx((one.flops, one.bytes_accessed)) for name, one in own.items()}
        assert sum(one.bytes_accessed for one in own.values()) == pytest.approx(found.run.bytes_accessed)
    found = hlo.cost.analyze(hlo.load(tmp_path / "m.txt"))
    assert {one.name: cost.transcendentals for one, cost in found.by_instruction().items()} == {
        "x": 64,
        "y": 64,
        "n": 0,
    }
    shown = run("cost", tmp_path / "m.txt").stdout
    table = shown.partition("sorted by bytes")[2].splitlines()[2:]
    assert sorted(line.split()[0] for line in table) == ["n", "x", "y"]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("select * from ops", "there is no table ops; "),
        (
            "select name, flops from costs",
            "no column is named name here; name is a column of operations, buffers,",
        ),
        ("select c.line from costs c", "line is a column of operations, findings, instructions"),
        ("select flop from costs", "no column is named flop; did you mean `flops`?"),
        ("select sent_bytes from collectives", "did you mean `wire_bytes`?"),
        ("select zzzzzzzz from costs", "no column is named zzzzzzzz; `describe costs` lists the columns"),
    ],
)
def test_unknown_names_lead_to_the_tables_that_have_them(dataset: str, query: str, hint: str) -> None:
    result = run("sql", query, dataset)
    assert result.exit_code == 2
    assert hint in result.stderr
