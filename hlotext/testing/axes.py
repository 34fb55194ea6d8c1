"""Collectives along given axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hlotext.analysis import Communication, DeviceMesh, MeshSource, axes_of, mesh_of, parse_mesh
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean


def sizes_of(mesh: Any) -> Mapping[str, int]:
    """Returns the axis sizes of a mesh by name, major to minor. Raises ValueError for invalid sizes."""
    if isinstance(mesh, str):
        parsed = parse_mesh(mesh)
        return dict(zip(parsed.names, parsed.sizes, strict=True))
    sizes: Any = mesh if isinstance(mesh, Mapping) else getattr(mesh, "shape", None)
    if not isinstance(sizes, Mapping):
        raise TypeError(
            f"a mesh is text such as dp=2,tp=4, a mapping from axes to sizes, or a JAX Mesh, not {type(mesh).__name__}"
        )
    for axis, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"axis {axis} of the mesh has size {size!r}, which is not a number of devices")
    return sizes


def check_mesh(mesh: Any, module: Module) -> None:
    """Raises ValueError if a mesh has another number of devices than the module's header."""
    sizes = sizes_of(mesh)
    counts = [module.attributes.get(name) for name in ("num_partitions", "replica_count")]
    known = [count for count in counts if isinstance(count, int)]
    devices = math.prod(sizes.values())
    # Without counts the header says nothing; old ones leave out what is 1.
    if known and devices != math.prod(known):
        raise ValueError(
            f"the mesh {dict(sizes)} has {devices} devices, but the module runs on {math.prod(known)}"
        )


def device_mesh(mesh: Any) -> DeviceMesh:
    """Converts a JAX Mesh, a mapping from axis name to size (major to minor), or text to a DeviceMesh. Devices are
    positions in it.
    """
    sizes = sizes_of(mesh)
    return DeviceMesh(tuple(sizes), tuple(map(int, sizes.values())))


def along(
    module: Module, found: Iterable[Communication], axes: tuple[str, ...], given: DeviceMesh | None
) -> Iterator[Communication]:
    """Yields the communications that run along exactly these axes, or along parts of them.

    Uses the given mesh, or else the one in the text. Raises ValueError if there is none, and for an axis that the mesh
    does not have.
    """
    known = mesh_of(module, given)
    if known is None or known.source is MeshSource.INFERRED:
        raise ValueError("the text names no mesh axes; pass the mesh, as in hlo(compiled, mesh=mesh)")
    mesh = known.mesh
    for axis in axes:
        if axis not in mesh.names:
            hint = did_you_mean(axis, mesh.names)
            if not hint and known.source is not MeshSource.GIVEN:
                hint = "pass the mesh, if that is another one"
            raise ValueError(
                f"the mesh has no axis {axis} (it has {', '.join(mesh.names)})"
                + (f"; {hint}" if hint else "")
            )
    wanted = {axis for axis in axes if mesh.sizes[mesh.names.index(axis)] > 1}
    for one in found:
        taken = axes_of(module, one, mesh)
        if taken is not None and {part.partition(":(")[0] for part in taken} == wanted:
            yield one
