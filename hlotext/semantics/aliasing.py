"""Operands and results that share a buffer."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.aliasing import (
    OutputOperandAlias,
    OutputToOperandAliasing,
    ShapeIndex,
)
from hlotext.ir.values.shape import Shape
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.forwarded_layouts import SPACE, TILES, equal_but_for
from hlotext.semantics.infer.shapes import compatible
from hlotext.semantics.message_text import index_text, plural
from hlotext.semantics.problems import Problem

_SKIPPED = "xla_skip_custom_call_alias_shape_check"
"""Frontend attribute of a custom call whose aliased shapes XLA does not compare."""


def part_of(shape: Shape | None, index: ShapeIndex) -> Shape | None:
    """Returns the subshape at an index, or None if there is none."""
    try:
        return None if shape is None else shape.subshape(index)
    except IndexError:
        return None


def check_operands(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that the operands and indices in `output_to_operand_aliasing=` exist and have equal shapes.

    Corresponds to `ShapeVerifier::HandleFusion`, `HandleCustomCall` and `CheckAsyncOpAliasConfig`.
    """
    config = instruction.attributes.get("output_to_operand_aliasing")
    if not isinstance(config, OutputToOperandAliasing) or instruction.shape is None:
        return
    name = "output_to_operand_aliasing"
    if instruction.opcode == "async-update":
        yield from _check_update(instruction, config)
        return
    shapes, result = [operand.shape for operand in instruction.operands], instruction.shape
    body = instruction.async_wrapped_computation
    if body is not None and len(body) and instruction.opcode == "async-start":
        # Operands and result of the wrapped computation count, be they bound here or later.
        shapes = [parameter.shape for parameter in body.parameters]
        whole = (*shapes, body.root.shape)
        if None not in whole and len(result.tuple_shapes) > 1:
            taken = Shape.tuple(tuple(shape for shape in shapes if shape is not None))
            result = Shape.tuple((taken, body.root.shape or taken, *result.tuple_shapes[2:]))
    for alias in config.aliases:
        number = alias.operand_index
        if not 0 <= number < len(shapes):
            count = plural(len(shapes), "operand")
            message = f"{alias}: no operand {number}, since {instruction.opcode} has {count}"
            yield Problem("V608", message, name)
            continue
        given = shapes[number]
        if given is None:
            continue
        source = part_of(given, alias.operand_shape_index)
        target = part_of(result, alias.output_shape_index)
        if instruction.opcode == "async-start" and not alias.output_shape_index:
            yield Problem("V608", f"{alias}: the whole result of an async-start is not a buffer", name)
            continue
        if source is None:
            index = index_text(alias.operand_shape_index)
            yield Problem(
                "V608", f"{alias}: operand {number} has no element {index}", name, related=(number,)
            )
        if target is None:
            yield Problem(
                "V608", f"{alias}: the result has no element {index_text(alias.output_shape_index)}", name
            )
        if source is not None and target is not None and _SKIPPED not in instruction.frontend_attributes:
            yield from _shared(instruction, alias, source, target, facts)


def _check_update(instruction: Instruction, config: OutputToOperandAliasing) -> Iterator[Problem]:
    """The aliased element of an async-update is an element of the state, behind operands and result: `{{2}: (0, {2})}`."""
    state = instruction.operands[0].shape if instruction.operands else None
    for alias in config.aliases:
        index = alias.output_shape_index
        is_state = alias.operand_index == 0 and index[:1] == alias.operand_shape_index[:1] == (2,)
        target = part_of(instruction.shape, index)
        source = part_of(state, alias.operand_shape_index)
        if not is_state or source is None or target is None:
            yield Problem(
                "V608", f"{alias}: an async-update must share its state: element {{2}} of operand 0 and of the result",
                "output_to_operand_aliasing",
            )  # fmt: skip
        elif not compatible(source, target):
            yield Problem(
                "V609", f"{alias}: operand 0 has {shorten(str(source))}, but the result has {shorten(str(target))}",
                "output_to_operand_aliasing",
            )  # fmt: skip


def _shared(
    instruction: Instruction, alias: OutputOperandAlias, source: Shape, target: Shape, facts: VerifierOptions
) -> Iterator[Problem]:
    """Both sides of one shared buffer. A buffer `b(x)` and its array `x` count as the same."""
    source, target = (s.tuple_shapes[0] if s.is_buffer else s for s in (source, target))
    ignored: set[str] = set()
    if facts.in_fusion and instruction.opcode == "fusion":
        ignored = {TILES, SPACE}
    elif instruction.opcode == "custom-call" and source.is_array and set(source.dimensions) <= {1}:
        ignored = {SPACE}
    same = (
        equal_but_for(source, target, frozenset(ignored))
        if facts.layout_sensitive
        else compatible(source, target)
    )
    if not same:
        yield Problem(
            "V609", f"{alias}: operand {alias.operand_index} is {shorten(str(source))}, "
            f"but the result is {shorten(str(target))}",
            "output_to_operand_aliasing", related=(alias.operand_index,),
        )  # fmt: skip
