"""Operations, fused or not, that only move elements: into another order, and perhaps into another type."""

from __future__ import annotations

from hlotext.analysis import invariant_instructions, memory_space, written_bytes
from hlotext.analysis.heroes import MOVES, fused_moves
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.lint.helpers import order_of, size_of
from hlotext.lint.rule import Context
from hlotext.lint.values import VIEWS, Value, entered, fetched


def moved_array(instruction: Instruction, context: Context) -> Instruction | None:
    """Returns the operand that an instruction only writes in another dimension order; None if it does something else.

    A fusion must only move elements of one array.
    """
    opcode = instruction.opcode
    if opcode in ("copy", "transpose", "copy-start"):
        return instruction.operands[0] if instruction.operands and _turns(instruction) else None
    if opcode != "fusion" or len(instruction.operands) != 1:
        return None
    return instruction.operands[0] if any(map(_turns, fused_moves(instruction))) else None


def _turns(instruction: Instruction) -> bool:
    """True if a copy or transpose gives the elements another order in memory, rather than the order another name."""
    old, new = instruction.operands[0].shape, _result(instruction)
    if old is None or new is None or not (old.is_array and new.is_array):
        return False
    before, after = order_of(old), order_of(new)
    if before is None or after is None:
        return instruction.opcode == "transpose"
    if instruction.opcode == "transpose":
        permutation = instruction.attributes.get("dimensions", ())
        after = tuple(permutation[d] for d in after if d < len(permutation))
    return before != after


def _result(instruction: Instruction) -> Shape | None:
    shape = instruction.shape
    return shape.tuple_shapes[0] if shape is not None and shape.is_tuple and shape.tuple_shapes else shape


def moved_back(context: Context) -> dict[Instruction, Instruction]:
    """Returns the copies that restore an argument's dimension order for a result, by the copy that changed it.

    In between, the array is updated in place, perhaps in a loop.
    """
    found = {}
    for last in context.module.entry.root.operands:
        if (moved := moved_array(last, context)) is None:
            continue
        current = Value(moved)
        for _ in range(_MOST_STEPS):
            current = entered(current)
            one = current.instruction
            if one.opcode == "get-tuple-element" and (first := _initial(one)) is not None:
                current = Value(first)
            elif one.opcode in _UPDATED and one.operands and moved_array(current.writer, context) is None:
                current = current.operands()[0]
            else:
                break
        if current.writer is not last and moved_array(current.writer, context) is not None:
            found[current.writer] = last
    return found


_UPDATED = VIEWS | {"transpose"} | traits.UPDATES_ELEMENTS
_MOST_STEPS = 50


def _initial(element: Instruction) -> Instruction | None:
    """The value with which a slot of a loop's state begins, whose last value an element is."""
    loop, index = element.operands[0], element.attributes.get("index")
    first = loop.operands[0] if loop.opcode == "while" else None
    if first is None or first.opcode != "tuple" or not isinstance(index, int) or index >= len(first.operands):
        return None
    return first.operands[index]


def moved_bytes(instruction: Instruction, moved: Instruction) -> int:
    """Returns the bytes that moving an array reads and writes, padding included."""
    return size_of(moved.shape) + written_bytes(instruction)


def is_programs(instruction: Instruction) -> bool:
    """True if the program asks for a move: moves that compilers insert have no op_name."""
    inside = instruction.called_computations[0] if instruction.opcode == "fusion" else (instruction,)
    turning = [i for i in (*inside, instruction) if i.opcode in MOVES]
    return any(i.metadata is not None and i.metadata.op_name for i in turning)


def is_in_main_memory(instruction: Instruction) -> bool:
    """True if the result is in main memory, in contrast to a faster one."""
    shape = _result(instruction)
    return shape is None or not shape.is_array or memory_space(shape) == 0


def comes_from_argument(value: Instruction, context: Context) -> bool:
    """True if a value is an argument of the module, looking through views, fusions and loops that do not change it."""
    current = entered(Value(value)).instruction
    for _ in range(50):
        if current.opcode in ("bitcast", "get-tuple-element", "reshape") and current.operands:
            if (
                current.opcode == "get-tuple-element"
                and (outside := before_loop(current, context)) is not None
            ):
                current = outside
            else:
                current = current.operands[0]
        elif (before := fetched(current)) is not None:
            current = before
        else:
            break
    return current.opcode == "parameter" and current.computation is context.module.entry


def before_loop(element: Instruction, context: Context) -> Instruction | None:
    """Returns the initial value of a loop-invariant element of loop state; None for other values."""
    if element.operands[0].opcode != "parameter":
        return None
    loop = context.graph.caller(element.computation)
    index = element.attributes.get("index")
    if loop is None or loop.opcode != "while" or not isinstance(index, int):
        return None
    first = loop.operands[0]
    if element not in invariant_instructions(loop) or first.opcode != "tuple" or index >= len(first.operands):
        return None
    return first.operands[index]
