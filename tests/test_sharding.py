"""What each device holds, against XLA and JAX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.analysis.shards import argument_shards
from hlotext.ir.values.named_sharding import NamedSharding, with_mesh
from hlotext.ir.values.sharding import OpSharding

DATA = Path(__file__).parent / "data" / "sharding"
XLA: list[dict[str, Any]] = json.loads((DATA / "xla.json").read_text())
JAX: list[dict[str, Any]] = json.loads((DATA / "jax.json").read_text())
ENTRIES: list[dict[str, Any]] = json.loads((DATA / "entries.json").read_text())
"""Programs for several partitions that XLA compiled: shape and sharding of each entry parameter before optimization, and the
dimensions that the partitioned module has there."""


def shape_of(dimensions: list[int]) -> hlo.Shape:
    """An array of these dimensions."""
    return hlo.parse_shape(f"f32[{','.join(map(str, dimensions))}]")


def pairs(part: tuple[slice, ...]) -> list[list[int]]:
    """Starts and stops."""
    return [[one.start, one.stop] for one in part]


@pytest.mark.parametrize("row", XLA, ids=lambda row: f"{row['sharding']}-{row['dimensions']}")
def test_shards_are_xlas(row: dict[str, Any]) -> None:
    """Shape, slices, and the form without a mesh."""
    sharding, shape = hlo.parse_sharding(row["sharding"]), shape_of(row["dimensions"])
    assert list(sharding.shard_shape(shape).dimensions) == row["shard_dimensions"]
    assert sharding.means_the_same(hlo.parse_sharding(row["without_mesh"]))
    if isinstance(sharding, NamedSharding):
        assert str(sharding.without_mesh()) == row["without_mesh"]
    if row.get("slices"):
        found = sharding.device_indices(shape)
        assert {device: pairs(found[int(device)]) for device in row["slices"]} == row["slices"]


@pytest.mark.parametrize("row", JAX, ids=lambda row: f"{row['spec']}-{row['dimensions']}")
def test_slices_are_jaxs(row: dict[str, Any]) -> None:
    """Numbers in a sharding are positions in JAX's list of devices."""
    sharding, shape = hlo.parse_sharding(row["hlo_sharding"]), shape_of(row["dimensions"])
    assert list(sharding.shard_shape(shape).dimensions) == row["shard_dimensions"]
    found = sharding.device_indices(shape, len(row["device_ids"]))
    by_id = {str(device): pairs(found[place]) for place, device in enumerate(row["device_ids"])}
    assert by_id == row["slices_by_device_id"]


def test_entry_parameters_are_those_of_the_partitioned_module() -> None:
    """Before optimization each argument is cut by its sharding; what the partitioner leaves has just those dimensions."""
    compared = 0
    for row in ENTRIES:
        parameters = [
            f"  p{number} = {shape} parameter({number})" + (f", sharding={sharding}" if sharding else "")
            for number, (shape, sharding, _) in enumerate(row["parameters"])
        ]
        text = "\n".join(
            [f"HloModule m, num_partitions={row['num_partitions']}\n", "ENTRY e {", *parameters, "}\n"]
        )
        shards = argument_shards(hlo.parse(text))
        found = [list(one.shard_shape.dimensions) for one in shards]
        assert found == [leaf for _, _, leaves in row["parameters"] for leaf in leaves], row["program"]
        assert all(one.problem is None for one in shards)
        compared += len(found)
    assert (len(ENTRIES), compared) == (87, 263)


@pytest.mark.parametrize("row", XLA[::3], ids=lambda row: row["sharding"])
def test_forms_mean_the_same(row: dict[str, Any]) -> None:
    """With a mesh, as an iota, as a list: whatever has a form means the same in it."""
    sharding = hlo.parse_sharding(row["sharding"]).without_mesh()
    assert isinstance(sharding, OpSharding)
    if not (sharding.is_tiled or sharding.is_replicated or sharding.is_maximal):
        return
    named = with_mesh(sharding)
    assert named.means_the_same(sharding)
    assert hlo.parse_sharding(str(named)).means_the_same(sharding)


def test_a_mesh_lists_no_more_devices_than_a_machine_has() -> None:
    """No axes give these tiles: six of them end inside of the first dimension of the device numbers."""
    sharding = hlo.parse_sharding("{devices=[6,1073741824]<=[1610612736,4]T(1,0)}")
    assert isinstance(sharding, OpSharding)
    with pytest.raises(ValueError, match="more than"):
        with_mesh(sharding)


@given(
    dimensions=st.lists(st.integers(0, 9), min_size=1, max_size=3),
    tiles=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    sharing=st.integers(1, 3),
    seed=st.randoms(use_true_random=False),
)
def test_every_element_is_held(dimensions: list[int], tiles: list[int], sharing: int, seed: Any) -> None:
    """Each by as many devices as share a tile, whatever the sizes; `devices_of` and the slices agree."""
    tiles = tiles[: len(dimensions)]
    count = sharing
    for number in tiles:
        count *= number
    assume(count > 1)
    ids = list(range(count))
    seed.shuffle(ids)
    last = " last_tile_dim_replicate" if sharing > 1 else ""
    shown = [*tiles, sharing] if sharing > 1 else tiles
    text = f"{{devices=[{','.join(map(str, shown))}]{','.join(map(str, ids))}{last}}}"
    sharding, shape = hlo.parse_sharding(text), shape_of(dimensions)
    parts = sharding.device_indices(shape, count)
    assert sorted(parts) == list(range(count))
    shard = sharding.shard_shape(shape).dimensions
    assert all(
        one.stop - one.start <= size for part in parts.values() for one, size in zip(part, shard, strict=True)
    )
    index = [seed.randrange(size) if size else 0 for size in dimensions]
    if all(dimensions):
        is_cut = any(number > 1 for number in tiles)
        assert len(sharding.devices_of(shape, index, count)) == (sharing if is_cut else count)


def test_replication() -> None:
    """How many devices hold each part."""
    texts = {
        "{devices=[2,4]<=[8]}": 1,
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}": 4,
        "{devices=[2,2,2]<=[8] last_tile_dims={manual}}": 2,
        "{maximal device=3}": 1,
        "{replicated}": None,
        "{mesh['x'=2,'y'=4], [{'x'}, {}]}": 4,
        "{mesh['x'=2,'y'=4], replicated}": 8,
        "{manual}": None,
    }
    assert {text: hlo.parse_sharding(text).replication for text in texts} == texts


def test_tuples() -> None:
    """One sharding for each leaf, or one for all."""
    shape = hlo.parse_shape("(f32[8,4]{1,0}, (f32[6]{0}, token[]))")
    each = hlo.parse_sharding("{{devices=[2,1]<=[2]}, {devices=[4]<=[4]}, {replicated}}")
    assert str(each.shard_shape(shape)) == "(f32[4,4]{1,0}, (f32[2]{0}, token[]))"
    assert hlo.parse_sharding("{replicated}").shard_shape(shape) == shape
    with pytest.raises(ValueError, match="3 shardings do not match a tuple of 1"):
        each.shard_shape(hlo.parse_shape("(f32[8])"))
    with pytest.raises(ValueError, match="single array"):
        each.shard_shape(hlo.parse_shape("f32[8]"))
    with pytest.raises(ValueError, match="tuple_elements"):
        each.device_indices(shape)


BAD = {
    ("{devices=[2,4]<=[8]}", "f32[8]"): "2 dimensions does not match an array of 1",
    ("{manual}", "f32[8]"): "does not determine",
    ("{unknown}", "f32[8]"): "does not determine",
    ("{devices=[2]<=[2]}", "f32[?]"): "unbounded",
    ("{devices=[2,2]0,0,1,2}", "f32[8,8]"): "two tiles",
    ("{devices=[3]<=[8]}", "f32[8]"): "every tile",
    ("{devices=[1099511627776]<=[1099511627776]}", "f32[8]"): "more than 1,048,576",
    ("{mesh['x'=2], [{'y'}]}", "f32[8]"): "no axis 'y'",
    ("{mesh['x'=4], device_ids=(0,1), [{'x'}]}", "f32[8]"): "2 device ids",
    ("{devices=[2]<=[2]}", "token[]"): "not an array",
}


@pytest.mark.parametrize(("text", "shape"), BAD)
def test_what_cannot_be_told_is_said(text: str, shape: str) -> None:
    """ValueErrors that say why, and nothing else."""
    try:
        sharding = hlo.parse_sharding(text)
    except hlo.HloSyntaxError:
        return  # the reader refuses it already
    with pytest.raises(ValueError, match=BAD[text, shape]):
        sharding.device_indices(hlo.parse_shape(shape))


def test_replicated_over_nobody_knows_how_many() -> None:
    """Every device has the whole, but they cannot be counted."""
    found = hlo.parse_sharding("{replicated}").device_indices(hlo.parse_shape("f32[4]"))
    assert found[10**6] == (slice(0, 4),)
    with pytest.raises(KeyError):
        found[-1]
    with pytest.raises(ValueError, match="number of devices"):
        len(found)
    with pytest.raises(ValueError, match="number of devices"):
        hlo.parse_sharding("{replicated}").devices_of(hlo.parse_shape("f32[4]"), (1,))
    with pytest.raises(IndexError, match="no element"):
        hlo.parse_sharding("{replicated}").devices_of(hlo.parse_shape("f32[4]"), (4,), 2)
