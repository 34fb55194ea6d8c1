"""Larger values in a module's header: recovery of original values, debug attributes."""

from __future__ import annotations

import re

import attrs

from hlotext.ir.values.enums import DebugLogMode
from hlotext.ir.values.original_value import OriginalArray
from hlotext.ir.values.text import braced
from hlotext.ir.values.value import Value

_BLOCK = re.compile(r"\s*\n[\s\S]*\n[ \t]*")
"""A module on lines of its own, as XLA writes it."""


@attrs.frozen(repr=False)
class RecoveryEntry(Value):
    """Recovery of one lost original array (`OriginalValueRecoveryTable::Entry`)."""

    old_original_array: OriginalArray
    """The array that is gone. An empty name where the text has none."""
    new_original_array: OriginalArray
    """The array from which it is recovered."""
    recovery_module: str | None = None
    """Text of the module that recovers it, between the quotes, unescaped; None for equal arrays."""
    is_raw: bool = attrs.field(default=False, eq=False)
    """Quotes and backslashes of the module are written without escapes, as XLA did up to jaxlib 0.10.2."""

    def __str__(self) -> str:
        arrays = f"{self.old_original_array} : {self.new_original_array}"
        if self.recovery_module is None:
            return arrays
        if self.is_raw and _BLOCK.fullmatch(self.recovery_module):
            return f'{arrays},\n  "{self.recovery_module}"'
        escaped = self.recovery_module.replace("\\", "\\\\").replace('"', '\\"')
        return f'{arrays},\n  "{escaped}"'


@attrs.frozen(repr=False)
class RecoveryTable(Value):
    """`origin_recovery_table=` of a module (`OriginalValueRecoveryTable`), printed with one entry per line.

    `str()` is the text at indentation 0; a recovery module keeps the indentation that it was parsed with.
    """

    entries: tuple[RecoveryEntry, ...] = ()

    def __str__(self) -> str:
        return "".join(["{\n", *(f"  {entry}\n" for entry in self.entries), "}"]) if self.entries else "{}"


@attrs.frozen(repr=False)
class DebugAttribute(Value):
    """Logging of an original array. Fields that are 0 or false are not printed."""

    log_mode: DebugLogMode | None = None
    """None when absent."""
    callback_id: int = 0
    """The program's callback that receives the array."""
    partitioned: bool = False
    """Each device logs its own part."""
    op_id: int = 0
    """Number of the logging operation."""

    def __str__(self) -> str:
        parts = []
        if self.log_mode is not None:
            parts.append(f"log_mode={self.log_mode}")
        if self.callback_id:
            parts.append(f"callback_id={self.callback_id}")
        if self.partitioned:
            parts.append("partitioned=true")
        if self.op_id:
            parts.append(f"op_id={self.op_id}")
        return braced(parts)


@attrs.frozen(repr=False)
class DebugEntry(Value):
    """An original array and how it is logged: `{"add.1" {0}}:({log_mode=default,callback_id=1})`."""

    original_array: OriginalArray
    attributes: tuple[DebugAttribute, ...] = ()

    def __str__(self) -> str:
        return f"{self.original_array}:({','.join(map(str, self.attributes))})"


@attrs.frozen(repr=False)
class DebugAttributes(Value):
    """`debug_attributes=` of a module, printed with one entry per line; in text since mid-2026."""

    entries: tuple[DebugEntry, ...] = ()

    def __str__(self) -> str:
        return "{\n" + ",\n".join(f"  {entry}" for entry in self.entries) + "\n}" if self.entries else "{}"
