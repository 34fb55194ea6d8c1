"""Shortcuts for values that list devices, in the form in which XLA writes them: shardings, groups, pairs.

What `exact` refuses the grammar reads.
"""

from __future__ import annotations

import math
import re

from hlotext.ir.caches import weighted_cache
from hlotext.ir.values.enums import ShardingType
from hlotext.ir.values.replica_groups import (
    IotaReplicaGroupList,
    ReplicaGroupList,
    ReplicaGroups,
)
from hlotext.ir.values.sharding import SUBGROUP_TYPES, OpSharding, Sharding, TupleSharding
from hlotext.ir.values.text import braced
from hlotext.ir.values.tile_assignment import DeviceList, IotaTileAssignment
from hlotext.syntax.fast.shortcuts.plain import exact, iota, numbers
from hlotext.syntax.language.words import integer


def _lists(text: str) -> tuple[tuple[int, ...], ...]:
    """`{{0,1},{2,3}}`."""
    return tuple(map(numbers, text[2:-2].split("},{"))) if text != "{}" else ()


@exact
def replica_groups(text: str) -> ReplicaGroups | None:
    """Parses `{{0,1},{2,3}}`, `[2,4]<=[4,2]T(1,0)` and `mesh['a'=2,'b'=4] {'b'}`; None if the grammar must."""
    if text[0] == "{":
        return ReplicaGroupList(_lists(text))
    if text.startswith("mesh["):
        from hlotext.syntax.fast.shortcuts.meshes import along_axes  # few texts have meshes

        return along_axes(text)
    assignment = iota(text)
    if assignment is None or len(assignment.dimensions) != 2:
        return None
    if math.prod(assignment.dimensions) != math.prod(assignment.reshape_dims):
        return None
    return IotaReplicaGroupList(assignment)


def _pairs(text: str) -> tuple[tuple[int, ...], ...] | None:
    pairs = _lists(text)
    return pairs if all(len(pair) == 2 for pair in pairs) else None


def _pairs_text(pairs: tuple[tuple[int, ...], ...]) -> str:
    return braced(map(braced, pairs))


source_target_pairs = exact(_pairs, _pairs_text)
"""`{{0,1},{1,2}}`."""


_WORDS = {
    f"{{{word}}}": word for word in (ShardingType.REPLICATED, ShardingType.MANUAL, ShardingType.UNREDUCED)
}
_TILED = re.compile(
    r"\{devices=(\[[0-9,]++\](?:<=\[[0-9,]++\](?:T\([0-9,]++\))?|[0-9,]++))"
    r"(?:( last_tile_dim_replicate)| last_tile_dims=\{([a-z, ]++)\})?\}"
)
_MAXIMAL = re.compile(r"\{maximal device=([0-9]++)\}")
_ELEMENT = re.compile(r"\{[^{}]++(?:\{[^{}]*+\}[^{}]*+)*+\}")


@exact
def sharding(text: str) -> Sharding | None:
    """Parses shardings such as `{replicated}`, `{devices=[2,1,4]<=[8] last_tile_dim_replicate}` and `{mesh['a'=2],
    [{'a'}]}`.

    Also tuples of these. None if the grammar must parse it.
    """
    if not text.startswith("{{"):
        return _single(text)
    elements = [_single(element) for element in _ELEMENT.findall(text, 1)]
    found = tuple(element for element in elements if element is not None)
    return TupleSharding(found) if len(found) == len(elements) else None


@weighted_cache(1 << 10)
def _single(text: str) -> Sharding | None:
    if text.startswith(("{mesh[", "{single_device[")):
        from hlotext.syntax.fast.shortcuts.meshes import named_sharding  # few texts have meshes

        return named_sharding(text)
    word = _WORDS.get(text)
    if word is not None:
        return OpSharding(word)
    if (maximal := _MAXIMAL.fullmatch(text)) is not None:
        return OpSharding(ShardingType.MAXIMAL, integer(maximal[1]))
    tiled = _TILED.fullmatch(text)
    if tiled is None:
        return None
    tiles, is_replicated, types = tiled.groups()
    last_tile_dims = tuple(ShardingType(type_) for type_ in types.split(", ")) if types is not None else None
    assignment: DeviceList | IotaTileAssignment | None
    if "<=" in tiles:
        assignment = iota(tiles)
    else:
        dimensions, _, devices = tiles[1:].partition("]")
        assignment = DeviceList(numbers(dimensions), numbers(devices))
        if len(assignment.device_ids) < 2:
            return None
    if assignment is None or min(assignment.dimensions) < 1:
        return None
    count = len(assignment.device_ids) if isinstance(assignment, DeviceList) else assignment.num_devices
    if count != math.prod(assignment.dimensions):
        return None
    if len(last_tile_dims or ()) > len(assignment.dimensions) or not set(last_tile_dims or ()) <= set(
        SUBGROUP_TYPES
    ):
        return None
    return OpSharding(
        ShardingType.OTHER,
        tile_assignment=assignment,
        replicate_on_last_tile_dim=is_replicated is not None,
        last_tile_dims=last_tile_dims,
    )
