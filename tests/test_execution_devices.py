"""Modules of several devices compared by execution: every device has arguments of its own, so collectives count."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import hlotext as hlo
from hlotext import execution, rewrite
from hlotext.execution import NotExecutable, largest_difference, plain
from hlotext.execution.equivalence import Reference

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jaxlib") is None, reason="runs texts on jaxlib")

ADD = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT t = f32[] add(a, b) }"
GROUPS = "{{0,1},{2,3}}"
OTHERS = "{{0,2},{1,3}}"
ALL = "channel_id=1, use_global_device_ids=true, replica_groups="
RING = "{{0,1},{1,2},{2,3},{3,0}}"
COLLECTIVES = (
    ("f32[4,2]", f"all-reduce(x), to_apply=s, {ALL}", GROUPS, OTHERS, "copy(x)"),
    ("f32[8,2]", f"all-gather(x), dimensions={{0}}, {ALL}", GROUPS, OTHERS, "concatenate(x, x), dimensions={0}"),
    ("f32[8,2]", f"all-gather(x), dimensions={{0}}, {ALL}", GROUPS, "{{1,0},{3,2}}", "concatenate(x, x), dimensions={0}"),
    ("f32[2,2]", f"reduce-scatter(x), to_apply=s, dimensions={{0}}, {ALL}", GROUPS, OTHERS, "slice(x), slice={[0:2], [0:2]}"),
    ("f32[4,2]", "all-to-all(x), dimensions={0}, channel_id=1, replica_groups=", GROUPS, OTHERS, "copy(x)"),
    ("f32[4,2]", "collective-permute(x), channel_id=1, source_target_pairs=", RING, "{{1,0},{2,1},{3,2},{0,3}}", "copy(x)"),
)  # fmt: skip


def _module(lines: list[str], annotation: str = "") -> hlo.Module:
    body = "\n ".join(f"r{n} = {line}" for n, line in enumerate(lines))
    shapes = ", ".join(line.partition(" ")[0] for line in lines)
    names = ", ".join(f"r{n}" for n in range(len(lines)))
    entry = f"x = f32[4,2] parameter(0){annotation}\n {body}\n ROOT t = ({shapes}) tuple({names})"
    return hlo.parse(f"HloModule m, num_partitions=4\n\n{ADD}\n\nENTRY e {{\n {entry}\n}}\n")


@needs_jax
def test_a_changed_collective_is_noticed() -> None:
    """Other groups, another order, or no collective at all give other results."""
    lines = [f"{shape} {line}{groups}" for shape, line, groups, *_ in COLLECTIVES]
    module = _module(lines)
    with Reference(module) as reference:
        assert reference.distance(module.clone()) == 0
        for number, (shape, line, _, others, gone) in enumerate(COLLECTIVES):
            for changed in (f"{line}{others}", gone):
                mutant = _module([*lines[:number], f"{shape} {changed}", *lines[number + 1 :]])
                assert reference.distance(mutant) > 0.01, changed


@needs_jax
def test_a_rule_that_removes_a_collective_is_taken_back() -> None:
    """By `verify="equivalence"`."""
    module = _module([f"f32[4,2] {COLLECTIVES[-1][1]}{RING}"])
    gone = rewrite.rule("collective-permute($x) => $x", "gone")
    with pytest.raises(rewrite.RewriteError, match="after rewrite 1"):
        rewrite.apply_rules(module, [gone], verify="equivalence")
    assert module.entry.root.operands[0].opcode == "collective-permute"


@needs_jax
def test_arguments_are_equal_where_the_sharding_says_so() -> None:
    """A sum over devices of what both hold is twice that; else devices are named where they differ."""
    from hlotext.interop.jax import assert_equivalent

    line = f"f32[4,2] {COLLECTIVES[0][1]}{GROUPS}"
    module, shared = _module([line]), _module([line], ", sharding={replicated}")
    ran = execution.run(shared)
    assert ran.arguments[0].shape == (4, 4, 2)
    assert np.array_equal(ran.results[0], 2 * ran.arguments[0])
    twice = _module(["f32[4,2] add(x, x)"])
    assert_equivalent(shared, twice)
    with pytest.raises(AssertionError, match="differs on device 0"):
        assert_equivalent(module, twice)


PIECES = (
    ("f32[4]", "", (0, 1, 2, 3)),
    ("s32[]", "", (0, 0, 0, 0)),
    ("f32[]", "", (0, 1, 2, 3)),
    ("s32[]", "sharding={manual}", (0, 1, 2, 3)),
    ("f32[4]", "sharding={replicated}", (0, 0, 0, 0)),
    ("f32[4]", "sharding={devices=[4]<=[4]}", (0, 1, 2, 3)),
    ("f32[1,4]", "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}", (0, 0, 1, 1)),
    ("f32[1,4]", "sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", (0, 1, 0, 1)),
    ("f32[4]", "sharding={devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}", (0, 0, 1, 1)),
    ("f32[4]", "sharding={maximal device=1}", (0, 1, 2, 3)),
)


@pytest.mark.parametrize(("shape", "annotation", "pieces"), PIECES)
def test_pieces_of_partitions(shape: str, annotation: str, pieces: tuple[int, ...]) -> None:
    """Devices with the same tile hold the same; without a sharding each has its own."""
    line = f"ROOT p = {shape} parameter(0)" + (f", {annotation}" if annotation else "")
    module = hlo.parse(f"HloModule m, num_partitions=4\n\nENTRY e {{ {line} }}")
    assert plain(module).pieces == (pieces,)


def test_pieces_of_replicas() -> None:
    """Replicas share what `parameter_replication` says, array by array."""
    annotations = "parameter_replication={true,false}, sharding={{replicated}, {devices=[2]<=[2]}}"
    module = hlo.parse(
        "HloModule m, replica_count=2, num_partitions=2\n\n"
        f"ENTRY e {{ ROOT p = (f32[4], f32[4]) parameter(0), {annotations} }}"
    )
    assert plain(module).pieces == ((0, 0, 0, 0), (0, 1, 2, 3))


@needs_jax
def test_other_numbers_of_devices() -> None:
    """Both are named with what helps; a program before partitioning is compared on one device."""
    from hlotext.interop.jax import assert_equivalent

    text = "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[4] negate(p) }"
    before, after = hlo.parse(text), hlo.parse(f"HloModule m, num_partitions=2\n\n{text}")
    for compare in (assert_equivalent, largest_difference):
        with pytest.raises(
            (AssertionError, NotExecutable), match="on 1 device, the other on 2 devices; devices=1"
        ):
            compare(before, after)
    assert largest_difference(before, after, devices=1) == 0
    wider = hlo.parse(
        "ENTRY e { p = f32[4] parameter(0)  ROOT r = f32[8] concatenate(p, p), dimensions={0} }"
    )
    with pytest.raises(AssertionError, match=r"result 0 is float32\[8\], and was float32\[4\]"):
        assert_equivalent(after, wider, devices=1)
    with pytest.raises(NotExecutable, match=r"f32\[4\], for all or for each of 2 devices"):
        execution.run(after, [np.zeros((3, 4), "f4")])


REGION = """HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["i"=2, "j"=2]>}}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT t = f32[] add(a, b)
}

body {
  x = f32[2,1] parameter(0)
  w = f32[4] parameter(1)
  all = f32[2,1] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=sum
  p = u32[] partition-id()
  f = f32[] convert(p)
  more = f32[2,1] broadcast(f), dimensions={}
  y = f32[2,1] add(all, more)
  ROOT r = (f32[2,1], f32[4]) tuple(y, w)
}

ENTRY e {
  x = f32[4,2] parameter(0)
  w = f32[4] parameter(1)
  IN
  c = (f32[2,1], f32[4]) call(lx, lw), to_apply=body
  cx = f32[2,1] get-tuple-element(c), index=0
  cw = f32[4] get-tuple-element(c), index=1
  OUT
}
"""
SHARDY = (
    """l = (f32[2,1], f32[4]) custom-call(x, w), custom_call_target="xla.sdy.GlobalToLocalShape",
    frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"i\\"}, {\\"j\\", ?}]>, <@mesh, [{}]>]>",
    xla.sdy.manual_axes="#sdy<manual_axes{\\"i\\", \\"j\\"}>"}
  lx = f32[2,1] get-tuple-element(l), index=0
  lw = f32[4] get-tuple-element(l), index=1""",
    """ROOT g = (f32[4,2], f32[4]) custom-call(cx, cw), custom_call_target="xla.sdy.LocalToGlobalShape",
    frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"i\\"}, {\\"j\\"}]>, <@mesh, [{}]>]>",
    xla.sdy.manual_axes="#sdy<manual_axes{\\"i\\", \\"j\\"}>"}""",
)
GSPMD = (
    """s = f32[4,2] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,2]<=[4]}
  lx = f32[2,1] custom-call(s), custom_call_target="SPMDFullToShardShape", sharding={manual}
  v = f32[4] custom-call(w), custom_call_target="Sharding", sharding={replicated}
  lw = f32[4] custom-call(v), custom_call_target="SPMDFullToShardShape", sharding={manual}""",
    """gx = f32[4,2] custom-call(cx), custom_call_target="SPMDShardToFullShape", sharding={devices=[2,2]<=[4]}
  gw = f32[4] custom-call(cw), custom_call_target="SPMDShardToFullShape", sharding={replicated}
  ROOT g = (f32[4,2], f32[4]) tuple(gx, gw)""",
)


def _region(edges: tuple[str, str]) -> hlo.Module:
    return hlo.parse(REGION.replace("IN\n", edges[0] + "\n").replace("OUT\n", edges[1] + "\n"))


@needs_jax
@pytest.mark.parametrize("edges", [SHARDY, GSPMD], ids=["shardy", "gspmd"])
def test_a_region_of_shard_map_runs_on_the_devices_of_its_mesh(edges: tuple[str, str]) -> None:
    """Each device takes its part of whole arrays, which are the same on all, and the parts are put together again."""
    module = _region(edges)
    ran = execution.run(module)
    x, w = ran.arguments
    assert (ran.devices, x.shape, w.shape) == (4, (4, 4, 2), (4, 4))
    assert all(np.array_equal(one, x[0]) for one in x)
    wanted = x[0].sum(axis=1, keepdims=True) + np.array([[0.0, 1.0], [0, 1], [2, 3], [2, 3]])
    assert np.allclose(ran.results[0], wanted)
    assert np.array_equal(ran.results[1], w)
    gone = rewrite.rule("all-reduce($x) => $x", "gone")
    with pytest.raises(rewrite.RewriteError, match="gone on all"):
        rewrite.apply_rules(module, [gone], verify="equivalence")


def test_a_region_that_cannot_run_says_why() -> None:
    """On one device, without its mesh, or cut along a part of an axis."""
    module = _region(SHARDY)
    with pytest.raises(NotExecutable, match="shard_map runs on the devices of its mesh, not with devices=1"):
        plain(module, devices=1)
    text = str(module)
    for old, new, why in (
        ('@mesh, [{\\"i\\"}', '@other, [{\\"i\\"}', "its mesh other does not have 4 devices"),
        ('{\\"j\\", ?}', '{\\"j\\":(1)2}', "along part of an axis"),
        ("in_shardings", "no_shardings", "does not specify how its arrays are sharded"),
    ):
        assert old in text
        with pytest.raises(NotExecutable, match=why):
            plain(hlo.parse(text.replace(old, new)))


def test_the_devices_of_a_text_that_names_none_are_given() -> None:
    """They are partitions; a text for others says for how many."""
    text = (
        "ENTRY e { x = f32[4] parameter(0)  p = u32[] partition-id()  ROOT t = (f32[4], u32[]) tuple(x, p) }"
    )
    found = plain(hlo.parse(text), devices=4)
    assert (found.devices, "remainder" in found.text) == (4, True)
    assert "constant(4)" in found.text
    with pytest.raises(NotExecutable, match="the module is for 4 devices"):
        plain(_module(["f32[4,2] copy(x)"]), devices=8)
