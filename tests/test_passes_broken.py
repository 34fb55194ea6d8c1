"""Passes raise nothing on what `parse_tolerant` makes of broken texts, and on types and opcodes that nobody knows."""

from __future__ import annotations

import contextlib

import pytest

import hlotext as hlo
from hlotext.rewrite.passes import PASSES, Pass
from hlotext.rewrite.passes.base import BrokenModuleError
from tests.support import CORPUS, corpus_files

HANDMADE = [
    path.read_text(errors="surrogateescape") for path in corpus_files(("handmade",)) if path.suffix == ".txt"
]
SMALL = [text for text in HANDMADE if len(text) < 6_000]
BROKEN = [
    *(path.read_text(errors="surrogateescape") for path in sorted((CORPUS / "invalid").glob("*.txt"))),
    *(text[: len(text) * 2 // 3] for text in SMALL),
    *(text.replace("f32[", "zz99[") for text in SMALL),
    *(text.replace(" add(", " frobnicate(") for text in SMALL),
]


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
@pytest.mark.parametrize("kind", PASSES.values(), ids=PASSES)
def test_broken_modules(kind: type[Pass], part: int) -> None:
    for text in BROKEN[part::3]:
        module = hlo.parse_tolerant(text).module
        if module is None:
            continue
        # One whose headers were guessed takes no edits, and says so.
        with contextlib.suppress(*([hlo.EditError, BrokenModuleError] if module._is_guess else [])):
            kind().run(module)
