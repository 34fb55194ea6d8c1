"""Participating devices: replica groups, source-target pairs, channel ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.mesh import check_axes
from hlotext.ir.values.replica_groups import MeshAxesReplicaGroupList, ReplicaGroupList, ReplicaGroups
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.tile_assignment import DeviceList
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.message_text import plural, some
from hlotext.semantics.problems import Problem

_BY_PARTITION = traits.COUNTS_PARTITIONS - traits.of_kind("collective-permute")
"""Opcodes with groups, which count partitions once they have a channel."""


def check_groups(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that every device is in exactly one replica group (`CheckReplicaGroups`)."""
    groups = instruction.attributes.get("replica_groups")
    if groups is None and "use_global_device_ids" not in instruction.attributes:
        return
    if groups is not None and not isinstance(groups, ReplicaGroups):
        return
    if isinstance(groups, MeshAxesReplicaGroupList):
        try:
            check_axes(groups.mesh, groups.axes)
        except ValueError as error:
            yield Problem("V512", f"replica_groups: {error}", "replica_groups")
            return
    is_global, channel = (
        instruction.attributes.get("use_global_device_ids"),
        instruction.attributes.get("channel_id"),
    )
    if is_global and not channel:
        # Channel 0 is what the proto has where there is none.
        yield Problem("V505", "use_global_device_ids=true needs a channel_id", "use_global_device_ids")
    if groups is None or not groups.group_count:
        if is_global:
            yield Problem(
                "V505",
                "use_global_device_ids=true needs replica groups of device ids",
                "use_global_device_ids",
            )
        return
    devices = _listed(groups)
    count = len(devices) if devices is not None else groups.group_count * (groups.group_size or 0)
    if isinstance(groups, ReplicaGroupList):
        yield from _list_problems(instruction, groups)
    if devices is not None:
        yield from _device_problems(instruction, devices)
    wanted = _wanted(instruction, facts)
    if instruction.opcode not in traits.HAS_PARTIAL_GROUPS and wanted not in (1, count):
        yield Problem(
            "V504", f"the groups contain {plural(count, 'device')}, but the module has {wanted}", "replica_groups",
            "replica_groups={} means all devices" if "channel_id" not in instruction.attributes else "",
        )  # fmt: skip


def _listed(groups: ReplicaGroups) -> tuple[int, ...] | None:
    """The device numbers that are written out; None for forms that hold each of 0, 1, 2, ... once by their nature."""
    if isinstance(groups, ReplicaGroupList):
        return tuple(device for group in groups.replica_groups for device in group)
    if isinstance(groups, MeshAxesReplicaGroupList) and groups.mesh.device_id is not None:
        return (groups.mesh.device_id,)
    if isinstance(groups, MeshAxesReplicaGroupList) and isinstance(groups.mesh.device_assignment, DeviceList):
        return groups.mesh.device_assignment.device_ids
    return None


def _list_problems(instruction: Instruction, groups: ReplicaGroupList) -> Iterator[Problem]:
    sizes = Counter(map(len, groups.replica_groups))
    if sizes[0]:
        yield Problem("V502", f"{plural(sizes[0], 'group')} without a device", "replica_groups")
    elif len(sizes) > 1 and instruction.opcode not in traits.HAS_UNEVEN_GROUPS:
        found = " and ".join(map(str, sorted(sizes)))
        yield Problem(
            "V503", f"{instruction.opcode} needs groups of equal size, not of {found}", "replica_groups"
        )


def _device_problems(instruction: Instruction, devices: tuple[int, ...]) -> Iterator[Problem]:
    twice = sorted(device for device, count in Counter(devices).items() if count > 1)
    if twice:
        yield Problem("V501", f"device {some(twice)} appears more than once in the groups", "replica_groups")
    elif instruction.opcode not in traits.HAS_PARTIAL_GROUPS:
        beyond = sorted(device for device in devices if not 0 <= device < len(devices))
        if beyond:
            yield Problem(
                "V504", f"no device {some(beyond)}: ids are 0 to {len(devices) - 1}",
                "replica_groups",
            )  # fmt: skip


def _wanted(instruction: Instruction, facts: VerifierOptions) -> int:
    """Required number of members of all groups (`GetCollectiveOpGroupMode`); 1 if the module does not tell."""
    if "channel_id" not in instruction.attributes:
        return facts.replica_count
    if instruction.opcode in _BY_PARTITION:
        return facts.num_partitions
    if instruction.attributes.get("use_global_device_ids"):
        return facts.replica_count * facts.num_partitions
    return facts.replica_count


def check_pairs(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that no device sends or receives twice, and that all exist (`CheckDuplicatedSourceOrTarget`)."""
    pairs: Any = instruction.attributes.get("source_target_pairs")
    if not isinstance(pairs, tuple) or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        return
    allowed = _parallel(instruction)
    for position, what in ((0, "sends"), (1, "receives")):
        counts = Counter(pair[position] for pair in pairs)
        often = sorted(device for device, count in counts.items() if count > allowed)
        if often:
            limit = "once" if allowed == 1 else f"{allowed} times"
            yield Problem("V506", f"device {some(often)} {what} more than {limit}", "source_target_pairs")
    has_channel = "channel_id" in instruction.attributes
    limit_number = facts.num_partitions if has_channel else facts.replica_count
    beyond = sorted({d for pair in pairs for d in pair if d < 0 or (limit_number != 1 and d >= limit_number)})
    if beyond:
        kind = "partitions" if has_channel else "replicas"
        yield Problem(
            "V507",
            f"the module has {limit_number} {kind}, so there is no {some(beyond)}",
            "source_target_pairs",
        )


def _parallel(instruction: Instruction) -> int:
    """Number of times that a device may send: once for each slice."""
    if not instruction.attributes.get("slice_sizes") or len(instruction.operands) != 4:
        return 1
    offsets, source = instruction.operands[2].shape, instruction.operands[0].shape
    if offsets is None or source is None or not offsets.is_tuple:
        return 1
    if source.is_tuple:
        offsets = offsets.tuple_shapes[0] if offsets.tuple_shapes else offsets
    return max(1, len(offsets.tuple_shapes))


def check_offsets(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks the offsets of in-place slices: one for each dimension of a buffer (`CheckInplaceCollectivePermute`)."""
    shapes = [operand.shape for operand in instruction.operands if operand.shape is not None]
    if not instruction.attributes.get("slice_sizes") or len(shapes) != 4:
        return
    for number in (0, 1):
        buffer, offsets = shapes[number], shapes[number + 2]
        if not _offsets_fit(buffer, offsets):
            yield Problem(
                "V514", f"{offsets} are not offsets into {buffer}", number + 2,
                "use a tuple with one index per dimension, or a tuple of such tuples", (number, number + 2),
            )  # fmt: skip
    if shapes[0].is_tuple != shapes[1].is_tuple:
        yield Problem("V514", "either both buffers must be tuples, or neither", 1, related=(0, 1))


def _offsets_fit(buffer: Shape, offsets: Shape) -> bool:
    if buffer.is_tuple:
        return (
            offsets.is_tuple
            and len(offsets.tuple_shapes) == len(buffer.tuple_shapes)
            and all(map(_offsets_fit, buffer.tuple_shapes, offsets.tuple_shapes))
        )
    if not offsets.is_tuple:
        return False
    parts = offsets.tuple_shapes
    if parts and all(part.is_tuple for part in parts):
        return all(len(part.tuple_shapes) == buffer.rank for part in parts)
    return len(parts) == buffer.rank and all(part.is_array for part in parts)


def check_channel(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that the channel id of an all-reduce is positive (`InstructionVerifier::HandleAllReduce`)."""
    channel = instruction.attributes.get("channel_id")
    if isinstance(channel, int) and channel < 1:
        yield Problem("V408", f"channel_id is {channel}", "channel_id", "remove it, or use a positive id")
