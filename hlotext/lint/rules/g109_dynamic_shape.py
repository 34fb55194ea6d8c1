"""G109: arrays whose sizes are known only at run time."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.lint.rule import Context, Report, Rule
from hlotext.syntax.errors import Severity


@attrs.frozen
class DynamicShape(Rule):
    code = "G109"
    name = "dynamic-shape"
    title = "arrays whose sizes are known only at run time"
    severity = Severity.NOTE

    def check_module(self, context: Context) -> Iterator[Report]:
        dynamic = [found for shape, found in context.census.shapes.items() if not shape.is_static]
        count = sum(number for number, _ in dynamic)
        first = next((instruction for _, instruction in dynamic), None)
        if first is not None:
            yield Report(
                first,
                f"{count:,} instructions have dimensions whose size is known only at run time, first here",
                "pad to fixed sizes",
                None,
                "present",
            )
