"""What the reader demands of text is demanded of instructions that no text was read for: the same checks and codes."""

from __future__ import annotations

import re

import attrs

from hlotext.ir.instruction import Form, Instruction
from hlotext.syntax import checks
from hlotext.syntax.reporter import Reporter
from hlotext.verify import places
from hlotext.verify.findings import Findings


def check_edited(instruction: Instruction, findings: Findings) -> None:
    """Operand count, attributes, and the reader's conditions on single opcodes (`X1xx`), for an edited instruction."""
    if instruction.form is Form.IMPLICIT:
        return
    source, span = places.of_instruction(instruction)
    reporter = Reporter(source, tolerant=True)
    opcode = re.compile(rf"(?<=[\s=]){re.escape(instruction.opcode)}(?=\()").search(source.text, span.start)
    position = opcode.start() if opcode is not None else span.start
    checks.opcode(reporter, instruction, position, {})
    checks.instruction(reporter, instruction, position, {})
    for diagnostic in reporter.diagnostics:
        findings.diagnostics.append(attrs.evolve(diagnostic, instruction=instruction))
