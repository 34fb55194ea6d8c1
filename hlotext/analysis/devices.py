"""Number of devices of a module, and the participants of each collective."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import attrs

from hlotext.analysis.census import census
from hlotext.analysis.facts import fact
from hlotext.analysis.meshes import shardy_meshes
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.sharding import Sharding
from hlotext.ir.values.tile_assignment import MOST_DEVICES


class CollectiveGroupMode(enum.Enum):
    """Meaning of the numbers in replica groups (`CollectiveOpGroupMode`)."""

    REPLICA = "cross_replica"
    PARTITION = "cross_partition"
    BOTH = "cross_replica_and_partition"
    FLATTENED = "flattened_id"


def group_mode(instruction: Instruction) -> CollectiveGroupMode:
    """Returns the meaning of the numbers in a collective's groups (`GetCollectiveOpGroupMode`).

    With a channel but without `use_global_device_ids`, this is `PARTITION` for kinds whose groups always count
    partitions, such as all-to-all, and `BOTH` for all others.
    """
    if instruction.attributes.get("use_global_device_ids") is True:
        return CollectiveGroupMode.FLATTENED
    if instruction.attributes.get("channel_id") is None:
        return CollectiveGroupMode.REPLICA
    return (
        CollectiveGroupMode.PARTITION
        if instruction.opcode in traits.COUNTS_PARTITIONS
        else CollectiveGroupMode.BOTH
    )


@attrs.frozen
class Devices:
    """Numbers of replicas, partitions and devices that a module was compiled for."""

    replicas: int | None
    """Number of replicas, or None if unknown."""
    partitions: int | None
    total: int | None
    """Total number of devices. Device i is replica i // partitions, partition i % partitions."""


@fact
def devices_of(module: Module) -> Devices:
    """Determines the number of devices of a module from its header, or else from replica groups and shardings.

    XLA omits counts of 1, and omits both counts before compilation. Old releases always omitted both. Hence a missing
    count means 1 only if the text is from a newer release (it has stack-frame tables, for example) and shows no other
    evidence of several devices.
    """
    attributes = module.attributes
    replicas, partitions = (attributes.get(name) for name in ("replica_count", "num_partitions"))
    if replicas is not None or partitions is not None:
        replicas = 1 if replicas is None else int(replicas)
        partitions = 1 if partitions is None else int(partitions)
        return Devices(replicas, partitions, replicas * partitions)
    found = _guessed(module)
    names_several = any(count not in (None, 1) for count in (found.replicas, found.partitions, found.total))
    return found if names_several or not _is_new(module) else Devices(1, 1, 1)


def _is_new(module: Module) -> bool:
    """True if a release wrote the header that prints counts other than one."""
    return bool(module.stack_frames.file_names) or "frontend_attributes" in module.attributes


def _guessed(module: Module) -> Devices:
    """The least numbers of devices that a module without counts can be for; None if it names none."""
    found = dict.fromkeys(CollectiveGroupMode, 0)
    for instruction in census(module).of(*opcodes.COLLECTIVES):
        mode = group_mode(instruction)
        found[mode] = max(found[mode], _most(instruction) + 1)
    replicas = max(found[CollectiveGroupMode.REPLICA], found[CollectiveGroupMode.BOTH])
    named = [one.num_devices or 0 for one in shardings_of(module)]
    named += [mesh.num_devices for mesh in shardy_meshes(shardy_text(module))]
    partitions = max([found[CollectiveGroupMode.PARTITION], *named])
    total = found[CollectiveGroupMode.FLATTENED]
    if partitions > 1:
        replicas = max(1, replicas)
    elif replicas > 1 and "partition-id" not in census(module).by_opcode:
        partitions = 1
    if replicas and partitions:
        return Devices(replicas, partitions, max(total, replicas * partitions))
    return Devices(replicas if replicas > 1 else None, partitions or None, total if total > 1 else None)


def shardy_text(module: Module) -> str:
    """Returns the Shardy meshes of the module as text (`xla.sdy.meshes`); empty if there are none."""
    text = module.attributes.get("frontend_attributes", {}).get("xla.sdy.meshes", "")
    return text if isinstance(text, str) else ""


def _most(instruction: Instruction) -> int:
    """The largest number that the groups or pairs of a collective name; -1 where they name none."""
    groups = instruction.attributes.get("replica_groups")
    if isinstance(groups, ReplicaGroups):
        if groups.group_count * (groups.group_size or 1) > MOST_DEVICES:
            return -1
        try:
            return max((device for group in groups.groups() for device in group), default=-1)
        except ValueError:
            return -1
    pairs = instruction.attributes.get("source_target_pairs")
    return max((device for pair in pairs for device in pair), default=-1) if isinstance(pairs, tuple) else -1


def shardings_of(module: Module) -> Iterator[Sharding]:
    """Yields the shardings of instructions, then those in the header; of a tuple sharding, each element.

    Instructions that share all attributes are visited once. Equal shardings of other instructions are repeated.
    """
    for instruction in census(module).attribute_sets:
        if instruction.sharding is not None:
            yield from instruction.sharding.tuple_elements
    for value in module.attributes.values():
        if isinstance(value, Sharding):
            yield from value.tuple_elements
        elif isinstance(value, tuple):
            yield from (one for one in value if isinstance(one, Sharding))


def participant_count(module: Module, instruction: Instruction) -> int | None:
    """Returns the number of participants of a collective, even if the groups are omitted.

    Returns None if the number is unknown, if groups differ in size, and for permutes, which have pairs.
    """
    if instruction.opcode not in opcodes.COLLECTIVES or "source_target_pairs" in instruction.attributes:
        return None
    groups = instruction.attributes.get("replica_groups")
    count = groups.group_count if isinstance(groups, ReplicaGroups) else 0
    size = groups.group_size if isinstance(groups, ReplicaGroups) else None
    if count and size is None:
        return None
    devices, mode = devices_of(module), group_mode(instruction)
    if count and size is not None:
        # Groups of replicas that join the partitions too are that much larger than they are written.
        if mode is not CollectiveGroupMode.BOTH:
            return size
        return size * devices.partitions if devices.partitions is not None else None
    return {
        CollectiveGroupMode.REPLICA: devices.replicas,
        CollectiveGroupMode.PARTITION: devices.partitions,
    }.get(mode, devices.total)


def participant_groups(module: Module, instruction: Instruction) -> tuple[tuple[int, ...], ...] | None:
    """Returns the groups of devices that a collective joins, as global device numbers, for every group mode.

    Device i is replica i // partitions and partition i % partitions. Omitted groups mean all replicas, all partitions or
    all devices, depending on the mode. Returns None for permutes and for instructions that are not collectives, if axes
    do not match the mesh, and, except for explicit groups of flattened ids, if the number of devices is unknown or above
    2^20.
    """
    expect_module(module)
    if instruction.opcode not in opcodes.COLLECTIVES or "source_target_pairs" in instruction.attributes:
        return None
    devices, mode = devices_of(module), group_mode(instruction)
    groups = instruction.attributes.get("replica_groups")
    try:
        written = (
            tuple(groups.groups())
            if isinstance(groups, ReplicaGroups)
            and groups.group_count
            and groups.group_count * (groups.group_size or 1) <= MOST_DEVICES
            else ()
        )
    except ValueError:
        return None
    if mode is CollectiveGroupMode.FLATTENED and written:
        return written
    replicas, partitions = devices.replicas, devices.partitions
    if replicas is None or partitions is None or not 0 < replicas * partitions <= MOST_DEVICES:
        return None
    if mode is CollectiveGroupMode.FLATTENED:
        return (tuple(range(replicas * partitions)),)
    if mode is CollectiveGroupMode.PARTITION:
        written = written or (tuple(range(partitions)),)
        return tuple(
            tuple(replica * partitions + p for p in group) for replica in range(replicas) for group in written
        )
    written = written or (tuple(range(replicas)),)
    if mode is CollectiveGroupMode.BOTH:
        return tuple(tuple(r * partitions + p for r in group for p in range(partitions)) for group in written)
    return tuple(tuple(r * partitions + p for r in group) for p in range(partitions) for group in written)
