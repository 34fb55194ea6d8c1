# ruff: noqa: E501 - an instruction is a line
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


OFFSET = """  id = u32[] partition-id()
  table = u32[4] constant({{{}}})
  found = u32[1] dynamic-slice(table, id), dynamic_slice_sizes={{1}}
  offset = u32[] reshape(found)
  other = f32[] convert(offset)
"""
"""The offset of a device's part, as the partitioner looks it up."""
SHIFTED = SUM.replace("reduce(y, zero)", "reduce(y, other)")


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
        (program(more="  id = u32[] partition-id()\n"), ((0, 1, 2, 3),)),
        (
            program(
                more=OFFSET.format("0, 0, 512, 512") + reduced("y", "{{0,2},{1,3}}"), loss=SHIFTED, last="s"
            ),
            ((0, 1), (2, 3)),
        ),
        (
            program(
                more=OFFSET.format("0, 512, 0, 512") + reduced("y", "{{0,2},{1,3}}"), loss=SHIFTED, last="s"
            ),
            None,
        ),
        (
            program(
                more="  id = u32[] partition-id()\n  r = f32[] convert(id)\n", loss="f32[] multiply(k, r)"
            ),
            None,
        ),
        (program(loss="f32[1] reshape(k)"), None),
        (program(loss=SUM + ', metadata={op_name="jit(f)/shard_map/reduce_sum"}'), None),
        (program(header="num_partitions=4, replica_count=2"), None),
        (program(header="num_partitions=1"), None),
    ],
    ids=[
        "none joined",
        "pairs joined",
        "all joined",
        "has a number",
        "its group's offset",
        "its own offset",
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


def test_results_of_a_combined_collective_are_apart() -> None:
    """The loss and a gradient in one all-reduce: the loss does not depend on what the gradient does."""
    combined = """HloModule m, is_scheduled=true, num_partitions=4

%sENTRY main {
  x = f32[1024,1024] parameter(0)
  w = f32[1024,512] parameter(1)
  zero = f32[] constant(0)
  own = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  hidden = f32[1024,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  both = (f32[], f32[1024,512]) all-reduce(own, hidden), replica_groups={{0,1},{2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  loss = f32[] get-tuple-element(both), index=0
  new = f32[1024,512] get-tuple-element(both), index=1
  ROOT t = (f32[], f32[1024,512]) tuple(loss, new)
}
"""
    found = alike_by_results(make_context(hlo.parse(combined % ADD)))
    assert found is not None
    names = {one.name for one in found.instructions}
    assert {"x", "own"} <= names
    assert not names & {"w", "hidden"}


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


AXES = """HloModule m, is_scheduled=true, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[256,1024] parameter(0)
  w = f32[1024,1024] parameter(1)
  part = f32[1024,64] parameter(2)
  part2 = f32[64,1024] parameter(3)
  scale = f32[1024] parameter(4)
  zero = f32[] constant(0)
  y = f32[256,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  hidden = f32[256,64] dot(READ, part), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  partial = f32[256,1024] dot(hidden, part2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  summed = f32[256,1024] all-reduce(partial), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  result = f32[256,1024] add(SKIPPED, summed)
  own = f32[] reduce(result, zero), dimensions={0,1}, to_apply=add
  loss = f32[] all-reduce(own), channel_id=2, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  scaled = f32[256,1024] dot(GRADIENT, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  mine = f32[1024,1024] dot(x, scaled), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  gradient = f32[1024,1024] all-reduce(mine), channel_id=3, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  new = f32[1024,1024] subtract(w, gradient)
  ROOT t = (f32[], f32[1024,1024]) tuple(loss, new)
}
"""
"""A layer of which pairs of devices hold a part each and sum their results, beside one that all hold in full."""


def _axes(read: str, skipped: str, gradient: str, header: str = "") -> hlo.Module:
    text = AXES.replace("READ", read).replace("SKIPPED", skipped).replace("GRADIENT", gradient)
    return hlo.parse(text.replace("num_partitions=4", "num_partitions=4" + header))


def test_what_an_axis_leaves_whole_is_alike_beside_what_it_splits() -> None:
    """Experts, say, are split along an axis; what stands beside them and reaches the loss without them is not."""
    module = _axes("y", "y", "result")
    found = alike_by_results(make_context(module))
    assert found is not None
    assert found.groups == ((0, 1), (2, 3))
    assert found.is_joined
    names = {one.name for one in found.instructions}
    assert {"y", "summed", "result"} <= names
    assert not names & {"part", "hidden", "partial"}
    config = lint.Config(select=("C118",), **support.SAY_ALL)
    (finding,) = lint.run(module, config)
    assert finding.severity.value == "note"
    assert "form groups of 2 that, for" in finding.message


def test_tensor_parallel_layers_are_no_identical_work() -> None:
    """Weights behind a sum over the devices may be parts, also where all else reaches the loss only through that sum."""
    found = alike_by_results(make_context(_axes("y", "summed", "summed")))
    assert found is None or not {one.name for one in found.instructions} & {"y", "w", "mine"}


def test_the_new_value_of_what_is_whole_tells_of_its_gradient() -> None:
    """An argument that only the gradient of a whole weight depends on is whole too: else that weight would differ."""
    text = AXES.replace("READ", "y").replace("SKIPPED", "y").replace("GRADIENT", "weighted")
    rows = "  rows = f32[256,1024] broadcast(scale), dimensions={1}\n"
    text = text.replace("  scaled =", rows + "  weighted = f32[256,1024] multiply(result, rows)\n  scaled =")
    for new, is_whole in (("subtract(w, gradient)", True), ("negate(gradient)", False)):
        found = alike_by_results(make_context(hlo.parse(text.replace("subtract(w, gradient)", new))))
        assert found is not None
        assert ("weighted" in {one.name for one in found.instructions}) is is_whole
