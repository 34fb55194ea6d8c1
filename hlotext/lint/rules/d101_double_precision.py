"""D101: 64-bit floats."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import written_bytes
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import counted
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class DoublePrecision(Rule):
    code = "D101"
    name = "double-precision"
    title = "64-bit floats"

    def check_module(self, context: Context) -> Iterator[Report]:
        wide = [shape for shape in context.census.shapes if _holds(shape)]
        if not wide:
            return
        first: Instruction | None = None
        count = saved = 0
        for instruction in [i for i in context.census.instructions if i._shape in wide]:
            count += 1
            if context.is_stepped(instruction):
                saved += written_bytes(instruction) // 2 * context.runs(instruction)
            # Tuples only pass on what something else has made.
            if first is None and instruction._shape is not None and instruction._shape.is_array:
                first = instruction
        if first is not None:
            wide_type = first.shape.element_type if first.shape else "f64"
            yield Report(
                first,
                f"{counted(count, 'computes', 'compute')} with {wide_type}, first here",
                "use f32, or leave jax_enable_x64 off",
                saved,
                "present",
            )


_WIDE = frozenset({"f64", "c128"})


def _holds(shape: Shape) -> bool:
    return any(leaf.element_type.name in _WIDE for _, leaf in shape.leaves())
