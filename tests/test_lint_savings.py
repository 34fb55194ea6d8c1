"""Savings that lint tells, against the same models on the repaired text."""

from __future__ import annotations

import json
from collections.abc import Iterator

import attrs
import pytest

import hlotext as hlo
from hlotext import cost, lint
from hlotext.analysis import Backend
from hlotext.analysis.sizes import byte_text
from hlotext.findings.errors import Severity
from hlotext.lint.taken_apart import taken_apart, updates_of
from hlotext.reports.human import saving
from tests import support


def only(text: str, code: str, **settings: object) -> lint.Finding:
    """The one finding of a rule in a text, with nothing too small."""
    (finding,) = lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": (code,), **settings}))
    return finding


def codes(text: str) -> list[str]:
    """The codes of what is found by default."""
    return [one.code for one in lint.run(hlo.parse(text), lint.Config(**support.SAY_ALL))]


WIDENED = """HloModule widened, is_scheduled=true

ENTRY main {
  x = f32[4096,4096]{1,0} parameter(0)
  a = TYPE[4096,4096]{1,0} convert(x)
  b = TYPE[4096,4096]{1,0} cosine(a)
  ROOT c = TYPE[4096,4096]{1,0} multiply(a, b)
}
"""


def test_f64_costs_what_the_same_text_takes_less_in_f32() -> None:
    """But for the conversion, of which then nothing is left. Kernels may differ, so that it is a bound."""
    finding = only(WIDENED.replace("TYPE", "f64"), "D101")
    wide, narrow = (cost.estimate(hlo.parse(WIDENED.replace("TYPE", t)), "cpu") for t in ("f64", "f32"))
    converts = next(one.seconds for one in narrow.instructions if one.name == "a")
    assert finding.seconds == pytest.approx(wide.seconds - narrow.seconds + converts)
    assert finding.peak_bytes == 2 * 4 * 4096 * 4096
    assert saving(finding).startswith("at most ")


EXACT = """HloModule exact, is_scheduled=true

ENTRY main {
  x = f32[4096,4096]{1,0:T(8,128)} parameter(0)
  c = f32[4096,4096]{1,0:T(8,128)} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}PRECISION
  ROOT d = f32[4096,4096]{1,0:T(8,128)} tanh(c)
}
"""


def test_six_passes_cost_what_one_pass_takes_less() -> None:
    """One pass remains."""
    exact, plain = (
        EXACT.replace("PRECISION", words) for words in (", operand_precision={highest,highest}", "")
    )
    finding = only(exact, "D101", profile=Backend.TPU)
    before, after = (cost.estimate(hlo.parse(text), "v5e").seconds for text in (exact, plain))
    assert finding.seconds == pytest.approx(before - after)


def test_an_array_that_is_not_gathered_leaves_the_peak() -> None:
    """But for the part that is used, and as much that is exchanged before."""
    text = (support.DATA / "lint" / "C108.txt").read_text().split("\n\nHloModule silent")[0]
    finding = only(text, "C108", chip="v5e")
    assert finding.peak_bytes == pytest.approx(4 * 524288 * (1 - 2 / 8), rel=0.01)


TRANSFORMS = """HloModule transforms, is_scheduled=true

ENTRY main {
  x = f32[64,1024,1024]{2,1,0} parameter(0)
  c = c64[64,1024,1024]{2,1,0} convert(x)
  there = c64[64,1024,1024]{2,1,0} fft(c), fft_type=FFT, fft_length={1024,1024}META0
  back = c64[64,1024,1024]{2,1,0} fft(there), fft_type=IFFT, fft_length={1024,1024}META1
  ROOT y = f32[64,1024,1024]{2,1,0} real(back)
}
"""
UNNAMED = TRANSFORMS
TRANSFORMS = TRANSFORMS.replace("META0", ', metadata={op_name="fft" source_file="f.py" source_line=3}')
TRANSFORMS = TRANSFORMS.replace("META1", ', metadata={op_name="ifft" source_file="f.py" source_line=4}')


def test_transforms_there_and_back_are_one_cause() -> None:
    """Of two Python lines: one edit changes both, and leaves nothing to convert."""
    finding = only(TRANSFORMS, "D101")
    estimate = cost.estimate(hlo.parse(TRANSFORMS), "cpu")
    both = sum(one.seconds for one in estimate.instructions if one.instruction.opcode == "fft")
    assert finding.places == 2
    assert finding.seconds == pytest.approx(estimate.seconds - both / 2)


@pytest.mark.parametrize(
    ("lengths", "functions"),
    [
        ("1024", "rfft and irfft along"),
        ("1024,1024", "rfft2 and irfft2"),
        ("64,1024,1024", "rfftn and irfftn"),
    ],
)
def test_the_transform_of_real_data_is_that_of_as_many_axes(lengths: str, functions: str) -> None:
    """The others are a batch."""
    text = UNNAMED.replace("{1024,1024}", f"{{{lengths}}}").replace("META0", "").replace("META1", "")
    finding = only(text, "D101")
    assert finding.help.startswith(f"use jnp.fft.{functions}")


@pytest.mark.parametrize(("filling", "places"), [("(0, 0)", 2), ("(0, 1)", 0)])
def test_padded_data_are_real_if_the_padding_is(filling: str, places: int) -> None:
    text = (
        UNNAMED.replace("META0", "")
        .replace("META1", "")
        .replace("x = f32[64,1024,1024]", "x = f32[64,1024,512]")
    )
    text = text.replace(
        "c = c64[64,1024,1024]{2,1,0} convert(x)",
        f"""w = c64[64,1024,512]{{2,1,0}} convert(x)
  z = c64[] constant({filling})
  c = c64[64,1024,1024]{{2,1,0}} pad(w, z), padding=0_0x0_0x0_512""",
    )
    found = lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("D101",)}))
    assert sum(one.places for one in found) == places


@pytest.mark.parametrize(
    ("spectrum", "is_said"),
    [
        ("b = c64[64,1024,1024]{2,1,0} negate(there)", True),
        (
            "r = f32[64,1024,1024]{2,1,0} real(there)\n  i = f32[64,1024,1024]{2,1,0} imag(there)\n"
            "  n = f32[64,1024,1024]{2,1,0} negate(i)\n  b = c64[64,1024,1024]{2,1,0} complex(r, n)",
            True,
        ),
        ("b = c64[64,1024,1024]{2,1,0} exponential(there)", False),
    ],
)
def test_what_is_made_of_the_spectrum_of_real_data(spectrum: str, is_said: bool) -> None:
    """Its conjugate and what is scaled belong to real data, too."""
    text = (
        UNNAMED.replace("META0", f"\n  {spectrum}")
        .replace("META1", "")
        .replace("fft(there), fft_type=I", "fft(b), fft_type=I")
    )
    text = text.replace(
        "ROOT y = f32[64,1024,1024]{2,1,0} real(back)",
        "p = c64[64,1024,512]{2,1,0} slice(back), "
        "slice={[0:64], [0:1024], [0:512]}\n  ROOT y = f32[64,1024,512]{2,1,0} real(p)",
    )
    found = lint.run(hlo.parse(text), lint.Config(**{**support.SAY_ALL, "select": ("D101",)}))
    assert sum(one.places for one in found) == 1 + is_said


SCORES = """HloModule scores, is_scheduled=true, frontend_attributes={fingerprint_before_lhs="0"}

largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY main {
  q = bf16[4096,128]{1,0} parameter(0)
  k = bf16[4096,128]{1,0} parameter(1)
  least = f32[] constant(0)
  wq = f32[4096,128]{1,0} convert(q)
  wk = f32[4096,128]{1,0} convert(k)
  s = f32[4096,4096]{1,0} dot(wq, wk), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  y = f32[4096,4096]{1,0} exponential(s)
  ROOT m = RESULT
}
"""


@pytest.mark.parametrize(
    ("result", "arrays"),
    [
        ("f32[4096]{0} reduce(y, least), dimensions={1}, to_apply=largest", 0),
        ("(f32[4096,4096]{1,0}) tuple(y)", 1),
    ],
)
def test_what_is_reduced_stays_wide(result: str, arrays: int) -> None:
    """Half of the operands is spared where they are read; of a result only where nothing is summed up of it."""
    finding = only(SCORES.replace("RESULT", result), "D101", chip="h100")
    bandwidth = 3.35e12
    operands, whole = 2 * 4096 * 128 * 4, 4096 * 4096 * 4
    spared = (2 * operands + arrays * whole) / 2 / bandwidth
    assert finding.seconds == pytest.approx(spared, rel=0.1)


BATCH_DIMS = "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
ADAPTER = """HloModule adapter, is_scheduled=true

ENTRY main {
  x = f32[16,32,2048]{2,1,0} parameter(0)
  w = f32[2048,2048]{1,0} parameter(1)
  a = f32[16,2048,RANK]{2,1,0} parameter(2)
  b = f32[16,RANK,2048]{2,1,0} parameter(3)
  ab = f32[16,2048,2048]{2,1,0} dot(a, b), BATCHED
  many = f32[16,2048,2048]{2,1,0} broadcast(w), dimensions={1,2}
  merged = f32[16,2048,2048]{2,1,0} add(many, ab)
  ROOT y = f32[16,32,2048]{2,1,0} dot(x, merged), BATCHED
}
"""


def test_an_adapter_is_not_merged_for_few_rows() -> None:
    text = ADAPTER.replace("BATCHED", BATCH_DIMS)
    finding = only(text.replace("RANK", "8"), "G119")
    assert "rank-8" in finding.message
    assert finding.share > 0.5
    assert "G119" not in codes(text.replace("RANK", "2048"))


STACKED = (support.DATA / "lint" / "M115.txt").read_text("utf-8").partition("HloModule silent")[0]


def test_of_a_stack_of_which_only_sums_are_used_the_sums_would_do() -> None:
    sums = """HloModule sums, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"""
    _, _, rest = STACKED.partition("\n")
    used = "ROOT some = f32[4,1024]{1,0} slice(ys), slice={[0:64:16], [0:1024]}"
    rest = rest.replace(used, "ROOT some = f32[64]{0} reduce(ys, nothing), dimensions={1}, to_apply=sum")
    finding = only(sums + rest, "M115")
    assert "reductions" in finding.message
    assert finding.peak_bytes == pytest.approx(64 * 1024 * 4, rel=0.01)


def test_a_stack_that_a_fusion_beside_the_rest_writes_is_found() -> None:
    """As XLA for GPU starts what writes a slice."""
    write = "stacked = f32[64,1024]{1,0} dynamic-update-slice(ys, row, i, zero) // expect: M115"
    assert write in STACKED
    text = STACKED.replace(
        write,
        "begun = ((f32[64,1024]{1,0}, f32[1,1024]{1,0}, s32[], s32[]), f32[64,1024]{1,0}, u32[]) "
        "fusion-start(ys, row, i, zero), kind=kLoop, calls=writing\n"
        "  stacked = f32[64,1024]{1,0} fusion-done(begun)",
    ).replace(
        "body {",
        "writing {\n  a = f32[64,1024]{1,0} parameter(0)\n  b = f32[1,1024]{1,0} parameter(1)\n  c = s32[] parameter(2)\n"
        "  d = s32[] parameter(3)\n  ROOT e = f32[64,1024]{1,0} dynamic-update-slice(a, b, c, d)\n}\n\nbody {",
        1,
    )
    assert only(text, "M115").peak_bytes == pytest.approx(60 * 1024 * 4, rel=0.01)


GATHERED = """HloModule gathered, is_scheduled=true, num_partitions=8

largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[512,128]{1,0} parameter(0)
  first = s32[] parameter(1)
  zero = s32[] constant(0)
  least = f32[] constant(0)
  all = f32[512,1024]{1,0} all-gather(x), channel_id=1, replica_groups=[1,8]<=[8], dimensions={1}, use_global_device_ids=true
  m = f32[512]{0} reduce(all, least), dimensions={1}, to_apply=largest
  y = f32[512,1024]{1,0} exponential(all)
  own = f32[512,PART]{1,0} dynamic-slice(y, zero, first), dynamic_slice_sizes={512,PART}
  ROOT t = (f32[512]{0}, f32[512,PART]{1,0}) tuple(m, own)
}
"""


def test_each_device_may_go_on_with_its_own_part_of_what_is_reduced() -> None:
    """As the gradient of logits that were gathered for a softmax does; not with a half of it."""
    assert "C116" in codes(GATHERED.replace("PART", "128"))
    assert "C116" not in codes(GATHERED.replace("PART", "512"))


CALLED = """HloModule called, is_scheduled=true

body {
  s = (s32[], f32[4096]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4096]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4096]{0} custom-call(x), custom_call_target="xla_ffi_python_cpu_callback", custom_call_has_side_effect=true
  ROOT n = (s32[], f32[4096]{0}) tuple(next, y)
}

condition {
  s = (s32[], f32[4096]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  x = f32[4096]{0} parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[4096]{0}) tuple(zero, x)
  ROOT loop = (s32[], f32[4096]{0}) while(s), condition=condition, body=body
}
"""


def test_what_no_model_prices_has_no_saving() -> None:
    """How long Python takes is not in the estimate of a step, and a constant is as large as an argument."""
    finding = only(CALLED, "G106")
    assert (finding.seconds, finding.peak_bytes, finding.severity.value) == (None, None, "warning")
    constant = (
        "HloModule m\n\nENTRY main {\n  x = f32[1024,1024]{1,0} parameter(0)\n"
        "  c = f32[1024,1024]{1,0} constant({...})\n  ROOT y = f32[1024,1024]{1,0} add(x, c)\n}\n"
    )
    finding = only(constant, "K101")
    assert (finding.seconds, finding.peak_bytes, finding.severity.value) == (None, None, "note")


AGAIN = """HloModule again, is_scheduled=true

ENTRY main {
  x = f32[1024,1024]{1,0} parameter(0)
  a = f32[1024,1024]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[1024,1024]{1,0} cosine(a)
  c = f32[1024,1024]{1,0} dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, METADATA
  ROOT d = f32[1024,1024]{1,0} add(b, c)
}
"""


def test_what_the_program_chooses_is_no_finding() -> None:
    """`jax.checkpoint` says what is computed again."""
    name = 'metadata={op_name="jit(f)/checkpoint/rematted_computation/dot_general"}'
    assert codes(AGAIN.replace("METADATA", name)) == []


LAYERS = """HloModule layers, is_scheduled=true

body {
  s = (s32[], f32[4096,2048]{1,0}, f32[8,2048,2048]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4096,2048]{1,0} get-tuple-element(s), index=1
  w = f32[8,2048,2048]{2,1,0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  layer = f32[1,2048,2048]{2,1,0} dynamic-slice(w, START, zero, zero), dynamic_slice_sizes={1,2048,2048}
  k = f32[2048,2048]{1,0} bitcast(layer)
  y = f32[4096,2048]{1,0} dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT n = (s32[], f32[4096,2048]{1,0}, f32[8,2048,2048]{2,1,0}) tuple(next, y, w)
}

condition {
  s = (s32[], f32[4096,2048]{1,0}, f32[8,2048,2048]{2,1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(8)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  x = f32[4096,2048]{1,0} parameter(0)
  w = f32[WEIGHTS]{2,1,0} parameter(1)
  zero = s32[] constant(0)
  c = f32[4096,2048]{1,0} copy(x)
  s = (s32[], f32[4096,2048]{1,0}, f32[8,2048,2048]{2,1,0}) tuple(zero, c, w)
  loop = (s32[], f32[4096,2048]{1,0}, f32[8,2048,2048]{2,1,0}) while(s), condition=condition, body=body
  ROOT y = f32[4096,2048]{1,0} get-tuple-element(loop), index=1
}
"""


def test_what_goes_through_layers_is_no_state() -> None:
    """Activations that come out as large as they went in are not handed in again; a field that is stepped is."""
    text = LAYERS.replace("WEIGHTS", "8,2048,2048").replace("START", "i")
    assert "M103" not in codes(text)
    cut = "layer = f32[1,2048,2048]{2,1,0} dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={1,2048,2048}"
    same = "layer = f32[1,2048,2048]{2,1,0} slice(w), slice={[0:1], [0:2048], [0:2048]}"
    assert cut in text
    assert "M103" in codes(text.replace(cut, same))


ROWS = """HloModule rows, is_scheduled=true

ENTRY main {
  table = f32[4096,256]{1,0} parameter(0)
  w = f32[256,256]{1,0} parameter(1)
  ids = s32[65536]{0} parameter(2)
  taken = f32[65536,256]{1,0} gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, GATHER
  ROOT y = f32[65536,256]{1,0} dot(taken, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""".replace("GATHER", "index_vector_dim=1, slice_sizes={1,256}")


def test_rows_are_multiplied_before_the_gather_but_on_tpu() -> None:
    """The gathered rows are then written once less; on TPU the gather is what takes the time."""
    finding = only(ROWS, "G119", chip="h100")
    assert finding.peak_bytes
    config = lint.Config(**{**support.SAY_ALL, "select": ("G119",), "profile": Backend.TPU})
    assert not lint.run(hlo.parse(ROWS), config)


CONVERTED = """HloModule converted, is_scheduled=true

ENTRY main {
  x = f32[1024,1024]{1,0} parameter(0)
  n = bf16[1024,1024]{1,0} convert(x)
  ROOT y = bf16[1024,1024]{1,0} cosine(n)
}
"""


def test_a_conversion_of_the_tpu_compilers_own_is_not_the_programs() -> None:
    """It multiplies f32 in bf16."""
    config = {**support.SAY_ALL, "select": ("C105",)}
    assert lint.run(hlo.parse(CONVERTED), lint.Config(**config))
    assert not lint.run(hlo.parse(CONVERTED), lint.Config(**config, profile=Backend.TPU))


STEPPED = (support.DATA / "lint" / "M111.txt").read_text("utf-8").partition("HloModule silent")[0]
STEPPED = STEPPED.replace("[256,256]", "[4096,4096]")


def test_on_gpu_unrolling_spares_the_copies_of_a_loop_that_writes_its_state_alone() -> None:
    """With arrays on the way the longer body is fused in another way, and may write more than was copied."""
    new = "new = f32[4096,4096]{1,0} subtract(u, before)"
    assert new in STEPPED
    between = STEPPED.replace(
        new, f"half = f32[4096,4096]{{1,0}} cosine(u)\n  {new.replace('before', 'half')}"
    )
    config = lint.Config(**{**support.SAY_ALL, "select": ("M111",), "profile": Backend.GPU})
    (sure,) = lint.run(hlo.parse(STEPPED), config)
    (noted,) = lint.run(hlo.parse(between), config)
    assert (sure.is_at_most, noted.is_at_most) == (False, True)
    assert noted.severity is Severity.NOTE
    assert lint.run(hlo.parse(between), attrs.evolve(config, profile=Backend.CPU))


SMOOTHED = """HloModule smoothed, is_scheduled=true

smooth {
  u = f32[4194304]{0} parameter(0)
  first = f32[1]{0} slice(u), slice={[0:1]}
  others = f32[4194303]{0} slice(u), slice={[1:4194304]}
  rolled = f32[4194304]{0} concatenate(others, first), dimensions={0}
  ROOT sum = f32[4194304]{0} add(u, rolled), metadata={op_name="jit(run)/while/body/add" stack_frame_id=3}
}

body {
  state = (s32[], f32[4194304]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  u = f32[4194304]{0} get-tuple-element(state), index=1
  new = f32[4194304]{0} fusion(u), kind=kLoop, calls=smooth
  copied = f32[4194304]{0} copy(new)
  ROOT t = (s32[], f32[4194304]{0}) tuple(next, copied)
}

condition {
  state = (s32[], f32[4194304]{0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(200)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  start = s32[] constant(0)
  p = f32[4194304]{0} parameter(0)
  first = (s32[], f32[4194304]{0}) tuple(start, p)
  ROOT loop = (s32[], f32[4194304]{0}) while(first), condition=condition, body=body
}
"""


def test_copies_that_unrolling_leaves_are_not_told() -> None:
    """XLA for CPU fuses two iterations of one fusion each unless something else reads the state between; and copies
    in a loop that is unrolled already are what is left."""
    gpu = lint.Config(**{**support.SAY_ALL, "select": ("M111",), "profile": Backend.GPU})
    cpu = attrs.evolve(gpu, profile=Backend.CPU)
    assert lint.run(hlo.parse(SMOOTHED), gpu)
    assert not lint.run(hlo.parse(SMOOTHED), cpu)
    read = SMOOTHED.replace("  ROOT t =", "  largest = f32[4194304]{0} cosine(new)\n  ROOT t =")
    assert lint.run(hlo.parse(read), cpu)
    twice = SMOOTHED.replace("fusion(u)", "fusion(half)").replace(
        "  new =", "  half = f32[4194304]{0} fusion(u), kind=kLoop, calls=smooth\n  new ="
    )
    assert not lint.run(hlo.parse(twice), gpu)
    added = "ROOT sum = f32[4194304]{0} add(u, rolled)"
    line = SMOOTHED[SMOOTHED.index(added) :].partition("\n")[0]
    within = SMOOTHED.replace(line, f"{line.replace('ROOT sum', 'half')}\n  {line.replace('(u,', '(half,')}")
    assert lint.run(hlo.parse(within), gpu)
    other = twice.replace("smooth\n", "other\n", 1).replace(
        "smooth {",
        SMOOTHED[SMOOTHED.index("smooth {") : SMOOTHED.index("body {")]
        .replace("=3", "=4")
        .replace("smooth", "other")
        + "smooth {",
    )
    assert lint.run(hlo.parse(other), gpu)


def test_of_copied_state_that_is_stacked_one_copy_of_two_stays() -> None:
    """The stack needs it in an array of its own."""
    stacking = (
        SMOOTHED.replace("(s32[], f32[4194304]{0})", "(s32[], f32[4194304]{0}, f32[200,4194304]{1,0})")
        .replace("(next, copied)", "(next, copied, stack)")
        .replace("tuple(start, p)", "tuple(start, p, all)")
        .replace(
            "p = f32[4194304]{0} parameter(0)",
            "p = f32[4194304]{0} parameter(0)\n  all = f32[200,4194304]{1,0} parameter(1)",
        )
        .replace(
            "  ROOT t =",
            "  old = f32[200,4194304]{1,0} get-tuple-element(state), index=2\n"
            "  row = f32[1,4194304]{1,0} bitcast(new)\n  zero = s32[] constant(0)\n"
            "  stack = f32[200,4194304]{1,0} dynamic-update-slice(old, row, i, zero)\n  ROOT t =",
        )
    )
    config = {"profile": Backend.GPU, "chip": "h100"}
    alone, stacked = only(SMOOTHED, "M111", **config), only(stacking, "M111", **config)
    assert alone.seconds is not None
    assert stacked.seconds == pytest.approx(alone.seconds / 2)


def test_widened_state_costs_half_of_each_reading_and_the_conversions() -> None:
    text = (
        (support.DATA / "lint" / "parts" / "wide_state.txt")
        .read_text("utf-8")
        .partition("HloModule silent")[0]
    )
    finding = only(text, "D101")
    estimate = cost.estimate(hlo.parse(text), "cpu")
    ends = sum(one.seconds for one in estimate.instructions if one.name in ("wide", "narrow"))
    assert finding.seconds == pytest.approx(64 * 64 * 1024 * 2 / 2e11 + ends)


def test_what_a_scan_keeps_is_told_without_its_state() -> None:
    """Of 64 rows of gates and as many of the state, a fourth as long, three fourths go."""
    text = (support.DATA / "lint" / "M116.txt").read_text("utf-8").partition("HloModule silent")[0]
    finding = only(text, "M116")
    assert finding.severity.value == "note"
    assert finding.peak_bytes == pytest.approx(64 * 3 * 1024 * 4, rel=0.02)


def test_memory_of_a_scan_is_found_behind_copies_of_its_zeros() -> None:
    """The CPU compiler copies one array of zeros into each slot that a scan fills: at the peak both are there."""
    text = (support.DATA / "lint" / "M116.txt").read_text("utf-8").partition("HloModule silent")[0]
    zeros = "empty = f32[64,4096]{1,0} broadcast(nothing), dimensions={}"
    copied = text.replace(zeros, f"{zeros}\n  own = f32[64,4096]{{1,0}} copy(empty)")
    copied = copied.replace("tuple(zero, x, empty)", "tuple(zero, x, own)")
    assert only(copied, "M116").peak_bytes == pytest.approx(2 * 64 * 3 * 1024 * 4, rel=0.02)


def test_where_a_module_does_not_fit_what_lowers_its_peak_is_a_warning() -> None:
    """Checkpointing trades time for memory: there is plenty on one chip, and too little on the other."""
    text = (support.DATA / "lint" / "M116.txt").read_text("utf-8").partition("HloModule silent")[0]
    few = text.replace("f32[64,4096]", "f32[8,4096]").replace("constant(64)", "constant(8)")
    few = few.replace(
        "wide = f32[4,1024]{1,0} broadcast(h), dimensions={1}",
        "wide = f32[4,1024]{1,0} iota(), iota_dimension=1",
    )
    large = few.replace("4096", str(4 << 27)).replace("1024", str(1 << 27))
    tpu = lint.Config(profile=Backend.TPU, chip="v5p")
    assert not [one for one in lint.run(hlo.parse(large), tpu) if one.code.startswith("M1")]
    found = {one.code: one for one in lint.run(hlo.parse(large), attrs.evolve(tpu, chip="v5e"))}
    assert found["M118"].severity.value == "error"
    assert found["M116"].severity.value == "warning"
    assert found["M116"].peak_bytes == pytest.approx((8 * 3 - 4) * 4 << 27, rel=0.02)


def test_what_the_forward_pass_keeps_falls_to_one_array_of_each_line() -> None:
    """Of three arrays of 16 KiB two are spared, as `jax.checkpoint` of attention did on TPU and GPU."""
    text = (support.DATA / "lint" / "M121.txt").read_text("utf-8").partition("HloModule silent")[0]
    finding = only(text, "M121")
    assert finding.severity.value == "note"
    assert finding.peak_bytes == pytest.approx(2 * 64 * 64 * 4, rel=0.04)


SHIFTED = """HloModule shifted, is_scheduled=true

shifting {
  p = f32[1023,1024]{1,0} parameter(0)
  x = f32[1,1024]{1,0} parameter(1)
  joined = f32[1024,1024]{1,0} concatenate(p, x), dimensions={0}
  y = f32[1,1024]{1,0} cosine(x)
  ROOT both = (f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(joined, y)
}

body {
  s = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  window = f32[1024,1024]{1,0} get-tuple-element(s), index=1
  x = f32[1,1024]{1,0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  rest = f32[1023,1024]{1,0} slice(window), slice={[1:1024], [0:1024]}
  both = (f32[1024,1024]{1,0}, f32[1,1024]{1,0}) fusion(rest, x), kind=kLoop, calls=shifting
  after = f32[1024,1024]{1,0} get-tuple-element(both), index=0
  y = f32[1,1024]{1,0} get-tuple-element(both), index=1
  ROOT n = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(next, after, y)
}

condition {
  s = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  most = s32[] constant(64)
  ROOT more = pred[] compare(i, most), direction=LT
}

ENTRY main {
  window = f32[1024,1024]{1,0} parameter(0)
  x = f32[1,1024]{1,0} parameter(1)
  zero = s32[] constant(0)
  s = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) tuple(zero, window, x)
  ROOT loop = (s32[], f32[1024,1024]{1,0}, f32[1,1024]{1,0}) while(s), condition=condition, body=body
}
"""


def test_a_shift_by_a_fusion_of_several_results_is_found() -> None:
    """The cut that is made for it alone counts."""
    finding = only(SHIFTED, "M111")
    cut = next(one for one in cost.estimate(hlo.parse(SHIFTED), "cpu").instructions if one.name == "rest")
    assert finding.seconds is not None
    assert finding.seconds >= cut.seconds


REPEATED = """HloModule repeated, is_scheduled=true

ENTRY main {
  k = f32[8,1024,64]{2,1,0} parameter(0)
  q = f32[8,8,4,64]{3,2,1,0} parameter(1)
  first = f32[8,8,1024,64]{3,2,1,0} broadcast(k), dimensions={0,2,3}, metadata={source_file="f.py" source_line=3}
  one = f32[8,8,4,1024]{3,2,1,0} dot(q, first) DIMS
  second = f32[8,8,1024,64]{3,2,1,0} broadcast(k), dimensions={0,2,3}, metadata={source_file="f.py" source_line=3}
  two = f32[8,8,4,1024]{3,2,1,0} dot(q, second) DIMS
  ROOT both = f32[8,8,4,1024]{3,2,1,0} add(one, two)
}
"""
REPEATED = REPEATED.replace(
    " DIMS",
    ", lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
)


def test_places_of_one_cause_lower_the_peak_together() -> None:
    """Each array alone saves nothing while the other one is as large."""
    finding = only(REPEATED, "M114")
    array, result = 4 * 8 * 8 * 1024 * 64, 4 * 8 * 8 * 4 * 1024
    assert finding.places == 2
    assert finding.peak_bytes is not None
    assert array - result <= finding.peak_bytes <= array


def test_without_a_broadcast_nothing_writes_it_and_products_read_the_original() -> None:
    grouped = REPEATED.replace("q = f32[8,8,4,64]{3,2,1,0}", "q = f32[8,32,64]{2,1,0}")
    for name in ("first", "second"):
        line = next(line for line in grouped.splitlines() if line.startswith(f"  {name} = "))
        grouped = grouped.replace(f"{line}\n", "").replace(f"dot(q, {name})", "dot(q, k)")
    grouped = grouped.replace("f32[8,8,4,1024]{3,2,1,0}", "f32[8,32,1024]{2,1,0}").replace("={0,1}", "={0}")
    grouped = grouped.replace("contracting_dims={3}", "contracting_dims={2}")
    before, after = (cost.estimate(hlo.parse(text), "v5e").seconds for text in (REPEATED, grouped))
    assert only(REPEATED, "M114", chip="v5e").seconds == pytest.approx(before - after, rel=0.05)


@pytest.mark.parametrize(
    ("op_name", "says", "not_"),
    [
        ("jit(f)/repeat/broadcast_in_dim", "jnp.repeat", "softmax"),
        ("jit(f)/attention/div", "scale the matmul result", "jnp.repeat"),
        ("jit(f)/add", "split its dimensions", "jnp.repeat"),
    ],
)
def test_advice_on_a_broadcast_fits_what_broadcasts(op_name: str, says: str, not_: str) -> None:
    """A division of jax.nn.softmax holds no jnp.repeat that could be replaced."""
    finding = only(REPEATED.replace("metadata={source", f'metadata={{op_name="{op_name}" source'), "M114")
    assert says in (finding.help or "")
    assert not_ not in (finding.help or "")


DECOMPOSED = """HloModule decomposed, is_scheduled=true

ENTRY main {
  a = f32[2,512,512]{2,1,0} parameter(0)
  b = f32[2,512,64]{2,1,0} parameter(1)
  lu = (f32[2,512,512]{1,2,0}, s32[2,512]{1,0}, s32[2]{0}) custom-call(a), custom_call_target="lapack_sgetrf_ffi"
  factor = (f32[2,512,512]{1,2,0}, s32[2]{0}) custom-call(a), custom_call_target="lapack_spotrf_ffi"
  lower = f32[2,512,512]{1,2,0} get-tuple-element(factor), index=0
  ROOT x = f32[2,512,64]{1,2,0} custom-call(lower, b), custom_call_target="lapack_strsm_ffi"
}
"""


def test_decompositions_have_their_operations() -> None:
    """LU takes 2/3 of n³ operations, Cholesky half of them, and a solve n² for each column."""
    found = cost.analyze(hlo.parse(DECOMPOSED)).run
    assert found.is_exact
    assert found.flops == pytest.approx(2 * (2 / 3 * 512**3 + 512**3 / 3 + 512**2 * 64), rel=1e-6)


MESSAGES = """HloModule messages, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  nodes = f32[4096,256]{1,0} parameter(0)
  edges = s32[65536,1]{1,0} parameter(1)
  w = f32[256,256]{1,0} parameter(2)
  given = f32[65536,256]{1,0} parameter(3)
  rows = f32[65536,256]{1,0} gather(nodes, edges), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
  sent = f32[65536,256]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  again = f32[65536,256]{1,0} gather(nodes, edges), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
  of_w = f32[256,256]{1,0} dot(again, given), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  of_rows = f32[65536,256]{1,0} dot(given, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  nought = f32[] constant(0)
  zeros = f32[4096,256]{1,0} broadcast(nought), dimensions={}
  of_nodes = f32[4096,256]{1,0} scatter(zeros, edges, of_rows), update_window_dims={1}, inserted_window_dims={0}, PLACES
  ROOT all = (f32[65536,256]{1,0}, f32[256,256]{1,0}, f32[4096,256]{1,0}) tuple(sent, of_w, of_nodes)
}
""".replace("SIZES", "index_vector_dim=1, slice_sizes={1,256}")
MESSAGES = MESSAGES.replace("PLACES", "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum")


def test_products_of_the_gradient_go_with_that_of_gathered_rows() -> None:
    """All three are of 65,536 rows, and would be of 4,096."""
    finding = only(MESSAGES, "G119", chip="h100")
    estimate = cost.estimate(hlo.parse(MESSAGES), "h100")
    products = sum(one.seconds for one in estimate.instructions if one.instruction.opcode == "dot")
    assert finding.flops == round(3 * 2 * 65536 * 256 * 256 * (1 - 4096 / 65536))
    assert finding.seconds is not None
    assert finding.seconds >= products * (1 - 4096 / 65536)


def test_caches_that_a_scan_turns_save_what_carrying_them_in_the_right_layout_does() -> None:
    """Compiled: 1.616 ms as they are, 0.743 ms and 512 MiB less carried, donated and in the compiler's layout. What reads the
    slices in fast memory reads main memory then. Carried alone, both caches are turned as a whole: 3.361 ms."""
    path = support.DATA / "lint" / "compiled" / "caches_turned_in_scan.tpu1.after_optimizations.txt.xz"
    (finding,) = lint.run(hlo.load(path), lint.Config(select=("M112",), chip="v5e"))
    assert finding.seconds == pytest.approx(1.616e-3 - 0.743e-3, rel=0.01)
    assert finding.peak_bytes == 512 << 20
    assert finding.message.startswith("a loop takes 2 arrays (`kc` and `vc`), 512 MiB in total, as xs")
    assert finding.places == 1
    assert "Layout.AUTO" in finding.help


OWN_ROWS = """HloModule own_rows, num_partitions=4, is_scheduled=true

ENTRY main {
  x = f32[1024,512]{1,0} parameter(0)
  w = f32[512,2048]{1,0} parameter(1)
  logits = f32[1024,2048]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  waves = f32[1024,2048]{1,0} cosine(logits)
  id = u32[] partition-id()
  number = s32[] convert(id)
  rows = s32[] constant(256)
  zero = s32[] constant(0)
  first = s32[] PLACE(number, rows)
  ROOT mine = f32[256,2048]{1,0} dynamic-slice(waves, first, zero), dynamic_slice_sizes={256,2048}NAMED
}
"""


@pytest.mark.parametrize(
    ("op_name", "advice"),
    [
        (
            "jit(f)/sharding_constraint",
            "shard the matmul result as the with_sharding_constraint at f.py:15 requires: ",
        ),
        ("jit(f)/exp", "shard the matmul result as exp at f.py:15 uses it: "),
        ("", "shard the matmul result as its users are sharded: "),
        ("jit(f)/shard_map/dynamic_slice", "slice out the device's own part of the operands first"),
    ],
)
def test_a_product_of_which_each_device_keeps_its_part_is_a_matter_of_shardings(
    op_name: str, advice: str
) -> None:
    """Compiled for v5e: constraining the product itself as its user is saves what the findings say."""
    named = f', metadata={{op_name="{op_name}" source_file="f.py" source_line=15}}' if op_name else ""
    finding = only(OWN_ROWS.replace("PLACE", "multiply").replace("NAMED", named), "G118")
    assert finding.message == (
        "each device uses only its own 256 of 1,024 indices of dimension 0 of the matmul of 1024x512 and 512x2048"
    )
    assert finding.help.startswith(advice)


def test_a_product_of_which_every_device_uses_the_same_part_is_cut_before() -> None:
    """The place of the slice does not depend on the device."""
    text = OWN_ROWS.replace("PLACE(number, rows)", "add(rows, rows)").replace("NAMED", "")
    finding = only(text, "G118")
    assert finding.message.startswith("only 256 of 1,024 indices of dimension 0 of the matmul of ")
    assert finding.help.startswith("slice first")


PICKED = """HloModule picked, is_scheduled=true

ENTRY main {
  t = bf16[8,4096,512]{2,1,0:T(8,128)(2,1)} parameter(0)
  i = s32[8,1024]{1,0:T(8,128)} parameter(1)
  index = s32[8,1024,4096]{2,1,0:T(8,128)} broadcast(i), dimensions={0,1}
  count = s32[8,1024,4096]{2,1,0:T(8,128)} iota(), iota_dimension=2
  same = pred[8,1024,4096]{2,1,0:T(8,128)(4,1)} compare(index, count), direction=EQ
  hot = bf16[8,1024,4096]{2,1,0:T(8,128)(2,1)} convert(same)
  ROOT p = bf16[8,1024,512]{2,1,0:T(8,128)(2,1)} convolution(hot, t), window={WINDOW}, dim_labels=0bf_0io->0bf
}
"""


def test_a_one_hot_product_of_batches_is_seen_on_tpu() -> None:
    """Written as a convolution: compiled for v5e, taking the rows instead saves 164 of 215 us, where all but the product is
    fused into it."""
    finding = only(PICKED.replace("WINDOW", "size=8 stride=7 lhs_dilate=8"), "D107")
    assert "with a one-hot matrix of 4,096 classes" in finding.message
    assert finding.flops == 2 * 8 * 1024 * 4096 * 512
    others = lint.run(
        hlo.parse(PICKED.replace("WINDOW", "size=8 pad=3_4")),
        lint.Config(**support.SAY_ALL, select=("D107",)),
    )
    assert not others  # a window that adds neighbours up


IN_TURN = """HloModule stacked, is_scheduled=true

ENTRY main {
  caches = f32[2,64,4096]{2,1,0} parameter(0)
  row = f32[1,1,4096]{2,1,0} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  one = s32[] constant(1)
  first = f32[1,64,4096]{2,1,0} slice(caches), slice={[0:1], [0:64], [0:4096]}
  first.new = f32[1,64,4096]{2,1,0} dynamic-update-slice(first, row, zero, at, zero)
  second = f32[1,64,4096]{2,1,0} slice(caches), slice={[1:2], [0:64], [0:4096]}
  second.new = f32[1,64,4096]{2,1,0} dynamic-update-slice(second, row, zero, at, zero)
  room = f32[2,64,4096]{2,1,0} custom-call(), custom_call_target="AllocateBuffer"
  half = f32[2,64,4096]{2,1,0} dynamic-update-slice(room, first.new, zero, zero, zero)
  ROOT whole = f32[2,64,4096]{2,1,0} dynamic-update-slice(half, second.new, PLACE, zero, zero)
}
"""


def test_slices_that_are_written_in_turn_are_joined() -> None:
    """As the TPU compiler of 2026 stacks large arrays. Compiled for v5e, eight layers of two caches of 256 MiB: writing in
    place saves 2.44 ms (2.41 told) and 496 MiB (480), donating 512 MiB (512)."""
    finding = only(IN_TURN.replace("PLACE", "one"), "M112")
    assert finding.message.startswith(
        "an array of 2.00 MiB is cut into slices, a small part of each is updated"
    )
    (update,) = updates_of(lint.make_context(hlo.parse(IN_TURN.replace("PLACE", "one"))))
    assert update.is_in_place


@pytest.mark.parametrize("place", ["zero", "at"])
def test_slices_that_do_not_fill_an_array_are_not_joined(place: str) -> None:
    """Twice at one place, or at one that only the run tells."""
    context = lint.make_context(hlo.parse(IN_TURN.replace("PLACE", place)))
    assert not list(taken_apart(context))


TABLE = """HloModule table, is_scheduled=true

repeat {
  a = f32[1024,64]{1,0} parameter(0)
  ROOT b = f32[8,1024,64]{2,1,0} broadcast(a), dimensions={1,2}
}

body {
  state = (s32[], f32[8,1024,64]{2,1,0}, f32[1024,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[8,1024,64]{2,1,0} get-tuple-element(state), index=1
  t = f32[1024,64]{1,0} get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[8,1024,64]{2,1,0} fusion(t), kind=kLoop, calls=repeat
  y = USED
  ROOT r = (s32[], f32[8,1024,64]{2,1,0}, f32[1024,64]{1,0}) tuple(next, y, t)
}

cond {
  state = (s32[], f32[8,1024,64]{2,1,0}, f32[1024,64]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(12)
  ROOT more = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8,1024,64]{2,1,0} parameter(0)
  t = f32[1024,64]{1,0} parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[8,1024,64]{2,1,0}, f32[1024,64]{1,0}) tuple(zero, x, t)
  loop = (s32[], f32[8,1024,64]{2,1,0}, f32[1024,64]{1,0}) while(state), condition=cond, body=body
  ROOT out = f32[8,1024,64]{2,1,0} get-tuple-element(loop), index=1
}
"""


def test_a_table_that_each_iteration_repeats_and_only_reads_is_made_again() -> None:
    """Memory that is written over must be filled anew."""
    read = "f32[8,1024,64]{2,1,0} multiply(x, w)"
    finding = only(TABLE.replace("USED", read), "G116", profile=Backend.GPU)
    assert "broadcast of 2.00 MiB is recomputed in each of 12 iterations" in finding.message
    over = "f32[8,1024,64]{2,1,0} dynamic-update-slice(w, x, i, i, i)"
    assert "G116" not in codes(TABLE.replace("USED", over))


def test_the_memory_of_an_argument_stays() -> None:
    """The loop's copies end in the donated arguments: without them these are as large as before (512 MiB, not 1 GiB)."""
    path = support.DATA / "lint/compiled/cache_as_scan_output.gpu1.after_optimizations.txt.xz"
    saved = only(support.read_text(path).decode(), "M112").peak_bytes
    assert saved == pytest.approx(512 << 20, rel=0.01)


BOUND = """HloModule bound, is_scheduled=true

ENTRY main {
  x = f32[4096]{0} parameter(0)
  k = f32[1024]{0} constant({...})
  y = f32[2048]{0} slice(x), slice={[0:2048]}
  z = f32[2048]{0} cosine(y)
  ROOT r = f32[512]{0} slice(z), slice={[0:512]}
}
"""


@pytest.mark.parametrize(("named", "left"), [("y", 0), ("x", 16384), ("k", 4096), ("r", 2048)])
def test_no_saving_is_more_than_what_can_fall(named: str, left: int) -> None:
    """Arguments, constants and results stay, unless the finding is about one of them."""
    context = lint.make_context(hlo.parse(BOUND))
    one = context.module.find(named)
    assert context.most_saved({one}) == 8192 + left  # y and z have one place


@attrs.frozen
class _Boasting(lint.Rule):
    code = "Z901"
    name = "boasting"
    title = "more memory than there is"
    waste = "held"
    opcodes = frozenset({"cosine"})

    def check(self, instruction: hlo.Instruction, context: lint.Context) -> Iterator[lint.Report]:
        yield lint.Report(instruction, "all of it", peak_bytes=1 << 40)


def test_the_bound_holds_for_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint.Config, "active_rules", lambda config, context: [_Boasting()])
    (finding,) = lint.run(hlo.parse(BOUND), lint.Config(**support.SAY_ALL))
    assert finding.peak_bytes == 8192


SORTED = """HloModule sorted, is_scheduled=true

tied {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  less = pred[] compare(x, y), direction=LT
  more = pred[] compare(y, x), direction=LT
  alike = pred[] compare(less, more), direction=EQ
  first = pred[] compare(i, j), direction=LT
  ROOT c = pred[] select(alike, first, less)
}

less {
  x = bf16[] parameter(0)
  y = bf16[] parameter(1)
  ROOT c = pred[] compare(x, y), direction=LT
}

ENTRY main {
  x = bf16[4096,4096]{1,0:T(8,128)(2,1)} parameter(0)
  s = bf16[4096,4096]{1,0:T(8,128)(2,1)} sine(x)
SORTS
  ROOT c = bf16[4096,4096]{1,0:T(8,128)(2,1)} cosine(keys)
}
"""
_STABLE = """  i = s32[4096,4096]{1,0:T(8,128)} iota(), iota_dimension=1
  both = (bf16[4096,4096]{1,0:T(8,128)(2,1)}, s32[4096,4096]{1,0:T(8,128)}) sort(s, i), dimensions={1}, to_apply=tied
  keys = bf16[4096,4096]{1,0:T(8,128)(2,1)} get-tuple-element(both), index=0"""
_UNSTABLE = "  keys = bf16[4096,4096]{1,0:T(8,128)(2,1)} sort(s), dimensions={1}, to_apply=less"


def test_a_stable_sort_of_keys_costs_the_positions() -> None:
    before, after = (SORTED.replace("SORTS", way) for way in (_STABLE, _UNSTABLE))
    finding = only(before, "G118")
    times = [cost.estimate(hlo.parse(text), "v5e").seconds for text in (before, after)]
    peaks = [lint.make_context(hlo.parse(text)).peak or 0 for text in (before, after)]
    assert finding.seconds == pytest.approx(times[0] - times[1], rel=0.01)
    assert finding.peak_bytes == pytest.approx(peaks[0] - peaks[1], rel=0.01)
    assert "G118" not in codes(after)


def test_all_transposes_around_convolutions_are_one_cause() -> None:
    """In both directions, through what is done by element; in the order of the library none of them is left."""
    text = (support.DATA / "lint" / "parts" / "convolution_relayout.txt").read_text()
    turned = text.partition("HloModule silent")[0]
    finding = only(turned, "L103")
    assert finding.message.startswith(
        "3 instructions only transpose arrays to or from the dimension order of the convolution library, NHWC with OHWI "
        "kernels"
    )
    assert "('NHWC', 'OHWI', 'NHWC')" in finding.help
    whole = cost.estimate(hlo.parse(turned), "h100").instructions
    assert finding.seconds == pytest.approx(
        sum(one.seconds for one in whole if one.name in ("images", "kernel", "z"))
    )
    one_dimension = turned.replace("b01f_o01i->b01f", "b0f_o0i->b0f").replace("3x3 pad=1_1x1_1", "3 pad=1_1")
    assert "('NWC', 'OWI', 'NWC')" in only(one_dimension, "L103").help


RECURRENT_GRADIENT = """HloModule gradient, is_scheduled=true

%fused {
  %q = f32[32,512]{1,0} parameter(0)
  %d = f32[32,2048]{1,0} parameter(1)
  %u = f32[512,2048]{1,0} parameter(2)
  %p = f32[512,2048]{1,0} dot(%q, %d), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT %s = f32[512,2048]{1,0} add(%u, %p)
}

%add.x {
  %w = f32[1536,2048]{1,0} parameter(0)
  %u.1 = f32[1024,2048]{1,0} parameter(1)
  %from.x = f32[1024,2048]{1,0} slice(%w), slice={[0:1024], [0:2048]}
  ROOT %s.1 = f32[1024,2048]{1,0} add(%u.1, %from.x)
}

%add.h {
  %w.1 = f32[1536,2048]{1,0} parameter(0)
  %u.2 = f32[512,2048]{1,0} parameter(1)
  %from.h = f32[512,2048]{1,0} slice(%w.1), slice={[1024:1536], [0:2048]}
  ROOT %s.2 = f32[512,2048]{1,0} add(%u.2, %from.h)
}

%body {
  %state = STATE parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %z = f32[32,2048]{1,0} get-tuple-element(%state), index=1
  %xs = f32[1600,32,1024]{2,1,0} get-tuple-element(%state), index=2
  %kept = f32[1600,32,2048]{2,1,0} get-tuple-element(%state), index=3
  %of.x = f32[1024,2048]{1,0} get-tuple-element(%state), index=4
  %of.h = f32[512,2048]{1,0} get-tuple-element(%state), index=5
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %dz = f32[32,2048]{1,0} tanh(%z)
  %h = f32[32,512]{1,0} slice(%z), slice={[0:32], [0:512]}
BODY
}

%condition {
  %state.1 = STATE parameter(0)
  %i.1 = s32[] get-tuple-element(%state.1), index=0
  %limit = s32[] constant(1600)
  ROOT %less = pred[] compare(%i.1, %limit), direction=LT
}

ENTRY %main {
  %z0 = f32[32,2048]{1,0} parameter(0)
  %xs0 = f32[1600,32,1024]{2,1,0} parameter(1)
  %kept0 = f32[1600,32,2048]{2,1,0} parameter(2)
  %a0 = f32[1024,2048]{1,0} parameter(3)
  %b0 = f32[512,2048]{1,0} parameter(4)
  %zero.1 = s32[] constant(0)
  %first = STATE tuple(%zero.1, %z0, %xs0, %kept0, %a0, %b0)
  %loop = STATE while(%first), condition=%condition, body=%body
AFTER
}
"""
_STATE = (
    "(s32[], f32[32,2048]{1,0}, f32[1600,32,1024]{2,1,0}, f32[1600,32,2048]{2,1,0}, f32[1024,2048]{1,0}, "
    "f32[512,2048]{1,0})"
)
_JOINED = """  %cut = f32[1,32,1024]{2,1,0} dynamic-slice(%xs, %i, %zero, %zero), dynamic_slice_sizes={1,32,1024}
  %x = f32[32,1024]{1,0} bitcast(%cut)
  %rows = f32[32,1536]{1,0} concatenate(%x, %h), dimensions={1}
  %both = f32[1536,2048]{1,0} dot(%rows, %dz), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  %new.x = f32[1024,2048]{1,0} fusion(%both, %of.x), kind=kLoop, calls=%add.x
  %new.h = f32[512,2048]{1,0} fusion(%both, %of.h), kind=kLoop, calls=%add.h
  ROOT %t = STATE tuple(%next, %dz, %xs, %kept, %new.x, %new.h)"""
_TAKEN = """  %of.x.1 = f32[1024,2048]{1,0} get-tuple-element(%loop), index=4
  %of.h.1 = f32[512,2048]{1,0} get-tuple-element(%loop), index=5
  ROOT %r = (f32[1024,2048]{1,0}, f32[512,2048]{1,0}) tuple(%of.x.1, %of.h.1)"""
_APART = """  %row = f32[1,32,2048]{2,1,0} bitcast(%dz)
  %stacked = f32[1600,32,2048]{2,1,0} dynamic-update-slice(%kept, %row, %i, %zero, %zero)
  %new.h = f32[512,2048]{1,0} fusion(%h, %dz, %of.h), kind=kLoop, calls=%fused
  ROOT %t = STATE tuple(%next, %dz, %xs, %stacked, %of.x, %new.h)"""
_AT_ONCE = """  %all = f32[1600,32,2048]{2,1,0} get-tuple-element(%loop), index=3
  %of.h.1 = f32[512,2048]{1,0} get-tuple-element(%loop), index=5
  %at.once = f32[1024,2048]{1,0} dot(%xs0, %all), lhs_contracting_dims={0,1}, rhs_contracting_dims={0,1}
  ROOT %r = (f32[1024,2048]{1,0}, f32[512,2048]{1,0}) tuple(%at.once, %of.h.1)"""


def test_a_gradient_that_leaves_the_loop_takes_its_additions_along() -> None:
    """Also where it is joined with another one that stays: on GPU that one then adds to its sum itself."""
    joined, apart = (
        RECURRENT_GRADIENT.replace("BODY", body).replace("AFTER", after).replace("STATE", _STATE)
        for body, after in ((_JOINED, _TAKEN), (_APART, _AT_ONCE))
    )
    finding = only(joined, "G124", profile=Backend.GPU, chip="h100")
    assert finding.message.startswith(
        "a part of the matmul of 32x1536 and 32x2048 is computed in each of 1,600"
    )
    assert (finding.bytes, finding.flops) == (None, 2 * 32 * 1536 * 2048 * 1600)
    before, after = (cost.estimate(hlo.parse(text), "h100").seconds for text in (joined, apart))
    assert finding.seconds == pytest.approx(before - after, rel=0.1)
    on_cpu = only(joined, "G124", profile=Backend.CPU, chip="cpu")
    names = {one.name: one.seconds for one in cost.estimate(hlo.parse(joined), "cpu").instructions}
    assert 0.95 * names["new.x"] < (on_cpu.seconds or 0) < names["new.x"] + names["both"]


def test_a_gradient_of_rows_that_iterations_compute_is_noted() -> None:
    """Differentiation of a scan accumulates gradients of its weights; a note, since that is the usual way to write it."""
    text = RECURRENT_GRADIENT.replace("BODY", _APART).replace("AFTER", _AT_ONCE).replace("STATE", _STATE)
    finding = only(text, "G124", profile=Backend.GPU, chip="h100")
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith("although its result is only accumulated")
    names = {one.name: one.seconds for one in cost.estimate(hlo.parse(text), "h100").instructions}
    compute = 2 * 32 * 512 * 2048 * 1600 / 495e12
    stacks = 2 * (512 + 2048) * 32 * 4 * 1600 / 3.35e12
    assert finding.seconds == pytest.approx(names["new.h"] - max(compute, stacks / 2) - stacks, rel=0.05)


def test_a_sum_that_its_loop_reads_is_no_gradient() -> None:
    """Such as the state of linear attention."""
    text = RECURRENT_GRADIENT.replace("BODY", _APART).replace("AFTER", _AT_ONCE)
    read = "  %dz = f32[32,2048]{1,0} dot(%h, %of.h), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = text.replace("  %dz = f32[32,2048]{1,0} tanh(%z)\n", "").replace(
        "[0:512]}\n", f"[0:512]}}\n{read}\n"
    )
    assert "G124" not in codes(text.replace("STATE", _STATE))


@pytest.mark.parametrize(("cycles", "is_found"), [(60_000, True), (0, False)])
def test_a_sum_in_fast_memory_takes_what_the_compiler_estimates(cycles: int, is_found: bool) -> None:
    """Its rate is not published, so the estimate of time leaves it out; the saving is in proportion to that estimate."""
    text = RECURRENT_GRADIENT.replace("BODY", _APART).replace("AFTER", _AT_ONCE).replace("STATE", _STATE)
    lines = []
    for line in text.splitlines():
        if line.lstrip().startswith(("%new.h =", "%dz =")):
            config = {"window_config": {"estimated_cycles": str(cycles)}}
            line += f", backend_config={json.dumps(config, separators=(',', ':'))}"
        lines.append(line.replace("[512,2048]{1,0}", "[512,2048]{1,0:T(8,128)S(1)}"))
    found = list(
        lint.run(
            hlo.parse("\n".join(lines)),
            lint.Config(**{**support.SAY_ALL, "select": ("G124",)}, profile=Backend.TPU, chip="v5e"),
        )
    )
    assert bool(found) is is_found
    for one in found:
        assert 0 < (one.share or 0) < 0.5


BOTH_ENDS = """HloModule both_ends, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  nodes = f32[4096,256]{1,0} parameter(0)
  senders = s32[65530,1]{1,0} parameter(1)
  receivers = s32[65530,1]{1,0} parameter(2)
  w = f32[768,256]{1,0} parameter(3)
  edges = f32[65530,256]{1,0} parameter(4)
  given = f32[65530,256]{1,0} parameter(5)
  from = f32[65530,256]{1,0} gather(nodes, senders), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
  to = f32[65530,256]{1,0} gather(nodes, receivers), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, SIZES
  rows = f32[65530,768]{1,0} concatenate(from, to, edges), dimensions={1}
  sent = f32[65530,256]{1,0} dot(rows, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  nought = f32[] constant(0)
  padded = f32[65536,768]{1,0} pad(rows, nought), padding=0_6x0_0
  blocks = f32[64,1024,768]{2,1,0} bitcast(padded)
  filled = f32[65536,256]{1,0} pad(given, nought), padding=0_6x0_0
  others = f32[64,1024,256]{2,1,0} bitcast(filled)
  parts = f32[64,768,256]{2,1,0} dot(blocks, others), PARTS
  of_w = f32[768,256]{1,0} reduce(parts, nought), dimensions={0}, to_apply=sum
  of_rows = f32[65530,768]{1,0} dot(given, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT all = (f32[65530,256]{1,0}, f32[768,256]{1,0}, f32[65530,768]{1,0}ELSE) tuple(sent, of_w, of_rowsALSO)
}
""".replace("SIZES", "index_vector_dim=1, slice_sizes={1,256}")
BOTH_ENDS = BOTH_ENDS.replace(
    "PARTS", "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}"
)


def test_products_of_the_gradient_go_with_rows_side_by_side() -> None:
    """Also behind the padding with which the GPU compiler splits a sum. What is left reads and writes the rows of edges."""
    text = BOTH_ENDS.replace("ELSE", "").replace("ALSO", "")
    finding = only(text, "G119", chip="h100")
    assert "also in 2 matmuls of the gradient" in finding.message
    seconds = {one.name: one.seconds for one in cost.estimate(hlo.parse(text), "h100").instructions}
    row = lint.make_context(hlo.parse(text), chip="h100").prices.reading(4 * 65530 * 256)
    products = seconds["sent"] + seconds["parts"] + seconds["of_rows"]
    spared = products - 3 * 2 * row + 3 * row + 2 / 3 * seconds["padded"]
    assert finding.seconds == pytest.approx(spared, rel=0.05)
    read = BOTH_ENDS.replace("ELSE", ", f32[65530,768]{1,0}").replace("ALSO", ", rows")
    assert (only(read, "G119", chip="h100").seconds or 0) < 0.3 * spared


def test_rows_side_by_side_are_multiplied_before_the_gather_on_tpu_where_a_gradient_goes_along() -> None:
    """The TPU compiler joins the rows anew for the gradient. Alone, the gathers of wider rows take as long as the product."""
    text = BOTH_ENDS.replace("ELSE", "").replace("ALSO", "")
    start, end = text.index("  padded ="), text.index("  of_rows =")
    gathers = [line + "\n" for line in text.splitlines() if " gather(" in line]
    anew = "".join(gathers).replace(" from =", " from.2 =").replace(" to =", " to.2 =")
    anew += "  again = f32[65530,768]{1,0} concatenate(from.2, to.2, edges), dimensions={1}\n"
    anew += (
        "  of_w = f32[768,256]{1,0} dot(again, given), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
    )
    both = text[:start] + anew + text[end:]
    on_tpu = only(both, "G119", profile=Backend.TPU, chip="v5e")
    assert "also in 2 matmuls of the gradient" in on_tpu.message
    other = both.replace("concatenate(from.2, to.2, edges)", "concatenate(from.2, to.2, given)")
    assert "also in 1 matmul of the gradient" in only(other, "G119", profile=Backend.TPU).message
    forward = both.replace("dot(again, given)", "dot(given, given)").replace(
        "dot(given, w)", "custom-call(given)"
    )
    forward = forward.replace(
        "custom-call(given), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        'custom-call(given), custom_call_target="any"',
    )
    settings = {**support.SAY_ALL, "select": ("G119",), "profile": Backend.TPU}
    assert not lint.run(hlo.parse(forward), lint.Config(**settings))


CACHE = """HloModule cache, is_scheduled=true

ENTRY main {
  cache = f32[32768,1024]{1,0} parameter(0)
  row = f32[1,1024]{1,0} parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  kept = f32[32768,1024]{1,0} copy(cache)
  new = f32[32768,1024]{1,0} dynamic-update-slice(kept, row, at, zero)
  scores = f32[1,32768]{1,0} dot(row, new), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT t = (f32[32768,1024]{1,0}, f32[1,32768]{1,0}) tuple(new, scores)
}
"""


def test_a_cache_that_is_not_donated_costs_its_copy() -> None:
    finding = only(CACHE, "M103", profile=Backend.GPU, chip="h100")
    seconds = {one.name: one.seconds for one in cost.estimate(hlo.parse(CACHE), "h100").instructions}
    assert finding.seconds == seconds["kept"]
    assert finding.peak_bytes == 4 * 32768 * 1024


DIAGONAL = """HloModule diagonal, is_scheduled=true

%made {
  %p = f32[4096]{0} parameter(0)
  %i = s32[4096,4096]{1,0} iota(), iota_dimension=0
  %j = s32[4096,4096]{1,0} iota(), iota_dimension=1
  %same = pred[4096,4096]{1,0} compare(%i, %j), direction=EQ
  %wide = f32[4096,4096]{1,0} broadcast(%p), dimensions={0}
  %zero = f32[] constant(0)
  %zeros = f32[4096,4096]{1,0} broadcast(%zero), dimensions={}
  ROOT %s = f32[4096,4096]{1,0} select(%same, %wide, %zeros)
}

%multiplied {
  %m = f32[4096,4096]{1,0} parameter(0)
  %c = f32[4096,1024]{1,0} parameter(1)
  ROOT %n = f32[4096,1024]{1,0} dot(%m, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%scaled {
  %v = f32[4096]{0} parameter(0)
  %m = f32[4096,4096]{1,0} parameter(1)
  %c = f32[4096,1024]{1,0} parameter(2)
  %w = f32[4096,4096]{1,0} broadcast(%v), dimensions={0}
  %k = f32[4096,4096]{1,0} multiply(%w, %m)
  ROOT %n = f32[4096,1024]{1,0} dot(%k, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main {
  %d = f32[4096]{0} parameter(0)
  %a = f32[4096,4096]{1,0} parameter(1)
  %b = f32[4096,1024]{1,0} parameter(2)
DONE
}
"""
_MATRIX = """  %matrix = f32[4096,4096]{1,0} fusion(%d), kind=kLoop, calls=%made
  %rows = f32[4096,4096]{1,0} dot(%matrix, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %r = f32[4096,1024]{1,0} fusion(%rows, %b), kind=kCustom, calls=%multiplied"""
_VECTOR = "  ROOT %r = f32[4096,1024]{1,0} fusion(%d, %a, %b), kind=kCustom, calls=%scaled"


def test_what_scales_rows_is_fused_into_its_one_reader_but_on_cpu() -> None:
    """Neither the diagonal matrix nor the scaled one is written then."""
    matrix, vector = (DIAGONAL.replace("DONE", done) for done in (_MATRIX, _VECTOR))
    finding = only(matrix, "D107", profile=Backend.GPU, chip="h100")
    times = [cost.estimate(hlo.parse(text), "h100").seconds for text in (matrix, vector)]
    peaks = [lint.make_context(hlo.parse(text), Backend.GPU).peak or 0 for text in (matrix, vector)]
    assert finding.seconds == pytest.approx(times[0] - times[1], rel=0.01)
    assert finding.peak_bytes == peaks[0] - peaks[1] == 2 * 4 * 4096 * 4096
    assert only(matrix, "D107", profile=Backend.CPU, chip="cpu").peak_bytes == 4 * 4096 * 4096


BEAMS = """HloModule beams, is_scheduled=true

body {
  state = (s32[], f32[16,256,512]{2,1,0}, s32[16,1]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  cache = f32[16,256,512]{2,1,0} get-tuple-element(state), index=1
  parents = s32[16,1]{1,0} get-tuple-element(state), index=2
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  cut = f32[16,1,512]{2,1,0} slice(cache), slice={[0:16], [0:1], [0:512]}
  row = f32[16,1,512]{2,1,0} tanh(cut)
  new = f32[16,256,512]{2,1,0} dynamic-update-slice(cache, row, zero, i, zero)
  kept = f32[16,256,512]{2,1,0} gather(new, parents), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, ROWS
  others = s32[16,1]{1,0} negate(parents)
  ROOT t = (s32[], f32[16,256,512]{2,1,0}, s32[16,1]{1,0}) tuple(next, kept, others)
}

condition {
  state = (s32[], f32[16,256,512]{2,1,0}, s32[16,1]{1,0}) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(256)
  ROOT less = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  start = s32[] constant(0)
  caches = f32[16,256,512]{2,1,0} parameter(0)
  beams = s32[16,1]{1,0} parameter(1)
  first = (s32[], f32[16,256,512]{2,1,0}, s32[16,1]{1,0}) tuple(start, caches, beams)
  ROOT loop = (s32[], f32[16,256,512]{2,1,0}, s32[16,1]{1,0}) while(first), condition=condition, body=body
}
""".replace("ROWS", "index_vector_dim=1, slice_sizes={1,256,512}")


def test_state_whose_rows_are_gathered_in_each_iteration_costs_the_gathers() -> None:
    """As the caches of a beam search. What is gathered of something else, or computed with, is no order of rows."""
    finding = only(BEAMS, "M111", chip="h100")
    assert finding.message.startswith(
        "8.00 MiB of loop state is gathered into another row order in each of 256"
    )
    assert finding.severity.value == "note"
    seconds = {one.name: one.seconds for one in cost.estimate(hlo.parse(BEAMS), "h100").instructions}
    assert finding.seconds == seconds["kept"]
    computed = BEAMS.replace("dynamic-update-slice(cache, row, zero, i, zero)", "negate(cache)")
    assert "M111" not in codes(computed)
    assert "M111" not in codes(BEAMS.replace("tuple(next, kept, others)", "tuple(next, new, others)"))


SUMMED_THEN_CUT = """HloModule cut, is_scheduled=true, num_partitions=8

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

cut {
  whole = bf16[4194304]{0} parameter(0)
  place = u32[] parameter(1)
  ROOT part = bf16[524288]{0} dynamic-slice(whole, place), dynamic_slice_sizes={524288}
}

ENTRY main {
  x = f32[4194304]{0} parameter(0)
  p = u32[] partition-id()
  size = u32[] constant(524288)
  i = u32[] multiply(p, size)
  SUM
}
"""
SUMMED = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true, to_apply=sum"


def test_a_sum_that_is_cut_costs_what_a_reduce_scatter_takes_less() -> None:
    """Half of it, in the type of what is summed: a TPU sums f32 into a bf16 result."""
    whole = f"r = bf16[4194304]{{0}} all-reduce(x), {SUMMED}\nROOT d = bf16[524288]{{0}} fusion(r, i), kind=kLoop, calls=cut"
    part = f"ROOT d = bf16[524288]{{0}} reduce-scatter(x), dimensions={{0}}, {SUMMED}"
    finding = only(text := SUMMED_THEN_CUT.replace("SUM", whole), "C104", chip="v5e")
    before, after = (
        cost.estimate(hlo.parse(t), "v5e").transfers[0].seconds
        for t in (text, SUMMED_THEN_CUT.replace("SUM", part))
    )
    assert finding.seconds == pytest.approx(before - after)
    assert finding.bytes == 7 * 4194304 * 4 // 8
    assert "shard the result" in str(finding.help)
    asked = text.replace(SUMMED, f'{SUMMED}, metadata={{op_name="jit(f)/shard_map/psum_invariant"}}')
    assert "use jax.lax.psum_scatter" in str(only(asked, "C104", chip="v5e").help)


def test_a_donation_names_the_saving_of_its_finding_where_bounds_are_close() -> None:
    """Its bounds, 128.2 and 129.2 MiB, would be rounded to another number than the estimate between them."""
    text = support.read_text(support.DATA / "lint/frozen/adam_not_donated.gpu8.txt.xz").decode()
    (finding,) = lint.run(hlo.parse(text), lint.Config(select=("M103",)))
    assert finding.peak_bytes is not None
    assert f"estimated {byte_text(finding.peak_bytes)}" in finding.message


MASKED = """HloModule masked, is_scheduled=true

mask {
  row = s32[4096,4096]{1,0} iota(), iota_dimension=0
  column = s32[4096,4096]{1,0} iota(), iota_dimension=1
  on = pred[4096,4096]{1,0} compare(row, column), direction=EQ
  ROOT m = f32[4096,4096]{1,0} convert(on)
}

used {
  x = f32[4096,4096]{1,0} parameter(0)
  y = f32[4096,4096]{1,0} parameter(1)
  row = s32[4096,4096]{1,0} iota(), iota_dimension=0
  column = s32[4096,4096]{1,0} iota(), iota_dimension=1
  on = pred[4096,4096]{1,0} compare(row, column), direction=OTHER
  ROOT z = f32[4096,4096]{1,0} select(on, x, y)
}

condition {
  state = (s32[], f32[4096,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(100)
  ROOT less = pred[] compare(n, bound), direction=LT
}

body {
  state = (s32[], f32[4096,4096]{1,0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[4096,4096]{1,0} get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  made = f32[4096,4096]{1,0} fusion(), kind=kLoop, calls=mask
  y = f32[4096,4096]{1,0} multiply(x, made)
  z = f32[4096,4096]{1,0} fusion(x, y), kind=kLoop, calls=used
  ROOT t = (s32[], f32[4096,4096]{1,0}) tuple(next, z)
}

ENTRY main {
  zero = s32[] constant(0)
  p0 = f32[4096,4096]{1,0} parameter(0)
  start = (s32[], f32[4096,4096]{1,0}) tuple(zero, p0)
  ROOT loop = (s32[], f32[4096,4096]{1,0}) while(start), condition=condition, body=body
}
"""


@pytest.mark.parametrize(("other", "is_found"), [("GE", True), ("EQ", False)])
def test_a_mask_that_other_operations_compute_as_well_is_better_computed_in_each_iteration(
    other: str, is_found: bool
) -> None:
    """Before the loop it is one array, which those would read: as many bytes as are not written."""
    module = hlo.parse(MASKED.replace("OTHER", other))
    findings = lint.run(module, lint.Config(select=("G116",), chip="h100"))
    assert bool(findings) is is_found


DENSITIES = """HloModule densities, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

scores {
  x = f32[65536,64]{1,0} parameter(0)
  mean = f32[512,64]{1,0} parameter(1)
  spread = f32[512,64]{1,0} parameter(2)
  zero = f32[] constant(0)
  rows = f32[65536,512,64]{2,1,0} broadcast(x), dimensions={0,2}
  means = f32[65536,512,64]{2,1,0} broadcast(mean), dimensions={1,2}
  spreads = f32[65536,512,64]{2,1,0} broadcast(spread), dimensions={1,2}
  away = f32[65536,512,64]{2,1,0} subtract(rows, means)
  square = f32[65536,512,64]{2,1,0} multiply(away, away)
  term = f32[65536,512,64]{2,1,0} divide(square, BY)
  ROOT score = f32[65536,512]{1,0} reduce(term, zero), dimensions={2}, to_apply=sum
}

ENTRY main {
  x = f32[65536,64]{1,0} parameter(0)
  mean = f32[512,64]{1,0} parameter(1)
  spread = f32[512,64]{1,0} parameter(2)
  ROOT score = f32[65536,512]{1,0} fusion(x, mean, spread), kind=kLoop, calls=scores
}
"""


@pytest.mark.parametrize(("divisor", "is_found"), [("spreads", True), ("away", False)])
def test_terms_may_be_divided_by_a_factor(divisor: str, is_found: bool) -> None:
    """The reciprocal of what depends on one of two arrays is a factor; that of a difference of both is none."""
    module = hlo.parse(DENSITIES.replace("BY", divisor))
    assert bool(lint.run(module, lint.Config(select=("G123",), chip="v5e", profile=Backend.TPU))) is is_found
