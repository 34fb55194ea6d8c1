"""The short spelling of asynchronous operations, `all-to-all-start(...)`, turned into what it stands for.

An `async-start` that calls a computation of its own holding nothing but parameters and the wrapped operation, as XLA's
reader makes it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from hlotext.ir.nodes.async_ops import ON_BOTH, async_starts
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import opcodes
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.semantics.conditions import compatible

ON_START = frozenset(
    {"async_execution_thread", "output_to_operand_aliasing", "sharding", "control-predecessors"}
)
"""Attributes that belong to the start alone."""
_SHOWN = frozenset({"frontend_attributes", "statistics"})
"""Those that the short spelling shows on the start when only the wrapped operation has them."""


def wrap(
    module: Module, start: Instruction, wrapped_opcode: str, names: set[str], others: Container[str] = ()
) -> Computation:
    """Creates the wrapped computation of a sugared start, and makes the start an `async-start` that calls it.

    `names` are the names of other such computations, `others` those of computations defined so far.
    """
    number = len(names)
    while (name := f"async_wrapped.{number}" if number else "async_wrapped") in names or name in others:
        number += 1
    body = Computation(name, module=module, is_sugared=True)
    shape: Shape | None = start._head.shape
    row = opcodes.opcode(wrapped_opcode)
    taken: list[Shape | None] = [operand._head.shape for operand in start._operands]
    if shape is not None and len(shape.tuple_shapes) > 1 and shape.tuple_shapes[0].is_tuple:
        taken, shape = list(shape.tuple_shapes[0].tuple_shapes), shape.tuple_shapes[1]
    if row is not None:  # what is missing is handed in later
        taken += [_PLACEHOLDER] * (row.arity.minimum - len(taken))
    parameters = [_parameter(body, index, found) for index, found in enumerate(taken)]
    attributes = start._attributes
    own = {use.name for use in row.attributes} if row is not None else set()
    inner: dict[str, Any] = {
        key: value for key, value in attributes.items() if key not in ON_START or key in own
    }
    start._attributes = {key: value for key, value in attributes.items() if key in ON_START | ON_BOTH}
    start._attributes["calls"] = body
    start._opcode = "async-start"
    root = Instruction(
        "async_op", wrapped_opcode, shape, tuple(parameters), inner, None, body, form=Form.IMPLICIT
    )  # fmt: skip
    body._instructions = [*parameters, root]
    body._root = root
    body._execution_thread = start._attributes.get("async_execution_thread", "main")
    callee = next(iter(root.called_computations), None) if wrapped_opcode in ("call", "fusion") else None
    if isinstance(callee, Computation) and callee._instructions:
        fit(body, callee.root._head.shape, [parameter._head.shape for parameter in callee.parameters])
    return body


_PLACEHOLDER = Shape(ELEMENT_TYPES["f32"], (1,))
"""Shape that XLA's reader assumes for an operand that is not yet defined."""


def _parameter(body: Computation, index: int, shape: Shape | None) -> Instruction:
    name = "async_param" if index == 0 else f"async_param.{index}"
    return Instruction(name, "parameter", shape, (), {}, index, body, form=Form.IMPLICIT)


def fit(body: Computation, result: Shape | None, taken: Sequence[Shape | None]) -> None:
    """Sets the shapes of the wrapped computation of a sugared operation (`UpdateAsyncWrappedComputation`)."""
    root, parameters = body.root, body.parameters
    if root._form is not Form.IMPLICIT:
        return
    for index, shape in enumerate(taken):
        if index >= len(parameters):
            added = _parameter(body, index, shape)
            body._instructions.insert(len(body._instructions) - 1, added)
            root._operands = (*root._operands, added)
        elif _differs(parameters[index]._head.shape, shape):
            parameters[index]._shape = shape
    if _differs(root._head.shape, result):
        root._shape = result


def _differs(old: Shape | None, new: Shape | None) -> bool:
    return new is not None and (old is None or not compatible(old, new))


def hand_in(later: Instruction) -> None:
    """Sets the shapes of the wrapped computation from a sugared update or done."""
    body = later.async_wrapped_computation
    if body is None or not body._is_sugared or not body._instructions:
        return
    shape = later._head.shape
    if later._head.opcode == "async-done":
        state = later._operands[0]._head.shape if later._operands else None
    else:
        state, shape = (
            shape,
            shape.tuple_shapes[1] if shape is not None and len(shape.tuple_shapes) > 1 else None,
        )
    fit(body, shape, state.tuple_shapes[0].tuple_shapes if state is not None and state.tuple_shapes else ())


def pass_on(instruction: Instruction) -> None:
    """Copies attributes of an update or done to the wrapped operation, as XLA's parser does.

    Only for an operation made from a sugared one. Frontend attributes and statistics are not copied if the start has
    none, since they would then be printed on its line.
    """
    body = instruction.async_wrapped_computation
    if body is None or not body.is_sugared or not body._instructions:
        return
    wrapped = body.root
    starts = async_starts(instruction)
    start = starts[0] if starts else instruction
    passed = {
        name: value
        for name, value in instruction._attributes.items()
        if name in ON_BOTH and (name not in _SHOWN or name in start._attributes)
    }
    if passed:
        wrapped._attributes = {**wrapped._attributes, **passed}
