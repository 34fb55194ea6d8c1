"""What XLA demands of an instruction and which shape it has: functions without text and places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir.doors import door

if TYPE_CHECKING:
    from hlotext.semantics import infer as infer
else:
    __getattr__ = door(__name__, "infer")
