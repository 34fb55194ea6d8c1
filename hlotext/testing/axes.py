"""Which collectives go along which axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hlotext.analysis import Communication
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList

Groups = frozenset[frozenset[int]]


def sizes_of(mesh: Any) -> Mapping[str, int]:
    """The sizes of a mesh by the names of its axes, major to minor. Raises ValueError for sizes that are none."""
    sizes: Mapping[str, Any] = mesh if isinstance(mesh, Mapping) else mesh.shape
    for axis, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"axis {axis} of the mesh has size {size!r}, which is no number of devices")
    return sizes


def check_mesh(mesh: Any, module: Module) -> None:
    """A mesh has as many devices as the module runs on. Raises ValueError where the header says another number."""
    sizes = sizes_of(mesh)
    counts = [module.attributes.get(name) for name in ("num_partitions", "replica_count")]
    known = [count for count in counts if isinstance(count, int)]
    devices = math.prod(sizes.values())
    # Without counts the header says nothing; old ones leave out what is 1.
    if known and devices != math.prod(known):
        raise ValueError(
            f"the mesh {dict(sizes)} has {devices} devices, but the module runs on {math.prod(known)}"
        )


def groups_of_axis(mesh: Any, axes: tuple[str, ...]) -> Groups:
    """The groups of devices that differ along these axes only, by their position in the mesh.

    `mesh` is a jax Mesh or a mapping from axis name to size, major to minor. Raises ValueError for an axis it lacks.
    """
    sizes = sizes_of(mesh)
    names = list(sizes)
    for axis in axes:
        if axis not in names:
            raise ValueError(f"the mesh has no axis {axis} (it has {', '.join(names)})")
    devices = np.arange(int(np.prod(list(sizes.values())))).reshape(list(sizes.values()))
    chosen = [names.index(axis) for axis in axes]
    moved = np.moveaxis(devices, chosen, range(-len(chosen), 0))
    rows = moved.reshape(-1, int(np.prod([sizes[axis] for axis in axes])))
    return frozenset(frozenset(int(number) for number in row) for row in rows)


def is_along(one: Communication, axes: tuple[str, ...], groups: Groups | None) -> bool:
    """Whether a collective joins exactly these groups, or sends within them; without groups by the axes in the text.

    Raises ValueError where the text names no axes and no groups are given.
    """
    if one.pairs is not None and groups is not None:
        return all(any(set(pair) <= group for group in groups) for pair in one.pairs)
    if groups is not None:
        if one.groups is None or not one.group_count:
            return len(groups) == 1
        return frozenset(frozenset(group) for group in one.groups.groups()) == groups
    if isinstance(one.groups, MeshAxesReplicaGroupList):
        names = [axis.name for axis in one.groups.mesh.axes]
        for axis in axes:
            if axis not in names:
                raise ValueError(
                    f"the text's mesh has no axis {axis} (it has {', '.join(names)}): give the mesh"
                )
        return {axis.name for axis in one.groups.axes} == set(axes)
    raise ValueError("the text names no axes of a mesh: give the mesh, as in hlo(compiled, mesh=mesh)")
