"""Values as XLA's reader builds them: shapes, literals, layouts, threads, configs, origins."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.tables import traits
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import ComputationLayout, Shape
from hlotext.ir.values.types import ELEMENT_TYPES, TOKEN

if TYPE_CHECKING:
    import numpy as np

MAX_FILLED = 1 << 20
"""An array of more elements for which the text gives one number stays that number."""


def as_read(module: Module) -> None:
    """Changes a module's values to those that XLA's parser reads from its text. The module must have its source."""
    layout = module._attributes.get(ENTRY_LAYOUT)
    if isinstance(layout, ComputationLayout):
        parameters = tuple(shape.with_default_layout() for shape in layout.parameter_shapes)
        filled = attrs.evolve(
            layout, parameter_shapes=parameters, result_shape=layout.result_shape.with_default_layout()
        )
        module._attributes = {**module._attributes, ENTRY_LAYOUT: filled}
    for instruction in module.instructions():
        if instruction._head.opcode == "constant":
            _read_constant(instruction)
        elif instruction._head.opcode in _OWN_SHAPES:
            instruction._shape = _own_shape(instruction)
        elif instruction._head.opcode == "get-tuple-element":
            _take_origin(instruction)
        if instruction._head.opcode.startswith("async-"):
            _pass_on(instruction)
        changed = {
            name: new
            for name, value in instruction._attributes.items()
            if (new := _value(name, value)) is not value
        }
        if changed:
            instruction._attributes = {**instruction._attributes, **changed}
    _pass_threads(module)


# ---- shapes that are XLA's own


_U32 = Shape(ELEMENT_TYPES["u32"])
_TOKEN = Shape(TOKEN)
_OWN_SHAPES = traits.TRANSFERS | traits.HOST_QUEUES | {"after-all", "add-dependency"}
"""Opcodes whose shapes XLA makes itself, whatever the text says (`HloInstruction::CreateSend` and so on)."""


def _own_shape(instruction: Instruction) -> Shape | None:
    stated = instruction._head.shape
    operands = [operand._head.shape for operand in instruction._operands]
    match instruction._head.opcode:
        case "send" if operands and operands[0] is not None:
            return Shape.tuple((operands[0], _U32, _TOKEN))
        case "recv" if stated is not None and stated.tuple_shapes:
            return Shape.tuple((stated.tuple_shapes[0], _U32, _TOKEN))
        case "recv-done" if operands and operands[0] is not None and operands[0].tuple_shapes:
            return Shape.tuple((operands[0].tuple_shapes[0], _TOKEN))
        case "infeed" if stated is not None and stated.tuple_shapes:
            return Shape.tuple((stated.tuple_shapes[0], _TOKEN))
        case "add-dependency" if operands:
            return operands[0]
        case "send-done" | "outfeed" | "after-all":
            return _TOKEN
    return stated


# ---- attributes


_QUEUES = re.compile(r'"wait_on_operation_queues"\s*:\s*\[\s*\]\s*,')


def _value(name: str, value: Any) -> Any:
    """An attribute as XLA holds it."""
    if name == "backend_config" and "wait_on_operation_queues" in (text := str(value)):
        stripped = _QUEUES.sub("", text)  # `BackendConfigWrapper` takes the empty list out
        return value if stripped == text else _with_text(value, stripped)
    if isinstance(value, Shape):
        filled = value.with_default_layout()
        return value if filled == value else filled
    if type(value) is tuple and value and isinstance(value[0], Shape):
        shapes = tuple(shape.with_default_layout() for shape in value)
        return value if shapes == value else shapes
    return value


def _with_text(value: Any, text: str) -> Any:
    return text if isinstance(value, str) else attrs.evolve(value, text=text)


def _take_origin(instruction: Instruction) -> None:
    """An element of a tuple without an origin of its own has its operand's (`HloInstruction::original_value`)."""
    index, place = instruction._attributes.get("index"), instruction
    while "origin" not in place._attributes and place._head.opcode == "get-tuple-element" and place._operands:
        index, source = place._attributes.get("index"), place._operands[0]
        if source._head.opcode != "tuple" or not isinstance(index, int) or index >= len(source._operands):
            return
        place = source._operands[index]
    if place is not instruction and "origin" in place._attributes:
        instruction._attributes = {**instruction._attributes, "origin": place._attributes["origin"]}


_PASSED_ON = ("metadata", "origin", "backend_config", "frontend_attributes", "statistics")


def _pass_on(instruction: Instruction) -> None:
    """Copies attributes on the line of an asynchronous operation to the wrapped operation too (`ParseInstructionRhs`)."""
    body = instruction.async_wrapped_computation
    given = {name: instruction._attributes[name] for name in _PASSED_ON if name in instruction._attributes}
    if given and body is not None and body._instructions:
        root = body.root
        root._attributes = {**root._attributes, **given}


def _pass_threads(module: Module) -> None:
    """Moves computations of an async-start, with all that they call, to its thread (`SetThreadName`).

    The last async-start in the text that reaches a computation decides, so they are walked from the last one on.
    """
    done: set[Computation] = set()
    starts = [i for i in module.instructions() if i._head.opcode == "async-start"]
    if not any("async_execution_thread" in i._attributes for i in starts) and all(
        c._execution_thread == "main" for c in module._computations
    ):
        return
    for start in reversed(starts):
        thread = start._attributes.get("async_execution_thread", "main")
        stack: list[Computation] = list(start.called_computations)
        while stack:
            computation = stack.pop()
            if computation in done:
                continue
            done.add(computation)
            computation._execution_thread = thread
            for instruction in computation._instructions:
                stack.extend(instruction.called_computations)


# ---- literals


def _read_constant(instruction: Instruction) -> None:
    literal = instruction._head.argument
    if not isinstance(literal, Literal):
        return
    text = _argument_text(instruction)
    parts = [leaf for leaf in literal.leaves() if leaf._values is not None]
    if literal.tuple_literals or len(parts) != 1:
        return
    instruction._argument = _read_literal(literal, text)
    shape = instruction._head.shape
    if shape is None or not shape.is_array:
        return
    # A literal's shape is static, and its elements lie in whole bytes.
    if not shape.is_static:
        shape = Shape(shape.element_type, shape.dimensions, layout=shape.layout)
    if shape.layout is not None and shape.layout.element_size_in_bits:
        shape = shape.with_layout(attrs.evolve(shape.layout, element_size_in_bits=0))
    instruction._shape = shape


def _read_literal(literal: Literal, text: str | None) -> Literal:
    """An array as XLA's reader holds it (`HloParserImpl::ParseDenseLiteral`)."""
    shape = literal.shape
    if literal.is_bare and shape.element_count <= MAX_FILLED:
        literal = Literal.from_values(shape, literal.array.reshape(-1).copy())
    if literal.is_bare or not (shape.element_type.is_floating or shape.element_type.is_complex):
        return literal
    if text is not None and "-0" not in text and "nan" not in text:
        return literal
    import numpy as np

    values = literal.array.reshape(-1)
    is_complex = shape.element_type.is_complex
    numbers = values.view(values.real.dtype) if is_complex else values
    with np.errstate(invalid="ignore"):  # a NaN of a narrow type
        wide = numbers.astype(np.float64)
    zeros = (wide == 0) & np.signbit(wide)
    if text is not None:
        zeros &= _are_integers(text, len(numbers))
    changed = numbers.copy()
    changed[zeros] = 0
    if is_complex:
        # XLA looks at the real part for both (`SetValueInLiteralHelper`).
        pairs = changed.reshape(-1, 2)
        unknown = np.isnan(pairs[:, 0])
        pairs[unknown, 1] = pairs[unknown, 0]
    elif not zeros.any():
        return literal
    return Literal.from_values(shape, changed.view(values.dtype) if is_complex else changed)


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"-?(?:nan(?:\(0x[0-9a-fA-F]+\))?|inf|true|false|[0-9.]+(?:[eE][+-]?[0-9]+)?)")


def _are_integers(text: str, count: int) -> np.ndarray[Any, Any]:
    """Mask of the numbers in a text that are written as integers; all of them if the text does not tell."""
    import numpy as np

    words = _NUMBER.findall(_COMMENT.sub(" ", text))
    if len(words) != count:
        return np.ones(count, dtype=np.bool_)
    return np.array([word.removeprefix("-").isdigit() for word in words], dtype=np.bool_)


def _argument_text(instruction: Instruction) -> str | None:
    """Text in the parentheses of a constant; None if it was changed since it was read."""
    if instruction._is_modified or instruction._place is None or instruction._end < 0:
        return None
    computation = instruction._computation
    source = (
        computation._module.source if computation is not None and computation._module is not None else None
    )
    if source is None:
        return None
    text = source.text[instruction._start : instruction._end]
    start = text.find("constant(")
    if start < 0:
        return None
    depth = 0
    for match in re.finditer(r"[()]", text[start:]):
        depth += 1 if match[0] == "(" else -1
        if not depth:
            return text[start + len("constant(") : start + match.start()]
    return None


__all__ = ["MAX_FILLED", "as_read"]
