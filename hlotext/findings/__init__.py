"""What is found in a text or a module: its severity, its place, and the error that says so. Must not know who finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.findings import finding as finding
else:
    __getattr__ = door(__name__, "finding")
