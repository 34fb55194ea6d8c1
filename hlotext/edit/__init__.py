"""Validated editing of modules: every edit is checked, recorded and can be undone. Importing this package enables it.

Setters and editing methods of nodes call the function with the same name in `backend`. It converts the value (`values`),
checks preconditions (`graph_checks`, `asynchronous`), applies the edit through the module's journal (`journal`), which
records how to undo each step, and validates the result (`validation`). If validation fails, the journal is rolled back.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hlotext.ir.nodes import edit_backend as _socket

if not TYPE_CHECKING:

    class _Gate:
        """The edit backend until the first edit, which imports the real one."""

        def __getattr__(self, name: str) -> Any:
            gate = importlib.import_module("hlotext.edit.backend")
            _socket.install(gate)
            return getattr(gate, name)

    _socket.install(_Gate())
