"""Collectives and transfers, and the halves of asynchronous operations.

XLA counts a start's whole result, operands and contexts included, and the data again at the done. `Work.touched` counts it
where it is begun: what is read and what is written, once.
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
