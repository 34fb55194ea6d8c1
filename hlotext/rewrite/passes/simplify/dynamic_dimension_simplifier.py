"""Ways around operations that only wrap and unwrap sizes."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import dims, is_scalar, shape_of, sizes
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.simplify.algebra.slices import ranges


@attrs.frozen
class DynamicDimensionSimplifier(Pass):
    """Removes concatenates, broadcasts and reshapes that are undone later (XLA's `DynamicDimensionSimplifier`).

    Such chains result from computing with run-time sizes. Bypassed instructions are left for DCE.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { n = s32[] parameter(0)  b = s32[1] reshape(n)  r = s32[] reshape(b)"
    ...     "  ROOT s = s32[] negate(r) }")
    >>> DynamicDimensionSimplifier().run(m).statistics
    {'reshape_of_reshape': 1}
    >>> print(m.entry.root)
    ROOT s = s32[] negate(n)
    """

    name: ClassVar[str] = "dynamic-dimension-simplifier"
    summary: ClassVar[str] = "Removes concatenates, broadcasts and reshapes that are undone later."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        counts: dict[str, int] = {}
        for step in STEPS:
            for computation in nonfusion_computations(module):
                for i in instruction_post_order(computation):
                    if i.computation is None or i.shape is None or any(o.shape is None for o in i.operands):
                        continue
                    editor.place = i
                    if step(editor, i):
                        counts[step.__name__] = counts.get(step.__name__, 0) + 1
        return PassResult.of(counts)


def joined_again(editor: Editor, i: Instruction) -> bool:
    """Rewrites concatenate(concatenate(a, b), c) => concatenate(a, b, c) (`ConcatForwarding`)."""
    if i.opcode != "concatenate":
        return False
    flat: list[Instruction] = []
    for o in i.operands:
        flat += o.operands if o.opcode == "concatenate" and dims(o) == dims(i) else (o,)
    if len(flat) == len(i.operands):
        return False
    return editor.replace(i, editor.create("concatenate", shape_of(i), flat, dimensions=dims(i)))


def slice_of_joined(editor: Editor, i: Instruction) -> bool:
    """Rewrites slice(concatenate(a, b), [1:2]) => b (`SliceConcatForwarding`)."""
    if i.opcode != "slice" or i.operands[0].opcode != "concatenate" or len(sizes(i)) != 1:
        return False
    (span,) = ranges(i)
    if span.stride != 1 or sizes(i)[0] != span.limit - span.start:
        return False
    place = 0
    for part in i.operands[0].operands:
        if place == span.start and sizes(part) == sizes(i):
            return _forward(editor, i, part)
        place += sizes(part)[0]
    return False


def reshape_of_broadcast(editor: Editor, i: Instruction) -> bool:
    """Rewrites reshape(broadcast(a)) => a, for a scalar (`ReshapeBroadcastForwarding`)."""
    if i.opcode != "reshape" or not is_scalar(i) or i.operands[0].opcode != "broadcast":
        return False
    b = i.operands[0]
    return len(sizes(b)) == 1 and is_scalar(b.operands[0]) and _forward(editor, i, b.operands[0])


def reshape_of_reshape(editor: Editor, i: Instruction) -> bool:
    """Rewrites reshape(reshape(a)) => a, if the shapes are equal (`ReshapeReshapeForwarding`)."""
    if i.opcode != "reshape" or i.operands[0].opcode != "reshape":
        return False
    inner = i.operands[0].operands[0]
    return shape_of(inner) == shape_of(i) and _forward(editor, i, inner)


def same_convert(editor: Editor, i: Instruction) -> bool:
    """Rewrites convert(a) => a, if the types are equal (`IdentityConvertRemoving`)."""
    return (
        i.opcode == "convert"
        and shape_of(i) == shape_of(i.operands[0])
        and _forward(editor, i, i.operands[0])
    )


def same_reshape(editor: Editor, i: Instruction) -> bool:
    """Rewrites reshape(a) => a, if the shapes are equal (`IdentityReshapeRemoving`)."""
    return (
        i.opcode == "reshape"
        and shape_of(i) == shape_of(i.operands[0])
        and _forward(editor, i, i.operands[0])
    )


def _forward(editor: Editor, i: Instruction, new: Instruction) -> bool:
    return bool(i.users or i.is_root) and editor.replace_uses(i, new)


STEPS = (joined_again, slice_of_joined, reshape_of_broadcast, reshape_of_reshape, same_convert, same_reshape)
