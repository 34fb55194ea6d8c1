"""Conversions moved to where they convert less."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.types import ElementType, TypeKind
from hlotext.rewrite.kit.builder import retyped
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import array_of, is_typed, shape_of, type_of
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations

COMMUTING = frozenset({"concatenate", "pad", "reshape", "slice", "transpose"})
"""Opcodes before or behind which a conversion does the same (`OpCommutesWithConvert`)."""


@attrs.frozen
class ConvertMover(Pass):
    """Moves converts so that data is moved in the narrower type (XLA's `ConvertMover`).

    Widening converts move after a data movement if all its operands are converted this way, or are constants that lose
    nothing; narrowing converts move before it.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f16[4] parameter(0)  c = f32[4] convert(x)  ROOT r = f32[2,2] reshape(c) }")
    >>> ConvertMover().run(m).statistics
    {'moved_down': 1}
    >>> print(m.entry.root)
    ROOT convert = f32[2,2] convert(r.1)
    """

    name: ClassVar[str] = "convert-mover"
    summary: ClassVar[str] = (
        "Moves converts past operations that only move data, so that they move the narrower type."
    )

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        growth = InstructionBudget(self.name, module)
        down = up = 0
        for computation in nonfusion_computations(module):
            down += _move_down(editor, computation)
            up += _move_up(editor, growth, computation)
        return PassResult.of({"moved_down": down, "moved_up": up})


def _move_down(editor: Editor, computation: Computation) -> int:
    """instr(widen(x)) -> widen(instr(x))"""
    count = 0
    for i in instruction_post_order(computation):
        if i.computation is not computation or not is_typed(i):
            continue
        source = _narrow_source(i)
        if source is None or i.control_predecessors or i.control_successors:
            continue
        editor.place = i
        operands = [
            _converted(editor, o, source) if o.opcode == "constant" else o.operands[0] for o in i.operands
        ]
        narrow = editor.clone(i, operands, retyped(shape_of(i), source))
        count += editor.replace_with_new(i, "convert", (narrow,))
    return count


def _narrow_source(i: Instruction) -> ElementType | None:
    """The narrower type from which all operands of an instruction come, where it can be computed in that."""
    if i.opcode not in COMMUTING or not i.operands or not shape_of(i).is_array:
        return None
    converts = [o for o in i.operands if o.opcode == "convert" and len(o.users) == 1]
    constants = [o for o in i.operands if o.opcode == "constant"]
    if not converts or len(converts) + len(constants) < len(i.operands):
        return None
    sources = {type_of(o.operands[0]) for o in converts}
    source = next(iter(sources))
    if len(sources) > 1 or source.bits >= type_of(converts[0]).bits or _is_packed(source):
        return None
    return source if all(_is_lossless(o, source) for o in constants) else None


def _is_packed(type_: ElementType) -> bool:
    """`IsSubByteNonPredType`."""
    return type_.bits < 8 and type_.kind is not TypeKind.PREDICATE


def _is_lossless(constant: Instruction, type_: ElementType) -> bool:
    """`IsLosslesslyConvertibleTo`."""
    array = array_of(constant)
    if array is None or not type_.dtype_name:
        return False
    with np.errstate(all="ignore"):
        back = array.astype(type_.dtype).astype(array.dtype)
    return back.tobytes() == array.tobytes()


def _move_up(editor: Editor, growth: InstructionBudget, computation: Computation) -> int:
    """narrow(instr(x)) -> instr(narrow(x))"""
    count = 0
    pending = [i for i in instruction_post_order(computation) if i.opcode == "convert" and is_typed(i)]
    while pending:
        i = pending.pop()
        if i.computation is not computation or i.control_predecessors or i.control_successors:
            continue
        moved = i.operands[0] if i.operands else i
        if moved.opcode not in COMMUTING or len(moved.user_view) != 1 or moved.is_root or not is_typed(moved):
            continue
        target = type_of(i)
        if type_of(moved).bits <= target.bits or _is_packed(target):
            continue
        growth.add(len(moved.operands) + 1)
        editor.place = i
        converted = [_converted(editor, o, target) for o in moved.operands]
        new = editor.clone(moved, converted, retyped(shape_of(moved), target))
        if editor.replace(i, new, relay_control=False):
            count += 1
            pending += [o for o in converted if o.opcode == "convert"]
    return count


def _converted(editor: Editor, x: Instruction, type_: ElementType) -> Instruction:
    """`MakeConvertToHlo`."""
    return x if type_of(x) is type_ else editor.create("convert", retyped(shape_of(x), type_), (x,))
