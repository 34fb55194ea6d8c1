"""The short spelling of asynchronous operations, `all-to-all-start(...)`, turned into what it stands for.

An `async-start` that calls a computation of its own holding nothing but parameters and the wrapped operation, as XLA's
reader makes it.
"""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.async_ops import ON_BOTH
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes
from hlotext.ir.values.shape import Shape

ON_START = frozenset(
    {"async_execution_thread", "output_to_operand_aliasing", "sharding", "control-predecessors"}
)
"""Attributes that belong to the start alone."""
_SHOWN = frozenset({"frontend_attributes", "statistics"})
"""Those that the short spelling shows on the start when only the wrapped operation has them."""


def wrap(module: Module, start: Instruction, wrapped_opcode: str, names: set[str]) -> Computation:
    """Splits a sugared start: makes the computation behind it and leaves the start an `async-start` that calls it.

    `names` are the computation names already taken.
    """
    number = len(names)
    while (name := f"async_wrapped.{number}" if number else "async_wrapped") in names:
        number += 1
    body = Computation(name, module=module, is_implicit=True)
    parameters = []
    for index, operand in enumerate(start._operands):
        parameter_name = "async_param" if index == 0 else f"async_param.{index}"
        parameter = Instruction(
            parameter_name, "parameter", operand._shape, (), {}, index, body, form=Form.IMPLICIT
        )
        parameters.append(parameter)
    attributes = start._attributes
    wrapped_row = opcodes.opcode(wrapped_opcode)
    own = {use.name for use in wrapped_row.attributes} if wrapped_row is not None else set()
    inner: dict[str, Any] = {
        key: value for key, value in attributes.items() if key not in ON_START or key in own
    }
    start._attributes = {key: value for key, value in attributes.items() if key in ON_START | ON_BOTH}
    start._attributes["calls"] = body
    start._opcode = "async-start"
    shape: Shape | None = start._shape
    if shape is not None and shape.is_tuple and len(shape.tuple_shapes) > 1:
        shape = shape.tuple_shapes[1]
    root = Instruction(
        "async_op", wrapped_opcode, shape, tuple(parameters), inner, None, body, form=Form.IMPLICIT
    )  # fmt: skip
    body._instructions = [*parameters, root]
    body._root = root
    body._execution_thread = start._attributes.get("async_execution_thread", "main")
    return body


def pass_on(instruction: Instruction) -> None:
    """Copies what an update or a done says of itself to the wrapped operation, as XLA's reader does.

    Only to one that was made from a short spelling. Frontend attributes and statistics stay away from a start that has
    none: they would be printed there, although its line does not say so.
    """
    start = instruction
    while start._opcode != "async-start" and start._operands:
        start = start._operands[0]
    callees = start.called_computations if start._opcode == "async-start" else ()
    if not callees or not callees[0].is_implicit or not callees[0]._instructions:
        return
    wrapped = callees[0].root
    passed = {
        name: value
        for name, value in instruction._attributes.items()
        if name in ON_BOTH and (name not in _SHOWN or name in start._attributes)
    }
    if passed:
        wrapped._attributes = {**wrapped._attributes, **passed}
