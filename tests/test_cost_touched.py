"""Our own count of a fusion's bytes: what is read of the operands and written of the results, beside XLA's."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost

REDUCER = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def fusion(result: str, parameters: list[str], body: str, more: str = "") -> cost.Analysis:
    """The analysis of a fusion with these parameters, `p0` and so on, and this body."""
    inner = "".join(f"  p{n} = {shape} parameter({n})\n" for n, shape in enumerate(parameters))
    outer = inner.replace("  p", "  q")
    arguments = ", ".join(f"q{n}" for n in range(len(parameters)))
    text = (
        f"HloModule m\n{REDUCER}{more}body {{\n{inner}{body}}}\n"
        f"ENTRY e {{\n{outer}  ROOT f = {result} fusion({arguments}), kind=kLoop, calls=body\n}}\n"
    )
    return cost.analyze(hlo.parse(text))


GATHER = (
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,256}"
)
TABLE = "bf16[262144,8960]"
CASES: dict[str, tuple[str, list[str], str, int]] = {
    "a gather behind a slice": (
        "bf16[41,256]",
        [TABLE, "s32[41,1]"],
        f"  s = bf16[262144,256] slice(p0), slice={{[0:262144], [0:256]}}\n  ROOT g = bf16[41,256] gather(s, p1), {GATHER}\n",
        2 * 41 * 256 * 2 + 41 * 4,
    ),
    "a gather behind a conversion": (
        "f32[41,256]",
        ["bf16[1000,256]", "s32[41,1]"],
        f"  c = f32[1000,256] convert(p0)\n  ROOT g = f32[41,256] gather(c, p1), {GATHER}\n",
        41 * 256 * (2 + 4) + 41 * 4,
    ),
    "a slice behind elementwise operations": (
        "f32[8]",
        ["f32[1024]"],
        "  n = f32[1024] negate(p0)\n  x = f32[1024] exponential(p0)\n  s = f32[1024] add(n, x)\n"
        "  ROOT r = f32[8] slice(s), slice={[8:16]}\n",
        2 * 32,
    ),
    "a gather beside a reader of everything": (
        "(f32[41,256], f32[1000,256])",
        ["f32[1000,256]", "s32[41,1]"],
        f"  n = f32[1000,256] negate(p0)\n  g = f32[41,256] gather(p0, p1), {GATHER}\n"
        "  ROOT t = (f32[41,256], f32[1000,256]) tuple(g, n)\n",
        41 * 1024 + 41 * 4 + 2 * 1000 * 1024,
    ),
    "several users read it once": (
        "f32[4,8]",
        ["f32[4,8]"],
        "  r = f32[4,8] reshape(p0)\n  b = f32[4,8] broadcast(p0), dimensions={0,1}\n  ROOT a = f32[4,8] add(r, b)\n",
        2 * 128,
    ),
    "slices add up": (
        "f32[8]",
        ["f32[1024]"],
        "  a = f32[8] slice(p0), slice={[8:16]}\n  b = f32[8] slice(p0), slice={[80:88]}\n  ROOT r = f32[8] add(a, b)\n",
        3 * 32,
    ),
    "an update behind a bitcast": (
        "f32[32,32]",
        ["f32[1024]", "f32[8]", "s32[]"],
        "  d = f32[1024] dynamic-update-slice(p0, p1, p2)\n  ROOT r = f32[32,32] bitcast(d)\n",
        2 * 32 + 4,
    ),
    "an update of an update": (
        "f32[1024]",
        ["f32[1024]", "f32[8]", "s32[]", "s32[]"],
        "  d = f32[1024] dynamic-update-slice(p0, p1, p2)\n  ROOT r = f32[1024] dynamic-update-slice(d, p1, p3)\n",
        3 * 32 + 8,
    ),
    "an update of what is made here": (
        "f32[1024]",
        ["f32[]", "f32[8]", "s32[]"],
        "  b = f32[1024] broadcast(p0), dimensions={}\n  ROOT d = f32[1024] dynamic-update-slice(b, p1, p2)\n",
        4 + 32 + 4 + 4096,
    ),
    "an update that is read as well": (
        "(f32[1024], f32[])",
        ["f32[1024]", "f32[8]", "s32[]", "f32[]"],
        "  d = f32[1024] dynamic-update-slice(p0, p1, p2)\n  r = f32[] reduce(d, p3), dimensions={0}, to_apply=add\n"
        "  ROOT t = (f32[1024], f32[]) tuple(d, r)\n",
        4096 - 32 + 32 + 4 + 4 + 32 + 4,
    ),
    "a scatter": (
        "f32[1000,256]",
        ["f32[1000,256]", "s32[41,1]", "f32[41,256]"],
        "  ROOT s = f32[1000,256] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add\n",
        3 * 41 * 1024 + 41 * 4,
    ),
    "a scatter into zeros": (
        "f32[1000,256]",
        ["f32[]", "s32[41,1]", "f32[41,256]"],
        "  z = f32[1000,256] broadcast(p0), dimensions={}\n  ROOT s = f32[1000,256] scatter(z, p1, p2), "
        "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
        "to_apply=add\n",
        4 + 41 * 4 + 41 * 1024 + 1000 * 1024,
    ),
    "a tuple of which one element is sliced": (
        "f32[8]",
        ["(f32[1024], f32[4096])"],
        "  x = f32[1024] get-tuple-element(p0), index=0\n  n = f32[1024] negate(x)\n"
        "  ROOT r = f32[8] slice(n), slice={[0:8]}\n",
        2 * 32,
    ),
    "a part of a sum": (
        "f32[8]",
        ["f32[1024,16]", "f32[]"],
        "  r = f32[1024] reduce(p0, p1), dimensions={1}, to_apply=add\n  ROOT s = f32[8] slice(r), slice={[0:8]}\n",
        8 * 16 * 4 + 4 + 32,
    ),
    "what nothing needs": ("f32[8]", ["f32[8]", "f32[1024]"], "  ROOT n = f32[8] negate(p0)\n", 64),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fusion_counts_what_it_touches(name: str) -> None:
    """Of what is sliced, gathered and updated inside as much as that takes, whatever stands between."""
    result, parameters, body, expected = CASES[name]
    assert fusion(result, parameters, body).run.bytes_accessed == expected


NESTED = """inner {
  i0 = f32[1024] parameter(0)
  i1 = f32[8] parameter(1)
  i2 = s32[] parameter(2)
  n = f32[8] negate(i1)
  ROOT d = f32[1024] dynamic-update-slice(i0, n, i2)
}
"""


def test_nested_fusions() -> None:
    """An update in a nested fusion is one of the outer fusion's operand, unless something behind it makes it anew."""
    parameters = ["f32[1024]", "f32[8]", "s32[]"]
    call = "d = f32[1024] fusion(p0, p1, p2), kind=kLoop, calls=inner\n"
    assert fusion("f32[1024]", parameters, f"  ROOT {call}", NESTED).run.bytes_accessed == 2 * 32 + 4
    body = f"  {call}  ROOT n = f32[1024] negate(d)\n"
    assert fusion("f32[1024]", parameters, body, NESTED).run.bytes_accessed == 4096 - 32 + 32 + 4 + 4096


def test_a_custom_gather_counts_all_that_it_reads() -> None:
    """XLA takes the gather's own figure for the whole fusion, which leaves out where its indices come from."""
    text = """HloModule m
body {
  p0 = f32[512,256] parameter(0)
  p1 = s32[1024] parameter(1)
  c = s32[1024] custom-call(p1), custom_call_target="AssumeGatherIndicesInBound"
  s = s32[4] slice(c), slice={[0:4]}
  r = s32[4,1] reshape(s)
  ROOT g = f32[4,256] gather(p0, r), GATHER
}
ENTRY e {
  q0 = f32[512,256] parameter(0)
  q1 = s32[1024] parameter(1)
  ROOT f = f32[4,256] fusion(q0, q1), kind=kCustom, calls=body
}
""".replace("GATHER", GATHER)
    found = cost.analyze(hlo.parse(text))
    assert found.bytes_accessed == 2 * 4096 + 16
    assert found.run.bytes_accessed == 2 * 4096 + 16


def test_everything_of_ours_shows_it_and_xla_s_figure_stays() -> None:
    """A fusion that takes 41 rows of a table of 4.4 GiB: the run, the memory spaces and the least time count the rows."""
    result, parameters, body, expected = CASES["a gather behind a slice"]
    found = fusion(result, parameters, body)
    table = 262144 * 8960 * 2
    # XLA reads a slice of every row, or all of it where something stands in between.
    assert found.bytes_accessed == pytest.approx(262144 * 256 * 2 + 41 * 4 + 41 * 256 * 2)
    behind = fusion(
        result,
        parameters,
        body.replace("slice(p0)", "slice(k)").replace("  s =", f"  k = {TABLE} copy(p0)\n  s =", 1),
    )
    assert behind.bytes_accessed == pytest.approx(table + 41 * 4 + 41 * 256 * 2)
    assert behind.run.bytes_accessed == expected
    assert dict(behind.bytes_by_memory_space) == {0: expected}
    assert sum(part.bytes_accessed for part in behind.by("opcode").values()) == expected
    times = cost.estimate(behind.module, "h100")
    assert times.seconds < 1.1e-6  # of which starting the kernel is most
    assert times.roofline_seconds is None  # the TPU compiler's own figure
