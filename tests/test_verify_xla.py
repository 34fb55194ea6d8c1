"""The verifier against XLA's own: no corruption that XLA refuses goes without a finding.

`HLOTEXT_CORRUPTIONS=10000 pytest tests/test_verify_xla.py -s` tries more of them, `HLOTEXT_SEED` others, and
`HLOTEXT_MODULES=FOLDER` those of other modules.
"""

from __future__ import annotations

import functools
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.findings.finding import Diagnostic
from tests import support, xla_verifier
from tests.corruptions import KINDS, corrupt
from tests.corruptions.texts import TEXT_KINDS, corrupt_text

COUNT = int(os.environ.get("HLOTEXT_CORRUPTIONS", "600"))
SEED = int(os.environ.get("HLOTEXT_SEED", "20260702"))
LARGEST = 80_000
"""Characters of the largest module that is corrupted."""


@functools.cache
def _modules() -> list[tuple[str, str]]:
    """Name and text of real modules that XLA's verifier accepts."""
    pytest.importorskip("jax")
    folder = os.environ.get("HLOTEXT_MODULES")
    paths = sorted(Path(folder).rglob("*.txt")) if folder else support.corpus_files(("cpu", "gpu", "tpu"))
    found = [(path.name, support.read_text(path).decode()) for path in paths]
    found = [(name, text) for name, text in found if len(text) <= LARGEST and text.startswith("HloModule")]
    verdicts = xla_verifier.judge(text for _, text in found)
    return [pair for pair, verdict in zip(found, verdicts, strict=True) if verdict.word == "ok"]


def _found(text: str) -> list[Diagnostic]:
    """What is said of a text: by the reader, notes on what it does not know among it, and by the verifier."""
    result = hlo.parse_tolerant(text)
    said = [d for d in hlo.verify(result.module) if d.severity is not hlo.Severity.NOTE or d.code == "V515"]
    return [*result.diagnostics, *said]


def _corrupted(modules: list[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Name of the module, what was changed, and the text; half of them changes of the text, half of the nodes."""
    chance = random.Random(SEED)
    made = 0
    while made < COUNT:
        name, text = chance.choice(modules)
        if made % 2:
            kind = chance.choice(list(TEXT_KINDS))
            changed = corrupt_text(text, kind, chance)
            if changed is None:
                continue
            line, new = changed
            what = (
                f"{kind}: {text.splitlines()[line - 1].strip()} became {new.splitlines()[line - 1].strip()}"
            )
        else:
            module = hlo.parse(text)
            corruption = corrupt(module, chance.choice(list(KINDS)), chance)
            if corruption is None:
                continue
            what, new = f"{corruption.kind}: {corruption.what}", str(module)
        made += 1
        yield name, what, new


@pytest.mark.xla
def test_what_xla_accepts_has_no_errors() -> None:
    """Real modules, as they are."""
    modules = _modules()
    assert len(modules) > 70
    for name, text in modules:
        assert [d for d in hlo.verify(hlo.parse(text)) if d.severity is hlo.Severity.ERROR] == [], name


@pytest.mark.xla
@pytest.mark.slow
def test_what_xla_refuses_is_found() -> None:
    """Never silent where XLA refuses a text, cannot read it, or aborts."""
    corrupted = list(_corrupted(_modules()))
    words: Counter[str] = Counter()
    silent = []
    verdicts = xla_verifier.judge(text for _, _, text in corrupted)
    for (name, what, text), verdict in zip(corrupted, verdicts, strict=True):
        words[verdict.word] += 1
        if verdict.is_refused and not _found(text):
            silent.append(f"{name}: {what}\n  {verdict.word}: {verdict.message[:300]}")
    print(f"of {COUNT} corruptions: {dict(words)}; refused without a finding:", *silent, sep="\n")
    assert words["refused"] > 0.25 * COUNT
    assert silent == []
