"""Shardings: the structure of the shape, tiles for each dimension, devices and axes that exist."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.mesh import Mesh, check_axes
from hlotext.ir.values.named_sharding import NamedSharding
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import DeviceList
from hlotext.layout.errors import shorten
from hlotext.verify.facts import Facts
from hlotext.verify.findings import Findings
from hlotext.verify.problems import Problem
from hlotext.verify.survey import Survey
from hlotext.verify.words import plural


def check_sharding(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """`sharding=` against the result's shape and the module's devices (`HloSharding::Validate`)."""
    sharding, shape = instruction.attributes.get("sharding"), instruction.shape
    if not isinstance(sharding, Sharding) or shape is None or shape.is_token:
        return
    leaves = [leaf for _, leaf in shape.leaves()]
    if sharding.is_tuple and shape.is_tuple:
        elements = sharding.tuple_elements
        # XLA demands nothing of the sharding of an empty tuple.
        if leaves and len(elements) != len(leaves):
            yield Problem(
                "V509",
                f"{plural(len(elements), 'sharding')} for the {len(leaves)} leaves of {shorten(str(shape))}",
                "sharding",
            )
        if len(elements) != len(leaves):
            return
    elif sharding.is_tuple or shape.is_tuple:
        kind = "a tuple of shardings" if sharding.is_tuple else "one sharding"
        yield Problem("V509", f"{kind} does not fit {shorten(str(shape))}", "sharding")
        return
    else:
        elements, leaves = (sharding,), [shape]
    found: dict[tuple[str, str], None] = {}
    for element, leaf in zip(elements, leaves, strict=True):
        found.update(dict.fromkeys(_problems(element, leaf, facts.num_partitions)))
    for code, message in found:
        yield Problem(code, message, "sharding")


def _problems(sharding: Sharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    """Code and message for what is wrong with the sharding of one leaf; 1 device says nothing."""
    if isinstance(sharding, OpSharding):
        yield from _op_sharding(sharding, shape, devices)
    elif isinstance(sharding, NamedSharding):
        yield from _named(sharding, shape, devices)


def _op_sharding(sharding: OpSharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    device = sharding.maximal_device
    if device is not None and (device < 0 or (devices != 1 and device >= devices)):
        yield "V511", f"there is no device {device} in a module of {devices} partitions"
    tiles = sharding.tile_assignment
    if tiles is None:
        return
    if len(sharding.tile_dimensions) != shape.rank:
        yield (
            "V510",
            f"{sharding} cuts {plural(len(sharding.tile_dimensions), 'dimension')}, but {shape} has {shape.rank}",
        )
    if tiles.num_devices != devices and devices != 1:
        yield (
            "V511",
            f"{sharding} is for {tiles.num_devices} devices, but the module has {devices} partitions",
        )
    if isinstance(tiles, DeviceList):
        yield from _listed(tiles, devices, str(sharding))


def _listed(tiles: DeviceList, devices: int, text: str) -> Iterator[tuple[str, str]]:
    """Devices that are written out: as many as there are tiles, each once, each of the module."""
    ids = tiles.device_ids
    if len(ids) != tiles.num_devices:
        yield "V511", f"{shorten(text)} lists {len(ids)} devices for {tiles.num_devices} tiles"
        return
    twice = next((device for device, count in Counter(ids).items() if count > 1), None)
    if twice is not None:
        yield "V511", f"device {twice} stands more than once in {shorten(text)}"
    beyond = next((device for device in ids if device < 0 or (devices != 1 and device >= devices)), None)
    if beyond is not None:
        yield "V511", f"there is no device {beyond} in a module of {devices} partitions"


def _named(sharding: NamedSharding, shape: Shape, devices: int) -> Iterator[tuple[str, str]]:
    mesh = sharding.mesh
    try:
        check_axes(mesh, sharding.all_axes())
    except ValueError as error:
        yield "V512", str(error)
        return
    if sharding.dim_shardings and len(sharding.dim_shardings) != shape.rank:
        yield (
            "V510",
            f"{sharding} cuts {plural(len(sharding.dim_shardings), 'dimension')}, but {shape} has {shape.rank}",
        )
    yield from _mesh(mesh, devices)


def _mesh(mesh: Mesh, devices: int) -> Iterator[tuple[str, str]]:
    if devices == 1:
        return
    if mesh.device_id is not None:
        if not 0 <= mesh.device_id < devices:
            yield "V511", f"there is no device {mesh.device_id} in a module of {devices} partitions"
    elif mesh.axes and mesh.num_devices != devices:
        yield "V511", f"{mesh} has {mesh.num_devices} devices, but the module has {devices} partitions"
    elif isinstance(mesh.device_assignment, DeviceList):
        yield from _listed(mesh.device_assignment, devices, str(mesh))


def check_consistency(survey: Survey, findings: Findings) -> None:
    """A loop, its body's parameter and root and its condition's parameter agree; so do a branch's root and its result.

    `InstructionVerifier::VerifyConsistentSharding`; what has no sharding agrees with all.
    """
    for caller in survey.callers:
        if caller.opcode == "while":
            bodies = [
                computation for name, computation in caller.callees() if name == "body" and len(computation)
            ]
            nodes = [caller, *(body.root for body in bodies)]
            nodes += [p for computation in caller.called_computations for p in computation.parameters[:1]]
        elif caller.opcode == "conditional":
            nodes = [caller, *(branch.root for branch in caller.called_computations if len(branch))]
        else:
            continue
        sharded = [node for node in nodes if node.sharding is not None]
        for node in sharded[1:]:
            if _plain(node) != _plain(sharded[0]):
                findings.at(
                    node, "V513",
                    f"the sharding is {shorten(str(node.sharding))}, "
                    f"but that of {sharded[0].name} is {shorten(str(sharded[0].sharding))}",
                    "sharding", f"the {caller.opcode} {caller.name} cannot change it",
                    [("the other one", sharded[0]), ("the caller", caller)],
                )  # fmt: skip


def _plain(instruction: Instruction) -> Sharding | None:
    """The sharding as XLA compares it."""
    sharding = instruction.sharding
    return None if sharding is None else sharding.canonical().without_metadata()
