"""Cost of collectives, transfers, and the starts and dones of asynchronous operations.

XLA counts a start's whole result, including operands and contexts, and counts the data again at the done.
`OpCost.touched` counts bytes read and written once, at the start.
"""

from __future__ import annotations

from hlotext.analysis.communication import received_shape
from hlotext.cost.op_cost import OpCost, moved, rule
from hlotext.cost.sizes import ShapeSizes, elements
from hlotext.ir.nodes.instruction import Instruction


@rule("started")
def _started(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    work = moved(instruction, sizes)
    arriving = received_shape(instruction)
    if instruction.opcode == "copy-start" and arriving is not None and arriving.tuple_shapes:
        arriving = arriving.tuple_shapes[0]
    written = sizes.leaves(arriving) if arriving is not None else ()
    return work._replace(touched=(written, work.read))


@rule("finished")
def _finished(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return moved(instruction, sizes)._replace(touched=((), ()))


@rule("all_reduce")
def _all_reduce(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    """XLA assumes two replicas and one operation for each element, whatever the reducer."""
    shape = instruction.shape
    arrays = [leaf for _, leaf in shape.leaves() if leaf.is_array] if shape is not None else []
    return OpCost(
        sum(map(elements, arrays)),
        written=tuple(map(sizes.of, arrays)),
        read=tuple([sizes.operand(operand) for operand in instruction.operands]),
        at_once=True,
    )


@rule("infeed")
def _infeed(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return OpCost(written=sizes.leaves(instruction.shape), at_once=True)


@rule("outfeed")
def _outfeed(instruction: Instruction, sizes: ShapeSizes) -> OpCost:
    return OpCost(read=tuple(sum(sizes.leaves(operand.shape)) for operand in instruction.operands))
