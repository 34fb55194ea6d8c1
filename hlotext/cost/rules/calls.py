"""Cost of operations that run other computations, and of those with unknown cost."""

from __future__ import annotations

from hlotext.cost.op_cost import NOTHING, CalleeCost, OpCost, moved, rule
from hlotext.cost.sizes import ShapeSizes
from hlotext.ir.nodes.instruction import Instruction

_MARKERS = frozenset({"__xla_internal_call_marker_before", "__xla_internal_call_marker_after"})


@rule("call")
def _call(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return OpCost(bodies=instruction.called_computations[:1])


@rule("async_start")
def _async_start(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return OpCost(bodies=instruction.called_computations[:1])


@rule("while")
def _while(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Body and condition, which XLA counts once each."""
    attributes = instruction.attributes
    return OpCost(bodies=(attributes["body"], attributes["condition"]))


@rule("conditional")
def _conditional(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return OpCost(bodies=instruction.called_computations, taken=CalleeCost.LARGEST)


@rule("custom_call")
def _custom_call(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """XLA counts -1 for all, since it does not know; markers of calls are free."""
    if instruction.attributes.get("custom_call_target") in _MARKERS:
        return NOTHING
    return moved(instruction, sizes)._replace(is_unknown=True)
