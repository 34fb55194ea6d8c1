"""C108: an all-gather of which only a slice is used."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import byte_text
from hlotext.lint.helpers import results, slices_of
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class GatherThenSlice(Rule):
    code = "C108"
    name = "gather-then-slice"
    title = "an all-gather of which only a slice is used"
    needs_optimized = True

    min_bytes: int = 1 << 16
    """Bytes of the gathered array from which on it is worth a finding."""

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if one.kind != "all-gather" or one.result_bytes < self.min_bytes or one.participants == 1:
                continue
            for value in results(one):
                slices = slices_of(value)
                if slices is None or value.shape is None or not value.shape.is_array:
                    continue
                kept = sum(s.shape.element_count for s in slices if s.shape is not None)
                if kept < value.shape.element_count:
                    part = kept / value.shape.element_count
                    yield Report(
                        one.start,
                        f"all-gather of {byte_text(one.result_bytes)}, of which {100 * part:.3g} % is used",
                        "change the sharding in steps, or so that no device needs the whole array",
                        round(one.sent_bytes * (1 - part)) * context.runs(one.start),
                    )
