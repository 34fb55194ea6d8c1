"""Collects what the checks find, as diagnostics with places."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from hlotext.findings.errors import Severity
from hlotext.findings.failures import failure
from hlotext.findings.finding import Diagnostic, FindingList
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.layout.errors import shorten
from hlotext.semantics.problems import MILD, Callee, Part, Problem, Where
from hlotext.verify import places

Related = tuple[str, Instruction]
"""Relation of another instruction to a finding, in words, and that instruction."""

Node = Instruction | Computation | None
"""Subject of a finding; None: the module's header."""

_LONGEST = 1000
"""Characters of a message; the text of a tuple's shape can be megabytes long."""


@attrs.define
class FindingCollector:
    """Collects the findings of a module."""

    module: Module
    _found: list[tuple[Node, Diagnostic]] = attrs.field(factory=list)
    """Each finding with the node that it is about, in the order in which it was found."""

    def take(self, node: Node, diagnostic: Diagnostic) -> None:
        """Adds a finding about a node."""
        self._found.append((node, diagnostic))

    def diagnostics(self) -> list[Diagnostic]:
        """Returns the findings in order of the source text, or for an edited module, of its printed text."""
        if all(diagnostic.source is self.module.source for _, diagnostic in self._found):
            found = sorted(self._found, key=lambda pair: pair[1].span.start)
        else:
            ranks = places.ranks(self.module)
            # Nodes that the module does not hold come last.
            found = sorted(self._found, key=lambda pair: (ranks.get(pair[0], len(ranks)), pair[1].span.start))
        return FindingList(diagnostic for _, diagnostic in found)

    def header(self, found: Iterable[tuple[Instruction | None, Problem]]) -> None:
        """Adds problems of the header, located at the instruction concerned if there is one."""
        for instruction, problem in found:
            if instruction is not None:
                self.problem(instruction, problem)
            else:
                self.in_header(str(problem.where), problem.code, problem.message, problem.help)

    def problem(self, instruction: Instruction, problem: Problem) -> None:
        """Adds a problem of an instruction."""
        related = [found for what in problem.related if (found := _related(instruction, what)) is not None]
        self.at(instruction, problem.code, problem.message, problem.where, problem.help, related)

    def at(
        self,
        instruction: Instruction,
        code: str,
        message: str,
        where: Where = Part.OPCODE,
        help: str = "",
        related: Iterable[Related] = (),
    ) -> None:
        """Adds a finding at an instruction, or at a part of it."""
        self._add(instruction, code, message, places.of_instruction(instruction, where), help, related)

    def in_computation(
        self,
        computation: Computation,
        code: str,
        message: str,
        help: str = "",
        related: Iterable[Related] = (),
    ) -> None:
        """Adds a finding about a whole computation."""
        self._add(computation, code, message, places.of_computation(computation), help, related)

    def in_header(
        self, attribute: str, code: str, message: str, help: str = "", related: Iterable[Related] = ()
    ) -> None:
        """Adds a finding about an attribute of the module's header, or about one of its tables."""
        self._add(None, code, message, places.of_header(self.module, attribute), help, related)

    def failed(self, node: Node, what: str, error: Exception) -> None:
        """Adds a finding that a check raised an exception for a node."""
        if isinstance(node, Instruction):
            source, span = places.of_instruction(node, Part.WHOLE)
        elif node is not None:
            source, span = places.of_computation(node)
        else:
            source, span = places.of_header(self.module, "HloModule")
        instruction = node if isinstance(node, Instruction) else None
        self.take(node, failure(what, error, source=source, span=span, instruction=instruction))

    def _add(
        self,
        node: Node,
        code: str,
        message: str,
        place: places.Place,
        help: str,
        related: Iterable[Related],
    ) -> None:
        source, span = place
        others = tuple(related)
        found = [(what, *places.of_instruction(other, Part.WHOLE)) for what, other in others]
        # Spans mean something only in the diagnostic's own source; the nodes are there for the others.
        spans = tuple((what, there) for what, text, there in found if text is source)
        nodes = tuple(dict.fromkeys(other for _, other in others))
        if len(message) > _LONGEST:
            message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
        severity = MILD.get(code, Severity.ERROR)
        instruction = node if isinstance(node, Instruction) else None
        self.take(node, Diagnostic(code, severity, message, span, help, spans, source, instruction, nodes))


def _related(instruction: Instruction, what: int | Callee | Related) -> Related | None:
    """The instruction that a problem refers to; None if it is missing."""
    if isinstance(what, tuple):
        return what
    if isinstance(what, int):
        if what >= len(instruction.operands):
            return None
        operand = instruction.operands[what]
        return f"operand {what} is {shorten(str(operand.shape))}", operand
    called = instruction.called_computations
    if what.computation >= len(called) or not len(called[what.computation]):
        return None
    computation = called[what.computation]
    name = computation.name or "the called computation"
    if what.parameter is None:
        return f"{name} returns {shorten(str(computation.root.shape))}", computation.root
    if what.parameter >= len(computation.parameters):
        return None
    parameter = computation.parameters[what.parameter]
    return f"{name} takes {shorten(str(parameter.shape))} as parameter {what.parameter}", parameter
