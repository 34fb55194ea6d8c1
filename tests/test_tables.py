"""Tables: what they hold is what the commands show, and what other libraries read is what they hold."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import dumps, tables
from hlotext.tables import encodings
from hlotext.tables.schema import TYPES
from tests import support

TEXT = """HloModule tiny, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,128]{1,0} parameter(0), metadata={op_name="x"}
  y = f32[8,128]{1,0} negate(x), metadata={op_name="jit(f)/layer/neg" source_file="f.py" source_line=3}
  z = f32[] constant(0)
  ROOT r = f32[8]{0} reduce(y, z), dimensions={1}, to_apply=add
}
"""


def test_rows_without_arrow() -> None:
    """A small module by hand: every column of an instruction."""
    found = tables.tables_of(hlo.parse(TEXT))
    assert set(found) == set(tables.BASIC)
    rows = found["instructions"].to_rows()
    assert [row["name"] for row in rows] == ["a", "b", "c", "x", "y", "z", "r"]
    assert rows[6] == {
        "module": "tiny",
        "build": None,
        "id": 6,
        "computation": "main",
        "ordinal": 3,
        "name": "r",
        "opcode": "reduce",
        "label": "reduce",
        "shape": "f32[8]{0}",
        "dtype": "f32",
        "dims": [8],
        "layout": "{0}",
        "memory_space": 0,
        "bytes": 32,
        "padded_bytes": 32,
        "written_bytes": 32,
        "runs": 1,
        "operands": [4, 5],
        "calls": ["add"],
        "is_root": True,
        "op_name": "",
        "scope": "(results)",
        "direction": None,
        "file": None,
        "line": None,
        "function": None,
        "line_source": None,
        "text_line": 13,
    }
    assert found["operands"].to_rows()[-2:] == [
        {"module": "tiny", "build": None, "id": 6, "number": 0, "operand": 4},
        {"module": "tiny", "build": None, "id": 6, "number": 1, "operand": 5},
    ]
    assert [(row["key"], row["value"]) for row in found["attributes"] if row["id"] == 6] == [
        ("dimensions", "{1}"),
        ("to_apply", "%add"),
    ]
    (module,) = found["modules"].to_rows()
    assert (module["name"], module["instructions"], module["computations"]) == ("tiny", 7, 2)


def test_schema(request: pytest.FixtureRequest) -> None:
    """Names, types and units are a promise: what changes them changes the version."""
    lines = [f"version {tables.SCHEMA_VERSION}"]
    for table in tables.TABLES.values():
        lines += ["", f"{table.name}{' (basic)' if table.is_basic else ''}"]
        for column in table.columns:
            null = "?" if column.is_nullable else ""
            lines.append(f"  {column.name}: {column.type}{null}{f' in {column.unit}' if column.unit else ''}")
    golden = support.DATA / "golden" / "tables_schema.txt"
    support.check_golden(golden, "\n".join(lines) + "\n", update=request.config.getoption("--update-goldens"))


def test_the_schema_is_one() -> None:
    """Known types, no name twice, a sentence for everything; bytes have their unit."""
    for table in tables.TABLES.values():
        assert table.doc
        assert len(set(table.names)) == len(table.names)
        assert table.names[0] == "module"
        for column in table.columns:
            assert column.type in TYPES
            assert column.doc.endswith(".")
            assert column.unit == "bytes" or "bytes" not in column.name, column


@pytest.mark.parametrize(
    "text",
    [
        "HloModule nothing",
        "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)",
        "x = f32[?,8] parameter(0)",
        'x = f32[2] custom-call(), custom_call_target="\u00e9", odd_attribute={1,2}, channel_id=99999999999999999999',
        "x = f32[9000000000000000000,9000000000000000000] parameter(0)",
        "HloModule a\nENTRY e {\n ROOT t = ((f32[2], token[]), s4[3]) parameter(0)\n}\n",
        "ENTRY e {\n ROOT t = f32[2] call(), to_apply=nowhere\n}\n",
    ],
)
def test_odd_modules(text: str) -> None:
    """All tables of a module that misses what most have; nothing is null that may not be."""
    module = hlo.parse_tolerant(text).module
    assert module is not None
    for table in tables.tables_of(module, "all").values():
        check_nulls(table)
        assert len(table.to_rows()) == table.num_rows


def check_nulls(table: tables.Table) -> None:
    """Only columns that may be null are."""
    for column in table.schema.columns:
        assert column.is_nullable or None not in table[column.name], f"{table.name}.{column.name}"


def test_what_is_no_utf_8() -> None:
    """Bytes of a text that are none become U+FFFD, in every form of a table alike."""
    module = hlo.parse(b'x = f32[2] parameter(0), metadata={op_name="a\xff" source_file="\xe9"}')
    (row,) = tables.instructions(module)
    assert (row["op_name"], row["file"]) == ("a\ufffd", "\ufffd")
    pytest.importorskip("pyarrow")
    assert tables.instructions(module).to_arrow().to_pylist() == [row]


def test_after_an_edit() -> None:
    """Tables are of the module as it is now."""
    module = hlo.parse(TEXT)
    negate = module.find("y")
    assert isinstance(negate, hlo.Instruction)
    digest = tables.modules(module)["sha256"]
    negate.opcode = "abs"
    assert tables.instructions(module)["opcode"][4] == "abs"
    assert tables.modules(module)["sha256"] != digest


def test_files_and_folders() -> None:
    """Modules of several files stay apart by their key; a folder has its passes."""
    paths = [support.CORPUS / "handmade" / "map.txt", support.CORPUS / "handmade" / "map.txt"]
    found = tables.tables_of([*paths, hlo.parse(TEXT)])
    assert [key.partition("@")[0] for key in found["modules"]["module"]] == ["map", "map", "tiny"]
    assert set(found["instructions"]["module"]) == set(found["modules"]["module"])
    folder = next(
        path for path in sorted((support.DATA / "dumps").iterdir()) if dumps.open(path).compilations
    )
    made = tables.tables_of(folder, "modules,passes")
    rows = [row for one in dumps.open(folder).compilations for row in one.timeline()]
    assert len(made["passes"]) == len(rows)
    assert sum(one or 0 for one in made["passes"]["added"]) == sum(
        len(row.changes.added) for row in rows if row.changes is not None
    )
    assert set(made["passes"]["module"]) <= set(made["modules"]["module"])


def test_wrong_names() -> None:
    """A table that is not there, a file that is not there, a file that is no HLO."""
    with pytest.raises(tables.TableError, match="no table 'nosuch'"):
        tables.tables_of(hlo.parse(TEXT), "instructions,nosuch")
    with pytest.raises(hlo.InputError):
        tables.tables_of("nosuch.txt")
    with pytest.raises(hlo.HloSyntaxError):
        tables.tables_of(support.INVALID / "two_roots.txt")
    with pytest.raises(tables.TableError, match="one schema"):
        tables.concatenated([tables.empty("modules"), tables.empty("values")])


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows need no library; what needs it says how to get it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "hlotext.tables.arrow", raising=False)
    table = tables.instructions(hlo.parse(TEXT))
    assert len(table.to_rows()) == 7
    with pytest.raises(ImportError, match=re.escape("pip install 'hlotext[tables]'")):
        table.__arrow_c_stream__()


# ---- other libraries

EXAMPLE = support.CORPUS / "tpu"


@functools.cache
def example() -> dict[str, tables.Table]:
    """All tables of four modules, one of them a single op line."""
    smallest = sorted(EXAMPLE.iterdir(), key=lambda path: path.stat().st_size)[:2]
    return tables.tables_of([*smallest, hlo.parse("x = f32[] constant(1)"), hlo.parse(TEXT)], "all")


@pytest.mark.parametrize("name", tables.TABLES)
def test_arrow(name: str) -> None:
    """The same values, the schema's types, units in the metadata; what is joined has one dictionary."""
    pa = pytest.importorskip("pyarrow")
    table = example()[name]
    check_nulls(table)
    arrow = table.to_arrow()
    arrow.validate(full=True)
    assert arrow.to_pylist() == table.to_rows()
    assert pa.table(table).equals(arrow)
    assert arrow.schema.metadata[b"hlotext.schema_version"] == str(tables.SCHEMA_VERSION).encode()
    for column, field in zip(table.schema.columns, arrow.schema, strict=True):
        assert field.nullable == column.is_nullable
        assert field.metadata[b"doc"].decode() == column.doc
        if column.type == "word":
            assert arrow[column.name].num_chunks <= 1
            words = arrow[column.name].chunk(0).dictionary.to_pylist()
            assert len(words) == len(set(words))


@pytest.mark.parametrize("name", tables.TABLES)
def test_pandas(name: str) -> None:
    """`DataFrame.from_arrow` takes a table."""
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas", "3.0")
    table = example()[name]
    frame = pandas.DataFrame.from_arrow(table)
    assert list(frame.columns) == list(table.column_names)
    assert len(frame) == len(table)
    if name == "instructions":
        assert frame["padded_bytes"].sum() == sum(one or 0 for one in table["padded_bytes"])
        counts = frame.groupby("opcode", observed=True).size()
        assert counts.to_dict() == Counter(table["opcode"])


@pytest.mark.parametrize("name", tables.TABLES)
def test_polars(name: str) -> None:
    """`polars.DataFrame` takes a table."""
    pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    table = example()[name]
    assert polars.DataFrame(table).rows(named=True) == table.to_rows()


@pytest.mark.parametrize("name", tables.TABLES)
def test_duckdb(name: str) -> None:
    """A query finds a table under the name of its variable; operands are joined by their ids."""
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    table = example()[name]
    with duckdb.connect() as connection:
        connection.register("held", table)
        assert connection.sql("select count(*) from held").fetchall() == [(len(table),)]
        if name == "instructions":
            connection.register("operands", example()["operands"])
            ((used,),) = connection.sql(
                "select count(*) from operands o join held i on i.module = o.module and i.id = o.operand"
            ).fetchall()
            assert used == sum(one is not None for one in example()["operands"]["operand"])


@pytest.mark.parametrize("name", tables.TABLES)
def test_parquet(name: str, tmp_path: Path) -> None:
    """With the encodings of each column a file is read back alike, by other libraries too."""
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = example()[name]
    arrow, file = table.to_arrow(), tmp_path / "table.parquet"
    pq.write_table(arrow, file, compression="zstd", **encodings.options(arrow.schema))
    assert pq.read_table(file).to_pylist() == table.to_rows()
    if name == "instructions":
        columns = pq.ParquetFile(file).metadata.row_group(0)
        found = {
            columns.column(n).path_in_schema: columns.column(n).encodings for n in range(columns.num_columns)
        }
        assert "DELTA_BINARY_PACKED" in found["text_line"]
        assert "DELTA_BYTE_ARRAY" in found["name"]
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(file).rows(named=True) == table.to_rows()
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        # Points of time in DuckDB's rows need a package of their own.
        columns = "* exclude (modified)" if name == "modules" else "*"
        rows = connection.sql(f"select {columns} from read_parquet('{file}')").fetchall()
        assert [row[0] for row in rows] == table["module"]


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted there")
def test_a_dataset_is_read_in_one_thread(tmp_path: Path) -> None:
    """No thread of Arrow's can still let go of what Python gave it when the process ends: that aborts it."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("fsspec")
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.txt").write_text(TEXT, "utf-8")
    program = """
import os
from hlotext.tables import compaction
from tests.cli_support import run
before = len(os.listdir("/proc/self/task"))
for arguments in (["a.txt", "b.txt"], ["c.txt", "--append"]):
    assert run("table", "-j", "1", "-o", "out", *arguments).exit_code == 0
os.utime("a.txt", (1, 1))  # read again: its rows go out of the part that holds both
assert run("table", "-j", "1", "-o", "out", "--append", "a.txt").exit_code == 0
assert run("table", "-j", "1", "-o", "out", "nosuch.txt").exit_code == 2
raise SystemExit(len(os.listdir("/proc/self/task")) - before)
"""
    paths = os.pathsep.join([str(support.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert result.returncode == 0


def test_every_public_name_is_what_it_says() -> None:
    """No name of the room is hidden by one of its files once that is imported."""
    tables.tables_of(hlo.parse(TEXT))
    for name in tables.__all__:
        assert not isinstance(getattr(tables, name), types.ModuleType), name
