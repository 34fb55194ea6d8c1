"""Arrays without elements as constants."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations

SHAPE_MARKER = "xla.sdy.LocalToGlobalShape"
"""The target of custom calls that may be taken out, although they have effects."""


@attrs.frozen
class ZeroSizedHloElimination(Pass):
    """Replaces arrays without elements with constants (XLA's `ZeroSizedHloElimination`).

    Instructions with side effects, dynamic sizes or control dependencies are kept; users of a parameter use a constant
    instead.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[0,4] parameter(0)  ROOT y = f32[0,4] sine(x) }")
    >>> ZeroSizedHloElimination().run(m).statistics
    {'arrays': 2}
    >>> m.entry.root.opcode
    'constant'
    """

    name: ClassVar[str] = "zero-sized-hlo-elimination"
    summary: ClassVar[str] = "Replaces zero-sized arrays with constants."

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        count = 0
        for computation in nonfusion_computations(module):
            for i in instruction_post_order(computation):
                if i.computation is computation and _is_empty(editor, i):
                    editor.place = i
                    count += _replace(editor, i)
        return PassResult.of({"arrays": count})


def _is_empty(editor: Editor, i: Instruction) -> bool:
    shape = i.shape
    if shape is None or not shape.is_array or 0 not in shape.dimensions or not shape.is_static:
        return False
    if i.opcode == "constant" or not shape.element_type.dtype_name:
        return False
    return not editor.has_effect(i) or i.attributes.get("custom_call_target") == SHAPE_MARKER


def _replace(editor: Editor, i: Instruction) -> bool:
    if i.control_predecessors or i.control_successors or (i.opcode == "parameter" and not i.users):
        return False
    shape = i.shape
    assert shape is not None
    literal = Literal.from_array(np.zeros(shape.dimensions, shape.element_type.dtype), shape)
    new = editor.create("constant", shape, argument=literal)
    if i.opcode != "parameter":
        return editor.replace(i, new)
    if i.is_root:
        return False
    i.replace_all_uses_with(new)
    return True
