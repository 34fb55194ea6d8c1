"""Transposes taken into the products that read them."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import dims, shape_of, sizes
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.simplify.algebra.dots import DotNumbers, settings
from hlotext.rewrite.passes.simplify.dimensions import is_identity


@attrs.frozen
class TransposeFolding(Pass):
    """Folds transposes into dots and convolutions (XLA's `TransposeFolding`).

    A transpose that swaps the two matrix dimensions, apart from batch dimensions, is removed and the dot contracts the other
    dimension. For a convolution the dimension numbers change, if requested. Compilers have further conditions, such as which
    library computes the dot.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[3,2] parameter(0)  y = f32[3,4] parameter(1)"
    ...     "  t = f32[2,3] transpose(x), dimensions={1,0}"
    ...     "  ROOT d = f32[2,4] dot(t, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }")
    >>> TransposeFolding().run(m).statistics
    {'transposes': 1}
    >>> print(m.entry.root)
    ROOT d = f32[2,4] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    """

    name: ClassVar[str] = "transpose-folding"
    summary: ClassVar[str] = "Folds transposes of operands into dots."

    convolutions: bool = True
    """Also folds transposes into convolutions."""

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        found = [i for c in nonfusion_computations(module) for i in c.instructions]
        count = 0
        for i in found:
            if i.computation is None or i.shape is None or any(o.shape is None for o in i.operands):
                continue
            editor.place = i
            if i.opcode == "dot":
                count += _fold_dot(editor, i)
            elif i.opcode == "convolution" and self.convolutions:
                count += _fold_convolution(editor, i)
        return PassResult.of({"transposes": count})


def _fold_dot(editor: Editor, dot: Instruction) -> int:
    """`FoldTransposeIntoDot`."""
    if any(len(sizes(o)) < 2 for o in dot.operands):
        return 0
    n = DotNumbers.of(dot)
    sides = [(n.lhs_batch, n.lhs_contracting), (n.rhs_batch, n.rhs_contracting)]
    operands = list(dot.operands)
    count = 0
    for number, (batch, contracting) in enumerate(sides):
        x = operands[number]
        if not _swaps_rows_and_columns(x, batch, contracting):
            continue
        order = dims(x)
        sides[number] = (tuple(order[d] for d in batch), tuple(order[d] for d in contracting))
        operands[number] = x.operands[0]
        count += 1
    if not count:
        return 0
    numbers = DotNumbers(*sides[0], *sides[1])
    new = editor.create("dot", shape_of(dot), operands, **numbers.attributes(), **settings(dot))
    editor.copy_annotations_from(dot, new)
    return count if editor.replace(dot, new) else 0


def _swaps_rows_and_columns(x: Instruction, batch: tuple[int, ...], contracting: tuple[int, ...]) -> bool:
    """`IsNonIdentityTranspose` and `IsRowColumnTransposeDotOperand`."""
    if x.opcode != "transpose" or is_identity(dims(x)):
        return False
    return len(batch) == len(sizes(x)) - 2 and len(contracting) == 1 and all(dims(x)[d] == d for d in batch)


def _fold_convolution(editor: Editor, i: Instruction) -> int:
    """`FoldTransposeIntoConvolution`."""
    labels = i.attributes.get("dim_labels")
    if not isinstance(labels, ConvolutionDimensionNumbers):
        return 0
    operands = list(i.operands)
    new = labels
    count = 0
    for number, names in enumerate((_INPUT, _KERNEL)):
        x = operands[number]
        if x.opcode != "transpose":
            continue
        order = dims(x)
        changes: dict[str, Any] = {}
        for name in names:
            value = getattr(new, name)
            changes[name] = tuple(order[d] for d in value) if isinstance(value, tuple) else order[value]
        new = attrs.evolve(new, **changes)
        operands[number] = x.operands[0]
        count += 1
    if not count:
        return 0
    copy = editor.clone(i, operands)
    copy.change(attributes={**copy.attributes, "dim_labels": new}, typed=False)
    return count if editor.replace(i, copy, relay_control=False) else 0


_INPUT = ("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions")
_KERNEL = ("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions")
