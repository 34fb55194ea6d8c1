"""D107: a matrix product with a one-hot matrix, which only picks rows."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.analysis import Backend
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.lint.beside import is_worth_time
from hlotext.lint.helpers import fusions_around, times
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import Value, source

_PASSING = frozenset(
    {"bitcast", "broadcast", "convert", "copy", "copy-done", "copy-start", "reshape", "transpose"}
)


@attrs.frozen
class OneHotProduct(Rule):
    code = "D107"
    name = "one-hot-product"
    title = "a matrix product with a one-hot matrix, which only picks rows"
    opcodes = frozenset({"dot", "convolution"})

    min_flops: int = 10_000_000
    """Operations in all runs from which on it is worth a finding."""
    min_percent: float = 1
    """Percent of the operations of all matrix products that it takes, likewise."""
    min_step_percent: float = 2
    """Percent of the estimated time of the module that it takes, with what is fused with it, likewise."""
    min_classes: int = 128
    """The number of rows to pick from, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        fusions = fusions_around(instruction, context)
        classes = max((_classes(Value(operand, fusions)) for operand in instruction.operands[:2]), default=0)
        if classes < self.min_classes:
            return
        # A TPU adds scattered rows one after the other, and a product many at once.
        if (
            context.backend is Backend.TPU
            and instruction.shape is not None
            and _adds_up(instruction.shape, classes)
        ):
            return
        flops = context.flops(instruction)
        if not is_worth_time((*fusions, instruction)[0], context, self.min_step_percent):
            return
        if flops >= self.min_flops and 100 * flops >= self.min_percent * context.product_flops:
            yield Report(
                instruction,
                f"{instruction.opcode} with a one-hot matrix of {classes:,} classes runs{times(context.runs(instruction))}: "
                "it multiplies by zeros and ones to pick rows, or to add them up",
                "take the rows by their index (table[indices], jnp.take), and add up with .at[].add",
                flops=flops,
                cause=f"{classes} classes",
            )


def _adds_up(result: Shape, classes: int) -> bool:
    """Whether a row of the product is the sum for one class, rather than what is picked for one index."""
    return result.is_array and classes in result.dimensions


def _classes(value: Value) -> int:
    """How many classes there are in `indices == iota`, zeros and ones: the length of the iota; 0 for any other value."""
    made = source(value, _PASSING)
    if made.instruction.opcode == "select" and len(made.instruction.operands) == 3:
        chosen = [source(one, _PASSING).instruction.opcode for one in made.operands()[1:]]
        if chosen != ["constant", "constant"]:
            return 0  # weights, not ones
        made = source(made.operands()[0], _PASSING)
    compare = made.instruction
    if compare.opcode != "compare" or str(compare.attributes.get("direction")) != "EQ":
        return 0
    sides = [source(side, _PASSING).instruction for side in made.operands()]
    counted = [side for side in sides if side.opcode == "iota"]
    if len(counted) != 1 or counted[0].shape is None:
        return 0
    dimension = counted[0].attributes.get("iota_dimension", 0)
    return counted[0].shape.dimensions[dimension] if dimension < counted[0].shape.rank else 0
