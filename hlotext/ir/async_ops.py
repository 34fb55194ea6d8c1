"""Which opcodes are the start, the middle and the end of an asynchronous operation."""

from __future__ import annotations

from typing import Literal

from hlotext.ir.opcodes import NATIVE_ASYNC

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
