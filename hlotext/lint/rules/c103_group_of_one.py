"""C103: a collective over a single device."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


class GroupOfOne(Rule):
    code = "C103"
    name = "group-of-one"
    title = "a collective over a single device"
    waste = "sent"
    is_default = False
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        for one in context.communications:
            if one.kind not in COLLECTIVE_KINDS:
                continue
            to_itself = one.pairs is not None and all(len(p) == 2 and p[0] == p[1] for p in one.pairs)
            if one.participants == 1 or (to_itself and one.pairs):  # its groups have several devices
                yield Report(
                    one.start,
                    f"{one.kind} of {byte_text(one.operand_bytes)} over groups of one device moves nothing",
                    "omit it where the mesh axis has size 1",
                    0,
                )
