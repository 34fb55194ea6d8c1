"""What inference does not look at: reducers of collectives, operands that nothing takes."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.sparsity import DotSparsity
from hlotext.semantics.facts import Facts
from hlotext.semantics.infer.shapes import is_scalar, same_type_or_floats
from hlotext.semantics.problems import Callee, Problem
from hlotext.semantics.words import plural

REDUCING = frozenset({"all-reduce", "all-reduce-start", "collective-reduce", "reduce-scatter"})
"""Collectives that combine elements with `to_apply`."""


def check_reducer(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """A collective's reducer takes two elements and gives one, all of the arrays' type (`MatchReductionComputation`)."""
    for computation in instruction.called_computations[:1]:
        if not len(computation):
            return
        shapes = [p.shape for p in computation.parameters] + [computation.root.shape]
        known = [shape for shape in shapes if shape is not None]
        if len(known) != len(shapes):
            return
        if len(known) != 3 or not all(map(is_scalar, known)):
            text = f"({', '.join(map(str, known[:-1]))}) -> {known[-1]}"
            yield Problem(
                "V105",
                f"to_apply takes two scalars and gives one, so it is not {text}",
                "to_apply",
                related=(Callee(0),),
            )
            return
        operands = [operand.shape for operand in instruction.operands if operand.shape is not None]
        wrong = next(
            (
                s
                for s in [*operands, *known[1:]]
                if not same_type_or_floats(s.element_type, known[0].element_type)
            ),
            None,
        )
        if wrong is not None:
            yield Problem(
                "V105", f"to_apply works on {known[0].element_type}, but gets {wrong.element_type}", "to_apply",
                related=(Callee(0, 0),),
            )  # fmt: skip


def check_operands(instruction: Instruction, facts: Facts) -> Iterator[Problem]:
    """Every operand of a fusion is taken by a parameter, and a dot has two besides what is sparse about them.

    XLA's verifier lets the last operands of a fusion go to waste, and its reader those of a dot.
    """
    gets, taker = len(instruction.operands), instruction.opcode
    if instruction.opcode == "fusion":
        bodies = instruction.called_computations
        takes = len(bodies[0].parameters) if bodies else gets
        taker = "the fused computation"
    else:
        sparsity = instruction.attributes.get("sparsity")
        takes = 2 + (len(sparsity.descriptors) if isinstance(sparsity, DotSparsity) else 0)
    if gets > takes:
        message = f"{taker} takes {plural(takes, 'operand')}, not {gets}"
        yield Problem("V116", message, takes, "take the operand out", (takes,))
