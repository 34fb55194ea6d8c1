"""`--columns` and `--sort` of tables, and tables in narrow terminals."""

from __future__ import annotations

import pytest

from hlotext.cli.table_layout import TerminalColumn, fit
from hlotext.cli.table_options import number_of
from tests import support
from tests.cli_support import run

TPU = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"


def _rows(*arguments: str) -> list[list[str]]:
    """The rows of the first table below the facts."""
    result = run("cost", TPU, "--chip", "v5e", *arguments)
    assert result.exit_code == 0, result.stderr
    block = result.stdout.split("\n\n")[1]
    return [line.split() for line in block.splitlines()[2:] if "more" not in line]


def test_columns_and_sort() -> None:
    """Columns by title or JSON field, in the order given; rows by value, before they are cut."""
    rows = _rows("--columns", "flops,instruction", "--sort", "flops", "--limit", "2")
    assert [row[-1] for row in rows] == ["convolution_add_fusion", "fusion.19"]
    assert next(row[-1] for row in _rows("--columns", "instruction", "--sort", "-flops")) == "tuple.7"
    first = _rows("--columns", "name", "--sort", "name", "--limit", "1")
    assert first == [["convolution_add_fusion"]]


def test_columns_of_another_table() -> None:
    """A table without a column that is asked for keeps its names; what only JSON has by default is shown with its unit."""
    rows = _rows("--columns", "share,bytes,flops", "--limit", "3")
    assert all(len(row) >= 4 and row[0][0].isalpha() and row[2].endswith("B") for row in rows)


@pytest.mark.parametrize("arguments", [("--columns", "instruktion"), ("--sort", "flop")])
def test_an_unknown_column(arguments: tuple[str, ...]) -> None:
    """Exit status 2 and the nearest name."""
    result = run("cost", TPU, "--chip", "v5e", *arguments)
    assert result.exit_code == 2
    assert "no column" in result.stderr
    assert "did you mean" in result.stderr


def test_what_tells_rows_apart_stays() -> None:
    """A column without room is dropped if rows stay distinct without it, and else goes below each row."""
    columns = [TerminalColumn("kind"), TerminalColumn("groups", rank=0), TerminalColumn("where", rank=1)]
    apart = [
        ["all-reduce" * 3, f"{n} groups of 16 devices each, {n}", "layer/attention/softmax" * 2]
        for n in range(5)
    ]
    found = fit(columns, apart, 40)
    assert 1 in (*found.columns, *found.below)
    alike = [
        [f"all-reduce.{n}" * 2, "one group of all devices there are", "layer/attention" * 3] for n in range(5)
    ]
    found = fit(columns, alike, 40)
    assert found.below == ()
    assert 0 in found.columns
    long = [["a" * 30 + str(n) + "b" * 30] for n in range(3)]
    assert fit([TerminalColumn("name")], long, 30).below == (0,)


@pytest.mark.parametrize(
    ("text", "number"),
    [("1.5 KiB", 1536.0), ("2 us", 2e-6), ("98.5%", 98.5), ("18.3 M", 18.3e6), ("12", 12.0)],
)
def test_numbers_of_cells(text: str, number: float) -> None:
    """With the prefix of their unit."""
    assert number_of(text) == pytest.approx(number)
    assert number_of("fusion") == "fusion"


def test_names_of_files_are_cut_where_they_are_alike() -> None:
    """What is left of each tells rows apart."""
    columns = [TerminalColumn("min time", is_number=True), TerminalColumn("file")]
    rows = [
        ["1 ms", f"c5/module_00{n}.jit_{name}.cpu_after_optimizations.txt"]
        for n, name in ((40, "a"), (42, "b"))
    ]
    fitted = fit(columns, rows, 36)
    assert [row[-1] for row in fitted.rows] == [("module_0040.jit_a…",), ("module_0042.jit_b…",)]
    assert fitted.below == ()


@pytest.mark.parametrize("width", [34, 50, 70, 120])
def test_the_folder_that_differs_stays(width: int) -> None:
    """Compilers give modules of different builds one file name."""
    builds = ("decode", "decode_donated", "train")
    rows = [
        ["1 ms", f"out/{one}/module_0000.jit_step.cl_1014260217.after_optimizations.txt"] for one in builds
    ]
    fitted = fit([TerminalColumn("min time", is_number=True), TerminalColumn("file")], rows, width)
    for build, row in zip(builds, fitted.rows, strict=True):
        assert f"{build}/" in row[-1][0], row
    assert fitted.below == ()


def test_a_sentence_with_a_long_name_keeps_its_column() -> None:
    """The name breaks behind an underscore; a row that is too wide breaks anywhere."""
    columns = [TerminalColumn("what"), TerminalColumn("operations", is_number=True)]
    fitted = fit(columns, [["changed: header: allow_spmd_sharding_propagation_to_parameters", "1"]], 44)
    assert sum(fitted.widths) + 4 <= 44
    assert fitted.rows[0][0] == ("changed: header: allow_spmd_", "sharding_propagation_to_", "parameters")
