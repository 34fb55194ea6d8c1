"""Values that a forward pass keeps for the backward pass, in stacks of a loop."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import is_computed_again
from hlotext.lint.rule import Context
from hlotext.lint.slots import in_calls
from hlotext.lint.values import VIEWS, Value, source


def backward_loops(context: Context) -> list[Instruction]:
    """The loops of a backward pass."""
    return [
        loop
        for loop in context.census.by_opcode.get("while", ())
        if loop.metadata is not None and "transpose(jvp" in loop.metadata.op_name
    ]


def handed_to(loop: Instruction) -> list[Instruction]:
    """The initial values of a loop, seen through views; empty for one that computes what it needs again."""
    state = source(Value(in_calls(loop).operands[0]), VIEWS).instruction
    if state.opcode != "tuple" or any(map(is_computed_again, loop.attributes["body"])):
        return []
    return [source(Value(operand), VIEWS).instruction for operand in state.operands]
