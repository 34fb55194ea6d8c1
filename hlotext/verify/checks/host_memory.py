"""Memory of the host, `S(5)`: what moves data to and from it, and what computes on it."""

from __future__ import annotations

from hlotext.ir.nodes.module import Module
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.host_memory import asks_for_host, computation_problems, move_problems
from hlotext.semantics.problems import Problem
from hlotext.verify.findings import FindingCollector


def check_host_memory(module: Module, facts: VerifierOptions, findings: FindingCollector) -> None:
    """Checks instructions with operands or results in host memory. Called only for modules that use it."""
    for computation in module.computations:
        on_host = computation.execution_thread == "host"
        for instruction in computation:
            if instruction.shape is None or any(operand.shape is None for operand in instruction.operands):
                continue
            problems: list[Problem] = []
            if facts.layout_sensitive:
                problems += move_problems(instruction)
            if not on_host and not asks_for_host(instruction):
                problems += computation_problems(instruction)
            for problem in problems:
                findings.problem(instruction, problem)
