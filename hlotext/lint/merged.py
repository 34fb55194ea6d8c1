"""Rules of several forms: what the same repair does away with, in whatever way a text shows it, is one code."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

import attrs

from hlotext.findings.errors import Severity
from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.rule import Context, Report, Rule


@attrs.frozen
class MergedRule(Rule):
    """A rule that reports what its parts find. If several parts report an instruction, the first one counts."""

    parts: ClassVar[tuple[type[Rule], ...]]
    """Rules without codes of their own, what says most first. One whose `severity` is a note makes notes alone."""

    def applies_to(self, context: Context) -> bool:
        """True if one of the parts applies to such a module."""
        return any(part().applies_to(context) for part in self.parts)

    def check_module(self, context: Context) -> Iterator[Report]:
        """Yields the reports of all parts."""
        said: set[Instruction | None] = set()
        for make in self.parts:
            part = make()
            if not part.applies_to(context):
                continue
            reports = [report for report in reports_of(part, context) if report.instruction not in said]
            said.update(report.instruction for report in reports if report.instruction is not None)
            for report in reports:
                yield _as_its_rule(report, part)


def reports_of(part: Rule, context: Context) -> Iterator[Report]:
    """Yields the reports of one part."""
    by_opcode = context.census.by_opcode
    for instruction in chain.from_iterable(by_opcode.get(opcode, ()) for opcode in part.opcodes):
        yield from part.check(instruction, context)
    yield from part.check_module(context)


def _as_its_rule(report: Report, part: Rule) -> Report:
    """A report with what the part says of all its reports, which the rule does not say."""
    proved = part.is_proved if report.is_proved is None else report.is_proved
    is_note = part.severity is Severity.NOTE
    costs = (report.bytes, report.flops, report.seconds, report.peak_bytes)
    severity = report.severity
    if severity is None and is_note and all(cost is None for cost in costs):
        severity = Severity.NOTE
    return attrs.evolve(report, is_proved=proved and not is_note, severity=severity)
