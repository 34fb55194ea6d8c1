"""Which opcodes are the start, the middle and the end of an asynchronous operation, and what belongs together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from hlotext.ir.tables.opcodes import NATIVE_ASYNC

if TYPE_CHECKING:
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction

Role = Literal["start", "update", "done"]

ROLES: dict[str, Role] = {
    "async-start": "start",
    "async-update": "update",
    "async-done": "done",
    "send": "start",
    "send-done": "done",
    "recv": "start",
    "recv-done": "done",
}
"""Every opcode that is part of an asynchronous operation, and which part."""
for _name in NATIVE_ASYNC:
    ROLES[_name] = "start" if _name.endswith("-start") else "done"

FINISHERS = {
    "async-start": ("async-update", "async-done"),
    "async-update": ("async-update", "async-done"),
    "all-gather-start": ("all-gather-done",),
    "all-reduce-start": ("all-reduce-done",),
    "collective-permute-start": ("collective-permute-done",),
    "copy-start": ("copy-done",),
    "recv": ("recv-done", "tuple"),
    "send": ("send-done", "tuple"),
}
"""What may consume each start (`VerifySingleUser`); pipelined loops carry sends and receives in tuples."""

STARTS = {
    "async-update": ("async-start", "async-update"),
    "async-done": ("async-start", "async-update"),
    "all-gather-done": ("all-gather-start",),
    "all-reduce-done": ("all-reduce-start",),
    "collective-permute-done": ("collective-permute-start",),
    "copy-done": ("copy-start",),
    "recv-done": ("recv", "get-tuple-element"),
    "send-done": ("send", "get-tuple-element"),
}
"""What each done may finish (`VerifySingleOperand`)."""

ON_BOTH = frozenset({"metadata", "origin", "backend_config", "frontend_attributes", "statistics"})
"""Attributes that the short spelling of an asynchronous operation gives the start and, copied, the wrapped operation."""

COLLECTIVES_GROUP = "_collectives_group"
"""The frontend attribute of an async-start whose computation is a group of collectives."""


def is_async_body(computation: Computation) -> bool:
    """Whether an async-start runs a computation."""
    return any(caller._opcode == "async-start" for caller in computation.calls)


def is_single_operation(computation: Computation) -> bool:
    """Whether a computation may hold one operation alone, since an async-start runs it."""
    starts = [caller for caller in computation.calls if caller._opcode == "async-start"]
    return any(COLLECTIVES_GROUP not in start.frontend_attributes for start in starts)


def extra_operation(
    body: Computation, instructions: Sequence[Instruction], root: Instruction
) -> Instruction | None:
    """What makes these the instructions of more than one operation; None where nothing does (`VerifyAsyncComputation`).

    One operation, and what only passes parameters on or ties transfers together. Other threads may do as much as they like.
    """
    others = [i for i in instructions if i._opcode != "parameter" and i is not root]
    if not others or body.execution_thread != "main" or all(i._opcode == "get-tuple-element" for i in others):
        return None
    is_group = all(i._opcode in _TRANSFERS for i in instructions) and any(
        i._opcode in ROLES for i in instructions
    )
    return None if is_group else others[0]


_TRANSFERS = frozenset({"parameter", "tuple", "get-tuple-element", "send", "recv", "send-done", "recv-done"})
