"""G113: a loop whose iterations do too little work."""

from __future__ import annotations

from hlotext.lint.merged import MergedRule
from hlotext.lint.parts.loop_not_captured import LoopNotCaptured
from hlotext.lint.parts.tiny_rounds import TinyRounds


class Small(MergedRule):
    code = "G113"
    name = "small"
    title = "a loop whose iterations do too little work"
    waste = "small"
    former = ("G114",)
    needs_optimized = True
    parts = (
        TinyRounds,
        LoopNotCaptured,
    )
