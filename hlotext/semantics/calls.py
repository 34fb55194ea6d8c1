"""Checks beyond shape inference: reducers of collectives, unused operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.sparsity import BlockScalingConfig, DotSparsity, SparsityConfig
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.infer.shapes import is_scalar, same_type_or_floats
from hlotext.semantics.message_text import plural
from hlotext.semantics.problems import Callee, Problem

REDUCING = traits.REDUCES_ACROSS_DEVICES - {"collective-reduce"}
"""Collectives that combine elements with `to_apply`, and of which XLA's verifier looks at that."""


def check_reducer(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that a collective's reducer takes two scalars and returns one, of the arrays' type
    (`MatchReductionComputation`).
    """
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
                f"to_apply must take two scalars and return one, not {text}",
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
                "V105", f"to_apply works on {known[0].element_type}, but receives {wrong.element_type}", "to_apply",
                related=(Callee(0, 0),),
            )  # fmt: skip


def check_operands(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that every operand of a fusion has a parameter. XLA's verifier allows extra operands at the end."""
    bodies = instruction.called_computations
    gets, taker = len(instruction.operands), "the fused computation"
    takes = len(bodies[0].parameters) if bodies else gets
    if gets > takes:
        message = f"{taker} takes {plural(takes, 'operand')}, not {gets}"
        yield Problem("V116", message, takes, "remove the operand", (takes,))


def check_extra_operands(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks the operands of a dot or convolution beyond the first two, which describe sparsity or scaling.

    Each is referenced once, by `sparsity_config` or `block_scaling_config` (`CheckExtraOperands`); those of `sparsity=`
    in older text follow one another.
    """
    gets, given = len(instruction.operands), instruction.attributes
    named: set[int] = set()
    for attribute, what, index in _extra_operands(given):
        if not 2 <= index < gets:
            yield Problem(
                "V103", f"{what} is {index}, but operands 2 to {gets - 1} may be referred to", attribute
            )
        elif index in named:
            yield Problem(
                "V103", f"{what} refers to operand {index}, which is already referred to", attribute
            )
        named.add(index)
    sparsity = given.get("sparsity_config")
    if isinstance(sparsity, SparsityConfig):
        for side in (sparsity.lhs, sparsity.rhs):
            if side is not None and (side.numerator < 1 or side.denominator < 1):
                ratio = f"{side.numerator}x{side.denominator}"
                yield Problem("V103", f"sparsity={ratio} keeps no elements of a block", "sparsity_config")
    old = given.get("sparsity")
    if isinstance(old, DotSparsity):
        named.update(range(2, 2 + len(old.descriptors)))
    spare = next((number for number in range(2, gets) if number not in named), None)
    if spare is not None:
        message = f"{instruction.opcode} takes {plural(2 + len(named), 'operand')}, not {gets}"
        yield Problem("V116", message, spare, "remove the operand", (spare,))


def _extra_operands(given: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """The attributes that name further operands, what of them does, and the number."""
    sparsity, scaling = given.get("sparsity_config"), given.get("block_scaling_config")
    for name in ("lhs", "rhs"):
        if isinstance(sparsity, SparsityConfig) and (side := getattr(sparsity, name)) is not None:
            yield "sparsity_config", f"idx of {name}", side.idx or 0
    for name in ("lhs", "rhs"):
        if isinstance(scaling, BlockScalingConfig) and (side := getattr(scaling, name)) is not None:
            yield "block_scaling_config", f"scale_idx of {name}", side.scale_idx
            if side.zero_idx is not None:
                yield "block_scaling_config", f"zero_idx of {name}", side.zero_idx
