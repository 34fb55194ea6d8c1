"""Applies the reader's conditions and codes to instructions that were not read from text."""

from __future__ import annotations

import attrs

from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.semantics import conditions
from hlotext.semantics.problems import Part
from hlotext.verify.findings import FindingCollector


def check_edited(instruction: Instruction, findings: FindingCollector) -> None:
    """Checks the operand count, attributes and opcode-specific conditions (`X1xx`) of an edited instruction.

    Its line is printed only if a check fails, since a pass may have edited every line of a large module.
    """
    if instruction.form is Form.IMPLICIT:
        return
    for problem in (*conditions.of_opcode(instruction), *conditions.of_values(instruction)):
        findings.problem(instruction, attrs.evolve(problem, where=Part.OPCODE, related=()))
