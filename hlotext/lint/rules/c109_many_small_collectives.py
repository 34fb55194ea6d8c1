"""C109: many small collectives that could be one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Communication, byte_text
from hlotext.lint.rule import Context, Report, Rule


class ManySmallCollectives(Rule):
    code = "C109"
    name = "many-small-collectives"
    title = "many small collectives that could be one"
    waste = "small"
    is_default = False
    needs_optimized = True

    count: ClassVar[int] = 8
    """Minimum number of collectives for a finding."""
    max_bytes: ClassVar[int] = 1 << 16
    """Up to how many bytes one is small."""

    def check_module(self, context: Context) -> Iterator[Report]:
        groups: dict[tuple[object, ...], list[Communication]] = {}
        for one in context.communications:
            if (
                one.kind in ("all-reduce", "all-gather", "reduce-scatter")
                and 0 < one.sent_bytes <= self.max_bytes
            ):  # it is large, or of a kind that is not combined
                groups.setdefault((one.computation, one.kind, str(one.groups)), []).append(one)
        for all_of_them in groups.values():
            members = _independent(all_of_them) if len(all_of_them) >= self.count else []
            if len(members) >= self.count:  # too few small ones are in the same computation
                total = sum(one.sent_bytes for one in members)
                yield Report(
                    members[0].start,
                    f"{len(members)} {members[0].kind} operations over the same groups move only {byte_text(total)} in total",
                    "combine them",
                    total * context.runs(members[0].start),
                )


_FARTHEST = 4000
"""Bound on instructions visited to find a collective's dependencies."""


def _independent(members: list[Communication]) -> list[Communication]:
    """Those that do not need the result of another one of them: what depends on one another cannot be one operation."""
    starts = {one.start for one in members}
    found = []
    for one in members:
        seen, pending = set(one.start.operands), list(one.start.operands)
        while pending and len(seen) < _FARTHEST:
            current = pending.pop()
            if current in starts:
                break
            new = [operand for operand in current.operands if operand not in seen]
            seen.update(new)
            pending += new
        else:
            if not pending:
                found.append(one)
    return found
