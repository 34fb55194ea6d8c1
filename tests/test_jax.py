"""hlotext inside JAX; each case runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import support

pytestmark = pytest.mark.xla


CASES = (
    "sine_to_cosine", "donation", "lost_donation", "kept_fields", "transformer", "grad_of_scan", "equal_states",
    "four_devices", "error", "registrations", "executed", "negative_zero", "wide_arguments", "combined_collectives",
    "skipped", "chosen_wrongly", "outcomes", "lowered", "lowered_for_shardy", "donation_kept",
)  # fmt: skip


def in_jax(*arguments: str) -> None:
    pytest.importorskip("jax.extend.xla")
    run = subprocess.run(
        [sys.executable, "-m", "tests.jax_programs", *arguments],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]


@pytest.mark.parametrize("case", support.in_stages(CASES, slow=8, nightly=len(CASES)))
def test_in_jax(case: str) -> None:
    """What the function of that name in `tests/jax_programs.py` asserts."""
    in_jax(case)


def test_a_changed_program_and_its_function(tmp_path: Path) -> None:
    """The second process finds what the first one cached, of both programs."""
    for _ in range(2):
        in_jax("lowered_apart", str(tmp_path))


CACHED = {
    "with a pass, then without": [("function", "miss"), ("nothing", "miss"), ("nothing", "hit")],
    "without a pass, then with": [("nothing", "miss"), ("function", "miss")],
    "a pass with a key": [("version", "miss"), ("version", "hit"), ("nothing", "miss")],
    "passes of the library": [("pipeline", "miss"), ("pipeline", "hit")],
}
"""Processes that share a compilation cache, one after the other: the pass of each, and whether it takes from the cache."""


@pytest.mark.parametrize("processes", CACHED.values(), ids=CACHED)
@pytest.mark.slow
@pytest.mark.nightly
def test_compilation_cache(processes: list[tuple[str, str]], tmp_path: Path) -> None:
    """Each process computes what its own pass makes, whatever the processes before it left in the cache."""
    for registered, wanted in processes:
        in_jax("compile_cached", registered, str(tmp_path), wanted)


@pytest.mark.slow
@pytest.mark.nightly
def test_programs_through_protos() -> None:
    """Every program of the corpus that runs on eight devices or fewer computes the same to the bit with a pass on its way."""
    pytest.importorskip("jax.extend.xla")
    run = subprocess.run(
        [sys.executable, "-m", "tests.proto_programs"],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=False,
    )
    results = dict(line.split(" ", 1) for line in run.stdout.splitlines() if not line.startswith("x sum"))
    assert run.returncode == 0, run.stderr[-3000:]
    assert len(results) >= 46
    assert {name: word for name, word in results.items() if word != "equal"} == {}
