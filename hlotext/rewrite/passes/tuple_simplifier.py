"""Tuples that are made and taken apart again."""

from __future__ import annotations

from typing import ClassVar

import attrs

from hlotext import matchers as m
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import Pass, PassResult
from hlotext.rewrite.rewriter import Rewrite, apply_rules, pattern


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
    """Takes elements from where they were put into a tuple, and tuples from where they were taken apart.

    XLA's `TupleSimplifier`.
    """

    name: ClassVar[str] = "tuple-simplifier"
    summary: ClassVar[str] = "Removes tuples that are only made to be taken apart, and the reverse."

    exclude_entry_computation: bool = False
    """Leaves the entry as it is."""

    def run(self, module: Module) -> PassResult:
        chosen = [c for c in module.computations if not (self.exclude_entry_computation and c.is_entry)]
        return PassResult.of(apply_rules(module, RULES, computations=chosen))
