"""Products of matrices brought into one form."""

from __future__ import annotations

import math
from typing import ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import resized, shape_of, sizes, type_of
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.simplify.algebra.dots import DotNumbers, settings


@attrs.frozen
class DotDecomposer(Pass):
    """Rewrites dots to batch dimensions first, one contracting and at most one other dimension (XLA's `DotDecomposer`).

    Operands are transposed and reshaped to `[batch, rows, contracting]` and `[batch, contracting, columns]`, and the result
    is reshaped back; `algsimp` removes no-ops. Dots that already have this form, with dimensions in any order, are kept.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[2,3,4] parameter(0)  y = f32[3,4] parameter(1)"
    ...     "  ROOT d = f32[2] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1} }")
    >>> DotDecomposer().run(m).statistics
    {'dots': 1}
    >>> print(m.entry.root.operands[0])
    dot = f32[2] dot(reshape, reshape.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name: ClassVar[str] = "dot-decomposer"
    summary: ClassVar[str] = (
        "Rewrites dots to one contracting and at most one other dimension, batch dimensions first."
    )

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        found = [
            i
            for computation in nonfusion_computations(module)
            for i in computation.instructions
            if i.opcode == "dot" and not _is_canonical(i)
        ]
        count = 0
        for dot in found:
            editor.place = dot
            count += _canonicalize(editor, dot)
        return PassResult.of({"dots": count})


def _is_canonical(dot: Instruction) -> bool:
    """`IsCanonical`, of both operands."""
    if any(o.shape is None or not o.shape.is_static for o in dot.operands) or dot.shape is None:
        return True
    n = DotNumbers.of(dot)
    sides = (
        (dot.operands[0], n.lhs_contracting, n.lhs_batch),
        (dot.operands[1], n.rhs_contracting, n.rhs_batch),
    )
    return all(
        len(contracting) == 1 and len(batch) + 2 >= len(sizes(x)) and batch == tuple(range(len(batch)))
        for x, contracting, batch in sides
    )


def _canonicalize(editor: Editor, dot: Instruction) -> bool:
    """`CanonicalizeDot`."""
    n = DotNumbers.of(dot)
    lhs, rhs = dot.operands
    batch = [size for d, size in enumerate(sizes(lhs)) if d in n.lhs_batch]
    count = len(batch)
    left, rows = _operand(editor, lhs, n.lhs_batch, n.lhs_contracting, batch, contracting_last=True)
    right, columns = _operand(editor, rhs, n.rhs_batch, n.rhs_contracting, batch, contracting_last=False)
    numbers = DotNumbers(tuple(range(count)), (count + len(rows),), tuple(range(count)), (count,))
    shape = editor.shape(type_of(dot), [*batch, *rows, *columns])
    new = editor.create("dot", shape, (left, right), **numbers.attributes(), **settings(dot))
    editor.copy_annotations_from(dot, new)
    return editor.replace_with_new(dot, "reshape", (new,))


def _operand(
    editor: Editor,
    x: Instruction,
    batch: tuple[int, ...],
    contracting: tuple[int, ...],
    batch_sizes: list[int],
    *,
    contracting_last: bool,
) -> tuple[Instruction, list[int]]:
    """An operand with dimensions of each kind joined, and the size of those that are neither, if it is not 1
    (`CanonicalizeOperand`)."""
    free = [d for d in range(len(sizes(x))) if d not in (*batch, *contracting)]
    order = (*batch, *free, *contracting) if contracting_last else (*batch, *contracting, *free)
    summed = math.prod(sizes(x)[d] for d in contracting)
    rest = math.prod(sizes(x)[d] for d in free)
    others = [rest] if rest != 1 else []
    joined = [*others, summed] if contracting_last else [summed, *others]
    turned = editor.create(
        "transpose",
        resized(shape_of(x), [sizes(x)[d] for d in order]),
        (x,),
        dimensions=order,
        metadata=x.metadata,
    )
    return editor.create(
        "reshape", editor.shape(type_of(x), [*batch_sizes, *joined]), (turned,), metadata=x.metadata
    ), others
