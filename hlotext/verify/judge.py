"""What edits ask of the verifier: is this one instruction right, and is the header?"""

from __future__ import annotations

import attrs

from hlotext.findings.errors import Severity
from hlotext.findings.finding import Diagnostic
from hlotext.ir.nodes.async_ops import is_async_body
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.judge import Problems
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import holds_buffer
from hlotext.verify.checks import aliasing, custom, edited
from hlotext.verify.codes import CODES
from hlotext.verify.facts import Facts, facts_of
from hlotext.verify.findings import Findings
from hlotext.verify.run import check_operation


def operation(instruction: Instruction) -> Problems:
    """What is wrong with an instruction by itself, errors alone: what the reader demands, and the verifier.

    Whether precisions may mix, and what a fusion allows inside, takes a look at the whole module to find out. Most
    instructions are right by the strictest measure, so that look is taken for the others alone.
    """
    computation = instruction.computation
    module = computation.module if computation is not None else None
    found = _by_itself(instruction, _strict(module))
    if found and module is not None:
        found = _by_itself(instruction, _exact(instruction, module))
    if module is not None and any(holds_buffer(i.shape) for i in (instruction, *instruction.operands)):
        findings = Findings(module)
        if instruction.is_root or computation is None or not is_async_body(computation):
            custom.check_instruction(instruction, findings)
        found += _errors(findings.diagnostics())
    return found


def header(module: Module) -> Problems:
    """What is wrong with what the header says of the entry's parameters and result."""
    findings = Findings(module)
    aliasing.check_header(module, _strict(module), findings)
    return _errors(findings.diagnostics())


def _strict(module: Module | None) -> Facts:
    """The facts under which most is wrong. An instruction in no module has no layout to keep and may mix precisions."""
    return facts_of(module, (), None, False) if module is not None else Facts(False, True)


def _exact(instruction: Instruction, module: Module) -> Facts:
    shapes = (i._shape for i in module.instructions() if i._shape is not None)
    in_fusion = instruction.computation is not None and instruction.computation.is_fusion_body
    return attrs.evolve(facts_of(module, shapes, None, None), in_fusion=in_fusion)


def _by_itself(instruction: Instruction, facts: Facts) -> list[tuple[str, str]]:
    problems = [p for p in check_operation(instruction, facts) if CODES[p.code].severity is Severity.ERROR]
    return [*((p.code, p.message) for p in problems), *_errors(edited.reader_problems(instruction))]


def _errors(diagnostics: list[Diagnostic]) -> list[tuple[str, str]]:
    return [(d.code, d.message) for d in diagnostics if d.severity is Severity.ERROR]
