"""Devices that each compute a scalar result without the others: `hlotext.lint.alike_results`, and what C118 says of it."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.lint.alike_results import alike_by_results
from hlotext.lint.rule import make_context
from tests import support

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
SUM = "f32[] reduce(y, zero), dimensions={0,1}, to_apply=add"


def program(loss: str = SUM, more: str = "", header: str = "num_partitions=4", last: str = "y") -> hlo.Module:
    """A training step in small: a product, its sum as the loss, and the product as a new weight."""
    return hlo.parse(f"""HloModule m, is_scheduled=true, {header}

{ADD}ENTRY main {{
  w = f32[1024,1024] parameter(0)
  x = f32[1024,1024] parameter(1)
  k = f32[] parameter(2)
  zero = f32[] constant(0)
  y = f32[1024,1024] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
{more}  loss = {loss}
  ROOT t = (f32[], f32[1024,1024]) tuple(loss, {last})
}}
""")


def groups(module: hlo.Module) -> tuple[tuple[int, ...], ...] | None:
    found = alike_by_results(make_context(module))
    return found.groups if found is not None else None


def reduced(of: str, pairs: str) -> str:
    more = f"replica_groups={pairs}, channel_id=1, use_global_device_ids=true, to_apply=add"
    return f"  s = f32[1024,1024] all-reduce({of}), {more}\n"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (program(), ((0, 1, 2, 3),)),
        (program(more=reduced("y", "{{0,1},{2,3}}"), last="s"), ((0, 2), (1, 3))),
        (program(more=reduced("y", "{{0,1,2,3}}"), last="s"), None),
        (program(more="  id = u32[] partition-id()\n"), None),
        (program(loss="f32[1] reshape(k)"), None),
        (program(loss=SUM + ', metadata={op_name="jit(f)/shard_map/reduce_sum"}'), None),
        (program(header="num_partitions=4, replica_count=2"), None),
        (program(header="num_partitions=1"), None),
    ],
    ids=[
        "none joined",
        "pairs joined",
        "all joined",
        "asks",
        "no scalar",
        "by hand",
        "replicas",
        "one device",
    ],
)
def test_devices_are_alike_where_nothing_joins_them(
    module: hlo.Module, expected: tuple[tuple[int, ...], ...] | None
) -> None:
    assert groups(module) == expected


LOOP = """HloModule m, is_scheduled=true, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  p = (s32[], f32[64,64], f32[64,64], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  y = f32[64,64] get-tuple-element(p), index=2
  zero = f32[] constant(0)
  x2 = f32[64,64] negate(x)
  y2 = f32[64,64] exponential(y)
  r = f32[] reduce(y2, zero), dimensions={0,1}, to_apply=add
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT t = (s32[], f32[64,64], f32[64,64], f32[]) tuple(n, x2, y2, r)
}

condition {
  p = (s32[], f32[64,64], f32[64,64], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  most = s32[] constant(10)
  ROOT less = pred[] compare(i, most), direction=LT
}

ENTRY main {
  a = f32[64,64] parameter(0)
  b = f32[64,64] parameter(1)
  first = s32[] constant(0)
  none = f32[] constant(0)
  state = (s32[], f32[64,64], f32[64,64], f32[]) tuple(first, a, b, none)
  loop = (s32[], f32[64,64], f32[64,64], f32[]) while(state), condition=condition, body=body
  x = f32[64,64] get-tuple-element(loop), index=1
  result = %s get-tuple-element(loop), index=%d
  ROOT t = (f32[64,64], %s) tuple(x, result)
}
"""


def test_a_scalar_tells_of_what_it_depends_on_alone() -> None:
    """Elements of a loop's state are followed each by itself: a counter tells nothing of arrays beside it."""
    summed = alike_by_results(make_context(hlo.parse(LOOP % ("f32[]", 3, "f32[]"))))
    assert summed is not None
    names = {one.name for one in summed.instructions}
    assert {"b", "y2", "r"} <= names
    assert not names & {"a", "x2"}
    assert alike_by_results(make_context(hlo.parse(LOOP % ("s32[]", 0, "s32[]")))) is None


def test_c118_counts_what_is_alike_and_is_silent_of_a_small_part() -> None:
    config = lint.Config(select=("C118",), **support.SAY_ALL)
    (found,) = lint.run(program(), config)
    assert found.message.startswith("all 4 devices do identical work: each computes the same scalar result")
    assert found.share == pytest.approx(0.75, abs=0.01)
    assert found.is_at_most
    small = program(loss="f32[] negate(k)")
    assert groups(small) is not None
    assert not lint.run(small, config)
