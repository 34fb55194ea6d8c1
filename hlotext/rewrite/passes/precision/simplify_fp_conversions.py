"""Chains of conversions between floats as one."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order, post_order
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import is_typed, type_of
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class SimplifyFPConversions(Pass):
    """Merges chains of float conversions into one (XLA's `SimplifyFPConversions`).

    The rounding by a narrower intermediate type is dropped, so results differ in precision: XLA runs this pass where excess
    precision is allowed.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4] parameter(0)  h = bf16[4] convert(x)  w = f32[4] convert(h)"
    ...     "  ROOT y = f32[4] sine(w) }")
    >>> SimplifyFPConversions().run(m).statistics
    {'chains': 1}
    >>> print(m.entry.root)
    ROOT y = f32[4] sine(x)
    """

    name: ClassVar[str] = "simplify-fp-conversions"
    summary: ClassVar[str] = "Merges chains of float conversions into one, dropping intermediate rounding."
    preserves_results: ClassVar[bool] = False

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        count = 0
        for computation in post_order(module.computations):
            for i in instruction_post_order(computation):
                if i.computation is not computation or i.opcode != "convert" or not is_typed(i):
                    continue
                source, length = i, 0
                while source.opcode == "convert" and is_typed(source) and type_of(source).is_floating:
                    source, length = source.operands[0], length + 1
                if length < 2:
                    continue
                editor.place = i
                if type_of(source) is type_of(i):
                    count += editor.replace(i, source)
                else:
                    count += editor.replace_with_new(i, "convert", (source,))
        return PassResult.of({"chains": count})
