"""Counters of a loop that all count in step made one."""

from __future__ import annotations

import numpy as np

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor, body_of, is_element

COUNTERS = ("s8", "u8", "s32", "u32", "s64", "u64")


def merge_counters(loops: LoopEditor, loop: Instruction, word: str) -> Instruction | None:
    """Merges induction variables with step 1 into one (`TryMergeInductionVariables`). Returns the new loop, or None."""
    init, body, shape = loop.operands[0], body_of(loop), loop.shape
    if init.opcode != "tuple" or body.root.opcode != "tuple" or shape is None:
        return None
    if loop.control_predecessors or loop.control_successors:
        return None
    counter: int | None = None
    steps: dict[int, Literal] = {}
    for n, end in enumerate(body.root.operands):
        step = _step(end, body, n) if end.shape is not None and end.shape.element_type.name == word else None
        if step is None:
            continue
        start = init.operands[n].literal
        starts_at_zero = start is not None and start.known_array is not None and not start.known_array.any()
        if (
            counter is None
            and step.known_array is not None
            and step.known_array.reshape(-1)[0] == 1
            and starts_at_zero
        ):
            counter = n
        else:
            steps[n] = step
    if len(steps) + (counter is not None) < 2:
        return None
    count = len(shape.tuple_shapes)
    is_new = counter is None
    place = count if counter is None else counter
    type_ = next(iter(steps.values())).shape.element_type
    scalar = Shape(type_)
    wide = Shape.tuple((*shape.tuple_shapes, scalar)) if is_new else shape

    def number(value: int, computation: Computation | None) -> Instruction:
        literal = Literal.from_array(np.asarray(value).astype(type_.dtype), scalar)
        return loops.create("constant", scalar, argument=literal, computation=computation)

    def binary(opcode: str, part: Shape, x: Instruction, y: Instruction) -> Instruction:
        operands = []
        for o in (x, y):
            fits = o.shape is not None and o.shape.dimensions == part.dimensions
            operands.append(o if fits else loops.create("reshape", part, (o,), computation=o.computation))
        return loops.create(opcode, part, operands, computation=x.computation)

    def old_form(value: Instruction) -> Instruction:
        parts = []
        for n, part in enumerate(shape.tuple_shapes):
            if n not in steps:
                parts.append(loops.element(value, n))
                continue
            step = loops.create("constant", steps[n].shape, argument=steps[n], computation=value.computation)
            first = loops.element(value, n)
            product = binary("multiply", part, loops.element(value, place), step)
            parts.append(binary("add", part, first, product))
        return loops.tuple(parts)

    def new_form(root: Instruction, given: Instruction) -> Instruction:
        parts = [loops.element(given if n in steps else root, n) for n in range(count)]
        if is_new:
            parts.append(binary("add", scalar, loops.element(given, place), number(1, given.computation)))
        return loops.tuple(parts)

    start_ = loops.tuple((*loops.elements(init), number(0, loop.computation))) if is_new else init
    return loops.transformed(loop, wide, start_, old_form, new_form)


def _step(end: Instruction, body: Computation, index: int) -> Literal | None:
    """Constant added to a state element per iteration; None if it is not constant."""
    if end.opcode != "add":
        return None
    for x, c in (end.operands, end.operands[::-1]):
        if is_element(x, body, index) and c.literal is not None and not c.literal.shape.dimensions:
            return c.literal
    return None
