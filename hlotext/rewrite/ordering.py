"""Positions and dependences of instructions; moves and replacements that respect them."""

from __future__ import annotations

from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.kit.edits import Editor


def next_instruction(instruction: Instruction) -> Instruction | None:
    """Returns the next instruction in the computation in O(log n) time, or None for the last instruction.

    Raises EditError if the instruction is not in a computation.
    """
    return _home(instruction).order.next(instruction)


def previous_instruction(instruction: Instruction) -> Instruction | None:
    """Returns the previous instruction in the computation, in constant time, or None for the first instruction.

    Raises EditError if the instruction is not in a computation.
    """
    return _home(instruction).order.previous(instruction)


def _home(instruction: Instruction) -> Computation:
    if instruction.computation is None:
        raise EditError(f"{instruction.name} is not in a computation")
    return instruction.computation


def move_after(instruction: Instruction, other: Instruction) -> None:
    """Moves an instruction after another one of its computation.

    Raises EditError if it would precede an operand or follow a user, or if `other` is in another computation.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  b = f32[] cosine(x)  ROOT c = f32[] add(a, b) }")
    >>> move_after(m.entry["a"], m.entry["b"])
    >>> [i.name for i in m.entry]
    ['x', 'b', 'a', 'c']
    """
    if other is instruction:
        return
    if other.computation is not _home(instruction):
        raise EditError(f"{instruction.name} and {other.name} are not in the same computation")
    following = next_instruction(other)
    if following is instruction:
        return
    if following is not None:
        instruction.move_before(following)
        return
    if instruction.user_view or instruction.control_successors:
        raise EditError(
            f"{instruction.name} cannot come after {other.name}, since something needs it earlier"
        )
    instruction.move_before(other)  # nothing stands behind the last one, before which it could go
    other.move_before(instruction)


def depends_on(a: Instruction, b: Instruction) -> bool:
    """Returns True if `a` is `b` or depends on it through operands or control dependencies.

    Visits only instructions between the two. Returns False for instructions of different computations.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x)  b = f32[] cosine(a)  ROOT c = f32[] abs(x) }")
    >>> depends_on(m.entry["b"], m.entry["x"]), depends_on(m.entry["c"], m.entry["a"])
    (True, False)
    """
    computation = a.computation
    if computation is None or b.computation is not computation:
        return a is b
    order = computation.order
    limit = order[b]
    seen: set[Instruction] = set()
    stack = [a]
    while stack:
        i = stack.pop()
        if i is b:
            return True
        if i not in seen and order[i] > limit:
            seen.add(i)
            stack.extend(i.operands)
            stack.extend(i.control_predecessors)
    return False


def replace_preserving_sharding(old: Instruction, new: Instruction) -> bool:
    """Replaces an instruction unless a sharding would be lost, and returns True if it was replaced.

    Corresponds to XLA's `HloComputation::ReplaceInstruction` with `preserve_sharding`. Nothing is changed if the
    instructions have different shardings or types, or if the edit is invalid. A new instruction without a sharding gets
    the old one's, and likewise metadata and frontend attributes. Raises EditError if `old` is not in a module.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  a = f32[] sine(x), sharding={replicated}  ROOT b = f32[] abs(a) }")
    >>> from hlotext.rewrite import Builder
    >>> replace_preserving_sharding(m.entry["a"], Builder(m.entry, m.entry["a"]).cosine(m.entry["x"]))
    True
    >>> print(m.entry["cosine"])
    cosine = f32[] cosine(x), sharding={replicated}
    """
    computation = _home(old)
    if computation.module is None:
        raise EditError(f"{old.name} is not in a module")
    return Editor(computation.module).replace(old, new, preserve_sharding=True)
