"""A constant of its own for each user."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.rewrite.kit.edits import Editor, post_order_from
from hlotext.rewrite.kit.facts import is_unused
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, is_platform
from hlotext.rewrite.passes.compilation_stage import is_for_tpu


@attrs.frozen
class HloConstantSplitter(Pass):
    """Duplicates constants so that each has one user (XLA's `HloConstantSplitter`); the original is left for DCE.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { c = f32[] constant(2)  x = f32[] sine(c)  y = f32[] cosine(c)  ROOT r = f32[] add(x, y) }")
    >>> HloConstantSplitter().run(m).statistics
    {'constants': 2}
    """

    name: ClassVar[str] = "hlo-constant-splitter"
    summary: ClassVar[str] = "Duplicates constants so that each has one user."
    is_one_round: ClassVar[bool] = True

    split_expressions: bool = False
    """Takes what is computed of constants and iotas alone for constants too, as always for TPU (inferred from dumps)."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu`, `gpu` or `tpu`, whose compilers differ; empty: TPU where the text shows it, else all others."""

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        mode = attrs.evolve(self, split_expressions=True) if is_for_tpu(module, self.platform) else self
        growth = InstructionBudget(self.name, module)
        count = 0
        for computation in module.computations:
            if computation.is_sugared:
                continue
            constants: dict[Instruction, None] = {}
            for i in instruction_post_order(computation):
                if i.shape is not None and mode._is_constant(editor, i, constants):
                    constants[i] = None
            for i in constants:
                is_source = i.opcode == "constant" or i.opcode == "iota"
                if is_source and len(i.user_view) <= 1:
                    continue
                for user in i.users:
                    if i.opcode == "constant" or user not in constants:
                        count += _duplicate(editor, growth, i, user)
            if computation.is_fusion_body:  # nothing there may be without a use
                for i in reversed(list(constants)):
                    if i.computation is computation and is_unused(i):
                        editor.remove_unused(i)
        return PassResult.of({"constants": count})

    def _is_constant(self, editor: Editor, i: Instruction, constants: dict[Instruction, None]) -> bool:
        if i.opcode == "constant" or not self.split_expressions:
            return i.opcode == "constant"
        if i.opcode == "iota":
            return True
        known = bool(i.operands) and all(o in constants for o in i.operands)
        return (
            known
            and (i.opcode in ELEMENTWISE or i.opcode in ("broadcast", "slice"))
            and not editor.has_effect(i)
        )


def _duplicate(editor: Editor, growth: InstructionBudget, i: Instruction, user: Instruction) -> int:
    """A copy of an expression for one user (`DuplicateConstantExpressionPerUser`)."""
    copies: dict[Instruction, Instruction] = {}
    editor.place = user
    for item in post_order_from(i, copies):
        growth.add(1)
        new = editor.clone(item, [copies[o] for o in item.operands])
        if new.sharding is not None:
            own = {k: v for k, v in new.attributes.items() if k != "sharding"}
            new.change(attributes=own, typed=False)
        copies[item] = new
    user.change(operands=[copies[i] if o is i else o for o in user.operands], typed=False)
    return 1
