"""Operations and bytes: XLA's own figures, and what one run costs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import cost
from hlotext.analysis.formatting import seconds
from hlotext.cost.counting import Counting
from hlotext.cost.float32 import float32_sum, is_exact, round_to_float32
from hlotext.cost.rules.contraction import valid_pairs
from hlotext.cost.sizes import ShapeSizes
from hlotext.ir.nodes.computation import post_order
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.window import WindowDimension
from tests.support import ROOT

DATA = Path(__file__).parent / "data" / "cost"
MODULES: dict[str, dict[str, float]] = json.loads((DATA / "modules.json").read_text())
SMALL: list[dict[str, Any]] = json.loads((DATA / "small.json").read_text())
FIGURES = {"flops": "flops", "transcendentals": "transcendentals", "bytes accessed": "bytes_accessed"}


@pytest.mark.parametrize("name", MODULES)
def test_modules_cost_what_xla_says(name: str) -> None:
    """The three figures of XLA's analysis, to the last bit."""
    found = cost.analyze(hlo.load(ROOT / "corpus" / name), age="0.10.2")
    assert {key: getattr(found, ours) for key, ours in FIGURES.items()} == MODULES[name]


@pytest.mark.parametrize("row", SMALL, ids=lambda row: row.get("opcode") or row["name"])
def test_single_instructions_cost_what_xla_says(row: dict[str, Any]) -> None:
    """Every opcode that XLA's figures are recorded for."""
    found = cost.analyze(hlo.parse(row["text"]), age="0.10.2")
    assert {key: getattr(found, ours) for key, ours in FIGURES.items()} == {key: row[key] for key in FIGURES}


@pytest.mark.parametrize("name", MODULES)
def test_equal_computations_cost_what_each_costs_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting one of several equal bodies, and fusions of one kind, changes no figure of any instruction."""
    module = hlo.load(ROOT / "corpus" / name)

    def figures(counting: Counting) -> list[object]:
        return [
            [
                (c.name, counting.amounts[c], counting.owned[c], counting.figures[c])
                for c in module.computations
            ],
            [
                [work._replace(bodies=(), applied=()) for work in counting.works[c]]
                for c in module.computations
            ],
            [[body for work in counting.works[c] for body in work.bodies] for c in module.computations],
            {c: weight for c, weight in counting.weights.items() if any(weight)},
            counting.bytes_by_space(),
            [one.name for one in counting.uncounted],
        ]

    shared = figures(Counting(module))
    monkeypatch.setattr(
        "hlotext.cost.counting.equal_computations",
        lambda module: {c: c for c in post_order(module.computations)},
    )
    assert figures(Counting(module)) == shared


def test_an_equal_body_is_known_by_the_one_that_was_counted() -> None:
    """One look-up, whatever the bodies hold, also through a body that was not counted itself."""
    text = "HloModule m\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
    first, second, third = (hlo.parse(text).entry for _ in range(3))
    sizes = ShapeSizes()
    sizes.note_equal_body(second, first)
    sizes.note_equal_body(third, second)
    assert [sizes.counted(one) for one in (first, second, third)] == [first] * 3


def test_every_opcode_has_a_rule() -> None:
    """And every rule an opcode."""
    from hlotext.cost.rules import RULES

    assert {row.cost_rule for row in OPCODES.values()} == set(RULES)


LOOP = """HloModule m
body {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8,8] get-tuple-element(p), index=1
  d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={NAMED}
  ROOT t = (s32[], f32[8,8]) tuple(next, d)
}
condition {
  p = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(BOUND)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[8,8] parameter(0)
  z = s32[] START
  t = (s32[], f32[8,8]) tuple(z, x)
  w = (s32[], f32[8,8]) while(t), condition=condition, body=body, metadata={op_name="jit(f)/while"}
  ROOT r = f32[8,8] get-tuple-element(w), index=1
}
"""
"""Products of 8x8 matrices in a loop."""
NAMED = 'op_name="jit(f)/while/body/layer_3/dot_general" source_file="a.py" source_line=7'


def loop(bound: int, start: str = "constant(0)") -> cost.Analysis:
    """The analysis of that loop."""
    return cost.analyze(
        hlo.parse(LOOP.replace("BOUND", str(bound)).replace("START", start).replace("NAMED", NAMED))
    )


@pytest.mark.parametrize("bound", [0, 1, 5, 2**31 - 1])
def test_loops_count_as_often_as_they_run(bound: int) -> None:
    """XLA counts a body once; a run has each of its products."""
    found = loop(bound)
    once = 2 * 8**3
    assert found.flops == once + 2
    assert found.run.flops == bound * (once + 1) + (bound + 1)
    assert found.run.is_exact
    assert found.by("opcode").get("dot", cost.Cost()).flops == bound * once


def test_loops_of_unknown_count_are_named() -> None:
    """They count once, and the result says so."""
    found = loop(5, "parameter(1)")
    assert found.run.flops == found.flops
    assert [instruction.name for instruction in found.run.unknown_loops] == ["w"]
    assert (found.run.is_exact, found.run.is_at_least) == (False, True)


@pytest.mark.parametrize("key", cost.KEYS)
@pytest.mark.parametrize("name", sorted(MODULES)[::12])
def test_parts_add_up(name: str, key: cost.Key) -> None:
    """By whatever costs are added up, the sum is that of the run."""
    found = cost.analyze(hlo.load(ROOT / "corpus" / name), age="0.10.2")
    parts = found.by(key).values()
    for figure in FIGURES.values():
        assert sum(getattr(part, figure) for part in parts) == getattr(found.run, figure)


def test_costs_by_scope_and_line() -> None:
    """The scope and the line that the product names."""
    found = loop(3)
    assert found.by("scope")["while/layer_3"].flops == 3 * 2 * 8**3
    assert found.by("line")["a.py:7"].flops >= 3 * 2 * 8**3
    with pytest.raises(ValueError, match="opcode"):
        found.by("colour")  # type: ignore[arg-type]


def test_one_instruction() -> None:
    """With what it calls, loops as often as they run; not of another module."""
    found = loop(3)
    module = found.module
    product, whole = module.find("d"), module.find("w")
    assert isinstance(product, hlo.Instruction)
    assert isinstance(whole, hlo.Instruction)
    assert found.of(product) == cost.Cost(1024, 0, 3 * 8 * 8 * 4)
    assert found.of(whole).flops == 3 * 1025 + 4
    with pytest.raises(KeyError, match="d is not an instruction"):
        loop(4).of(product)


ASYNC = """HloModule m
ENTRY e {
  a = f32[4,8] parameter(0)
  s = (f32[4,8], f32[16,8]) all-gather-start(a), dimensions={0}, replica_groups={{0,1,2,3}}
  d = f32[16,8] all-gather-done(s)
  c = (f32[16,8]{1,0:S(5)}, f32[16,8], u32[]) copy-start(d)
  ROOT f = f32[16,8]{1,0:S(5)} copy-done(c)
}
"""


def test_asynchronous_work_counts_once() -> None:
    """What is read and what arrives, at the start; XLA counts it again at the done."""
    found = cost.analyze(hlo.parse(ASYNC))
    gathered, copied = 128 + 512, 2 * 512
    assert found.run.bytes_accessed == gathered + copied
    assert found.bytes_accessed > found.run.bytes_accessed
    assert found.bytes_by_memory_space == {0: gathered + 512, 5: 512}


SPREAD = """HloModule m, replica_count=2, is_scheduled=true

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

begin {
  a = f32[4,8] parameter(0)
  g = GATHERED COLLECTIVE(a), OPTIONS, frontend_attributes={chain_id="0"}
  ROOT s = (f32[4,8], GATHERED, u32[]) custom-call(g), custom_call_target="AsyncCollectiveStart"
}

go_on {
  a = f32[4,8] parameter(0)
  b = GATHERED parameter(1)
  u = u32[] parameter(2)
  c = f32[16,16] parameter(3)
  p = f32[16,16] multiply(c, c)
  g = GATHERED COLLECTIVE(a), OPTIONS, frontend_attributes={chain_id="0"}
  ROOT t = (f32[16,16], f32[4,8], GATHERED, GATHERED, u32[]) tuple(p, a, b, g, u)
}

end {
  a = f32[4,8] parameter(0)
  b = GATHERED parameter(1)
  u = u32[] parameter(2)
  g = GATHERED COLLECTIVE(a), OPTIONS, frontend_attributes={chain_id="0"}
  ROOT d = GATHERED custom-call(a, b, g, u), custom_call_target="AsyncCollectiveDone"
}

ENTRY e {
  a = f32[4,8] parameter(0)
  c = f32[16,16] parameter(1)
  s = (f32[4,8], GATHERED, u32[]) fusion(a), kind=kCustom, output_to_operand_aliasing={{0}: (0, {})}, calls=begin
  begun.0 = f32[4,8] get-tuple-element(s), index=0
  begun.1 = GATHERED get-tuple-element(s), index=1
  begun.2 = u32[] get-tuple-element(s), index=2
  m = (f32[16,16], f32[4,8], GATHERED, GATHERED, u32[]) fusion(begun.0, begun.1, begun.2, c), kind=kOutput, calls=go_on,
    output_to_operand_aliasing={{1}: (0, {}), {2}: (1, {}), {3}: (1, {}), {4}: (2, {})}
  going.0 = f32[16,16] get-tuple-element(m), index=0
  going.1 = f32[4,8] get-tuple-element(m), index=1
  going.3 = GATHERED get-tuple-element(m), index=3
  going.4 = u32[] get-tuple-element(m), index=4
  d = GATHERED fusion(going.1, going.3, going.4), kind=kCustom, output_to_operand_aliasing={{}: (1, {})}, calls=end
  ROOT r = (f32[16,16], GATHERED) tuple(going.0, d)
}
"""


@pytest.mark.parametrize(
    ("collective", "result", "options", "flops", "arrived"),
    [
        ("all-gather", "f32[8,8]", "dimensions={0}, replica_groups={{0,1}}", 0, 256),
        ("all-reduce", "f32[4,8]", "to_apply=add, replica_groups={{0,1}}", 32 // 2, 128),
    ],
)
def test_collectives_that_are_spread_over_fusions_count_once(
    collective: str, result: str, options: str, flops: int, arrived: int
) -> None:
    """What is read where it begins and what arrives; the fusions that hand it on do their own work alone."""
    text = SPREAD.replace("GATHERED", result).replace("COLLECTIVE", collective).replace("OPTIONS", options)
    found = cost.analyze(hlo.parse(text))
    product, semaphore, tables = 2 * 1024, 4, 2 * 4
    assert found.run.bytes_accessed == (128 + arrived + semaphore) + product + tables
    assert found.run.flops == 256 + flops
    assert sum(share.cost.flops for share in found.shares()) == found.run.flops
    assert found.bytes_by_memory_space == {0: found.run.bytes_accessed}


def test_unknown_custom_calls_count_their_bytes_and_are_named() -> None:
    """XLA counts -1; operands are read and results written at least."""
    text = 'ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT c = f32[4] custom-call(a), custom_call_target="mine"\n}\n'
    found = cost.analyze(hlo.parse(text))
    assert (found.flops, found.bytes_accessed) == (-1, -1)
    assert (found.run.flops, found.run.bytes_accessed) == (0, 32)
    assert found.run.mark == "at least (excluding 1 custom call of unknown cost) "
    assert found.bytes_by_memory_space == {0: 32}
    assert [call.name for call in found.run.unknown_calls] == ["c"]
    assert not found.run.is_exact


def test_products_of_cublas_and_cudnn_count() -> None:
    """By the configuration that the GPU compiler writes."""
    gemm = hlo.parse(
        "ENTRY e {\n  a = f32[64,196] parameter(0)\n  b = f32[196,256] parameter(1)\n  ROOT c = (f32[64,256], s8[1024]) "
        'custom-call(a, b), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":'
        '{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}\n}\n'
    )
    run = cost.analyze(gemm).run
    assert run.flops == 2 * 64 * 196 * 256
    assert run.bytes_accessed == 4 * (64 * 196 + 196 * 256 + 64 * 256)
    # The gradient of a 1x1 convolution with stride 2: each element of the gradient meets one of the input.
    kernel = hlo.parse(
        "ENTRY e {\n  x = f32[8,16,16,32] parameter(0)\n  g = f32[8,8,8,64] parameter(1)\n"
        "  ROOT c = (f32[64,1,1,32], u8[0]) custom-call(x, g), window={size=1x1 stride=2x2}, "
        'dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convBackwardFilter"\n}\n'
    )
    assert cost.analyze(kernel).run.flops == 2 * 8 * 8 * 8 * 64 * 32


@pytest.mark.parametrize(
    ("target", "mask", "products"), [("Softmax", "CAUSAL", 1), ("SoftmaxBackward", "NO_MASK", 5)]
)
def test_attention_of_cudnn_counts(target: str, mask: str, products: int) -> None:
    """Two products of the scores' shape forwards, five backwards; half of them under a causal mask."""
    module = hlo.parse(
        "ENTRY e {\n  q = bf16[2,64,4,32] parameter(0)\n  k = bf16[2,64,4,32] parameter(1)\n"
        f'  ROOT c = (bf16[2,64,4,32], u8[0]) custom-call(q, k, k), custom_call_target="__cudnn$fmha{target}", '
        'backend_config={"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"element_type":"BF16",'
        f'"dimensions":["2","4","64","64"]}},"mask_type":"{mask}"}}}}\n}}\n'
    )
    run = cost.analyze(module).run
    assert run.flops == products * 2 * 2 * 4 * 64 * 64 * 32
    assert not run.unknown_calls


@pytest.mark.parametrize(
    ("line", "flops"),
    [
        ("f32[8,32] dot(f32[8,16] x, f32[16,32] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 2 * 8 * 32 * 16),
        ("f32[4,8,1] dot(f32[4,8,16] x, f32[4,16,1] y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
         "lhs_contracting_dims={2}, rhs_contracting_dims={1}", 2 * 4 * 8 * 16),
        ("f32[2,6,6,5] convolution(f32[2,8,8,3] x, f32[3,3,3,5] w), window={size=3x3}, dim_labels=b01f_01io->b01f",
         2 * 2 * 6 * 6 * 5 * 27),
        ("f32[2,6,6,4] convolution(f32[2,8,8,4] x, f32[3,3,1,4] w), window={size=3x3}, dim_labels=b01f_01io->b01f, "
         "feature_group_count=4", 2 * 2 * 6 * 6 * 4 * 9),
        ("f32[<=8,32] dot(f32[<=8,16] x, f32[16,32] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
         2 * 8 * 32 * 16),
    ],
)  # fmt: skip
def test_operations_of_products(line: str, flops: int) -> None:
    """Of dynamic sizes the bounds count."""
    operands = re.findall(r"([a-z0-9]+\[[^]]*\]) ([a-z])[,)]", line)
    body = "\n".join(f"  {name} = {shape} parameter({n})" for n, (shape, name) in enumerate(operands))
    found = cost.analyze(hlo.parse(f"ENTRY e {{\n{body}\n  ROOT r = {line}\n}}\n"))
    assert found.run.flops == found.of(found.module.entry.root).flops == flops


@given(
    size=st.integers(0, 9),
    kernel=st.integers(0, 100),
    result=st.integers(0, 12),
    stride=st.integers(1, 4),
    dilations=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.integers(-6, 12),
)
def test_pairs_of_a_convolution(
    size: int, kernel: int, result: int, stride: int, dilations: tuple[int, int], padding: int
) -> None:
    """As many as going through all pairs finds."""
    holes, window = dilations
    wanted = sum(
        (o * stride + k * window - padding) % holes == 0
        and 0 <= (o * stride + k * window - padding) // holes < size
        for k in range(kernel)
        for o in range(result)
    )
    dimension = WindowDimension(kernel, stride, padding, 0, window, holes)
    assert valid_pairs(size, kernel, result, dimension) == wanted


@given(st.lists(st.one_of(st.integers(-1, 2**40), st.floats(-1, 1e30)), max_size=20))
def test_float32_sums(values: list[float]) -> None:
    """As numpy adds them up; where nothing is rounded the order does not matter."""
    import numpy as np

    total = np.float32(0)
    for value in values:
        total = np.float32(total + np.float32(value))
    assert float32_sum([round_to_float32(value) for value in values]) == total
    if is_exact(values):
        assert sum(values) == total


BAD = {
    "an unknown opcode": "ENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] frobnicate(a)\n}\n",
    "a contracted dimension that is not there": "ENTRY e {\n  a = f32[4] parameter(0)\n"
    "  ROOT b = f32[] dot(a, a), lhs_contracting_dims={7}, rhs_contracting_dims={0}\n}\n",
    "an unbounded size": "ENTRY e {\n  a = f32[?] parameter(0)\n  ROOT b = f32[?] negate(a)\n}\n",
    "a size past 2^63": "ENTRY e {\n  a = f32[4611686018427387904,16] parameter(0)\n"
    "  ROOT b = f32[4611686018427387904,16] negate(a)\n}\n",
    "a window without end": "ENTRY e {\n  a = f32[1,1099511627776,1] parameter(0)\n"
    "  k = f32[1099511627776,1,1] parameter(1)\n"
    "  ROOT c = f32[1,1099511627776,1] convolution(a, k), window={size=1099511627776 stride=2 pad=5_5 lhs_dilate=3}, "
    "dim_labels=b0f_0io->b0f\n}\n",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_cannot_be_counted_is_said(text: str) -> None:
    """Never guessed, never an exception."""
    found = cost.analyze(hlo.parse_tolerant(text).module)
    assert not found.run.is_exact
    assert found.run.is_at_least


def test_seconds_have_three_digits() -> None:
    """Zeros included, so that numbers below each other are equally precise."""
    shown = [seconds(time) for time in (0, 3e-9, 2e-3, 2.01e-3, 1.6e-5, 3e-4, 0.9999, 1250.0)]
    assert shown == ["0", "3 ns", "2.00 ms", "2.01 ms", "16.0 us", "300 us", "1.00 s", "1,250 s"]


@pytest.mark.parametrize(
    ("shape", "operand", "kind", "performed"),
    [
        ("c64[4,8]", "c64[4,8]", "FFT", 5 * 32 * 3),
        ("c64[4,5]", "f32[4,8]", "RFFT", 5 * 32 * 3 / 2),
        ("f32[4,8]", "c64[4,5]", "IRFFT", 5 * 32 * 3 / 2),
    ],
)
def test_a_run_counts_an_fft_as_a_fast_one_computes_it(
    shape: str, operand: str, kind: str, performed: float
) -> None:
    text = f"""HloModule m

ENTRY e {{
  a = {operand} parameter(0)
  ROOT r = {shape} fft(a), fft_type={kind}, fft_length={{8}}
}}
"""
    assert cost.analyze(hlo.parse(text)).run.flops == performed


def test_steps_of_several_fft_lengths_add_up() -> None:
    """XLA multiplies them: what it says is no lower bound."""
    text = """HloModule m

ENTRY e {
  a = c64[8,16,32] parameter(0)
  ROOT r = c64[8,16,32] fft(a), fft_type=FFT, fft_length={8,16,32}
}
"""
    found = cost.analyze(hlo.parse(text))
    assert found.run.flops == 5 * 8 * 16 * 32 * (3 + 4 + 5)
    assert found.flops == 8 * 8 * 16 * 32 * (3 * 4 * 5)
    assert found.xla_omissions == ("FFTs counted with XLA's formula",)
    least = cost.estimate(found.module, "h100").instructions[0].least
    assert least.flops == found.run.flops
