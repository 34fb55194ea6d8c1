"""Training: the arguments that a step updates, and its backward pass."""

from __future__ import annotations

from hlotext.analysis import census, fact
from hlotext.analysis.entries import aliases_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.lint.helpers import donors, is_computed_again
from hlotext.lint.rule import Context
from hlotext.lint.taken_apart import updates_of

_BACKWARD = "transpose(jvp"
"""Part of an op_name that JAX gives to what it differentiates in reverse."""


def aliased(context: Context) -> list[Instruction]:
    """Returns the arguments whose buffers the header aliases with results."""
    numbers = {alias.parameter_number for alias in aliases_of(context.module)}
    return [parameter for parameter in context.arguments if parameter.parameter_number in numbers]


def state_of(context: Context) -> set[Instruction]:
    """Returns the arrays that a step updates, or that are donated."""
    state = {
        *aliased(context),
        *(parameter for parameter, _ in donors(context)),
        *(one.parameter for one in updates_of(context)),
    }
    return {parameter for parameter in state if parameter.shape is not None and parameter.shape.rank}


def is_backward(instruction: Instruction) -> bool:
    """True if an instruction belongs to a backward pass."""
    metadata = instruction.metadata
    return metadata is not None and _BACKWARD in metadata.op_name


def is_forward(instruction: Instruction) -> bool:
    """True if an instruction belongs to the forward pass of a derivative and is not a recomputation."""
    name = instruction.metadata.op_name if instruction.metadata is not None else ""
    return "jvp(" in name and _BACKWARD not in name and not is_computed_again(instruction)


def has_backward_pass(context: Context) -> bool:
    """True if gradients are computed, as far as op_names show."""
    return _has_backward_pass(context.module)


def is_inference(context: Context) -> bool:
    """True if op_names show that no gradients are computed; False if the module has no op_names that could tell."""
    return not has_backward_pass(context) and _has_op_names(context.module)


@fact
def _has_op_names(module: Module) -> bool:
    metadata = (one.metadata for one in census(module).instructions)
    return any(one is not None and one.op_name for one in metadata)


@fact
def _has_backward_pass(module: Module) -> bool:
    return any(map(is_backward, census(module).instructions))
