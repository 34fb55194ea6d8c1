"""Cost of slices, gathers and scatters, which count the elements touched rather than the whole array."""

from __future__ import annotations

from hlotext.cost.op_cost import OpCost, rule
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.nodes.instruction import Instruction


@rule("slice")
def _slice(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    size = sizes.of(instruction.shape)
    return OpCost(written=(size,), read=(size,), at_once=True)


@rule("dynamic_slice")
def _dynamic_slice(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Of the start indices XLA counts the first operand alone."""
    size = sizes.of(instruction.shape)
    return OpCost(written=(size,), read=(size, sizes.operand(instruction.operands[1])), at_once=True)


@rule("dynamic_update_slice")
def _dynamic_update_slice(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """The update is read, and written in the place of operand 0."""
    update = sizes.operand(instruction.operands[1])
    read = (0, update, sizes.operand(instruction.operands[2]))
    return OpCost(written=(update,), read=read, at_once=True)


@rule("gather")
def gather(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Counts the gathered elements, rather than the whole operand, and the indices as read, and the result as written."""
    size = sizes.of(instruction.shape)
    return OpCost(written=(size,), read=(size, sizes.operand(instruction.operands[1])), at_once=True)


@rule("scatter")
def scatter(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """Counts the updates as read, and as many bytes of the operands as read and written. The combiner runs once per
    update.
    """
    operands = instruction.operands
    count = (len(operands) - 1) // 2
    updates = [sizes.operand(operand) for operand in operands[count + 1 :]]
    return OpCost(
        written=(sum(updates),),
        read=(*updates, sizes.operand(operands[count]), *updates),
        at_once=True,
        applied=((instruction.called_computations[0], elements(operands[count + 1].shape)),),
    )
