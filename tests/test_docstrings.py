"""The examples in docstrings run."""

from __future__ import annotations

import doctest

import pytest

from tests.support import ROOT

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "hlotext").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    """In every module, without a list to which a new one would have to be added."""
    assert not doctest.testmod(pytest.importorskip(module, exc_type=ImportError)).failed
