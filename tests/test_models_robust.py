"""Models of passes on modules that they were not made for: an answer or an error of the library, and the module unchanged."""

from __future__ import annotations

import contextlib

import pytest

import hlotext as hlo
from hlotext import compiler
from hlotext.compiler.models import MODELS
from tests import support

CORPUS = support.CORPUS
QUICK = sorted(path for path in (CORPUS / "handmade").glob("*.txt") if path.stat().st_size < 4_000)[::8]
ALL = sorted(
    path for path in CORPUS.glob("*/*.txt") if path.stat().st_size < 400_000 and path.parent.name != "invalid"
)


def check(module: hlo.Module) -> None:
    """Asks all models; what they are given stays as it was, and what they make can be read again."""
    text = str(module)
    for (name, platform), model in MODELS.items():
        try:
            outcome = model(module, None, "", None)
        except (ValueError, LookupError, hlo.EditError):
            continue
        assert str(module) == text, (name, platform)
        if outcome.module is not module:
            again = hlo.parse(str(outcome.module))
            assert sum(1 for _ in again.instructions()) == sum(1 for _ in outcome.module.instructions())
        for decision in outcome.decisions:
            assert decision.because
    with contextlib.suppress(ValueError):
        compiler.schedules(module)


@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.name)
def test_small_modules(path) -> None:  # type: ignore[no-untyped-def]
    for module in hlo.parse_all(path.read_text("utf-8")):
        check(module)


@pytest.mark.parametrize(
    "path", support.in_stages(support.spread(ALL, 3), nightly=len(ALL) // 3), ids=lambda path: path.name
)
def test_the_corpus(path) -> None:  # type: ignore[no-untyped-def]
    for module in hlo.parse_tolerant(path.read_text("utf-8")).modules[:1]:
        check(module)


@pytest.mark.parametrize(
    "text",
    [
        "ENTRY e { ROOT p = f32[] parameter(0) }",
        "c { q = f32[] parameter(0)  ROOT n = f32[] negate(q) }\n\n"
        "ENTRY e { p = f32[] parameter(0)  ROOT k = f32[] call(p), to_apply=c }",
        "ENTRY e { t = token[] after-all()  ROOT r = (token[]) tuple(t) }",
        "ENTRY e { ROOT t = () tuple() }",
        "HloModule m, input_output_alias={ {}: (7, {}, may-alias) }\n\nENTRY e { ROOT p = f32[] parameter(0) }",
        "ENTRY e { p = opaque[] parameter(0)  ROOT c = opaque[] copy(p) }",
        "ENTRY e { p = (f32[<=8], (s4[3], pred[])) parameter(0)  ROOT c = (f32[<=8], (s4[3], pred[])) copy(p) }",
    ],
)
def test_odd_modules(text: str) -> None:
    check(hlo.parse(text))
