"""Communication by mesh axis and loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hlotext.analysis import Communication, axes_of, communications, mesh_of, trip_count
from hlotext.analysis.devices import group_mode
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.text import braced
from hlotext.tables.rows.subject import Subject
from hlotext.tables.table import Table, from_rows


def collectives(subject: Subject) -> Table:
    """Builds the table `collectives`."""
    module = subject.module
    if not module.computations:
        return from_rows("collectives", [])
    found = communications(module)
    mesh = mesh_of(module) if found else None
    rows = []
    for one in found:
        axes = axes_of(module, one, mesh.mesh if mesh is not None else None)
        rows.append(_row(subject, one, axes))
    return from_rows("collectives", rows, subject.build)


def _row(subject: Subject, one: Communication, axes: Sequence[str] | None) -> dict[str, Any]:
    ids, loop = subject.ids, one.loop
    chain: tuple[Instruction, ...] = one.start.async_chain if one.is_pair else ()
    channel_id = one.instruction.attributes.get("channel_id")
    return {
        "module": subject.key,
        "id": ids[one.start],
        "instruction_id": ids[one.instruction],
        "name": one.start.name,
        "kind": one.kind,
        "opcode": one.instruction.opcode,
        "link": one.link.name.lower(),
        "mode": group_mode(one.instruction).value if one.groups is not None else None,
        "is_async": one.is_async,
        "groups": _groups(one),
        "group_count": one.group_count,
        "group_size": one.group_size,
        "participants": one.participants,
        "axes": None if axes is None else list(axes),
        "dtypes": list(one.dtypes),
        "sent_shapes": list(map(str, one.sent_shapes)),
        "bytes_in": one.operand_bytes,
        "bytes_out": one.result_bytes,
        "wire_bytes": one.wire_bytes,
        "is_at_most": one.is_at_most,
        "runs": one.runs,
        "start_id": ids[one.start] if chain else None,
        "done_id": ids[chain[-1]] if len(chain) > 1 else None,
        "fusion_id": ids[one.fusion] if one.fusion is not None else None,
        "in_loop": loop is not None,
        "loop_id": ids[loop] if loop is not None else None,
        "trip_count": trip_count(loop) if loop is not None else None,
        "channel_id": channel_id if isinstance(channel_id, int) else None,
    }


def _groups(one: Communication) -> str:
    if one.groups is not None:
        return str(one.groups)
    return braced(map(braced, one.pairs)) if one.pairs is not None else ""
