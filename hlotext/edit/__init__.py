"""The gate: every write of a node is validated, converted, recorded, and can be taken back. Importing this installs it.

A setter or editing method of a node calls the function of `gate` of its name. That converts the value (`values`), checks what
the edit must prove (`members`, `asynchronous`), applies it through the module's journal (`journal`), which notes how to undo
each step, and judges what may have become wrong (`judge`): if something has, the journal is rolled back.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes import edit_backend as _socket

if not TYPE_CHECKING:

    class _Gate:
        """The gate as long as nothing was edited."""

        def __getattr__(self, name: str) -> Any:
            gate = importlib.import_module("hlotext.edit.backend")
            _socket.install(gate)
            return getattr(gate, name)

    _socket.install(_Gate())
