"""Programs with one classic fault each, compiled for CPU, TPU and GPU: found by default, unless the compiler repaired them.

The programs are in corpus/programs/faults.py, but for one that JAX cannot write: it gives every size a number before it
compiles, so that dynamic sizes come as StableHLO, tests/data/lint/dynamic_shape.mlir. tests/data/lint/faults.csv says what is
to be found in each module, one of several codes, or why nothing is left to be found.
"""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest

from hlotext import lint
from hlotext.ir.nodes.source import Source
from hlotext.syntax.source.inputs import read_source
from tests import support

FOLDER = support.DATA / "lint" / "faults"


def _rows() -> list[dict[str, str]]:
    with (support.DATA / "lint" / "faults.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", _rows(), ids=lambda row: ".".join(row["file"].split(".")[:2]))
def test_the_fault_is_found_where_it_is(row: dict[str, str]) -> None:
    """By the rules that are on by default, and those that are meant."""
    codes = tuple(row["codes"].split())
    source = read_source(FOLDER / row["file"])
    found = {one.code for one in lint.lint_source(source, lint.Config(extend_select=codes)).findings}
    assert bool(found & set(codes)) is not bool(row["repaired"])


def test_every_module_is_listed() -> None:
    """And every program has one in which its fault is left, but for those that every compiler repairs."""
    rows = _rows()
    assert {row["file"] for row in rows} == {path.name for path in FOLDER.iterdir()}
    programs = {row["file"].split(".")[0] for row in rows}
    left = {row["file"].split(".")[0] for row in rows if not row["repaired"]}
    assert len(programs) == 26
    assert programs - left == {"fault_full_rematerialization", "fault_narrow_minor", "fault_repeated_gather"}


_COMPILE = """
import sys
from jaxlib import _jax, xla_client

client = xla_client.make_cpu_client()
devices = _jax.DeviceList(tuple(client.devices()[:1]))
compiled = client.compile_and_load(sys.stdin.read(), devices, xla_client.CompileOptions())
print(compiled.hlo_modules()[0].to_string())
"""


@pytest.mark.xla
def test_a_dynamic_size_that_is_returned_stays_dynamic() -> None:
    """XLA compiles it: inside the program it pads, what is returned has its size at run time."""
    pytest.importorskip("jaxlib")
    program = (support.DATA / "lint" / "dynamic_shape.mlir").read_text()
    run = subprocess.run(
        [sys.executable, "-c", _COMPILE],
        input=program,
        capture_output=True,
        text=True,
        check=True,
    )
    assert {finding.code for finding in lint.lint_source(Source(run.stdout)).findings} == {"G109"}
