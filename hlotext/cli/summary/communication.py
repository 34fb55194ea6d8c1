"""What communicates: collectives and transfers, whether plain, asynchronous, or inside a fusion."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.cli.summary.call_graph import CallGraph
from hlotext.cli.summary.origins import Origins, Place
from hlotext.cli.summary.sizes import total_of
from hlotext.ir import opcodes
from hlotext.ir.async_ops import ROLES
from hlotext.ir.instruction import Instruction
from hlotext.ir.opcode import Family
from hlotext.ir.replica_groups import ReplicaGroups

_KINDS = {
    row.name: opcodes.NATIVE_ASYNC.get(row.name, row.name)
    for row in opcodes.OPCODES.values()
    if row.family in (Family.COLLECTIVE, Family.POINT_TO_POINT)
    and not row.name.endswith(("-done", "-update"))
}
"""Opcodes that begin a communication, and its kind: `all-gather-start` begins an all-gather."""


@attrs.frozen
class Collective:
    """One communication."""

    name: str
    """The instruction; for a wrapped asynchronous one its `async-start`."""
    kind: str
    """`all-gather`, `send`, ..."""
    is_async: bool
    """Whether other work can run meanwhile; False for a pair that the GPU compiler marks as `is_sync`."""
    computation: str
    """Where it stands, for one in a fusion the fusion's computation."""
    fusion: str | None
    """The fusion that it is part of."""
    groups: str
    """Replica groups or source-target pairs as they stand in the text; empty where there are none."""
    group_count: int | None
    """Number of groups, or of pairs; None where there are none: for collectives one group of all."""
    group_size: int | None
    """Devices in each group; None where there are none or they differ."""
    operand_bytes: int
    """Bytes that each device puts in, without padding."""
    result_bytes: int
    """Bytes that each device gets."""
    runs: int | None
    """How often it runs when the module runs once; None where that depends on values."""
    channel_id: int | None
    place: Place | None
    op_name: str


@attrs.frozen
class CollectiveGroup:
    """Communications of one kind over the same groups."""

    kind: str
    is_async: bool
    groups: str
    group_count: int | None
    group_size: int | None
    count: int
    runs: int | None
    """All of them together; None where that is not known of one."""
    operand_bytes: int
    """Bytes that each device puts in when each runs once. So is the next."""
    result_bytes: int
    largest_bytes: int
    """The most that one of them takes or gives."""
    name: str
    """The largest one."""
    in_fusions: int
    in_loops: int


def collectives(graph: CallGraph, origins: Origins) -> tuple[Collective, ...]:
    """Every communication, in the order of the text; one that a chain of fusions carries out counts once."""
    found: dict[tuple[str, str] | Instruction, Instruction] = {}
    for instruction in graph.module.instructions():
        if instruction.opcode in _KINDS:
            # The TPU compiler repeats a collective in the fusions that start it, go on with it and end it.
            chain = instruction.frontend_attributes.get("chain_id")
            key = (instruction.opcode, chain) if chain is not None else instruction
            if key not in found or _is_started(instruction):
                found[key] = instruction
    return tuple(_collective(graph, origins, instruction) for instruction in found.values())


def _is_started(instruction: Instruction) -> bool:
    """Whether an asynchronous collective fusion starts this collective."""
    targets = (user.attributes.get("custom_call_target") for user in instruction.users)
    return "AsyncCollectiveStart" in targets


def _collective(graph: CallGraph, origins: Origins, instruction: Instruction) -> Collective:
    start, wrapper = _surroundings(graph, instruction)
    attributes = instruction.attributes
    groups, count, size = _groups(attributes.get("replica_groups"), attributes.get("source_target_pairs"))
    kind = _KINDS[instruction.opcode]
    if attributes.get("is_host_transfer") is True:
        kind = f"host {kind}"
    home, metadata = start.computation, start.metadata
    fusion = graph.caller(home) if home is not None else None
    is_chain = "chain_id" in instruction.frontend_attributes
    return Collective(
        name=start.name,
        kind=kind,
        is_async=(wrapper or is_chain or ROLES.get(instruction.opcode) == "start")
        and not _is_sync(instruction),
        computation=home.name if home is not None else "",
        fusion=fusion.name if fusion is not None and fusion.opcode == "fusion" else None,
        groups=groups,
        group_count=count,
        group_size=size,
        operand_bytes=sum(total_of(operand.shape).unpadded_bytes for operand in instruction.operands),
        result_bytes=_result_bytes(instruction),
        runs=graph.runs.get(home, 0) if home is not None else 0,
        channel_id=attributes.get("channel_id"),
        place=origins.place(start),
        op_name=metadata.op_name if metadata is not None else "",
    )


def _surroundings(graph: CallGraph, instruction: Instruction) -> tuple[Instruction, bool]:
    """The instruction to name, and whether it runs inside an `async-start`.

    What stands alone in an asynchronous body is named by its start. In a computation that an asynchronous
    `call` runs it keeps its own name.
    """
    caller = graph.caller(instruction.computation)
    if caller is not None and caller.opcode == "async-start":
        return caller, True
    outer = graph.caller(caller.computation) if caller is not None and caller.opcode == "call" else None
    return instruction, outer is not None and outer.opcode == "async-start"


def _is_sync(instruction: Instruction) -> bool:
    config = instruction.backend_config
    if config is None or '"is_sync":true' not in config.text:
        return False
    try:
        return config.json()["collective_backend_config"]["is_sync"] is True
    except (ValueError, KeyError, TypeError):
        return False


def _groups(groups: object, pairs: object) -> tuple[str, int | None, int | None]:
    """Text, number and size of the groups, or text and number of the pairs."""
    if isinstance(groups, ReplicaGroups):
        return str(groups), groups.group_count or None, groups.group_size
    if isinstance(pairs, tuple):
        return "{" + ",".join("{" + ",".join(map(str, pair)) + "}" for pair in pairs) + "}", len(pairs), None
    return "", None, None


_RESULT_ELEMENT = {"all-gather-start": 1, "collective-permute-start": 1, "recv": 0, "infeed": 0}
"""Which element of the result holds what arrives; the others are operands, contexts and tokens."""
_SENDS_ONLY = frozenset({"send", "outfeed"})


def _result_bytes(instruction: Instruction) -> int:
    shape, element = instruction.shape, _RESULT_ELEMENT.get(instruction.opcode)
    if shape is None or instruction.opcode in _SENDS_ONLY:
        return 0
    if element is not None and shape.is_tuple and element < len(shape.tuple_shapes):
        shape = shape.tuple_shapes[element]
    return total_of(shape).unpadded_bytes


def collective_groups(found: Iterable[Collective], graph: CallGraph) -> tuple[CollectiveGroup, ...]:
    """The communications by kind and groups, those that move most first."""
    together: dict[tuple[object, ...], list[Collective]] = {}
    for one in found:
        key = one.kind, one.is_async, one.groups, one.group_count, one.group_size
        together.setdefault(key, []).append(one)
    looped = {c.name for c in graph.module.computations if graph.loop_around(c) is not None}
    rows = []
    for members in together.values():
        first, largest = members[0], max(members, key=lambda one: max(one.operand_bytes, one.result_bytes))
        runs = [one.runs for one in members]
        rows.append(
            CollectiveGroup(
                first.kind, first.is_async, first.groups, first.group_count, first.group_size, len(members),
                None if None in runs else sum(run or 0 for run in runs),
                sum(one.operand_bytes for one in members),
                sum(one.result_bytes for one in members),
                max(largest.operand_bytes, largest.result_bytes),
                largest.name,
                sum(one.fusion is not None for one in members),
                sum(one.computation in looped for one in members),
            )
        )  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -max(row.operand_bytes, row.result_bytes)))
