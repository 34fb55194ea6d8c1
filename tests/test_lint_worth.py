"""What findings say they cost, and which are not worth saying: on small modules, with the figures worked out by hand."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import hlotext as hlo
from hlotext import lint, memory
from hlotext.lint.parts.long_lived_array import LongLivedArray
from hlotext.lint.rule import make_context
from hlotext.memory.what_if import WhatIf, donate
from tests import support
from tests.support import ON_GPU

TAKEN = (
    "gather(table, rows), offset_dims={1}, collapsed_slice_dims={0}, "
    "start_index_map={0}, index_vector_dim=1, slice_sizes={1,90}"
)


LOOKED_UP = """HloModule looked_up, num_partitions=4

body {
  state = (s32[], f32[400000,90], f32[512,90]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  table = f32[400000,90] get-tuple-element(state), index=1
  rows = s32[512,1] iota(), iota_dimension=0
  taken = f32[512,90] TAKEN
  sum = f32[512,90] %s
  ROOT out = (s32[], f32[400000,90], f32[512,90]) tuple(next, table, sum)
}

condition {
  state = (s32[], f32[400000,90], f32[512,90]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  last = s32[] constant(200)
  ROOT less = pred[] compare(i, last), direction=LT
}

ENTRY main {
  table = f32[400000,90] parameter(0), sharding={replicated}
  start = f32[512,90] parameter(1), sharding={devices=[4,1]<=[4]}
  zero = s32[] constant(0)
  state = (s32[], f32[400000,90], f32[512,90]) tuple(zero, table, start)
  loop = (s32[], f32[400000,90], f32[512,90]) while(state), condition=condition, body=body
  ROOT result = f32[512,90] get-tuple-element(loop), index=2
}
""".replace("TAKEN", TAKEN)


TURNED = """HloModule turned, is_scheduled=true

ENTRY main {
  table = f32[125000,64]{0,1:T(8,128)} parameter(0)
  ordered = f32[125000,64]{1,0:T(8,128)} copy(table)
  ROOT twice = f32[125000,64]{1,0:T(8,128)} add(ordered, ordered)
}
"""


def test_rows_that_a_loop_gathers_are_wanted_everywhere() -> None:
    """Spread over the devices the table would be sent for in each round; what reads all of it could be spread."""
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    assert not lint.run(hlo.parse(LOOKED_UP % "add(taken, taken)"), config)
    product = "slice(table), slice={[0:512], [0:90]}"
    assert [finding.code for finding in lint.run(hlo.parse(LOOKED_UP % product), config)] == ["C110"]


def test_rows_that_are_gathered_once_may_lie_anywhere() -> None:
    """As those of an embedding, which is spread over the devices often enough."""
    text = LOOKED_UP.replace(
        "get-tuple-element(loop), index=2",
        TAKEN,
    )
    text = text.replace("  zero = s32", "  rows = s32[512,1] iota(), iota_dimension=0\n  zero = s32")
    assert (
        len(lint.run(hlo.parse(text % "add(taken, taken)"), lint.Config(select=("C110",), **support.SAY_ALL)))
        == 1
    )


def test_moving_costs_what_is_read_and_what_is_written() -> None:
    """64 x 125,056 values are read, 125,000 x 128 written: each order is padded in its own way."""
    (finding,) = lint.run(hlo.parse(TURNED), lint.Config(select=("L103",), **support.SAY_ALL))
    assert finding.bytes == 4 * (64 * 125_056 + 125_000 * 128)


def test_what_padding_makes_of_an_argument_is_said() -> None:
    """The order of the columns is the device's choice, which it takes for the transposed array too."""
    (finding,) = lint.run(hlo.parse(TURNED), lint.Config(select=("L103",), **support.SAY_ALL))
    assert "into another layout, in which it takes 61.0 MiB" in finding.message
    assert finding.help == (
        "store it in the layout that the compiler prefers (jax.experimental.layout, Format(Layout.AUTO))"
    )
    rows = TURNED.replace("125000,64", "1024,1024").replace("{1,0:", "{2,1:").replace("{0,1:", "{1,0:")
    (finding,) = lint.run(
        hlo.parse(rows.replace("{2,1:", "{0,1:")), lint.Config(select=("L103",), **support.SAY_ALL)
    )
    assert "in which" not in finding.message
    assert "transposed" in (finding.help or "")


def test_a_copy_that_narrows_hides_no_padding() -> None:
    """In fast memory rows of 64 bfloat16 take as much as the columns of float32; the argument would take twice that."""
    brought = "ordered = bf16[125000,64]{1,0:T(8,128)(2,1)S(1)} copy(table)"
    text = TURNED.replace("ordered = f32[125000,64]{1,0:T(8,128)} copy(table)", brought)
    text = text.replace(
        "ROOT twice = f32[125000,64]{1,0:T(8,128)} ", "ROOT twice = bf16[125000,64]{1,0:T(8,128)(2,1)} "
    )
    assert "S(1)" in text
    assert not lint.run(hlo.parse(text), lint.Config(select=("L103",), **support.SAY_ALL))


def test_an_order_that_pads_an_argument_fourfold_is_no_remedy() -> None:
    """Rows of 16 take 128 lanes."""
    assert not lint.run(
        hlo.parse(TURNED.replace("125000,64", "500000,16")), lint.Config(select=("L103",), **support.SAY_ALL)
    )


DONATED = """HloModule donated, is_scheduled=true, buffer_donor={ (1, {}) }, entry_computation_layout={SIGNATURE}

ENTRY main {
  big = f32[4096,%d]{1,0} parameter(0)
  position = f32[512,1024]{1,0} parameter(1)
  part = f32[512,8]{1,0} slice(position), slice={[0:512], [0:8]}
  ROOT twice = (f32[4096,%d]{1,0}, f32[512,8]{1,0}) tuple(big, part)
}
"""


def test_little_that_is_donated_for_nothing_is_none() -> None:
    """2 MiB beside 32 of other arguments and results, and beside 128."""
    for width, count in ((1024, 1), (4096, 0)):
        signature = (
            f"(f32[4096,{width}]{{1,0}}, f32[512,1024]{{1,0}})->(f32[4096,{width}]{{1,0}}, f32[512,8]{{1,0}})"
        )
        text = (DONATED % (width, width)).replace("SIGNATURE", signature)
        assert len(lint.run(hlo.parse(text), lint.Config(select=("M102",), **support.SAY_ALL))) == count


ZERO = """HloModule zero, num_partitions=8, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {2}: (2, {}) }

ENTRY main {
  weights = f32[8192,4096] parameter(0), sharding={replicated}
  first = f32[1024,4096] parameter(1), sharding={devices=[8,1]<=[8]}
  second = %s
  batch = f32[16,8192] parameter(3), sharding={devices=[8,1]<=[8]}
  out = f32[16,4096] dot(batch, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT state = (f32[8192,4096], f32[1024,4096], f32[1024,4096], f32[16,4096]) tuple(weights, first, second, out)
}
"""


def test_weights_beside_spread_moments_are_meant_to_be_whole() -> None:
    """With one array of their shape that is spread they may have been forgotten, with two an optimizer was spread (ZeRO).

    What no product reads is no weight but an average.
    """
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    spread = "f32[1024,4096] parameter(2), sharding={devices=[8,1]<=[8]}"
    assert not lint.run(hlo.parse(ZERO % spread), config)
    assert len(lint.run(hlo.parse(ZERO % spread.replace("4096", "2048")), config)) == 1
    average = ZERO.replace("dot(batch, weights)", "dot(batch, other)")
    average = average.replace("  out =", "  other = f32[8192,4096] parameter(4)\n  out =")
    assert len(lint.run(hlo.parse(average % spread), config)) == 1


PRODUCTS = """HloModule products

ENTRY main {
  x = f32[1024,1024]{1,0:T(8,128)} parameter(0)
  exact = f32[1024,1024]{1,0:T(8,128)} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, EXACT
  active = f32[1024,1024]{1,0:T(8,128)} tanh(exact)
  ROOT quick = f32[1024,1024]{1,0:T(8,128)} %s
}
""".replace("EXACT", "operand_precision={highest,highest}")


def test_a_program_that_chooses_a_precision_means_it() -> None:
    """Where every product is exact nobody may have thought of it; where one is not somebody has."""
    config = lint.Config(select=("D101",), **support.SAY_ALL)
    assert len(lint.run(hlo.parse(PRODUCTS % "add(active, x)"), config)) == 1
    chosen = "dot(exact, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert not lint.run(hlo.parse(PRODUCTS % chosen), config)


DECODE = """HloModule decode, num_partitions=8, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) }

ENTRY main {
  embed = bf16[102400,2048] parameter(0), sharding={replicated}, metadata={op_name="params['embed']"}
  cache = bf16[4,8,4096,576] parameter(1), sharding={devices=[1,8,1,1]<=[8]}, metadata={op_name="cache"}
  tokens = s32[8] parameter(2), sharding={devices=[8]<=[8]}, metadata={op_name="tokens"}
  w = bf16[2048,1024] parameter(3), sharding={replicated}, metadata={op_name="params['w']"}
  next = bf16[4,8,4096,576] negate(cache)
  ROOT out = (bf16[4,8,4096,576], bf16[102400,2048], s32[8], bf16[2048,1024]) tuple(next, embed, tokens, w)
}
"""


RANKER = """HloModule ranker, num_partitions=8, is_scheduled=true

ENTRY main {
  tables = f32[26,100000,64] parameter(0), sharding={replicated}, metadata={op_name="tables"}
  bottom = f32[13,512] parameter(1), sharding={replicated}, metadata={op_name="p['bottom']"}
  top = f32[415,1024] parameter(2), sharding={replicated}, metadata={op_name="p['top']"}
  dense = f32[2048,13] parameter(3), sharding={devices=[8,1]<=[8]}, metadata={op_name="dense"}
  ids = s32[2048,26] parameter(4), sharding={devices=[8,1]<=[8]}, metadata={op_name="ids"}
  ROOT out = (f32[26,100000,64], f32[13,512], f32[415,1024]) tuple(tables, bottom, top)
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"dense"', "\"p['dense']\""),
        ("s32[2048,26]", "s32[4096,26]"),
        ("parameter(2), sharding={replicated}", "parameter(2)"),
    ],
)
def test_what_spreads_its_batch_alone_has_its_tables_everywhere(old: str, new: str) -> None:
    """Not so where one of the arguments that are held is spread, or something else than the batch, or few are held."""
    config = lint.Config(select=("C110",), **support.SAY_ALL)
    assert not lint.run(hlo.parse(RANKER), config)
    assert len(lint.run(hlo.parse(RANKER.replace(old, new)), config)) == 1


CACHES = """[4,8,4096,576] parameter(1), sharding={devices=[1,8,1,1]<=[8]}, metadata={op_name="params['own']"}
  caches = bf16[128,8,4096,576] parameter(4), sharding={devices=[1,8,1,1]<=[8]}"""


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("", "", 0),
        ("parameter(3), sharding={replicated}", "parameter(3), sharding={devices=[1,8]<=[8]}", 1),
        ("op_name=\"params['w']\"", 'op_name="w"', 1),
        (
            '[4,8,4096,576] parameter(1), sharding={devices=[1,8,1,1]<=[8]}, metadata={op_name="cache"}',
            CACHES,
            0,
        ),
    ],
    ids=["only the batch", "a weight too", "one weight alone in its argument", "little beside the caches"],
)
def test_weights_are_whole_on_purpose_where_none_of_them_is_spread(old: str, new: str, count: int) -> None:
    """A decoder that is data parallel on purpose; where a weight of the same argument is spread another may be forgotten."""
    assert (
        len(lint.run(hlo.parse(DECODE.replace(old, new)), lint.Config(select=("C110",), **support.SAY_ALL)))
        == count
    )


HISTOGRAM = """HloModule histogram, is_scheduled=true

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

bins {
  old = f32[256]{0} parameter(0)
  at = s32[N,1]{1,0} parameter(1)
  what = f32[N]{0} parameter(2)
  ROOT new = f32[256]{0} scatter(old, at, what), WHERE, to_apply=sum
}

condition {
  state = (s32[], f32[256]{0}, s32[N,1]{1,0}, f32[N]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  bound = s32[] constant(10000)
  ROOT less = pred[] compare(n, bound), direction=LT
}

body {
  state = (s32[], f32[256]{0}, s32[N,1]{1,0}, f32[N]{0}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[256]{0} get-tuple-element(state), index=1
  at = s32[N,1]{1,0} get-tuple-element(state), index=2
  what = f32[N]{0} get-tuple-element(state), index=3
  one = s32[] constant(1)
  next = s32[] add(n, one)
  y = f32[256]{0} fusion(x, at, what), kind=kInput, calls=bins
  ROOT t = (s32[], f32[256]{0}, s32[N,1]{1,0}, f32[N]{0}) tuple(next, y, at, what)
}

ENTRY main {
  zero = s32[] constant(0)
  x = f32[256]{0} parameter(0)
  at = s32[N,1]{1,0} parameter(1)
  what = f32[N]{0} parameter(2)
  start = (s32[], f32[256]{0}, s32[N,1]{1,0}, f32[N]{0}) tuple(zero, x, at, what)
  ROOT loop = (s32[], f32[256]{0}, s32[N,1]{1,0}, f32[N]{0}) while(start), condition=condition, body=body
}
""".replace(
    "WHERE",
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
)


@pytest.mark.parametrize(("values", "count"), [(500, 1), (500_000, 0)])
def test_a_histogram_of_many_values_is_no_tiny_round(values: int, count: int) -> None:
    """256 bins are written, but each value is added to one."""
    text = HISTOGRAM.replace("[N", f"[{values}")
    assert len(lint.run(hlo.parse(text), lint.Config(select=("G113",), **support.SAY_ALL))) == count


@pytest.mark.parametrize(("sign", "count"), [("", 0), (", frontend_attributes={ON_GPU}", 1)])
def test_the_cpu_starts_operations_soon(sign: str, count: int) -> None:
    """3,000 values are 12 kB: next to nothing for a GPU."""
    text = HISTOGRAM.replace("[N", "[3000").replace("is_scheduled=true", "is_scheduled=true" + sign, 1)
    assert (
        len(
            lint.run(
                hlo.parse(text.replace("ON_GPU", ON_GPU)), lint.Config(select=("G113",), **support.SAY_ALL)
            )
        )
        == count
    )


BROUGHT = """HloModule brought, is_scheduled=true, num_partitions=8

ENTRY main {
  x = f32[1024,1024]{1,0} parameter(0)
  n = f32[1024,1024]{1,0} negate(x)
  g = f32[8192,1024]{1,0} all-gather(n), channel_id=1, replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  s = f32[8192,1024]{1,0} sine(g)
  y = f32[8192,1024]{0,1} copy(%s)
  ROOT z = f32[8192,1024]{0,1} cosine(y)
}
"""


@pytest.mark.parametrize(("turned", "count"), [("s", 1), ("g", 0)])
def test_what_a_collective_brings_is_put_in_order(turned: str, count: int) -> None:
    assert (
        len(lint.run(hlo.parse(BROUGHT % turned), lint.Config(select=("L103",), **support.SAY_ALL))) == count
    )


REMATERIALIZED = """HloModule again, is_scheduled=true

row {
  cache = f32[4096,1024]{1,0} parameter(0)
  part = f32[1,1024]{1,0} parameter(1)
  at = s32[] parameter(2)
  ROOT new = f32[4096,1024]{1,0} dynamic-update-slice(cache, part, at, at)
}

ENTRY main {
  cache = f32[4096,1024]{1,0} parameter(0)
  x = f32[1,1024]{1,0} parameter(1)
  at = s32[] parameter(2)
  n = f32[1,1024]{1,0} negate(x), metadata={op_name="NAME"}
  new = f32[4096,1024]{1,0} fusion(cache, n, at), kind=kLoop, calls=row
  n.remat = f32[1,1024]{1,0} negate(x)
  ROOT t = (f32[4096,1024]{1,0}, f32[1,1024]{1,0}) tuple(new, n.remat)
}
"""


@pytest.mark.parametrize(("name", "is_told"), [("jit(f)/neg", False), ("jit(f)/transpose(jvp())/neg", True)])
def test_a_row_that_is_written_in_place_is_a_row(name: str, is_told: bool) -> None:
    """One row is written again, of a cache none; only where there is a backward pass `jax.checkpoint` chooses."""
    (finding,) = lint.run(
        hlo.parse(REMATERIALIZED.replace("NAME", name)), lint.Config(select=("M105",), **support.SAY_ALL)
    )
    assert finding.message.endswith("n.remat once more")
    assert (finding.bytes, finding.places) == (4096, 1)
    assert ("jax.checkpoint" in finding.help) is is_told


@pytest.mark.parametrize(("first", "count"), [("n", 1), ("n.remat2", 1), ("m", 0)])
def test_what_is_computed_once_was_moved_and_not_repeated(first: str, count: int) -> None:
    """XLA deletes what it computed before if only later users are left: of two marked ones with one name, one is again."""
    text = REMATERIALIZED.replace("  n = ", f"  {first} = ").replace(
        "(cache, n, at)", f"(cache, {first}, at)"
    )
    found = lint.run(hlo.parse(text), lint.Config(select=("M105",), **support.SAY_ALL))
    assert len(found) == count


FACTORED = """HloModule factored, is_scheduled=true, frontend_attributes={ON_GPU}

ENTRY main {
  a = f32[4096,4096]{1,0} parameter(0)
  columns = f32[4096,4096]{0,1} copy(a)
  made = (f32[4096,4096]{0,1}, f32[4096]{0}) custom-call(columns), custom_call_target="factor"ALIASING
  ROOT q = f32[4096,4096]{0,1} get-tuple-element(made), index=0
}
"""


@pytest.mark.parametrize(("aliasing", "count"), [("", 1), (", output_to_operand_aliasing={{0}: (0, {})}", 0)])
def test_what_a_factorization_writes_over_is_copied_anyway(aliasing: str, count: int) -> None:
    found = lint.run(
        hlo.parse(FACTORED.replace("ON_GPU", ON_GPU).replace("ALIASING", aliasing)),
        lint.Config(select=("L103",), **support.SAY_ALL),
    )
    assert [finding.code for finding in found] == ["L103"] * count


UPDATED = """HloModule updated, is_scheduled=true

ENTRY main {
  w = f32[33554432]{0} parameter(0)
  b = f32[33554432]{0} parameter(1)
  m = f32[33554432]{0} parameter(2)
  w_next = f32[33554432]{0} subtract(w, m)
  b_next = f32[33554432]{0} subtract(b, m)
  m_next = f32[33554432]{0} multiply(m, m)
  ROOT t = (f32[33554432]{0}, f32[33554432]{0}, f32[33554432]{0}) tuple(w_next, b_next, m_next)
}
"""


@pytest.mark.parametrize(("gaps", "is_told"), [(1 << 20, True), (512 << 20, False)])
def test_what_is_packed_with_gaps_saves_nobody_knows_how_much(
    gaps: int, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_gaps(*arguments: Any, **options: Any) -> WhatIf:
        found = donate(*arguments, **options)
        return attrs.evolve(
            found, needed_before=found.needed_before + gaps, needed_after=found.needed_after + gaps
        )

    monkeypatch.setattr(memory.what_if, "donate", with_gaps)
    (finding,) = lint.run(hlo.parse(UPDATED), lint.Config(select=("M103",), **support.SAY_ALL))
    assert ("would lower peak memory" in finding.message) == is_told


PADDED = """HloModule padded, is_scheduled=true

ENTRY main {
  part = f32[1,1024,64,2]{3,2,1,0:T(8,128)} parameter(0)
  at = s32[] parameter(1)
  zero = s32[] constant(0)
  memory = f32[64,1024,64,2]{3,2,1,0:T(8,128)} custom-call(), custom_call_target="AllocateBuffer", metadata={op_name="zeros"}
  once = f32[64,1024,64,2]{3,2,1,0:T(8,128)} dynamic-update-slice(memory, part, at, zero, zero, zero), metadata={op_name="s"}
TURNED  ROOT last = f32[64,1024,64,2]{3,2,1,0:T(8,128)} OPERATION, metadata={op_name="last"}
}
"""


@pytest.mark.parametrize(
    ("operation", "says"),
    [
        ("dynamic-update-slice(once, part, zero, zero, zero, zero)", ""),
        ("negate(once)", ""),
        ("negate(turned)", "2 arrays of shape "),
    ],
)
def test_an_array_that_is_updated_in_place_is_one(operation: str, says: str) -> None:
    turned = '  turned = f32[64,1024,64,2]{3,2,1,0:T(8,128)} cosine(once), metadata={op_name="cos"}\n'
    text = PADDED.replace("OPERATION", operation).replace("TURNED", turned if "turned" in operation else "")
    found = lint.run(hlo.parse(text), lint.Config(select=("L101",), **support.SAY_ALL))
    (finding,) = [one for one in found if "[64,1024,64,2]" in one.message]
    assert finding.message.startswith(f"{says}f32[64,1024,64,2]")
    assert "(64x);" in finding.message


CAPTURED = """HloModule captured, is_scheduled=true

ENTRY main {
  x = f32[SIZE,1024]{1,0} parameter(0)
  table = f32[512,1024]{1,0} constant({...})
  part = f32[512,1024]{1,0} slice(x), slice={[0:512], [0:1024]}
  ROOT y = f32[512,1024]{1,0} add(part, table)
}
"""


@pytest.mark.parametrize(("rows", "count"), [(1024, 1), (131072, 0)])
def test_a_constant_beside_much_larger_arrays_is_small(rows: int, count: int) -> None:
    """2 MiB beside 4 and beside 512."""
    text = CAPTURED.replace("SIZE", str(rows))
    assert len(lint.run(hlo.parse(text), lint.Config(select=("K101",), **support.SAY_ALL))) == count


@pytest.mark.parametrize(
    ("name", "is_folded"), [("", False), ("jit(f)/while/body/while", False), ("jit(f)/sin", True)]
)
def test_a_constant_that_is_passed_to_a_loop_is_not_folded(name: str, is_folded: bool) -> None:
    text = CAPTURED.replace("SIZE", "512").replace("512,1024", "8192,1024").replace("f32[512", "f32[8192")
    named = text.replace("constant({...})", f'constant({{...}}), metadata={{op_name="{name}"}}')
    (finding,) = lint.run(hlo.parse(named.replace("[0:512]", "[0:8192]")), lint.Config(select=("K101",)))
    assert (finding.help == "compute it from an argument") is is_folded


SOLVED = """HloModule solved, is_scheduled=true

body {
  s = (f32[4096,4096]{1,0:T(8,128)}, f32[]) parameter(0)
  x = f32[4096,4096]{1,0:T(8,128)} get-tuple-element(s), index=0
  e = f32[] get-tuple-element(s), index=1
  y = f32[4096,4096]{1,0:T(8,128)} negate(x)
  f = f32[] multiply(e, e)
  ROOT n = (f32[4096,4096]{1,0:T(8,128)}, f32[]) tuple(y, f)
}

condition {
  s = (f32[4096,4096]{1,0:T(8,128)}, f32[]) parameter(0)
  e = f32[] get-tuple-element(s), index=1
  last = f32[] constant(0.001)
  ROOT more = pred[] compare(e, last), direction=GT
}

ENTRY main {
  a = f32[2048,1024]{0,1:T(8,128)} parameter(0)
  x = f32[4096,4096]{1,0:T(8,128)} parameter(1)
  e = f32[] parameter(2)
  turned = f32[2048,1024]{1,0:T(8,128)} copy(a)
  start = (f32[4096,4096]{1,0:T(8,128)}, f32[]) tuple(x, e)
  end = (f32[4096,4096]{1,0:T(8,128)}, f32[]) SOLVER
  ROOT t = ((f32[4096,4096]{1,0:T(8,128)}, f32[]), f32[2048,1024]{1,0:T(8,128)}) tuple(end, turned)
}
"""


@pytest.mark.parametrize(
    ("solver", "count"),
    [("call(start), to_apply=body", 1), ("while(start), condition=condition, body=body", 0)],
)
def test_a_loop_of_unknown_count_runs_a_few_dozen_times(solver: str, count: int) -> None:
    """What stands before it is little beside that."""
    assert (
        len(
            lint.run(
                hlo.parse(SOLVED.replace("SOLVER", solver)), lint.Config(select=("L103",), **support.SAY_ALL)
            )
        )
        == count
    )


def test_memory_is_asked_for_only_where_it_can_matter() -> None:
    """Not where all that one function writes is little beside the arguments; and never places in fast memory."""
    heavy = "  x = f32[SIZE,1024]{1,0:T(8,128)} parameter(0)\n"
    text = (
        "HloModule m, is_scheduled=true\n\nENTRY main {\n"
        + heavy
        + "  ROOT y = f32[50000,1024]{1,0:T(8,128)} slice(x), "
        "slice={[0:50000], [0:1024]}\n}\n"
    )
    asked = []
    for size in (2_000_000, 50_000):
        context = make_context(hlo.parse(text.replace("SIZE", str(size))))
        assert not list(LongLivedArray().check_module(context))
        asked.append("assignment" in vars(context))
    assert asked == [False, True]
    assert context.assignment is not None
    assert not context.assignment.places_fast_memory


@pytest.mark.parametrize(
    ("chip", "why"),
    [("h100", "launch overhead dominates"), ("v6e", "each does too little to keep the chip busy")],
)
def test_only_chips_that_launch_have_launch_overhead(chip: str, why: str) -> None:
    """On TPU one program runs all steps of a loop."""
    config = lint.Config(select=("G113",), chip=chip, **support.SAY_ALL)
    (finding,) = lint.run(hlo.parse(HISTOGRAM.replace("[N", "[500")), config)
    assert finding.message.endswith(f": {why}")


@pytest.mark.parametrize(("size", "count"), [("1024", 1), ("67108864", 0)])
def test_launches_of_a_loop_that_is_not_captured_are_priced(size: str, count: int) -> None:
    """500 launches of 1 us are much of a loop over 4 KiB, and nothing of one over 256 MiB."""
    text = (support.DATA / "lint/parts/loop_not_captured.txt").read_text().partition("HloModule silent")[0]
    found = lint.run(
        hlo.parse(text.replace("[1024]", f"[{size}]")), lint.Config(select=("G113",), chip="h100")
    )
    assert len(found) == count
    for one in found:
        assert one.seconds == pytest.approx(500e-6)
        assert one.is_at_most
