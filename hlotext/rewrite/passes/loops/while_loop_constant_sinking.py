"""Constants that loops carry, written into them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs

from hlotext.edit.cloning import clone_computation
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, is_platform
from hlotext.rewrite.passes.compilation_stage import is_for_tpu
from hlotext.rewrite.passes.loops.loop_rebuilding import (
    LoopEditor,
    body_of,
    condition_of,
    invariant_elements,
    is_whole,
    parameter_of,
)


@attrs.frozen
class WhileLoopConstantSinking(Pass):
    """Sinks loop-carried constants into loops (XLA's `WhileLoopConstantSinking`).

    If an element of the state starts as a constant and the body forwards it, body and condition use their own constant; the
    element is left for `simplify-while-loops` to remove. Outer loops come first, so that constants reach inner ones.

    >>> import hlotext as hlo
    >>> m = hlo.parse('''
    ... body { s = (f32[], f32[]) parameter(0)  c = f32[] get-tuple-element(s), index=0
    ...   x = f32[] get-tuple-element(s), index=1  y = f32[] add(x, c)  ROOT t = (f32[], f32[]) tuple(c, y) }
    ... cond { s = (f32[], f32[]) parameter(0)  x = f32[] get-tuple-element(s), index=1
    ...   n = f32[] constant(9)  ROOT lt = pred[] compare(x, n), direction=LT }
    ... ENTRY e { x = f32[] parameter(0)  two = f32[] constant(2)  s = (f32[], f32[]) tuple(two, x)
    ...   ROOT w = (f32[], f32[]) while(s), condition=cond, body=body }''')
    >>> WhileLoopConstantSinking().run(m).statistics
    {'constants': 1}
    >>> print(m.find("body").root.operands[1])
    y = f32[] add(x, two.1)
    """

    name: ClassVar[str] = "while-loop-constant-sinking"
    summary: ClassVar[str] = "Sinks loop-carried constants into loop bodies and conditions."

    broadcasts: bool = False
    """Takes broadcasts of constants for constants too, as always for TPU (inferred from dumps)."""
    only_scalars: bool = False
    """Leaves constants with dimensions where they are."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu`, `gpu` or `tpu`, whose compilers differ; empty: TPU where the text shows it, else all others."""

    def run(self, module: Module) -> PassResult:
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        mode = attrs.evolve(self, broadcasts=True) if is_for_tpu(module, self.platform) else self
        seen: set[Computation] = set()
        pending = [module.entry] if module.computations else []
        count = 0
        while pending:
            computation = pending.pop()
            if computation in seen:
                continue
            seen.add(computation)
            for i in computation.instructions:
                if i.opcode == "while" and is_whole(i):
                    count += mode._sink(editor, i)
                pending += i.called_computations
        if count:
            unused = [c for c in module.computations if c not in seen and not c.callers and not c.is_entry]
            if unused:
                module.remove_all(unused)
        return PassResult.of({"constants": count})

    def _sink(self, editor: LoopEditor, loop: Instruction) -> int:
        """`TrySinkingConstantsIntoWhileLoop`."""
        init = loop.operands[0]
        if init.opcode != "tuple":
            return 0
        count = 0
        for n, element in invariant_elements(body_of(loop)):
            value = init.operands[n]
            if not self._is_constant(value):
                continue
            if len(element.user_view) > 1:
                body = _own(loop, "body")
                inside = body.root.operands[n]
                copy = _copy(editor, value, body)
                for user in inside.users:
                    kept = n if user is body.root else -1
                    operands = [
                        copy if o is inside and place != kept else o for place, o in enumerate(user.operands)
                    ]
                    user.change(operands=operands, typed=False)
                count += 1
            count += self._sink_into_condition(editor, loop, n, value)
        return count

    def _sink_into_condition(self, editor: LoopEditor, loop: Instruction, n: int, value: Instruction) -> int:
        if not any(_is_used(user, n) for user in parameter_of(condition_of(loop)).users):
            return 0
        condition = _own(loop, "condition")
        count = 0
        for user in parameter_of(condition).users:
            if _is_used(user, n):
                copy = _copy(editor, value, condition)
                user.replace_all_uses_with(copy)
                if not user.is_root:
                    condition.remove(user)
                count += 1
        return count

    def _is_constant(self, value: Instruction) -> bool:
        if self.only_scalars and value.shape is not None and value.shape.dimensions:
            return False
        if value.opcode == "broadcast" and self.broadcasts:
            value = value.operands[0]
        return value.opcode == "constant" and value.literal is not None


def _is_used(user: Instruction, index: int) -> bool:
    is_part = user.opcode == "get-tuple-element" and user.attributes["index"] == index
    return is_part and (bool(user.user_view) or user.is_root)


def _own(loop: Instruction, name: str) -> Computation:
    """A loop's body or condition, which nothing else calls."""
    found = body_of(loop) if name == "body" else condition_of(loop)
    if found.callers == (loop,) and len([c for c in loop.called_computations if c is found]) == 1:
        return found
    copy = clone_computation(found, f"{found.name}.sunk")
    loop.change(attributes={**loop.attributes, name: copy}, typed=False)
    return copy


def _copy(editor: LoopEditor, value: Instruction, computation: Computation) -> Instruction:
    """A constant, or a broadcast of one, in another computation (`CloneHelper`)."""
    chain: list[Instruction] = [value]
    while chain[-1].operands:
        chain.append(chain[-1].operands[0])
    made: Iterable[Instruction] = ()
    editor.place = None
    for i in reversed(chain):
        shape = i.shape
        assert shape is not None
        new = editor.create(
            i.opcode, shape, tuple(made), like=i, argument=i.literal, name=i.name, computation=computation,
            dimensions=i.attributes["dimensions"] if i.operands else None,
        )  # fmt: skip
        made = (new,)
    return new
