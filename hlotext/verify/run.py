"""The way through a module: each instruction once, equal operations from memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from typing import Any

import attrs

from hlotext.findings.finding import Diagnostic
from hlotext.ir import gc_control
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.nodes.raw import CallAttributes
from hlotext.semantics.facts import VerifierOptions, facts_of
from hlotext.semantics.header import header_problems
from hlotext.semantics.operation import check_operation
from hlotext.semantics.problems import Problem
from hlotext.verify.checks import (
    asynchronous,
    call_graph,
    custom,
    devices,
    edited,
    host_memory,
    metadata,
    order,
    shardings,
)
from hlotext.verify.findings import FindingCollector, Node
from hlotext.verify.survey import CALLING, Survey


def run(
    module: Module,
    *,
    layout_sensitive: bool | None = None,
    mixed_precision: bool | None = None,
    within: Collection[Computation] | None = None,
) -> list[Diagnostic]:
    """Implements `hlotext.verify.verify`."""
    expect_module(module)
    with gc_control.gc_paused(collect_first=False):
        return _run(module, layout_sensitive, mixed_precision, within)


def _run(
    module: Module,
    layout_sensitive: bool | None,
    mixed_precision: bool | None,
    within: Collection[Computation] | None,
) -> list[Diagnostic]:
    survey = Survey.of(module)
    facts = facts_of(module, survey.shapes, layout_sensitive, mixed_precision)
    findings = FindingCollector(module)
    memory = Memory()

    def check_header(module: Module, findings: FindingCollector) -> None:
        findings.header(header_problems(module, facts))

    _guarded(findings, None, check_header, module, findings)
    _guarded(findings, None, metadata.check_tables, module, findings)
    chosen = set(module.computations if within is None else within)
    checked = [computation for computation in module.computations if computation in chosen]
    for computation in checked:
        inside = facts_inside(facts, computation, survey)
        _guarded(findings, computation, _check_computation, computation, memory, survey, inside, findings)
    for caller in itertools.chain.from_iterable(survey.calls.get(computation, ()) for computation in checked):
        if (home := caller.computation) is not None and home not in chosen:
            _check_instruction(caller, memory, facts_inside(facts, home, survey), findings)
    _guarded(findings, None, call_graph.check_calls, module, survey, findings)
    for check in _OF_SURVEY:
        _guarded(findings, None, check, survey, findings)
    if survey.has_buffers:
        _guarded(findings, None, custom.check_buffers, module, survey, findings)
    if survey.uses_host_memory:
        _guarded(findings, None, host_memory.check_host_memory, module, facts, findings)
    return findings.diagnostics()


_OF_SURVEY: tuple[Callable[[Survey, FindingCollector], None], ...] = (
    call_graph.check_async_bodies,
    asynchronous.check_pairs,
    asynchronous.check_channels,
    shardings.check_consistency,
    devices.check_constrained,
)
"""Checks of the whole module that need nothing else."""


def _guarded(findings: FindingCollector, node: Node, check: Callable[..., object], *args: object) -> None:
    """Runs a check; where it raises an error, that is a finding, and the other checks go on."""
    try:
        check(*args)
    except Exception as error:
        findings.failed(node, f"the check {check.__name__.lstrip('_')}", error)


def facts_inside(facts: VerifierOptions, computation: Computation, survey: Survey) -> VerifierOptions:
    """Returns the options for the instructions of a computation."""
    return attrs.evolve(facts, in_fusion=True) if computation in survey.fusion_bodies else facts


@attrs.define
class Memory:
    """Cache of the problems of instructions, so that equal operations are checked once.

    Attributes are compared by identity, which makes lookups cheap: the parser shares equal ones, and an edit creates
    new ones. A module of 235,000 instructions has 6,400 distinct operations.
    """

    known: dict[Any, tuple[Problem, ...]] = attrs.field(factory=dict)
    signatures: dict[Computation, int] = attrs.field(factory=dict)
    """A number for each computation, equal for equal shapes of parameters and root."""
    numbers: dict[Any, int] = attrs.field(factory=dict)
    """The number of each such list of shapes."""

    def problems(self, instruction: Instruction, facts: VerifierOptions) -> tuple[Problem, ...]:
        """Returns the problems from `check_operation`. The module must not change between calls."""
        attributes, opcode = instruction._attributes, instruction.opcode
        literal = instruction.literal if opcode == "constant" else None
        key = (
            opcode,
            id(attributes.common if type(attributes) is CallAttributes else attributes),
            instruction.shape,
            tuple([operand.shape for operand in instruction.operands]),
            facts.in_fusion,
            tuple(map(self._signature, instruction.called_computations)) if opcode in CALLING else None,
            literal.shape if literal is not None else None,
        )
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = check_operation(instruction, facts)
        return known

    def _signature(self, computation: Computation) -> int:
        number = self.signatures.get(computation)
        if number is None:
            shapes = [parameter.shape for parameter in computation.parameters]
            root = computation.root.shape if computation._instructions else None
            number = self.numbers.setdefault((*shapes, root), len(self.numbers))
            self.signatures[computation] = number
        return number


def _check_instruction(
    instruction: Instruction, memory: Memory, facts: VerifierOptions, findings: FindingCollector
) -> None:
    try:
        for problem in memory.problems(instruction, facts):
            findings.problem(instruction, problem)
    except Exception as error:
        findings.failed(instruction, f"the check of {instruction.opcode}", error)


def _check_computation(
    computation: Computation,
    memory: Memory,
    survey: Survey,
    facts: VerifierOptions,
    findings: FindingCollector,
) -> None:
    """Checks the instructions of one computation, and their order."""
    is_built = findings.module.source is None
    is_edited = computation.is_modified or is_built
    if is_edited:
        order.check_structure(computation, findings)
        call_graph.check_parameters(computation, findings)
    before: set[Instruction] = set()
    in_order = True
    for instruction in computation:
        if not before.issuperset(instruction.operands):
            in_order = False
            order.check_operands(instruction, before, findings)
        if "control-predecessors" in instruction._attributes:
            order.check_control(instruction, before, findings)
        before.add(instruction)
        _check_instruction(instruction, memory, facts, findings)
        if is_edited and (is_built or instruction.is_modified):
            edited.check_edited(instruction, findings)
    if not in_order:
        order.check_cycles(computation, findings)
    if facts.in_fusion and computation._instructions:
        used = set(itertools.chain.from_iterable([i.operands for i in computation._instructions]))
        call_graph.check_fusion_body(computation, used, survey, findings)
