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
    """In every module, without a list to add new ones to; what needs an extra is skipped without it."""
    found = pytest.importorskip(module, exc_type=ImportError)
    try:
        doctest.testmod(found, raise_on_error=True)
    except doctest.DocTestFailure as failure:
        example = failure.example
        pytest.fail(f"{module}: {example.source}expected {example.want}got {failure.got}")
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        if not isinstance(error, ImportError):
            raise error from None
        pytest.skip(str(error))
