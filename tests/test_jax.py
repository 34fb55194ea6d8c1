"""hlotext inside JAX; each case runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import support

pytestmark = pytest.mark.xla


@pytest.mark.parametrize(
    "case", ["sine_to_cosine", "donation", "kept_fields", "transformer", "error", "executed"]
)
def test_in_jax(case: str) -> None:
    """What the function of that name in `tests/jax_programs.py` asserts."""
    pytest.importorskip("jax.extend.xla")
    run = subprocess.run(
        [sys.executable, "-m", "tests.jax_programs", case],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
