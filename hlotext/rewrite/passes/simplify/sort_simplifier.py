"""Sorts without operands that nothing needs."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.control import CONTROL
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import is_typed, shape_of
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations


@attrs.frozen
class SortSimplifier(Pass):
    """Removes sort operands that neither the comparator nor any user needs (XLA's `SortSimplifier`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { a = f32[] parameter(0)  b = f32[] parameter(1)  c = s32[] parameter(2)  d = s32[] parameter(3)"
    ...     "  ROOT l = pred[] compare(a, b), direction=LT }  ENTRY e { x = f32[8] parameter(0)  y = s32[8] parameter(1)"
    ...     "  s = (f32[8], s32[8]) sort(x, y), dimensions={0}, to_apply=f"
    ...     "  ROOT r = f32[8] get-tuple-element(s), index=0 }")
    >>> SortSimplifier().run(m).statistics
    {'operands': 1}
    >>> print(m.entry.root)
    ROOT s.1 = f32[8] sort(x), dimensions={0}, to_apply=f.clone
    """

    name: ClassVar[str] = "sort-simplifier"
    summary: ClassVar[str] = "Removes unused sort operands."

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        found = [i for c in nonfusion_computations(module) for i in c.instructions if i.opcode == "sort"]
        return PassResult.of({"operands": sum(_simplify(editor, i) for i in found if is_typed(i))})


def _simplify(editor: Editor, sort: Instruction) -> int:
    """`RemoveUnusedOperandFromSort`; how many operands went."""
    callees = sort.called_computations
    count = len(sort.operands)
    if not shape_of(sort).is_tuple or sort.is_root or len(callees) != 1:
        return 0
    comparator = callees[0]
    if len(comparator.parameters) != 2 * count or len(shape_of(sort).tuple_shapes) != count:
        return 0
    if any(user.opcode != "get-tuple-element" for user in sort.users):
        return 0
    if sort.control_predecessors or sort.control_successors:
        return 0
    used = {user.attributes["index"] for user in sort.users}
    used |= {n // 2 for n, p in enumerate(comparator.parameters) if p.users or p.is_root}
    if len(used) == count or not used:
        return 0
    kept = sorted(used)
    editor.place = sort
    parts = tuple(shape_of(sort.operands[n]) for n in kept)
    shape = parts[0] if len(kept) == 1 else Shape.tuple(parts)
    new = editor.clone(sort, [sort.operands[n] for n in kept], shape)
    narrow = _narrowed(editor, comparator, kept)
    new.change(attributes={**new.attributes, "to_apply": narrow}, typed=False)
    results = (
        [editor.create("get-tuple-element", part, (new,), index=n) for n, part in enumerate(parts)]
        if len(kept) > 1
        else [new]
    )
    places = {old: results[n] for n, old in enumerate(kept)}
    for user in sort.users:
        user.replace_all_uses_with(places[user.attributes["index"]])
        editor.remove_unused(user)
    return count - len(kept)


def _narrowed(editor: Editor, comparator: Computation, kept: list[int]) -> Computation:
    """A copy of a comparator that takes the pairs of these operands alone."""
    copy = editor.module.add(
        Computation(editor.module.computation_names.unique(f"{comparator.name}.clone")), before=comparator
    )
    numbers = {2 * old + side: 2 * new + side for new, old in enumerate(kept) for side in (0, 1)}
    nodes: dict[Instruction, Instruction] = {}
    outside, editor.place = editor.place, None
    for i in comparator.instructions:
        if i.opcode == "parameter":
            number = numbers.get(i.parameter_number or 0)
            if number is not None:
                nodes[i] = editor.create(
                    "parameter", shape_of(i), argument=number, computation=copy, name=i.name
                )
            continue
        own = {k: v for k, v in i.attributes.items() if k != CONTROL}
        operands = [nodes[o] for o in i.operands]
        nodes[i] = editor.create(
            i.opcode, shape_of(i), operands, argument=i.literal, **own, computation=copy, name=i.name
        )
    copy.root = nodes[comparator.root]
    editor.place = outside
    return copy
