"""Conditionals whose branches take and give tuples."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.edit.cloning import clone_computation
from hlotext.edit.structure import set_root
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.facts import is_typed
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor


@attrs.frozen
class ConditionalCanonicalizer(Pass):
    """Wraps branch operands and results of conditionals in tuples (XLA's `ConditionalCanonicalizer`).

    >>> import hlotext as hlo
    >>> m = hlo.parse("f { a = f32[] parameter(0)  ROOT s = f32[] sine(a) }  g { b = f32[] parameter(0)"
    ...     "  ROOT c = f32[] cosine(b) }  ENTRY e { p = pred[] parameter(0)  x = f32[] parameter(1)"
    ...     "  ROOT r = f32[] conditional(p, x, x), true_computation=f, false_computation=g }")
    >>> ConditionalCanonicalizer().run(m).statistics
    {'conditionals': 1}
    >>> print(m.find("f").root, m.entry.root, sep=chr(10))
    ROOT tuple = (f32[]) tuple(s)
    ROOT get-tuple-element.2 = f32[] get-tuple-element(r.1), index=0
    """

    name: ClassVar[str] = "conditional-canonicalizer"
    summary: ClassVar[str] = "Wraps branch operands and results of conditionals in tuples."

    def run(self, module: Module) -> PassResult:
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        found = [
            i
            for computation in nonfusion_computations(module)
            for i in instruction_post_order(computation)
            if i.opcode == "conditional" and is_typed(i)
        ]
        return PassResult.of({"conditionals": sum(_canonicalize(editor, i) for i in found)})


def _canonicalize(editor: LoopEditor, conditional: Instruction) -> bool:
    """`CanonicalizeNonTupleConditional`."""
    branches = conditional.called_computations
    if any(len(c.parameters) != 1 or c.parameters[0].shape is None or c.root.shape is None for c in branches):
        return False
    changed = False
    for branch in dict.fromkeys(branches):
        changed |= _make_tuples(editor, conditional, branch)
    editor.place = conditional
    operands = [
        o if n == 0 or _is_tuple(o) else editor.tuple([o]) for n, o in enumerate(conditional.operands)
    ]
    if operands != list(conditional.operands):
        conditional.change(operands=operands, typed=False)
        changed = True
    if _is_tuple(conditional):
        return changed
    assert conditional.shape is not None
    wide = editor.clone(conditional, conditional.operands, Shape.tuple((conditional.shape,)))
    editor.replace(conditional, editor.element(wide, 0))
    return True


def _is_tuple(i: Instruction) -> bool:
    return i.shape is not None and i.shape.is_tuple


def _make_tuples(editor: LoopEditor, conditional: Instruction, branch: Computation) -> bool:
    """Makes parameter and root of a branch tuples; of a copy where something else calls it too."""
    parameter = branch.parameters[0]
    if _is_tuple(parameter) and _is_tuple(branch.root):
        return False
    if any(caller.opcode != "conditional" for caller in branch.callers):
        branch = _own_copy(conditional, branch)
        parameter = branch.parameters[0]
    editor.place = None
    if not _is_tuple(parameter):
        users, shape = parameter.users, parameter.shape
        assert shape is not None
        was_root = parameter.is_root
        parameter.change(shape=Shape.tuple((shape,)), typed=False)
        part = editor.element(parameter, 0)
        for user in users:
            user.change(operands=[part if o is parameter else o for o in user.operands], typed=False)
        if was_root:
            set_root(branch, part, typed=False)
    if not _is_tuple(branch.root):
        set_root(branch, editor.tuple([branch.root]), typed=False)
    return True


def _own_copy(conditional: Instruction, branch: Computation) -> Computation:
    copy = clone_computation(branch)
    own = dict(conditional.attributes)
    for name, value in own.items():
        if value is branch:
            own[name] = copy
        elif isinstance(value, tuple) and branch in value:
            own[name] = tuple(copy if item is branch else item for item in value)
    conditional.change(attributes=own, typed=False)
    return copy
