"""The texts of a compilation needed to explain its collectives, and its mesh."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import attrs

import hlotext as hlo
from hlotext.analysis import DeviceMesh, FoundMesh, MeshSource, mesh_of, parse_mesh
from hlotext.dumps.settings import AROUND_PARTITIONING, dump_flags
from hlotext.findings.errors import HloSyntaxError
from hlotext.ir.spelling import did_you_mean
from hlotext.syntax.source.inputs import InputError

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation
    from hlotext.dumps.step import Step

_PARTITIONING = re.compile(r"((tpu|gpu)-)?spmd-partitioning|stateful-rng-spmd-partitioner")
DUMP_THE_REST = dump_flags(AROUND_PARTITIONING)
"""Flags that dump the missing texts."""
UNCHECKED = "no sharding in the text names mesh axes, so the names of --mesh could not be checked"


@attrs.frozen
class Partitioning:
    """The steps right before and right after partitioning."""

    before: Step
    after: Step


def partitioning_of(compilation: Compilation) -> Partitioning | None:
    """Returns the steps around the partitioner, or None if they were not dumped.

    The step before is the last one of the same pipeline: pipelines that run inside the partitioner are dumped in
    between, and propagation has no dump of its own if it changes nothing.
    """
    steps = compilation.steps
    for step in steps:
        if not step.is_pass or not _PARTITIONING.fullmatch(step.name.replace(" ", "_")):
            continue
        for earlier in reversed(steps[: step.index]):
            if earlier.is_pass and earlier.pipeline == step.pipeline:
                return Partitioning(earlier, step)
    return None


def read(step: Step | None) -> hlo.Module | None:
    """Reads the module of a step without caching it. Returns None if there is no step or it cannot be read."""
    if step is None:
        return None
    known = step.__dict__.get("module")
    if isinstance(known, hlo.Module):
        return known
    try:
        return step.file.load()
    except (InputError, HloSyntaxError):
        return None


def named_mesh(compilation: Compilation, module: hlo.Module) -> FoundMesh | None:
    """Returns the mesh of a module with the axis names of the program, or None if the program names none.

    Args:
        compilation: The compilation, whose first HLO is read if the module does not have the names.
        module: Its final HLO.
    """
    own = mesh_of(module)
    if own is not None and own.has_names and own.source is not MeshSource.GROUPS:
        return own
    program = read(compilation.first) if own is not None else None
    found = mesh_of(program) if program is not None else None
    if own is None or found is None or not found.has_names or found.mesh.num_devices != own.mesh.num_devices:
        return None
    return FoundMesh(found.mesh, MeshSource.PROGRAM)


def mesh_for(
    given: DeviceMesh | str | None, after: hlo.Module, others: Iterable[hlo.Module | None]
) -> DeviceMesh | None:
    """Returns the given mesh, or else that of the first module with axis names of the program; later modules are then
    not read.

    Raises ValueError if the given text is not a mesh, or if its number of devices is not the module's.
    """
    if given is None:
        return _named(itertools.chain(others, (after,)))
    mesh = parse_mesh(given) if isinstance(given, str) else given
    try:
        mesh_of(after, mesh)
    except ValueError as error:
        more = other_mesh(mesh, itertools.chain(others, (after,)))
        raise ValueError(": ".join((str(error), *([more] if more not in ("", UNCHECKED) else [])))) from None
    return mesh


def other_mesh(given: DeviceMesh | str | None, texts: Iterable[hlo.Module | None]) -> str:
    """Returns a note that names the program's mesh if it differs from the given one, with axes that may have been
    meant.

    `UNCHECKED` if no module names axes, so that they cannot be compared; empty if the meshes are equal.
    """
    mesh = parse_mesh(given) if isinstance(given, str) else given
    if mesh is None:
        return ""
    own = _named(texts)
    if own is None:
        return UNCHECKED
    if (mesh.names, mesh.sizes) == (own.names, own.sizes):
        return ""
    meant = [did_you_mean(name, own.names) for name in mesh.names if name not in own.names]
    return "; ".join([f"the module's own mesh is {own}", *filter(None, meant)])


def mesh_note(given: DeviceMesh | None, module: hlo.Module, compilation: Compilation | None = None) -> str:
    """Returns a note on how a given mesh differs from the program's mesh; empty if it does not differ.

    Args:
        given: The mesh set by the user, or None if there is none.
        module: The final HLO, whose mesh is compared first.
        compilation: The compilation, whose first HLO may also have a mesh; None uses the module alone.
    """

    def texts() -> Iterator[hlo.Module | None]:
        yield module
        yield read(compilation.first) if compilation is not None else None

    return other_mesh(given, texts())


def _named(texts: Iterable[hlo.Module | None]) -> DeviceMesh | None:
    """The mesh of the first text with the program's axis names."""
    for module in texts:
        found = mesh_of(module) if module is not None else None
        if found is not None and found.has_names:
            return found.mesh
    return None
