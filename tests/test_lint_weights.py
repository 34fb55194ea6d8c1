"""Arguments that make matmuls wide or memory large: weights that were never cast, state that is not donated."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support

_LAYERS = """HloModule layers, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = bf16[2048,2048]{1,0} parameter(0)
  w1 = bf16[2048,2048]{1,0} parameter(1)
  w2 = f32[2048,2048]{1,0} parameter(2)
  w3 = bf16[2048,2048]{1,0} parameter(3)
  h = bf16[2048,2048]{1,0} dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = f32[2048,2048]{1,0} convert(h)
  p = f32[2048,2048]{1,0} dot(wide, WEIGHTS), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[2048,2048]{1,0} tanh(p)
  zero = f32[] constant(0)
  USE
}
"""
_NARROWED = """n = bf16[2048,2048]{1,0} convert(t)
  ROOT y = bf16[2048,2048]{1,0} dot(n, w3), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""


def _found(weights: str, use: str, profile: Backend) -> list[lint.Finding]:
    text = _LAYERS.replace("WEIGHTS", weights).replace("USE", use)
    config = lint.Config(**support.SAY_ALL, select=("D101",), profile=profile)
    return [one for one in lint.run(hlo.parse(text), config) if "is computed in f32" in one.message]


@pytest.mark.parametrize("profile", [Backend.GPU, Backend.TPU])
def test_f32_weights_make_a_matmul_wide_by_mistake(profile: Backend) -> None:
    """Compiled for H100, one layer of three with f32 weights: casting them saves 317 us of 1.28 ms, and 64 MiB at the peak;
    the findings tell 320 us and 64 MiB. For v5e only its result costs anything."""
    (finding,) = _found("w2", _NARROWED, profile)
    assert (
        finding.message
        == "the matmul of 2048x2048 and 2048x2048 is computed in f32 because its weights are f32"
    )
    assert "w.astype(x.dtype)" in finding.help
    assert finding.is_at_most


@pytest.mark.parametrize(
    "use",
    [
        "ROOT r = f32[2048,2048]{1,0} negate(t)",
        "ROOT r = f32[2048]{0} reduce(t, zero), dimensions={1}, to_apply=sum",
    ],
)
def test_a_result_that_is_wanted_in_f32_is_no_mistake(use: str) -> None:
    """Logits, and what a softmax adds up."""
    assert not _found("w2", use, Backend.GPU)


def test_in_a_program_that_is_wide_everywhere_weights_are_no_mistake() -> None:
    """Only its input is bf16."""
    use = "ROOT q = f32[2048,2048]{1,0} dot(t, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = _LAYERS.replace("WEIGHTS", "w2").replace("USE", use)
    for line in text.split("\n"):
        if line.strip().startswith(("h = ", "w1 = ")):
            text = text.replace(line + "\n", "")
    text = text.replace("convert(h)", "convert(x)").replace(
        "w2 = f32[2048,2048]{1,0} parameter(2)", "w2 = f32[2048,2048]{1,0} parameter(1)"
    )
    text = text.replace("w3 = bf16[2048,2048]{1,0} parameter(3)", "w3 = bf16[2048,2048]{1,0} parameter(2)")
    config = lint.Config(**support.SAY_ALL, select=("D101",), profile=Backend.GPU)
    assert not lint.run(hlo.parse(text), config)


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (
            "optimizer_not_donated",
            "donate `mean` and `square` (jax.jit(..., donate_argnames=('mean', 'square')))",
        ),
        ("cache_not_donated", "donate `cache` (jax.jit(..., donate_argnames='cache'))"),
    ],
)
def test_the_arguments_to_donate_are_named(fault: str, advice: str) -> None:
    """As the function calls them, of pytrees their names; without metadata nothing names them."""
    file = support.DATA / "lint" / "faults" / f"fault_{fault}.h100_1x1x1.after_optimizations.txt.xz"
    module = hlo.load(file)
    (finding,) = lint.run(module, lint.Config(select=("M103",)))
    assert finding.help.startswith(advice)
    for parameter in module.entry.parameters:
        parameter.attributes.pop("metadata", None)
    for finding in lint.run(module, lint.Config(select=("M103",))):
        assert "donate_argnums=..." in finding.help


_KEPT = (
    (support.DATA / "lint" / "parts" / "wide_residuals.txt")
    .read_text("utf-8")
    .partition("HloModule silent")[0]
)
_PRODUCT = "  p = f32[64,256]{1,0} dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
_UP = "  up.N = f32[64,256]{1,0} multiply(p, p)\n  wide.N = f32[64,64]{1,0} "
_WIDE = _UP + "dot(up.N, up.N), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
_LIBRARY = _UP + 'custom-call(up.N, up.N), custom_call_target="__cublas$gemm"\n'


@pytest.mark.parametrize(
    ("narrow", "wide", "told"),
    [
        (1, [], "although its matmul has narrower operands"),
        (2, [], "although all its 2 matmuls have narrower operands"),
        (3, [_WIDE], "although 3 of its 4 matmuls have narrower operands"),
        (3, [_LIBRARY, _WIDE], "although 3 of its 5 matmuls have narrower operands"),
        (1, [_LIBRARY], None),
        (2, [_LIBRARY, _WIDE], None),
    ],
)
def test_f32_residuals_are_told_with_the_matmuls_that_are_narrow(
    narrow: int, wide: list[str], told: str | None
) -> None:
    """Of a loop most of whose matmuls are narrow; calls of libraries are counted."""
    more = [_PRODUCT.replace(" p =", f" p.{number} =") for number in range(1, narrow)]
    more += [each.replace(".N", f".{number}") for number, each in enumerate(wide)]
    text = _KEPT.replace(_PRODUCT, _PRODUCT + "".join(more))
    config = lint.Config(**support.SAY_ALL, select=("D101",), profile=Backend.GPU)
    found = [one.message for one in lint.run(hlo.parse(text), config) if "backward" in one.message]
    assert [one.partition("pass, ")[2] for one in found] == ([told] if told is not None else [])


@pytest.mark.parametrize("profile", [Backend.CPU, Backend.GPU, Backend.TPU])
def test_what_bf16_weights_save_on_cpu_is_unknown(profile: Backend) -> None:
    """Compiled for CPU, a decoder with 5.3 GiB of bf16 weights holds 10.0 GiB of f32 copies of them, and none on GPU."""
    text = (support.DATA / "lint/parts/wide_weights.txt").read_text().partition("HloModule updated")[0]
    config = lint.Config(select=("D101",), profile=profile)
    (finding,) = lint.run(hlo.parse(text), config)
    assert (finding.peak_bytes is None) is (profile is Backend.CPU)
    assert ("compare `hlotext memory`" in finding.help) is (profile is Backend.CPU)
