"""G109: arrays whose sizes are known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.instruction import Instruction
from hlotext.ir.shape import Shape
from hlotext.lint.rule import Context, Report, Rule
from hlotext.syntax.errors import Severity


@attrs.frozen
class DynamicShape(Rule):
    code = "G109"
    name = "dynamic-shape"
    title = "arrays whose sizes are known only at run time"
    severity = Severity.NOTE

    def check_module(self, context: Context) -> Iterator[Report]:
        first: Instruction | None = None
        count = 0
        known: dict[Shape, bool] = {}
        for instruction in context.module.instructions():
            shape = instruction._shape
            if shape is None:
                continue
            if shape not in known:
                known[shape] = not shape.is_static
            if known[shape]:
                count += 1
                first = first or instruction
        if first is not None:
            yield Report(
                first,
                f"{count:,} instructions have dimensions whose size is known only at run time, first here",
                "pad to fixed sizes",
                None,
                "present",
            )
