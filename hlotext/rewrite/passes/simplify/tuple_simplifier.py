"""Tuples that are made and taken apart again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

import attrs

from hlotext import matchers as m
from hlotext.analysis.age import age_for
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import xla_changes
from hlotext.rewrite.kit.apply import apply_rules
from hlotext.rewrite.kit.control import set_control
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.rules import Rewrite, pattern
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age


@pattern(m.get_tuple_element(m.tuple(name="tuple")))
def element_of_tuple(r: Rewrite) -> Instruction | None:
    """get-tuple-element(tuple(a, b), index=0) => a"""
    index: int = r.instruction.attributes["index"]
    return r["tuple"].operands[index]


@pattern(m.tuple())
def tuple_of_elements(r: Rewrite) -> Instruction | None:
    """tuple(get-tuple-element(t, index=0), get-tuple-element(t, index=1)) => t, where t has no more elements"""
    parts = r.instruction.operands
    if not parts or any(part.opcode != "get-tuple-element" for part in parts):
        return None
    whole = parts[0].operands[0]
    is_whole = (
        whole.shape is not None
        and len(whole.shape.tuple_shapes) == len(parts)
        and all(part.operands[0] is whole for part in parts)
        and [part.attributes["index"] for part in parts] == list(range(len(parts)))
        and str(whole.shape) == str(r.instruction.shape)
    )
    return whole if is_whole else None


RULES = (element_of_tuple, tuple_of_elements)


@attrs.frozen
class TupleSimplifier(Pass):
    """Forwards tuple elements to their users, and tuples rebuilt from their own elements.

    XLA's `TupleSimplifier`.
    """

    name: ClassVar[str] = "tuple-simplifier"
    summary: ClassVar[str] = (
        "Removes tuples whose elements are only extracted again, and extracted elements that only form the same tuple."
    )

    exclude_entry_computation: bool = False
    """Leaves the entry as it is."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest, which removes more tuples."""

    def run(self, module: Module) -> PassResult:
        chosen = [c for c in module.computations if not (self.exclude_entry_computation and c.is_entry)]
        ordered = [
            (i, *[o for o in i.operands if _is_ordered(o)])
            for c in chosen
            for i in c._instructions
            if i.opcode == "tuple" and any(user.opcode == "get-tuple-element" for user in i.user_view)
        ]
        counts = apply_rules(module, RULES, computations=chosen, on_refused="raise")
        is_left = any(i.computation for those in ordered if not those[0].user_view for i in those)
        # The text is looked through for its age, which takes longer than the rules, only where that decides something.
        if is_left and age_for(module, self.age or None).has(xla_changes.TUPLES_GO_FROM_ORDER):
            for those in ordered:
                if not those[0].user_view:
                    _remove_unused(module, those)
        return PassResult.of(counts)


def _is_ordered(i: Instruction) -> bool:
    return bool(i.control_predecessors or i.control_successors)


def _remove_unused(module: Module, waiting: Iterable[Instruction]) -> None:
    """Takes out a tuple and the elements that were for it alone; nobody waits in their place
    (`RemoveInstructionAndUnusedOperands` without regard to control dependencies)."""
    editor, pending = Editor(module), deque(waiting)
    while pending:
        i = pending.popleft()
        home = i.computation
        if home is None or i.is_root or i.user_view or i.opcode == "parameter" or editor.has_effect(i):
            continue
        pending += i.operands
        for successor in i.control_successors:
            set_control(successor, tuple(p for p in successor.control_predecessors if p is not i))
        set_control(i, ())
        home.remove(i)
