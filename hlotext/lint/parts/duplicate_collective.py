"""A collective that repeats another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from hlotext.analysis import Communication, byte_text
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.beside import most_percent
from hlotext.lint.helpers import COLLECTIVE_KINDS
from hlotext.lint.repairs import Reuse
from hlotext.lint.rule import Context, Report, Rule


class DuplicateCollective(Rule):
    severity = Severity.NOTE
    needs_optimized = True

    min_bytes: ClassVar[int] = 1 << 16
    """Bytes that each device sends for the repetitions, from which on they are worth a finding."""
    min_percent: ClassVar[float] = 0.5
    """Percent of the estimated time of the module for which they are waited for, likewise."""

    def check_module(self, context: Context) -> Iterator[Report]:
        first: dict[tuple[object, ...], Instruction] = {}
        alike: dict[tuple[object, ...], list[tuple[Communication, Instruction]]] = {}
        for one in context.communications:
            inner = one.instruction
            if (
                one.kind not in COLLECTIVE_KINDS or one.fusion is not None or one.participants == 1
            ):  # it is not a collective in the schedule
                continue
            reduction = inner.attributes.get("to_apply")
            key = (
                one.computation, one.kind, one.start.operands, str(one.groups), one.pairs,
                inner.attributes.get("dimensions"), str(inner.shape),
                reduction.root.opcode if isinstance(reduction, Computation) else None,
            )  # fmt: skip
            if key not in first:
                first[key] = one.start
            elif one.start.operands and not _is_compilers(one.start, first[key]):
                alike.setdefault((*key[:2], *key[3:]), []).append((one, first[key]))
        for repeats in alike.values():
            one, original = repeats[0]
            more = f", and {len(repeats) - 1:,} more collectives" if len(repeats) > 1 else ""
            total = sum(other.sent_bytes * context.runs(other.start) for other, _ in repeats)
            share = sum(most_percent(other.start, context) for other, _ in repeats)
            if total >= self.min_bytes and share >= self.min_percent:  # too few bytes are sent twice
                size = byte_text(max(one.operand_bytes, one.result_bytes))
                yield Report(
                    one.start,
                    f"{one.kind} of {size} repeats `{original.name}`{more}",
                    "gather the value once and use the result in both places, if memory allows keeping it that long",
                    total,
                    repair=Reuse(tuple((other.start, earlier) for other, earlier in repeats)),
                )


def _is_compilers(repeat: Instruction, original: Instruction) -> bool:
    """True if the compiler repeats it, not the program: it comes from the same operation, or saves memory."""
    ours, theirs = repeat.metadata, original.metadata
    if ".remat" in repeat.name or ".clone" in repeat.name or "/checkpoint" in (ours.op_name if ours else ""):
        return True
    if ours is None or theirs is None or not ours.op_name:
        return True
    if "transpose(" in ours.op_name and "transpose(" not in theirs.op_name:
        return True  # it is gathered again for the backward pass to save memory (FSDP)
    return ours.op_name == theirs.op_name and ours.stack_frame_id == theirs.stack_frame_id
