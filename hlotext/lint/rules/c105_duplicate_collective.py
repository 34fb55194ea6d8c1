"""C105: a collective that repeats another one."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Communication, byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class DuplicateCollective(Rule):
    code = "C105"
    name = "duplicate-collective"
    title = "a collective that repeats another one"
    needs_optimized = True

    def check_module(self, context: Context) -> Iterator[Report]:
        first: dict[tuple[object, ...], Instruction] = {}
        alike: dict[tuple[object, ...], list[tuple[Communication, Instruction]]] = {}
        for one in context.communications:
            inner = one.instruction
            if one.kind not in COLLECTIVE_KINDS or one.fusion is not None or one.participants == 1:
                continue
            reduction = inner.attributes.get("to_apply")
            key = (
                one.computation, one.kind, one.start.operands, str(one.groups), one.pairs,
                inner.attributes.get("dimensions"), str(inner.shape),
                reduction.root.opcode if isinstance(reduction, Computation) else None,
            )  # fmt: skip
            if key not in first:
                first[key] = one.start
            elif one.start.operands:
                alike.setdefault((*key[:2], *key[3:]), []).append((one, first[key]))
        for repeats in alike.values():
            one, original = repeats[0]
            more = f", and {len(repeats) - 1:,} more like it" if len(repeats) > 1 else ""
            yield Report(
                one.start,
                f"{one.kind} of {byte_text(one.operand_bytes)} gives the same as {original.name}{more}",
                "use the first result again",
                sum(other.sent_bytes * context.runs(other.start) for other, _ in repeats),
            )
