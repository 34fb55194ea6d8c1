"""How often the body of a while runs, where the text tells."""

from __future__ import annotations

from typing import Any

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction

_PASSED_ON = frozenset({"copy", "bitcast", "copy-done", "copy-start"})
"""Opcodes whose (first) result is their operand."""


def trip_count(loop: Instruction) -> int | None:
    """How often the body runs: from `known_trip_count`, or a counted loop's own numbers; None if neither.

    A counted loop goes round while `counter < bound` (or <=), where the counter starts at a constant and the
    body adds a constant to it: what `lax.fori_loop` and `lax.scan` compile to.
    """
    known = _known_trip_count(loop)
    return known if known is not None else _counted(loop)


def _known_trip_count(loop: Instruction) -> int | None:
    config = loop.backend_config
    if config is None or "known_trip_count" not in config.text:
        return None
    try:
        return int(config.json()["known_trip_count"]["n"])
    except (ValueError, KeyError, TypeError):
        return None


def _counted(loop: Instruction) -> int | None:
    condition, body = loop.attributes.get("condition"), loop.attributes.get("body")
    if not isinstance(condition, Computation) or not isinstance(body, Computation) or not loop.operands:
        return None
    test = condition.root
    if test.opcode != "compare" or str(test.attributes.get("direction")) not in ("LT", "LE"):
        return None
    element, bound = _element_of_parameter(test.operands[0]), _number(test.operands[1])
    if element is None or bound is None:
        return None
    start = _number(_tuple_element(loop.operands[0], element))
    step = _step(body, element)
    if start is None or not step or step < 0:
        return None
    return max(0, -(-(bound + (str(test.attributes["direction"]) == "LE") - start) // step))


def _step(body: Computation, element: int) -> int | None:
    """The constant that a loop body adds to an element of its state."""
    following = _tuple_element(body.root, element)
    if following is None or following.opcode != "add" or len(following.operands) != 2:
        return None
    for counter, number in (following.operands, following.operands[::-1]):
        if _element_of_parameter(counter) == element:
            return _number(number)
    return None


def _source(instruction: Instruction | None) -> Instruction | None:
    while instruction is not None and instruction.opcode in _PASSED_ON and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def _tuple_element(instruction: Instruction | None, index: int) -> Instruction | None:
    """What stands at a place of a `tuple` instruction."""
    instruction = _source(instruction)
    if instruction is None or instruction.opcode != "tuple" or index >= len(instruction.operands):
        return None
    return _source(instruction.operands[index])


def _element_of_parameter(instruction: Instruction | None) -> int | None:
    """The index of the element of the computation's parameter that an instruction is."""
    instruction = _source(instruction)
    if instruction is None or instruction.opcode != "get-tuple-element":
        return None
    origin = _source(instruction.operands[0])
    index = instruction.attributes.get("index")
    return index if origin is not None and origin.opcode == "parameter" and isinstance(index, int) else None


def _number(instruction: Instruction | None) -> int | None:
    """The value of an integer constant."""
    instruction = _source(instruction)
    literal = instruction.literal if instruction is not None else None
    if (
        literal is None
        or literal.is_elided
        or not literal.shape.element_type.is_integral
        or literal.shape.dimensions
    ):
        return None
    value: Any = literal.array
    return int(value.item())
