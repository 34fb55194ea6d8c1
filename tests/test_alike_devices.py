"""Devices that compute the same: `hlotext.analysis.alike_devices`, and what C118 says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.analysis.alike_devices import alike_devices
from tests import support
from tests.cli_support import run

MESH = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=2, "model"=2]>}}'
BOTH = ((0, 1), (2, 3))


def program(x: str, *, header: str = MESH, more: str = "", y: str = "negate(x)") -> hlo.Module:
    return hlo.parse(f"""HloModule m, {header}

ENTRY main {{
  w = f32[8,8] parameter(0), sharding={{replicated}}
  x = f32[8,8] parameter(1), {x}
{more}  ROOT y = f32[8,8] {y}
}}
""")


NAMED = "sharding={mesh['data'=2,'model'=2], [{%s}, {}]}"


@pytest.mark.parametrize(
    ("x", "groups"),
    [
        ("sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}", BOTH),
        ("sharding={devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", ((0, 2), (1, 3))),
        ("sharding={devices=[2,1,2]0,3,1,2 last_tile_dim_replicate}", ((0, 3), (1, 2))),
        ("sharding={devices=[2,1,2]0,3,1,9223372036854775807 last_tile_dim_replicate}", None),
        ("sharding={devices=[2,1,2]0,3,1,1 last_tile_dim_replicate}", None),
        ("sharding={devices=[2,1,2]<=[4] last_tile_dims={replicated}}", BOTH),
        ("sharding={devices=[2,1,2]<=[4] last_tile_dims={manual}}", None),
        ("sharding={devices=[4,1]<=[4]}", None),
        ("sharding={replicated}", ((0, 1, 2, 3),)),
        ("sharding={maximal device=1}", None),
        ("sharding={manual}", None),
        (NAMED % "'data'", BOTH),
        (NAMED % "'model'", ((0, 2), (1, 3))),
        (NAMED % "'data', 'model'", None),
        (NAMED % "", ((0, 1, 2, 3),)),
        ('frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"data\\"}, {}]>"}', BOTH),
        (
            'frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"data\\"}, {\\"model\\"}]>"}',
            None,
        ),
    ],
)
def test_shardings_tell_devices_apart(x: str, groups: tuple[tuple[int, ...], ...] | None) -> None:
    """By tiles, by names of axes, and by what Shardy notes."""
    assert alike_devices(program(x)) == groups


ROWS = "sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}"


def test_a_part_of_an_axis_is_idle_by_itself() -> None:
    """Of an axis of eight the more major half splits the rows."""
    half = "sharding={mesh['a'=8], [{'a':(1)4}, {}]}"
    found = alike_devices(program(half, header="num_partitions=8"))
    assert found == ((0, 1), (2, 3), (4, 5), (6, 7))


def test_the_mesh_tells_which_devices_a_name_means() -> None:
    """In an order of its own."""
    meshes = 'frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=2, "model"=2], device_ids=[0, 2, 1, 3]>}}'
    noted = 'frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"data\\"}, {}]>"}'
    assert alike_devices(program(noted, header=meshes)) == ((0, 2), (1, 3))


@pytest.mark.parametrize(
    "more",
    [
        "  id = u32[] partition-id()\n",
        '  c = f32[8,8] custom-call(x), custom_call_target="Sharding", sharding={devices=[2,2]<=[4]}\n',
        "  s = f32[8,8] all-reduce(x), replica_groups={{0,1},{2,3}}, channel_id=1, GLOBAL, to_apply=add\n",
    ],
)
def test_what_makes_a_difference(more: str) -> None:
    """The number of the device, a constraint, and a collective of a shard_map between devices that are alike so far."""
    add = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
    text = str(program(ROWS, more="  z = f32[8,8] negate(w)\n"))
    assert alike_devices(hlo.parse(text)) == BOTH
    more = more.replace("GLOBAL", "use_global_device_ids=true")
    text = text.replace("  z = f32[8,8] negate(w)\n", more).replace("ENTRY", add + "ENTRY")
    assert alike_devices(hlo.parse(text)) is None


@pytest.mark.parametrize(
    "header", ["num_partitions=1", "replica_count=2, num_partitions=4", "replica_count=4"]
)
def test_other_devices_are_not_judged(header: str) -> None:
    """One device has none beside it, and replicas may have other arguments."""
    assert alike_devices(program("sharding={replicated}", header=header)) is None


def test_a_partitioned_text_tells_only_with_the_shardings_of_all_arguments() -> None:
    """JAX 0.12 writes none in final modules: a mesh in the groups of collectives does not tell how arguments are cut."""
    header = "num_partitions=4, is_scheduled=true"
    assert alike_devices(program(ROWS, header=header)) == BOTH
    bare = str(program(ROWS, header=header)).replace(", sharding={replicated}", "")
    assert alike_devices(hlo.parse(bare)) is None


def findings(module: hlo.Module) -> list[lint.Finding]:
    return lint.run(module, lint.Config(select=("C118",), **support.SAY_ALL))


def test_messages_name_the_axis_or_count_the_devices() -> None:
    """The saving is the bound that all but one device's work sets."""
    (named,) = findings(program(ROWS))
    assert (
        named.message == "the 2 devices along mesh axis 'model' do identical work: no sharding uses that axis"
    )
    assert named.is_at_most
    assert named.share == pytest.approx(0.5)
    (counted,) = findings(program(ROWS, header="num_partitions=4"))
    assert (
        counted.message
        == "the 4 devices form groups of 2 that do identical work: no sharding distinguishes them"
    )
    (whole,) = findings(program("sharding={replicated}"))
    assert whole.message == "all 4 devices do identical work: no array is sharded"
    assert whole.share == pytest.approx(0.75)


def test_a_folder_tells_it_of_a_final_text_without_shardings(tmp_path: Path) -> None:
    """The program before optimization has the shardings, the final HLO the cost."""
    before = str(program(ROWS, y="dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
    after = """HloModule m, is_scheduled=true, num_partitions=4

ENTRY main_spmd {
  w = f32[8,8] parameter(0)
  x = f32[4,8] parameter(1)
  ROOT y = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    before = before.replace("HloModule m,", "HloModule m, num_partitions=4,")
    (tmp_path / "module_0001.m.before_optimizations.txt").write_text(before)
    (tmp_path / "module_0001.m.after_optimizations.txt").write_text(after)
    said = run("lint", "--isolated", tmp_path, "--select", "C118").output
    assert "mesh axis 'model' do identical work" in said
