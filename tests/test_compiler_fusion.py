"""Fusion as XLA's compilers decide it: every decision has a reason, and the log of priority fusion is replayed."""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from typing import Any

import pytest

import hlotext as hlo
from hlotext import compiler
from hlotext.edit import integrity
from tests import pass_pairs
from tests.support import DATA

LOGS = json.loads(lzma.decompress((DATA / "compiler" / "priority_fusion.json.xz").read_bytes()))
CPU = [pair for pair in pass_pairs.sampled() if pair.name == "fusion"]

DECIDES = """HloModule m
ENTRY e {
  x = f32[64,128]{1,0} parameter(0)
  y = f32[64]{0} parameter(1)
  table = f32[4]{0} constant({1, 2, 3, 4})
  wide = f32[4,64]{1,0} broadcast(table), dimensions={0}
  s = f32[64]{0} exponential(y)
  b = f32[64,128]{1,0} broadcast(s), dimensions={0}
  a = f32[64,128]{1,0} add(x, b)
  n = f32[64]{0} negate(s)
  l = f32[64,128]{1,0} cholesky(a)
  ROOT t = (f32[64,128]{1,0}, f32[64]{0}, f32[4,64]{1,0}, f32[64,128]{1,0}) tuple(a, n, wide, l)
}
"""


def test_every_pair_has_a_reason() -> None:
    outcome = compiler.cpu_fusion(hlo.parse(DECIDES))
    rules = {
        ("s", "b"): "elements would be recomputed",
        ("s", "n"): "expensive producer would be duplicated",
        ("b", "a"): "fused",
        ("s", "a"): "elements would be recomputed",
        ("table", "wide"): "constant is not a scalar",
        ("x", "a"): "not fusible",
        ("a", "l"): "consumer is not loop-fusible",
        ("x", "n"): "not an operand",
    }
    for (producer, consumer), rule in rules.items():
        found = outcome.why_not(producer, consumer)
        assert rule in {d.rule for d in found}, (producer, consumer, found)
        assert all(d.because for d in found)
    with pytest.raises(ValueError, match="no instruction nobody"):
        outcome.why_not("nobody", "a")


@pytest.mark.parametrize("pair", CPU, ids=lambda pair: pair.program)
def test_every_operand_is_decided(pair: pass_pairs.Pair) -> None:
    """Of every pair of producer and consumer in what fusion enters, something says why it is as it is."""
    module = hlo.parse(pair.before)
    outcome = compiler.cpu_fusion(module)
    assert str(module) == pair.before
    assert integrity.problems(outcome.module) == []
    for user in module.entry:
        for operand in user.operands:
            assert outcome.why_not(operand.name, user.name)[0].because


def fusions(module: hlo.Module) -> Counter[Any]:
    """The fusions, each as how often it holds which opcode."""
    return Counter(
        tuple(sorted(Counter(inner.opcode for inner in i.called_computations[0]).items()))
        for i in module.instructions()
        if i.opcode == "fusion"
    )


@pytest.mark.parametrize("row", LOGS, ids=lambda row: row["program"])
def test_replay(row: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The log makes the same graph, but for what it does not hold: kinds of fusions, and Triton's tiles."""
    outcome = compiler.priority_fusion(hlo.parse(row["before"]), row["log"])
    wanted = hlo.parse(row["after"])
    assert fusions(outcome.module) == fusions(wanted)
    monkeypatch.setattr(pass_pairs, "IGNORED", pass_pairs.IGNORED | {"backend_config", "kind"})
    ours, theirs = pass_pairs.Prints(outcome.module), pass_pairs.Prints(wanted)
    assert ours.of(outcome.module.entry) == theirs.of(wanted.entry)
    assert integrity.problems(outcome.module) == []


def test_times_and_reasons_are_xlas() -> None:
    row = next(row for row in LOGS if row["program"] == "collective_groups")
    decisions = compiler.priority_fusion(hlo.parse(row["before"]), row["log"]).decisions
    fused = [d for d in decisions if d.rule == "fused"]
    assert [(d.instruction, d.others) for d in fused] == [("add.13.0", ("add.12.0",))]
    assert "1.026 us fused, 2.034 us apart" in fused[0].because
    assert ("all_gather.3.0", "the producer is not fusible") in {(d.instruction, d.rule) for d in decisions}


@pytest.mark.parametrize("seed", range(20))
def test_no_log_makes_a_cycle(seed: int) -> None:
    """Steps that do not fit are left out and said, whatever they name."""
    rng = random.Random(seed)
    row = LOGS[seed % len(LOGS)]
    module = hlo.parse(row["before"])
    names = [i.name for i in module.entry]
    steps = [
        f'fusion_steps {{ fusion {{ fusion_name: "f{n}" producer_name: "{rng.choice(names)}" '
        f'consumer_name: "{rng.choice([*names, "f1", "f2"])}" }} }}'
        for n in range(60)
    ]
    for i in rng.sample(list(module.entry), min(8, len(module.entry))):
        steps += [
            f'fusion_steps {{ fusion {{ fusion_name: "g" producer_name: "{o.name}" consumer_name: "{i.name}" }} }}'
            for o in i.operands
        ]
    rng.shuffle(steps)
    outcome = compiler.priority_fusion(module, "\n".join(steps))
    assert integrity.problems(outcome.module) == []
    assert {e.code for e in hlo.verify(outcome.module)} <= {e.code for e in hlo.verify(module)}
    assert any(d.rule == "log does not match" for d in outcome.decisions)
    hlo.parse(str(outcome.module))
