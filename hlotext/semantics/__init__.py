"""Checks and shape inference of single instructions: functions that know no text and no positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.semantics import infer as infer
else:
    __getattr__ = door(__name__, "infer")
