"""Values that live in buffers of their own."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module
from hlotext.semantics.custom import buffer_problems
from hlotext.verify.findings import FindingCollector
from hlotext.verify.survey import Survey

# ---- buffers


def check_buffers(module: Module, survey: Survey, findings: FindingCollector) -> None:
    """Checks where values of shape `b(array)` may occur, and that each is written by one operation (`VerifyBuffers`).

    Called only for modules with such values.
    """
    for computation in module.computations:
        wrapped = any(caller.opcode == "async-start" for caller in survey.calls.get(computation, ()))
        for instruction in computation:
            if wrapped and not (instruction.is_root and instruction.opcode == "custom-call"):
                continue  # what an asynchronous computation does is judged by its one operation
            for problem in buffer_problems(instruction):
                findings.problem(instruction, problem)
