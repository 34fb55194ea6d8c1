"""Random edit sequences on real modules: after each, the graph is sound, typed as before, and its text reads back equal."""

from __future__ import annotations

import functools
import os

from hypothesis import given, settings
from hypothesis import strategies as st

import hlotext as hlo
from tests import random_edits, support

MAX_BYTES = 8000
SEQUENCES = int(os.environ.get("HLOTEXT_EDIT_SEQUENCES", "120"))
"""How many sequences to try; 10,000 take about five minutes."""


@functools.cache
def modules() -> list[tuple[hlo.Module, random_edits.Before]]:
    """The smaller modules of the corpus (whole ones: a pasted line has no module to edit)."""
    texts = [support.read_text(path) for path in support.corpus_files()]
    found = [hlo.parse(text) for text in texts if len(text) < MAX_BYTES]
    return [(m, random_edits.Before.of(m)) for m in found if not m.entry.is_sugared]


@settings(max_examples=SEQUENCES)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_random_edits(seed: int, count: int) -> None:
    module, before = modules()[seed % len(modules())]
    editor = random_edits.Editor(module.clone(), seed)
    for _ in range(count):
        editor.edit()
    random_edits.check(editor.module, before)


def test_every_edit_happens() -> None:
    """The sequences are worth something: no kind of edit is always refused."""
    happened: set[str] = set()
    for seed in range(400):
        module = modules()[seed % len(modules())][0]
        editor = random_edits.Editor(module.clone(), seed)
        for _ in range(3):
            editor.edit()
        happened.update(editor.happened)
    assert happened == {edit.__name__ for edit in random_edits.Editor.EDITS}
