"""Passes on small modules: each file of tests/data/passes names its passes and has what they leave as its golden.

What passes leave of a module for several devices is executed on one, and compared with the module of the same name in the
folder `alone`, which was written by hand; what they leave of other modules is compared with the module itself.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.edit import integrity
from hlotext.rewrite.pipeline import Pipeline
from tests import support
from tests.semantics import passes_of

CASES = sorted((support.DATA / "passes").glob("*.hlo"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path, golden: Callable[[Path, str], None]) -> None:
    module = hlo.load(path)
    assert hlo.verify(module) == []
    passes = passes_of(path)
    Pipeline(passes).run(module)
    again = hlo.parse(str(module))
    assert integrity.problems(again) == []
    assert hlo.verify(again) == []
    if not any(pass_.is_one_round for pass_ in passes):
        assert not any(step.result.changed for step in Pipeline(passes).run(again))
    golden(path.with_suffix(".after"), str(module))


@pytest.mark.xla
@pytest.mark.slow  # once, with the newest release
def test_results() -> None:
    pytest.importorskip("jax")
    run = subprocess.run(
        [sys.executable, "-m", "tests.semantics", "cases", *map(str, CASES)],
        capture_output=True,
        text=True,
        cwd=support.ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert len(run.stdout.splitlines()) == len(CASES)
