"""The verifier against XLA: what XLA refuses to compile for its shapes and signatures is found here too."""

from __future__ import annotations

import random

import pytest

import hlotext as hlo
from hlotext.findings.diagnostic import Diagnostic
from tests import infer_cases, support
from tests.corruptions import KINDS, Corruption, corrupt
from tests.xla import compile_with_xla

COUNT = 300
SEED = 20260702

OTHER_REASONS = ("UNIMPLEMENTED", "NOT_FOUND")
"""What XLA says where text is right and the CPU backend cannot run it."""


def _programs() -> list[str]:
    """Real modules from before optimizations, and the cases of shape inference, as far as XLA compiles them for one CPU."""
    texts = [
        text
        for path in support.corpus_files(("cpu", "gpu", "tpu"))
        if "before_optimizations" in path.name and len(text := support.read_text(path).decode()) < 60_000
    ]
    lines = [line for path in infer_cases.files("ok") for line in infer_cases.op_lines(path)]
    texts += [hlo.parse(infer_cases.expanded(line)).to_text() for line in lines[::3]]
    return [text for text, said in zip(texts, compile_with_xla(texts), strict=True) if not said]


def _found(text: str) -> list[Diagnostic]:
    result = hlo.parse_tolerant(text)
    found = [d for d in result.diagnostics if d.severity is hlo.Severity.ERROR]
    return found or [d for d in hlo.verify(result.module) if d.severity is hlo.Severity.ERROR]


def _corrupted(programs: list[str]) -> list[tuple[Corruption, str]]:
    chance = random.Random(SEED)
    made: list[tuple[Corruption, str]] = []
    while len(made) < COUNT:
        module = hlo.parse(chance.choice(programs))
        corruption = corrupt(module, chance.choice(list(KINDS)), chance)
        if corruption is not None:
            made.append((corruption, str(module)))
    return made


@pytest.mark.xla
def test_what_xla_refuses_is_found() -> None:
    """No corruption that XLA refuses goes without a finding; in what it compiles nothing is found.

    Of what it accepts of corrupted text nothing can be said: it sees only what StableHLO takes over, which derives many
    results anew.
    """
    programs = _programs()
    assert len(programs) > 50
    assert [str(found) for text in programs for found in _found(text)] == []
    corrupted = _corrupted(programs)
    answers = compile_with_xla([text for _, text in corrupted])
    refused = [(*pair, said) for pair, said in zip(corrupted, answers, strict=True) if said]
    assert len(refused) > 0.8 * COUNT
    for corruption, text, said in refused:
        assert _found(text) or any(reason in said for reason in OTHER_REASONS), (
            f"{corruption}: {said}\n{text}"
        )
