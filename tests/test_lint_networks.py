# ruff: noqa: E501 - an instruction is a line
"""Findings in networks: attention in blocks of queries, weights that are spread or narrowed, and what a split sends."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis import Backend
from tests import support

GROUPED = """HloModule grouped, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  q = bf16[8,2048,64]{2,1,0} parameter(0)
  k = bf16[8,1024,64]{2,1,0} parameter(1)
  v = bf16[8,1024,64]{2,1,0} parameter(2)
  zero = f32[] constant(0)
  first = f32[8,2048,512]{2,1,0} dot(q, kept), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}, metadata={source_file="attention.py" source_line=7}
  second = f32[8,2048,1024]{2,1,0} dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}, metadata={source_file="attention.py" source_line=7}
  SOFTMAX
}
"""
"""Four heads of 512 queries share the keys, of which the first block sees half."""
_SOFTMAX = """
  {n}.apart = f32[8,4,512,{keys}]{{3,2,1,0}} bitcast({n})
  {n}.shares = f32[8,4,512,{keys}]{{3,2,1,0}} exponential({n}.apart)
  {n}.together = f32[8,2048,{keys}]{{2,1,0}} bitcast({n}.shares)
  {n}.values = bf16[8,{keys},64]{{2,1,0}} slice(v), slice={{[0:8], [0:{keys}], [0:64]}}
  {n}.o = f32[8,2048,64]{{2,1,0}} dot({n}.together, {n}.values), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}"""


def _grouped(exponential: str = "exponential") -> str:
    body = "".join(_SOFTMAX.format(n=n, keys=keys) for n, keys in (("first", 512), ("second", 1024)))
    ending = "\n  ROOT both = (f32[8,2048,64]{2,1,0}, f32[8,2048,64]{2,1,0}) tuple(first.o, second.o)"
    text = GROUPED.replace("  SOFTMAX", body.strip("\n").replace("exponential(", f"{exponential}(") + ending)
    kept = "  kept = bf16[8,512,64]{2,1,0} slice(k), slice={[0:8], [0:512], [0:64]}\n  first ="
    return text.replace("  first =", kept, 1)


def test_scores_of_blocks_of_queries_are_one_finding() -> None:
    """Also where heads share keys, so that matmul and softmax have different dimensions."""
    (finding,) = lint.run(hlo.parse(_grouped()), lint.Config(select=("M125",), **support.SAY_ALL))
    assert finding.name == "second"
    # Scores, their exponentials, and those of the other block, as far as they are live together.
    assert finding.peak_bytes is not None
    assert finding.peak_bytes >= 8 * 2048 * (1024 + 512) * 4
    silent = lint.run(hlo.parse(_grouped("negate")), lint.Config(select=("M125",), **support.SAY_ALL))
    assert not silent


ZERO = """HloModule step, num_partitions=8, input_output_alias={{ {{0}}: (0, {{}}, may-alias), {{1}}: (1, {{}}, may-alias), {{2}}: (2, {{}}, may-alias) }}

body {{
  s = (s32[], f32[8,2048,4096], f32[16,2048]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[8,2048,4096] get-tuple-element(s), index=1
  x = f32[16,2048] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], f32[8,2048,4096], f32[16,2048]) tuple(next, w, x)
}}

condition {{
  s = (s32[], f32[8,2048,4096], f32[16,2048]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  layers = s32[] constant(8)
  ROOT less = pred[] compare(i, layers), direction=LT
}}

ENTRY main {{
  w = f32[8,2048,4096] parameter(0), sharding={{replicated}}, metadata={{op_name="params['w']"}}
  m = f32[8,2048,512] parameter(1), sharding={{devices=[1,1,8]<=[8]}}, metadata={{op_name="mu['w']"}}
  n = f32[8,2048,512] parameter(2), sharding={{devices=[1,1,8]<=[8]}}, metadata={{op_name="nu['w']"}}
  x = f32[16,2048] parameter(3), sharding={{devices=[8,1]<=[8]}}
  zero = s32[] constant(0)
  started = (s32[], f32[8,2048,4096], f32[16,2048]) tuple(zero, w, x)
  layers = (s32[], f32[8,2048,4096], f32[16,2048]) while(started), condition=condition, body=body
  y = f32[16,2048] get-tuple-element(layers), index=2
  new = f32[8,2048,4096] negate(w)
  ms = f32[8,2048,512] negate(m)
  ns = f32[8,2048,512] negate(n)
  ROOT all = (f32[8,2048,4096], f32[8,2048,512], f32[8,2048,512], f32[16,2048]) tuple(new, ms, ns, {last})
}}
"""


def test_weights_that_a_scan_over_layers_reads_are_no_moments() -> None:
    """ZeRO stage 1 shards the moments on purpose: the weights are read by the layers, which a loop takes in a tuple."""
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    assert not lint.run(hlo.parse(ZERO.format(last="y")), config)
    unread = ZERO.format(last="x").replace("tuple(zero, w, x)", "tuple(zero, other, x)")
    unread = unread.replace(
        "  zero = s32[]", "  other = f32[8,2048,4096] iota(), iota_dimension=0\n  zero = s32[]"
    )
    assert [one.code for one in lint.run(hlo.parse(unread), config)] == ["C110"]


EXCHANGE = """HloModule exchange, num_partitions=4

body {{
  s = (s32[], bf16[4,1024,512]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = bf16[4,1024,512] get-tuple-element(s), index=1
  y = bf16[4,1024,512] all-to-all(x), channel_id=1, replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, metadata={{op_name="{name}"}}
  z = bf16[4,1024,512] tanh(y)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT r = (s32[], bf16[4,1024,512]) tuple(next, z)
}}

condition {{
  s = (s32[], bf16[4,1024,512]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  layers = s32[] constant(16)
  ROOT less = pred[] compare(i, layers), direction=LT
}}

ENTRY main {{
  x = bf16[4,1024,512] parameter(0)
  zero = s32[] constant(0)
  started = (s32[], bf16[4,1024,512]) tuple(zero, x)
  loop = (s32[], bf16[4,1024,512]) while(started), condition=condition, body=body
  ROOT y = bf16[4,1024,512] get-tuple-element(loop), index=1
}}
"""


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("jit(f)/transpose(jvp())/while/body/concatenate", "a dimension of their own", "jnp.roll"),
        ("jit(f)/jvp()/while/body/concatenate", "jnp.roll", "a dimension of their own"),
    ],
)
def test_a_concatenation_of_gradients_is_a_split(name: str, said: str, unsaid: str) -> None:
    """What the forward pass concatenates may be a shift; what the backward pass does undoes `jnp.split`."""
    found = lint.run(hlo.parse(EXCHANGE.format(name=name)), lint.Config(select=("C101",), **support.SAY_ALL))
    (finding,) = found
    assert said in finding.help
    assert unsaid not in finding.help


CAST = """HloModule cast, is_scheduled=true

ENTRY main {
  w = f32[2048,2048]{1,0:T(8,128)} parameter(0), metadata={op_name="params['w']"}
  x = bf16[8,2048]{1,0:T(8,128)(2,1)} parameter(1)
  start = ((f32[2048,2048]{1,0:T(8,128)}), f32[1024,2048]{1,0:T(8,128)S(1)}, s32[]) slice-start(w), slice={[0:1024], [0:2048]}
  done = f32[1024,2048]{1,0:T(8,128)S(1)} slice-done(start)
  start2 = ((f32[2048,2048]{1,0:T(8,128)}), f32[1024,2048]{1,0:T(8,128)S(1)}, s32[]) slice-start(w), slice={[1024:2048], [0:2048]}
  done2 = f32[1024,2048]{1,0:T(8,128)S(1)} slice-done(start2)
  whole = f32[2048,2048]{1,0:T(8,128)S(1)} custom-call(done, done2), custom_call_target="ConcatBitcast"
  narrow = bf16[2048,2048]{1,0:T(8,128)(2,1)S(1)} convert(whole), metadata={op_name="jit(f)/convert_element_type"}
  ROOT y = bf16[8,2048]{1,0:T(8,128)(2,1)} dot(x, narrow), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_weights_that_are_fetched_in_parts_are_still_only_narrowed() -> None:
    """The TPU compiler fetches a large array in slices, which a custom call joins."""
    config = lint.Config(select=("C105",), **support.SAY_ALL)
    (finding,) = lint.run(hlo.parse(CAST), config)
    assert "converted to bf16 in every call" in finding.message
    assert finding.peak_bytes == 2048 * 2048 * 2
    other = CAST.replace("ROOT y", "y").replace(
        "rhs_contracting_dims={0}\n",
        "rhs_contracting_dims={0}\n  ROOT z = f32[2048,2048]{1,0:T(8,128)} negate(whole)\n",
    )
    assert not lint.run(hlo.parse(other), config)


CACHES = """HloModule caches, is_scheduled=true

TURNS
ENTRY main {
LAYERS
  ROOT all = (OUT) tuple(NAMES)
}
"""
_TURN = """turn{n} {{
  p = bf16[16,512,8,128]{{3,2,1,0}} parameter(0)
  ROOT t = bf16[16,8,128,512]{{3,2,1,0}} transpose(p), dimensions={{0,2,3,1}}
}}
"""
_LAYER = """  cache{n} = bf16[16,512,8,128]{{3,2,1,0}} parameter({n})
  row{n} = bf16[16,1,8,128]{{3,2,1,0}} parameter({row})
  at{n} = s32[] constant(7)
  zero{n} = s32[] constant(0)
  updated{n} = bf16[16,512,8,128]{{3,2,1,0}} {update}
  turned{n} = bf16[16,8,128,512]{{3,2,1,0}} fusion(updated{n}), kind=kInput, calls=turn{n}, metadata={{op_name="jit(f)/scatter"}}
  o{n} = bf16[16,8,128,512]{{3,2,1,0}} negate(turned{n})
"""
_UPDATE = "dynamic-update-slice(cache{n}, row{n}, zero{n}, at{n}, zero{n}, /*index=5*/zero{n})"


def _caches(update: str) -> hlo.Module:
    layers = "".join(_LAYER.format(n=n, row=40 + n, update=update.format(n=n)) for n in range(40))
    turns = "".join(_TURN.format(n=n) for n in range(40))
    shapes = ", ".join(["bf16[16,8,128,512]{3,2,1,0}"] * 40)
    names = ", ".join(f"o{n}" for n in range(40))
    return hlo.parse(
        CACHES.replace("TURNS", turns)
        .replace("LAYERS", layers)
        .replace("OUT", shapes)
        .replace("NAMES", names)
    )


def test_caches_that_each_layer_transposes_are_one_finding() -> None:
    """A part of each is written in place, and then all of it in another order: one of many layers copies little."""
    config = lint.Config(select=("L103",), profile=Backend.GPU, **support.SAY_ALL)
    (finding,) = lint.run(_caches(_UPDATE), config)
    assert finding.places == 40
    assert "(batch, heads, positions, size)" in finding.help
    # What is computed in full can be computed in any order where it is made: that is for the compiler to say.
    assert not lint.run(_caches("exponential(cache{n})"), config)
