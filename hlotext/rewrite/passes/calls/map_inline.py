"""Maps of one operation as this operation on arrays."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import is_typed, shape_of
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class MapInline(Pass):
    """Replaces a map of a single operation with that operation (XLA's `MapInliner`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] subtract(b, a) }"
    ...     "  ENTRY e { x = f32[4] parameter(0)  y = f32[4] parameter(1)"
    ...     "  ROOT r = f32[4] map(x, y), dimensions={0}, to_apply=f }")
    >>> MapInline().run(m).statistics
    {'maps': 1}
    >>> print(m.entry.root)
    ROOT s.1 = f32[4] subtract(y, x)
    """

    name: ClassVar[str] = "map-inline"
    summary: ClassVar[str] = "Replaces maps of a single operation with that operation on whole arrays."

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        count = 0
        for computation in module.computations:
            if computation.is_sugared or not len(computation):
                continue
            for i in instruction_post_order(computation):
                if i.opcode == "map" and len(i.called_computations) == 1 and is_typed(i):
                    editor.place = i
                    count += _inline(editor, i)
        return PassResult.of({"maps": count})


def _inline(editor: Editor, i: Instruction) -> bool:
    """`MapInlinerVisitor::HandleMap`."""
    if i.control_predecessors or i.control_successors:
        return False
    root = i.called_computations[0].root
    if root.opcode == "fusion" or any(o.opcode != "parameter" for o in root.operands):
        return False
    if root.shape is None or root.called_computations:
        return False
    if root.opcode == "parameter":
        return editor.replace(i, i.operands[root.parameter_number or 0])
    if root.opcode == "constant":
        constant = editor.create("constant", shape_of(root), argument=root.literal)
        return editor.replace(i, editor.create("broadcast", shape_of(i), (constant,), dimensions=()))
    if not root.operands:
        return False
    new = editor.clone(root, [i.operands[o.parameter_number or 0] for o in root.operands], shape_of(i))
    return editor.replace(i, new)
