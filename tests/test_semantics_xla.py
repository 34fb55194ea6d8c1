"""What passes leave is executed: XLA's results before and after agree on random inputs, for 46 programs of the corpus."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests import support
from tests.semantics import PIPELINE

pytestmark = pytest.mark.xla

PROGRAMS = sorted((support.DATA / "semantics").iterdir())
EACH_PASS = os.environ.get("HLOTEXT_EACH_PASS") == "1"
"""Whether each pass is tried on its own as well, which takes four minutes; else the pipeline of all of them alone."""
GROUPS = 4


def execute(files: list[str], which: str = "all" if EACH_PASS else "pipeline") -> list[dict[str, object]]:
    run = subprocess.run(
        [sys.executable, "-m", "tests.semantics", which, *files],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("group", support.in_stages(range(GROUPS), nightly=2))
def test_results_agree(group: int) -> None:
    pytest.importorskip("jax")
    done = execute([str(path) for path in PROGRAMS[group::GROUPS]])
    pipelines = [step for step in done if step["pass"] == "pipeline"]
    assert len(pipelines) == len(PROGRAMS[group::GROUPS])
    assert all(step["changed"] for step in pipelines)


LOOPS = ("kmeans_pca", "nested_loops", "random_threefry_old", "segment_ops")
"""Programs with loops of 4 to 6 rounds, some inside of others."""


@pytest.mark.slow
def test_unrolled_loops_compute_the_same() -> None:
    """Every loop of these programs written out, with what may follow and without."""
    pytest.importorskip("jax")
    done = execute([str(support.DATA / "semantics" / f"{name}.txt.xz") for name in LOOPS], "unroll")
    assert len(done) == 2 * len(LOOPS)
    assert all(step["changed"] for step in done)


def test_there_are_enough_programs_of_every_kind() -> None:
    assert len(PROGRAMS) >= 40
    texts = [support.read_text(path).decode() for path in PROGRAMS]
    kinds = (
        "while",
        "conditional",
        "gather",
        "scatter",
        "convolution",
        "dot",
        "sort",
        "reduce-window",
        "rng-bit-generator",
    )
    for opcode in kinds:
        assert any(f" {opcode}(" in text for text in texts), opcode
    assert PIPELINE.count(",") >= 12
