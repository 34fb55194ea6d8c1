"""Savings that belong to another finding's repair, and savings that a repair brings beside the obvious."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.analysis import Backend
from hlotext.findings.finding import Finding
from tests import support

SCORES = (support.DATA / "lint" / "M125.txt").read_text().partition("HloModule silent")[0]
CAUSAL = SCORES.replace(
    "  shares =",
    """  rows = s32[16,1024,1024]{2,1,0} iota(), iota_dimension=1
  columns = s32[16,1024,1024]{2,1,0} iota(), iota_dimension=2
  past = pred[16,1024,1024]{2,1,0} compare(rows, columns), direction=GE
  least = f32[] constant(-1e30)
  leasts = f32[16,1024,1024]{2,1,0} broadcast(least), dimensions={}
  masked = f32[16,1024,1024]{2,1,0} select(past, scores, leasts)
  shares =""",
).replace("exponential(scores)", "exponential(masked)")
BAND = """  distance = s32[16,1024,1024]{2,1,0} subtract(rows, columns)
  width = s32[] constant(16)
  widths = s32[16,1024,1024]{2,1,0} broadcast(width), dimensions={}
  near = pred[16,1024,1024]{2,1,0} compare(distance, widths), direction=LT
  band = pred[16,1024,1024]{2,1,0} and(past, near)
  least ="""
TURNED = SCORES.replace("  scores =", "  turned = bf16[16,1024,64]{1,2,0} copy(q)\n  scores =").replace(
    "dot(q, k)", "dot(turned, k)"
)


def found(text: str, *codes: str, profile: Backend = Backend.GPU) -> list[Finding]:
    """The findings of rules in a text, the dearest first."""
    return list(lint.run(hlo.parse(text), lint.Config(select=codes, profile=profile, **support.SAY_ALL)))


def test_half_of_the_scores_is_a_part_of_all_of_them() -> None:
    """A fused kernel skips what the mask excludes: that is told only where no finding tells of the kernel."""
    assert [one.code for one in found(CAUSAL, "M125", "G118")] == ["M125"]
    assert [one.code for one in found(CAUSAL, "G118")] == ["G118"]


def test_a_proved_part_is_said_beside_a_whole_that_is_not() -> None:
    """Banded attention is the author's to write, whatever kernels there are."""
    banded = CAUSAL.replace("  least =", BAND).replace("select(past,", "select(band,")
    assert {one.code for one in found(banded, "M125", "G118")} == {"M125", "G118"}


def test_copies_for_the_matmuls_of_scores_go_with_them() -> None:
    """The kernel has its own layouts; a copy that something else reads stays."""
    (plain,), (turned,) = found(SCORES, "M125"), found(TURNED, "M125", "L103")
    seconds = {
        one.instruction.name: one.seconds for one in cost.estimate(hlo.parse(TURNED), "h100").instructions
    }
    assert turned.code == "M125"
    assert turned.seconds == pytest.approx((plain.seconds or 0) + seconds["turned"])
    shared = TURNED.replace("  ROOT o =", "  again = bf16[16,1024,64]{1,2,0} sine(turned)\n  o =").replace(
        "rhs_contracting_dims={1}\n}",
        "rhs_contracting_dims={1}\n  ROOT both = (bf16[16,1024,64]{2,1,0}, bf16[16,1024,64]{1,2,0}) tuple(o, again)\n}",
    )
    assert shared.count("ROOT both") == 1
    (kept,) = found(shared, "M125")
    assert kept.seconds == pytest.approx(plain.seconds)


def test_the_bound_on_scores_leaves_the_arithmetic_that_a_mask_keeps() -> None:
    """Of two matmuls whose arithmetic takes longer than reading what is left, half of the one that is masked goes with the
    mask, and as much of the other, of which the mask makes an operand zero."""
    large = CAUSAL.replace("1024,64]", "1024,256]")
    plain = SCORES.replace("1024,64]", "1024,256]")
    times = {one.instruction.name: one for one in cost.estimate(hlo.parse(large), "h100").instructions}
    masks = ("rows", "columns", "past", "leasts", "masked")
    (whole,), (half,) = found(plain, "M125"), found(large, "M125")
    more = (
        (half.seconds or 0) - (whole.seconds or 0) - sum(times[one].seconds for one in masks if one in times)
    )
    arithmetic = (times["scores"].least.compute or 0) + (times["o"].least.compute or 0)
    assert more == pytest.approx((1 - 17 / 32) * arithmetic, rel=0.2)


LU = (support.DATA / "lint" / "G121.txt").read_text().partition("HloModule silent")[0]
PERMUTED = (
    LU.replace(
        "  first =",
        """  pivots = s32[512]{0} get-tuple-element(lu), index=1
  one = s32[] constant(1)
  ones = s32[512]{0} broadcast(one), dimensions={}
  places = s32[512]{0} subtract(pivots, ones)
  indices = s32[512,1]{1,0} reshape(places)
  right = f32[512,64]{1,0} parameter(2)
  permuted = f32[512,64]{1,0} gather(right, indices), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, """
        """index_vector_dim=1, slice_sizes={1,64}
  scaled = f32[512,64]{1,0} sine(permuted)
  first =""",
    )
    .replace("ROOT both = (f32[512,512]{0,1}, ", "ROOT both = (f32[512,64]{1,0}, f32[512,512]{0,1}, ")
    .replace("tuple(first,", "tuple(scaled, first,")
)


def test_cholesky_spares_half_the_operations_and_all_of_the_pivots() -> None:
    """Compiled for H100, a Kalman filter of 256 states: 198 of 198 us; half of the factorization alone is 53."""
    times = {one.instruction.name: one for one in cost.estimate(hlo.parse(PERMUTED), "cpu").instructions}
    (first, second) = sorted(
        found(PERMUTED, "G121", profile=Backend.CPU), key=lambda one: one.seconds or 0, reverse=True
    )
    half = (times["lu"].least.compute or 0) / 2
    assert second.seconds == pytest.approx(half)
    of_pivots = sum(times[one].seconds for one in ("places", "indices", "permuted"))
    assert first.seconds == pytest.approx(half + of_pivots)


SOLVED = LU.replace(
    "  first = f32[512,512]{0,1} get-tuple-element(lu), index=0",
    """  factors = f32[512,512]{0,1} get-tuple-element(lu), index=0
  right = f32[512,COLUMNS]{0,1} parameter(2)
  solved = f32[512,COLUMNS]{0,1} custom-call(factors, right), custom_call_target="lapack_strsm_ffi", NAMED
  first = f32[512,512]{0,1} broadcast(nought), dimensions={}""",
)


@pytest.mark.parametrize(
    ("columns", "name", "count"),
    [
        (512, "jit(f)/transpose(jvp())/triangular_solve", 1),
        (512, "jit(f)/solve", 2),
        (1, "jit(f)/transpose(jvp())/s", 2),
    ],
)
def test_a_determinant_that_is_differentiated_is_left_to_lu(columns: int, name: str, count: int) -> None:
    """Its derivative is the inverse, which the factors of an LU give; that of a Cholesky factor takes a matmul more
    (compiled for CPU: 88 in place of 60 ms, and measured 1.25 in place of 0.88 s)."""
    text = SOLVED.replace("COLUMNS", str(columns)).replace("NAMED", f'metadata={{op_name="{name}"}}')
    assert len(found(text, "G121", profile=Backend.CPU)) == count


NETWORK = """HloModule network, is_scheduled=true, frontend_attributes={fingerprint_before_lhs="0"}

ENTRY main {
  x = f32[4096,1024]{1,0} parameter(0)
  w1 = f32[1024,1024]{1,0} parameter(1)
  w2 = f32[1024,2048]{1,0} parameter(2)
  table = f32[100000,512]{1,0} parameter(3)
  a = f32[4096,1024]{1,0} dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}, FORWARD
  b = f32[4096,1024]{1,0} tanh(a), FORWARD
  c = f32[4096,2048]{1,0} dot(b, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, FORWARD
  g2 = f32[1024,2048]{1,0} dot(b, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}, BACKWARD
  d = f32[4096,1024]{1,0} dot(c, w2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, BACKWARD
  g1 = f32[1024,1024]{1,0} dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}, BACKWARD
  n1 = f32[1024,1024]{1,0} subtract(w1, g1)
  n2 = f32[1024,2048]{1,0} subtract(w2, g2)
  n3 = f32[100000,512]{1,0} OF(table)
  ROOT all = (f32[1024,1024]{1,0}, f32[1024,2048]{1,0}, f32[100000,512]{1,0}) tuple(n1, n2, n3)
}
""".replace("FORWARD", 'metadata={op_name="jit(f)/jvp()/work"}').replace(
    "BACKWARD", 'metadata={op_name="jit(f)/transpose(jvp())/work"}'
)


def test_a_table_that_a_step_updates_stays_in_f32() -> None:
    """As the weights of matmuls do: casting the network to bf16 leaves its update, which took 77 % of what was told of a
    recommender on v5e."""
    (whole,) = found(NETWORK.replace("OF(table)", "negate(table)"), "D101")
    (less,) = found(
        NETWORK.replace("OF(table)", "broadcast(f), dimensions={}").replace(
            "  n1 =", "  f = f32[] constant(1)\n  n1 ="
        ),
        "D101",
    )
    assert whole.seconds == pytest.approx(less.seconds)
    assert whole.peak_bytes == pytest.approx(less.peak_bytes, rel=0.01)
