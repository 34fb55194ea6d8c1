"""Programs whose operations and communication follow from formulas, through loops (made by tests/cost_programs.py)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import cost
from tests.support import ROOT

RECORDED: dict[str, str] = json.loads((Path(__file__).parent / "data/cost/programs.json").read_text())

LAYERS, BATCH, LENGTH, WIDTH, HIDDEN, VOCABULARY = 3, 2, 16, 32, 128, 64
TOKENS = BATCH * LENGTH
LAYER = 4 * WIDTH * WIDTH + 2 * WIDTH * HIDDEN
"""Weights of a layer."""
HEAD = WIDTH * VOCABULARY
ATTENTION = 4 * BATCH * LENGTH**2 * WIDTH
"""Operations of the two products of attention in a layer, forward."""
CONVOLUTION = (4 + 5 + 4) ** 2
"""Pairs of a kernel of 3 x 3 with stride 2 on 9 x 9 that meet no padding."""

PRODUCTS = {
    "chain": 7 * 2 * 16**3,
    "nested": 6 * 5 * 2 * 16**3,
    # 6 N D, and attention forward once and backward twice.
    "transformer": 6 * (LAYERS * LAYER + HEAD) * TOKENS + 3 * LAYERS * ATTENTION,
    # The layers once more, but for their last product, whose result nothing needs a second time.
    "transformer_remat": 6 * (LAYERS * LAYER + HEAD) * TOKENS
    + LAYERS * (4 * ATTENTION + 2 * (LAYER - HIDDEN * WIDTH) * TOKENS),
    # Router, handing out, two products of each expert on every token, putting together.
    "experts": 2 * 32 * (16 * 4 + 4 * 16 + 2 * 4 * 16 * 24 + 4 * 16),
    "convolved": 2 * 2 * 3 * 5 * CONVOLUTION,
    "tensor_parallel": 2 * 2 * 8 * 32 * 16,
    "fully_sharded": 5 * 2 * 8 * 32 * 32,
    "pipeline": (8 + 4 - 1) * 2 * 16 * 32 * 32,
    "expert_parallel": 0,
    "ring_attention": 8 * 2 * 2 * 8 * 8 * 16,
    "accumulated": 6 * 2 * 2 * 8 * 32 * 16,
}
"""Operations of the products of one device in one run."""

SENT = {
    "tensor_parallel": {("all-reduce", ("tp",)): 2 * 8 * 32 * 4 * 3 // 4},
    "fully_sharded": {("all-gather", ("x",)): 5 * 4 * 32 * 4 * 7},
    "pipeline": {("collective-permute", ("x",)): (8 + 4 - 1) * 16 * 32 * 4},
    "expert_parallel": {("all-to-all", ("x",)): 2 * 8 * 32 * 4 * 7 // 8},
    "ring_attention": {("collective-permute", ("x",)): 2 * 8 * 8 * 16 * 4},
    "accumulated": {
        ("reduce-scatter", ("x",)): 32 * 16 * 4 * 7 // 8,
        ("all-gather", ("x",)): 32 * 16 * 4 * 7 // 8,
    },
}
"""Bytes that one device sends in one run, by kind and axes; the others send nothing."""


def check(name: str, text: str) -> None:
    """The operations of products, all of which are exact, and the bytes of each kind along each axis."""
    module = hlo.parse(text)
    analysis = cost.analyze(module)
    parts = analysis.by("opcode")
    found = sum(parts[opcode].flops for opcode in ("dot", "convolution") if opcode in parts)
    assert (found, analysis.run.is_exact) == (PRODUCTS[name], True)
    sent: dict[tuple[str, tuple[str, ...] | None], int] = {}
    for flow in cost.traffic(module).flows:
        assert flow.total is not None
        key = flow.communication.kind, flow.axes
        sent[key] = sent.get(key, 0) + flow.total
    assert sent == SENT.get(name, {})


@pytest.mark.parametrize("name", PRODUCTS)
def test_costs_follow_the_formulas(name: str) -> None:
    """Through loops, calls and collectives."""
    check(name, RECORDED[name])


@pytest.mark.xla
def test_what_jax_makes_today() -> None:
    """The programs lowered anew."""
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-m", "tests.cost_programs"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    made = json.loads(done.stdout)
    assert set(made) == set(PRODUCTS)
    for name, text in made.items():
        check(name, text)
