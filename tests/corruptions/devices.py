"""Corruptions of groups of devices, shardings, and the header."""

from __future__ import annotations

import random
from typing import Any

import hlotext as hlo
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
)
from hlotext.ir.values.replica_groups import ReplicaGroupList
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.ir.values.sharding import OpSharding, TupleSharding
from hlotext.ir.values.types import ELEMENT_TYPES
from tests import support
from tests.corruptions.base import Corruption, choose, done, kind, put


@kind
def groups(module: Module, chance: random.Random) -> Corruption | None:
    """A device twice, one too few, an empty group, one beyond the last."""
    chosen = choose(
        module,
        chance,
        lambda i: i.attributes.get("replica_groups") and i.attributes["replica_groups"].group_count,
    )
    if chosen is None:
        return None
    groups = [list(group) for group in chosen.attributes["replica_groups"].groups()]
    how = chance.choice(["twice", "fewer", "empty", "beyond"])
    which = chance.randrange(len(groups))
    if how == "twice":
        groups[which].append(groups[which][0])
    elif how == "fewer":
        groups[which].pop()
    elif how == "empty":
        groups.append([])
    else:
        groups[which][-1] += 1000
    put(chosen, replica_groups=ReplicaGroupList(tuple(map(tuple, groups))))
    return done("groups", chosen, f"a device {how}")


@kind
def pairs(module: Module, chance: random.Random) -> Corruption | None:
    """A source or a target twice."""
    chosen = choose(module, chance, lambda i: len(i.attributes.get("source_target_pairs", ())) > 1)
    if chosen is None:
        return None
    first, second, *rest = chosen.attributes["source_target_pairs"]
    changed = (first[0], second[1]) if chance.random() < 0.5 else (second[0], first[1])
    put(chosen, source_target_pairs=(first, changed, *rest))
    return done("pairs", chosen, f"{second} became {changed}")


@kind
def sharding(module: Module, chance: random.Random) -> Corruption | None:
    """One leaf fewer, or another number of devices."""
    chosen = choose(
        module,
        chance,
        lambda i: (
            (isinstance(i.sharding, TupleSharding) and len(i.sharding.elements) > 1)
            or (isinstance(i.sharding, OpSharding) and i.sharding.tile_assignment is not None)
        ),
    )
    if chosen is None:
        return None
    sharding: Any = chosen.sharding
    if isinstance(sharding, TupleSharding):
        put(chosen, sharding=TupleSharding(sharding.elements[1:]))
        return done("sharding", chosen, "a leaf fewer")
    dims = sharding.tile_assignment.dimensions
    text = f"{{devices=[{','.join(map(str, (*dims, 2)))}]<=[{sharding.tile_assignment.num_devices * 2}]}}"
    put(chosen, sharding=hlo.parse_sharding(text))
    return done("sharding", chosen, f"{sharding} became {text}")


# ---- the header


def _header(module: Module, what: str, name: str, **attributes: Any) -> Corruption:
    module._attributes.update(attributes)
    support.touch(module, header=True)
    return Corruption(name, what, None)


@kind
def alias(module: Module, chance: random.Random) -> Corruption | None:
    """An alias or a donation of what is not there."""
    parameters = len(module.entry.parameters)
    config = module.attributes.get("input_output_alias")
    old = config.entries if isinstance(config, InputOutputAliasConfig) else ()
    output = (0,) if module.entry.root.shape.is_tuple else ()  # type: ignore[union-attr]
    if any(entry.output_index == output for entry in old):
        return None
    how = chance.choice(["parameter", "part", "output", "donor"])
    if how == "donor":
        return _header(module, how, "alias", buffer_donor=BufferDonorConfig((BufferDonor(parameters),)))
    alias = {
        "parameter": InputOutputAlias(output, parameters),
        "part": InputOutputAlias(output, 0, (7, 7)),
        "output": InputOutputAlias((99,), 0),
    }[how]
    return _header(module, how, "alias", input_output_alias=InputOutputAliasConfig((*old, alias)))


@kind
def entry_layout(module: Module, chance: random.Random) -> Corruption | None:
    """An entry layout that is not that of the entry."""
    layout = module.attributes.get("entry_computation_layout")
    if not isinstance(layout, ComputationLayout):
        return None
    shapes = list(layout.parameter_shapes)
    if not shapes:
        return None
    which = chance.randrange(len(shapes))
    if chance.random() < 0.5:
        del shapes[which]
    else:
        shapes[which] = Shape(ELEMENT_TYPES["u16"], (3, 3))
    new = ComputationLayout(tuple(shapes), layout.result_shape)
    return _header(module, f"parameter {which}", "entry_layout", entry_computation_layout=new)
