"""What the reader demands of text is demanded of instructions that no text was read for: the same checks and codes."""

from __future__ import annotations

import attrs

from hlotext.findings.finding import Diagnostic
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.source import Source
from hlotext.syntax import checks
from hlotext.syntax.source.reporter import Reporter
from hlotext.verify import places
from hlotext.verify.findings import Findings
from hlotext.verify.problems import Part

_NO_TEXT = Source("")


def check_edited(instruction: Instruction, findings: Findings) -> None:
    """What `reader_problems` says of an edited instruction, at its place.

    Its line is printed only where something is wrong; a pass may have edited every line of a large module.
    """
    diagnostics = reader_problems(instruction)
    if not diagnostics:
        return
    source, span = places.of_instruction(instruction, Part.OPCODE)
    for diagnostic in diagnostics:
        findings.take(
            instruction,
            attrs.evolve(diagnostic, span=span, related=(), source=source, instruction=instruction),
        )


def reader_problems(instruction: Instruction) -> list[Diagnostic]:
    """Operand count, attributes, and the reader's conditions on single opcodes (`X1xx`), without a place."""
    if instruction.form is Form.IMPLICIT:
        return []
    reporter = Reporter(_NO_TEXT, tolerant=True)
    checks.opcode(reporter, instruction, 0, {})
    checks.instruction(reporter, instruction, 0, {})
    return reporter.diagnostics
