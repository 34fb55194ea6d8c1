"""Classes that data choose among, such as the experts of a token: indices of a maximum, or of the largest elements."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.slots import before_loops
from hlotext.lint.values import Value, entered

_SAME = traits.REPEATS_ELEMENTS | traits.CONVERSIONS | traits.FORWARDS_OPERAND
_CUT = frozenset({"dynamic-slice", "slice"})
_MOST_STEPS = 60
_LEAST_CLASSES = 4


def chosen_among(value: Value) -> int | None:
    """Returns the number of classes, four or more, that a comparison with one class chooses among; None for other values.

    All classes are compared with: by as many comparisons, or by a loop with as many iterations. So one in that many holds,
    taken together.
    """
    value = entered(value)
    one, operands = value.instruction, value.operands()
    if one.opcode != "compare" or str(one.attributes.get("direction")) != "EQ" or len(operands) != 2:
        return None
    for number, index in enumerate(operands):
        found = _index_of(index)
        if found is None:
            continue
        classes, indices = found
        other = _source(operands[1 - number])
        if other.instruction.opcode == "constant":
            compared = sum(user.opcode == "compare" for user in one.operands[number].users)
            return classes if max(compared, len(indices.users)) >= classes >= _LEAST_CLASSES else None
        return classes if _counts_to(other, classes) and classes >= _LEAST_CLASSES else None
    return None


def _source(value: Value) -> Value:
    """A value before views and slices, and what a loop does not change before it."""
    for _ in range(_MOST_STEPS):
        value = entered(value)
        one = value.instruction
        if one.opcode in _SAME | _CUT and one.operands:
            value = value.operands()[0]
            continue
        outer = before_loops(value) if not value.fusions else value
        if outer == value:
            break
        value = outer
    return value


def _index_of(value: Value) -> tuple[int, Instruction] | None:
    """The number of positions that a value is an index of, and the instruction that finds it."""
    made = _source(value)
    element = made.instruction
    if element.opcode != "get-tuple-element":
        return None
    finder = entered(made.operands()[0])
    one, number = finder.instruction, element.attributes.get("index")
    if one.opcode not in traits.REDUCTIONS | {"sort"} or not isinstance(number, int):
        return None
    if number >= len(finder.operands()):
        return None
    counted = entered(finder.operands()[number]).instruction
    along = tuple(one.attributes.get("dimensions", ()))
    if counted.opcode != "iota" or along != (counted.attributes.get("iota_dimension", 0),):
        return None
    shape = counted.shape
    return (shape.dimensions[along[0]], element) if shape is not None else None


def _counts_to(other: Value, classes: int) -> bool:
    """True for the elements of `jnp.arange(classes)`, which a loop looks at one after another."""
    one = other.instruction
    return one.opcode == "iota" and one.shape is not None and one.shape.dimensions == (classes,)
