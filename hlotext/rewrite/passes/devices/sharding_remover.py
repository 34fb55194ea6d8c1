"""Custom calls that say only how values are sharded, taken out."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext.ir.nodes.computation import instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult

GROUP = "xla.sdy.ShardingGroup"
KEPT_AS_COPY = frozenset(
    {
        "Sharding",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.PropagationBarrier",
        "ShardBarrierFrom",
        "ShardBarrierTo",
    }
)
"""Targets in whose place a copy stays, for DCE."""
SHAPES = frozenset({"SPMDShardToFullShape", "SPMDFullToShardShape"})


@attrs.frozen
class ShardingRemover(Pass):
    """Removes sharding custom calls by forwarding their operands (XLA's `ShardingRemover`).

    Shardings themselves are kept; `remove-shardings` removes them too.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[4] parameter(0)"
    ...     "  s = f32[4] custom-call(x), custom_call_target=\\"Sharding\\", sharding={replicated}"
    ...     "  ROOT y = f32[4] sine(s) }")
    >>> ShardingRemover().run(m).statistics
    {'calls': 1}
    >>> print(m.entry.root)
    ROOT y = f32[4] sine(x)
    """

    name: ClassVar[str] = "sharding-remover"
    summary: ClassVar[str] = "Removes sharding custom calls."

    def run(self, module: Module) -> PassResult:
        editor = Editor(module)
        count = 0
        for computation in module.computations:
            if computation.is_sugared or computation.is_fusion_body:
                continue
            copied: list[Instruction] = []
            # XLA comes from the other side. So users are moved once, however many such calls stand in a row.
            for i in list(instruction_post_order(computation)):
                if i.opcode == "custom-call" and len(i.operands) == 1 and i.shape is not None:
                    count += _remove(i, copied)
            for i in reversed(copied):
                assert i.shape is not None
                editor.place = i
                editor.replace(i, editor.create("copy", i.shape, i.operands), remove_unused=False)
        return PassResult.of({"calls": count})


def _remove(i: Instruction, copied: list[Instruction]) -> bool:
    """Takes a call out of use; whether it was in use. Notes those in whose place a copy stays."""
    target = i.attributes.get("custom_call_target")
    home, shape = i.computation, i.shape
    if home is None or shape is None or i.operands[0].shape is None or i.control_successors:
        return False
    if target == GROUP:
        if not i.user_view and not i.is_root:
            home.remove(i)
            return True
        return False
    if target not in KEPT_AS_COPY and target not in SHAPES:
        return False
    if i.operands[0].shape.text_without_layout() != shape.text_without_layout():
        return False
    was_root, had_users = i.is_root, bool(i.user_view)
    i.replace_all_uses_with(i.operands[0])
    if target in KEPT_AS_COPY and i.computation is not None:
        copied.append(i)
    return was_root or had_users
