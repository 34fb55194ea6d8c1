"""What is sent, over which link, along which axes."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import analysis, cost
from hlotext.analysis import Interconnect, MeshSource
from hlotext.analysis.meshes import DeviceMesh, inferred_mesh, shardy_meshes
from hlotext.analysis.wire import RULES, latency_steps, wire_bytes
from hlotext.diff import Totals
from hlotext.ir.values.replica_groups import ReplicaGroupList
from tests.cli_support import run, run_json
from tests.support import ROOT

CASES: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parent / "data" / "cost" / "communication.json").read_text()
)


def only(text: str) -> analysis.Communication:
    """The one communication of a module."""
    [found] = analysis.communications(hlo.parse(text))
    return found


@pytest.mark.parametrize("row", CASES["bytes"], ids=lambda row: row["name"])
def test_bytes_by_hand(row: dict[str, Any]) -> None:
    """What one device sends."""
    assert only(row["text"]).wire_bytes == row["bytes_sent_by_one_device"]


@pytest.mark.parametrize("row", CASES["axes"], ids=lambda row: f"{row['mesh']}-{row['groups']}")
def test_axes_by_hand(row: dict[str, Any]) -> None:
    """The axes of groups, and of parts of axes."""
    mesh = analysis.parse_mesh(row["mesh"], device_order=row["device_order"])
    assert mesh.axes_of(row["groups"]) == (None if row["axes"] is None else tuple(row["axes"]))


OTHER_AXES = [
    ("dp=2,tp=4", [[0, 4], [1, 5], [2, 6], [3, 7]], ("dp",)),
    ("dp=2,tp=4", [[0, 2], [1, 3], [4, 6], [5, 7]], ("tp:(1)2",)),
    ("dp=2,sp=2,tp=2", [[0, 1, 4, 5], [2, 3, 6, 7]], ("dp", "tp")),
    ("x=8", [[0, 1, 4, 5], [2, 3, 6, 7]], ("x:(1)2", "x:(4)2")),
    ("x=8", [[1, 2, 3, 4]], None),  # runs over the end of a part
    ("dp=2,tp=4", [[0, 1], [2]], None),
    ("dp=2,tp=4", [[0, 1], [1, 2]], None),
    ("dp=2,tp=4", [[0, 8]], None),
    ("x=6", [[0, 1, 2, 3]], None),
    ("x=1,y=4", [[0, 1, 2, 3]], ("y",)),
]


@pytest.mark.parametrize(("mesh", "groups", "axes"), OTHER_AXES)
def test_axes(mesh: str, groups: list[list[int]], axes: tuple[str, ...] | None) -> None:
    """Groups that are no grid of axes have none."""
    assert analysis.parse_mesh(mesh).axes_of(groups) == axes


@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    chosen=st.sets(st.integers(0, 3)),
    seed=st.integers(0, 100),
    shuffled=st.booleans(),
)
def test_groups_along_axes_are_found(sizes: list[int], chosen: set[int], seed: int, shuffled: bool) -> None:
    """Whatever the order of groups, of devices in them, and of devices in the mesh."""
    rng = random.Random(seed)
    mesh = DeviceMesh(tuple(f"a{n}" for n in range(len(sizes))), tuple(sizes))
    order = list(range(mesh.num_devices))
    if shuffled:
        rng.shuffle(order)
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, device in enumerate(order):
        coordinates, rest = [], place
        for size in reversed(sizes):
            rest, coordinate = divmod(rest, size)
            coordinates.append(coordinate)
        key = tuple(c for n, c in enumerate(reversed(coordinates)) if n not in chosen)
        groups.setdefault(key, []).append(device)
    lists = list(groups.values())
    rng.shuffle(lists)
    for group in lists:
        rng.shuffle(group)
    wanted = tuple(f"a{n}" for n, size in enumerate(sizes) if n in chosen and size > 1)
    text = ",".join(f"a{n}={size}" for n, size in enumerate(sizes))
    assert analysis.parse_mesh(text, device_order=order).axes_of(lists) == wanted


@pytest.mark.parametrize(
    ("text", "order", "problem"),
    [
        ("", None, "write NAME=SIZE"),
        ("dp", None, "write NAME=SIZE"),
        ("dp=2,dp=4", None, "two axes dp"),
        ("dp=0", None, "at least one device"),
        ("dp=2", [0, 2], "not a permutation of 2 devices"),
        ("dp=-1", None, "write NAME=SIZE"),
    ],
)
def test_impossible_meshes(text: str, order: list[int] | None, problem: str) -> None:
    """Are said."""
    with pytest.raises(ValueError, match=problem):
        analysis.parse_mesh(text, order)


def test_shifts() -> None:
    """Permutes along a ring, in the shorter direction."""
    mesh = analysis.parse_mesh("pp=4,x=2")
    assert mesh.shift_of([(0, 2), (2, 4), (4, 6), (6, 0), (1, 3)]) == ("pp", 1)
    assert mesh.shift_of([(2, 0)]) == ("pp", -1)
    assert mesh.shift_of([(0, 3)]) is None
    assert mesh.shift_of([(0, 99)]) is None
    assert mesh.axes_of_pairs([(0, 3)]) == ("pp", "x")


def test_shardy_and_inferred_meshes() -> None:
    """The program's names where the text has them, else sizes that the groups need."""
    text = '{mesh = #sdy.mesh<["fsdp"=8, "tp"=4]>, empty = #sdy.mesh<[]>, m = #sdy.mesh<["x"=2], device_ids=[1,0]>}'
    assert [str(mesh) for mesh in shardy_meshes(text)] == ["fsdp=8,tp=4", "x=2"]
    groups = [
        ReplicaGroupList(((0, 2), (1, 3), (4, 6), (5, 7))),
        ReplicaGroupList(((0, 1, 2, 3), (4, 5, 6, 7))),
    ]
    assert str(inferred_mesh(8, groups)) == "axis_0=2,axis_1=2,axis_2=2"
    assert (
        inferred_mesh(12, [ReplicaGroupList(((0, 4), (1, 5), (2, 6), (3, 7))), ReplicaGroupList(((0, 3),))])
        is None
    )


_HALO = """HloModule m, num_partitions=4

ENTRY e {
  a = f32[8] parameter(0)
  x = f32[8] collective-permute(a), channel_id=1, source_target_pairs={{0,2},{2,0},{1,3},{3,1}}
  y = f32[8] collective-permute(a), channel_id=2, source_target_pairs=PAIRS
  ROOT r = f32[8] add(x, y)
}
"""


@pytest.mark.parametrize(
    ("pairs", "mesh"),
    [
        ("{{0,1},{1,0},{2,3},{3,2}}", "axis_0=2,axis_1=2"),
        ("{{0,1},{1,2},{2,3}}", "axis_0=2,axis_1=2"),
        ("{{0,1}}", "axis_0=2,axis_1=2"),
    ],
)
def test_permutes_tell_axes(pairs: str, mesh: str) -> None:
    """The devices that their pairs join are groups, where all devices are in one of equal size."""
    module = hlo.parse(_HALO.replace("PAIRS", pairs))
    found = analysis.mesh_of(module)
    assert found is not None
    assert str(found.mesh) == mesh
    x, y = (analysis.axes_of(module, one, found.mesh) for one in analysis.communications(module))
    assert (x, y) == (("axis_0",), ("axis_0", "axis_1") if "1,2" in pairs else ("axis_1",))


@pytest.mark.parametrize(
    ("kind", "devices", "ring", "tree"),
    [
        ("all-gather", 4, 300, 300),
        ("reduce-scatter", 4, 75, 75),
        ("all-reduce", 4, 150, 200),
        ("all-reduce", None, None, 200),
        ("all-to-all", 8, 88, 88),
        ("collective-permute", None, 100, 100),
        ("recv", None, 0, 0),
        ("all-gather", None, None, None),
        ("all-reduce", 1, 0, 0),
    ],
)
def test_algorithms(kind: str, devices: int | None, ring: int | None, tree: int | None) -> None:
    """Of 100 bytes put in and 400 that come out, what is sent by ring and by tree."""
    assert (wire_bytes(kind, 100, 400, devices), wire_bytes(kind, 100, 400, devices, "tree")) == (ring, tree)


def test_every_kind_has_a_rule() -> None:
    """And steps that follow each other."""
    from hlotext.analysis.communication import KINDS

    assert set(KINDS.values()) == set(RULES)
    assert (latency_steps("all-reduce", 8), latency_steps("all-reduce", 8, "tree")) == (14, 6)
    assert latency_steps("all-gather", None) is None


def test_what_is_no_data_is_not_sent() -> None:
    """Output buffers, offsets, contexts, and of in-place permutes all but the slices."""
    ragged = only(
        "HloModule m, num_partitions=4\nENTRY e {\n  x = f32[64,128] parameter(0)\n  o = f32[128,128] parameter(1)\n"
        "  n = s32[4] parameter(2)\n  ROOT r = f32[128,128] ragged-all-to-all(x, o, n, n, n, n), channel_id=1, "
        "replica_groups={{0,1,2,3}}\n}\n"
    )
    assert (ragged.operand_bytes, ragged.wire_bytes, ragged.is_at_most) == (32768, 24576, True)
    assert list(map(str, ragged.sent_shapes)) == ["f32[64,128]"]
    in_place = only(
        "ENTRY e {\n  a = f32[8,8] parameter(0)\n  b = f32[8,8] parameter(1)\n  i = s32[] constant(0)\n"
        "  s = (s32[], s32[]) tuple(i, i)\n  ROOT r = f32[8,8] collective-permute(a, b, s, s), "
        "source_target_pairs={{0,1},{1,0}}, slice_sizes={{4,8}}\n}\n"
    )
    assert (in_place.operand_bytes, in_place.result_bytes, in_place.wire_bytes) == (128, 128, 128)
    assert list(map(str, in_place.sent_shapes)) == ["f32[4,8]"]
    still = only(
        "ENTRY e {\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] collective-permute(a), "
        "source_target_pairs={{0,0},{1,1}}\n}\n"
    )
    assert still.wire_bytes == 0


SUM = "s {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n"


@pytest.mark.parametrize(
    ("header", "more", "participants"),
    [
        ("HloModule m", "", None),  # an old header has no counts
        ("HloModule m, num_partitions=8", "", 8),
        ("HloModule m, replica_count=2", "", 2),
        ("HloModule m, replica_count=2, num_partitions=4", "", 8),
        ("HloModule m", ", sharding={devices=[4]<=[4]}", 4),
        ('HloModule m, frontend_attributes={a="b"}', "", 1),
    ],
)
def test_who_takes_part(header: str, more: str, participants: int | None) -> None:
    """Unknown where nothing tells: neither the header, nor groups, nor shardings."""
    one = only(
        f"{header}\n{SUM}ENTRY e {{\n  a = f32[8] parameter(0){more}\n"
        "  ROOT r = f32[8] all-reduce(a), channel_id=1, replica_groups={}, to_apply=s\n}\n"
    )
    assert one.participants == participants
    assert (one.wire_bytes is None) == (participants is None)


def test_groups_of_different_sizes() -> None:
    """There is no one number; what is sent is that of the largest."""
    one = only(
        f"HloModule m, num_partitions=4\n{SUM}ENTRY e {{\n  a = f32[30] parameter(0)\n  ROOT r = f32[30] all-reduce(a), "
        "channel_id=1, use_global_device_ids=true, replica_groups={{0,1,2},{3}}, to_apply=s\n}\n"
    )
    assert (one.participants, one.largest_group, one.wire_bytes) == (None, 3, 160)


TRANSFER = (
    'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",'
    '_xla_host_transfer_rendezvous="NAME",_xla_megascale_target="{1,2}x{0:3}",_xla_megascale_transfer_type="KIND"}'
)
SLICES = """HloModule m, num_partitions=4
ENTRY e {
  t = token[] after-all()
  a = f32[8] parameter(0)
  s = (f32[8], u32[], token[]) send(a, t), channel_id=1, GATHER
  r = (f32[16], u32[], token[]) recv(t), channel_id=2, GATHER
  sd = token[] send-done(s), channel_id=1, GATHER
  rd = (f32[16], token[]) recv-done(r), channel_id=2, GATHER
  u = (f32[8], u32[], token[]) send(a, t), channel_id=3, REDUCE
  v = (f32[8], u32[], token[]) recv(t), channel_id=4, REDUCE
  h = (f32[8], u32[], token[]) send(a, t), channel_id=5, is_host_transfer=true
  ROOT o = f32[16] get-tuple-element(rd), index=0
}
"""


def test_traffic_between_slices() -> None:
    """A send and a recv are one collective over the data center network."""
    text = SLICES.replace("GATHER", TRANSFER.replace("NAME", "all-gather.69_0").replace("KIND", "ALL_GATHER"))
    text = text.replace("REDUCE", TRANSFER.replace("NAME", "all-reduce.1_0").replace("KIND", "ALL_REDUCE"))
    found = analysis.communications(hlo.parse(text))
    assert [(one.kind, one.link, one.participants, one.wire_bytes) for one in found] == [
        ("dcn all-gather", Interconnect.DCN, 2, 32),
        ("dcn all-reduce", Interconnect.DCN, 2, 32),
        ("host send", Interconnect.HOST, None, 32),
    ]
    assert (found[0].operand_bytes, found[0].result_bytes, found[0].target) == (32, 64, "{1,2}x{0:3}")


@pytest.mark.parametrize("path", sorted((ROOT / "corpus").glob("[cgt]pu/*.txt*")), ids=lambda path: path.name)
def test_collectives_of_real_modules_have_axes(path: Path) -> None:
    """All but groups that are made to fit none."""
    module = hlo.load(path)
    found = analysis.mesh_of(module)
    for one in analysis.communications(module):
        if one.link is not Interconnect.DEVICE or one.kind in ("send", "recv"):
            continue
        assert one.wire_bytes is not None
        if "collective_groups" not in path.name:
            assert found is not None
            assert analysis.axes_of(module, one, found.mesh) is not None


def test_a_given_mesh() -> None:
    """It must have as many devices as the module."""
    module = hlo.load(ROOT / "corpus/tpu/moe_4_sharding_v3.v5e_2x2x1.before_optimizations.txt")
    found = analysis.mesh_of(module)
    assert found is not None
    assert found.source in (MeshSource.SHARDY, MeshSource.SHARDINGS)
    assert found.has_names
    given = analysis.parse_mesh("a=2,b=2")
    assert analysis.mesh_of(module, given) == analysis.FoundMesh(given, MeshSource.GIVEN)
    with pytest.raises(ValueError, match="has 16 devices, but the module has 4"):
        analysis.mesh_of(module, analysis.parse_mesh("a=16"))


def test_a_reduce_scatter_that_is_written_as_a_fusion() -> None:
    """The TPU compiler's: an all-reduce in a fusion that keeps the device's own slice is neither called nor priced as one."""
    text = """HloModule m, is_scheduled=true, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

scatter {
  p = f32[64,8] parameter(0)
  all = f32[64,8] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum
  id = u32[] partition-id()
  size = u32[] constant(16)
  from = u32[] multiply(id, size)
  zero = u32[] constant(0)
  ROOT own = f32[16,8] dynamic-slice(all, from, zero), dynamic_slice_sizes={16,8}
}

ENTRY e {
  p = f32[64,8] parameter(0)
  ROOT f = f32[16,8] fusion(p), kind=kCustom, calls=scatter
}
"""
    (one,) = analysis.communications(hlo.parse(text))
    assert (one.kind, one.operand_bytes, one.result_bytes) == ("reduce-scatter", 2048, 512)
    assert one.wire_bytes == 2048 * 3 // 4


def test_the_line_of_a_combined_collective_is_that_of_its_largest_operand() -> None:
    """Its metadata is that of its first part; a copy in between has none."""
    text = """HloModule m, is_scheduled=true, num_partitions=4

add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }

ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[1024]{0} parameter(1)
  n = f32[8]{0} negate(p), metadata={op_name="jit(f)/neg" source_file="f.py" source_line=5}
  s = f32[1024]{0} sine(q), metadata={op_name="jit(f)/sin" source_file="f.py" source_line=16}
  k = f32[1024]{0} copy(s)
  ROOT r = (f32[8]{0}, f32[1024]{0}) all-reduce(n, k), replica_groups={{0,1,2,3}}, channel_id=1,
    use_global_device_ids=true, to_apply=add, metadata={op_name="jit(f)/reduce_sum" source_file="f.py" source_line=5}
}
"""
    module = hlo.parse(text)
    (flow,) = cost.traffic(module).flows
    assert flow.place is not None
    assert flow.place.line == 16
    assert analysis.source_locations(module)[flow.communication.start][0].line == 16
    assert str(analysis.called_lines(module)[flow.communication.start][0]) == "f.py:16"
    frame = analysis.responsible_frame(flow.communication.start)
    assert frame is not None
    assert frame.line == 16
    asked = hlo.parse(
        text.replace('reduce_sum" source_file="f.py" source_line=5', 'psum" source_file="f.py" source_line=7')
    )
    (flow,) = cost.traffic(asked).flows
    assert flow.place is not None
    frame = analysis.responsible_frame(flow.communication.start)
    assert frame is not None
    assert (flow.place.line, frame.line) == (7, 7)
    (flow,) = cost.traffic(hlo.parse(text.replace("1024", "8"))).flows
    assert flow.place is not None
    assert flow.place.line == 5


def test_what_goes_to_the_host_is_no_collective(tmp_path: Path) -> None:
    """Callbacks of a program for one device: the partitioner has no part in them, and no other device."""
    text = tmp_path / "after.txt"
    shutil.copy(ROOT / "corpus/tpu/callback_io.v5e_2x2x1.after_optimizations.txt", text)
    (module,) = run_json("comm", text)["modules"]
    assert {one["why"] for one in module["operations"]} == {
        "host transfer of io_callback (line 690)",
        "host transfer of debug_print (line 691)",
    }
    assert not module["notes"]
    shown = run("comm", text).stdout
    assert "mesh" not in shown
    assert "sharding" not in shown
    assert "io_callback.6 and 1 other" in shown
    shutil.copy(text, tmp_path / "again.txt")
    assert "collectives" in run("show", tmp_path).stdout
    assert " 4 " not in run("show", tmp_path).stdout
    assert all(len(one["collectives"]) == 4 for one in run_json("show", tmp_path)["modules"])
    one = hlo.load(text)
    found = Totals(one, one)
    assert (found.collectives.new, found.collective_bytes.new) == (0, 0)
    (row,) = run_json("triage", text)["modules"]
    assert row["sent_bytes"] == 0


NESTED = """HloModule m, num_partitions=2
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }
inner { x = f32[6] parameter(0)  ROOT r = f32[6] all-reduce(x), replica_groups={{0,1}}, to_apply=sum }
on { x = f32[6] parameter(0)  ROOT c = pred[] custom-call(x), custom_call_target="t" }
outer { x = f32[6] parameter(0)  ROOT w = f32[6] while(x), condition=on, body=inner }
ENTRY e { x = f32[6] parameter(0)  ROOT l = f32[6] while(x), condition=on, body=outer,
  backend_config={"known_trip_count":{"n":"10"}} }
"""


def test_a_loop_of_unknown_trip_count_counts_once_each_time_that_it_is_reached() -> None:
    module = hlo.parse(NESTED)
    [one] = analysis.communications(module)
    assert (one.runs, one.most_runs, one.counted_runs) == (None, None, 10)
    [flow] = cost.traffic(module).flows
    assert flow.total == 10 * 24
    assert Totals(module, module).collective_bytes.old == 10 * 24
