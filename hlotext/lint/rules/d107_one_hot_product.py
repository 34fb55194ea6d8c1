"""D107: a matrix product with a one-hot matrix, which only picks rows."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.lint.helpers import times
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
    min_classes: int = 128
    """Length of the summed dimension, the number of rows to pick from, from which on it is worth a finding."""

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        caller = context.graph.caller(instruction.computation)
        fusions = (caller,) if caller is not None and caller.opcode == "fusion" else ()
        one_hot = next(
            (n for n, o in enumerate(instruction.operands[:2]) if _is_one_hot(Value(o, fusions))), None
        )
        if one_hot is None:
            return
        classes, flops = context.summed(instruction), context.flops(instruction)
        if classes is None or classes < self.min_classes or flops < self.min_flops:
            return
        yield Report(
            instruction,
            f"{instruction.opcode} with a one-hot matrix runs{times(context.runs(instruction))} "
            f"and adds up {classes:,} products where one counts",
            "take the rows by their index (table[indices], jnp.take), and add gradients with .at[].add",
            flops=flops,
        )


def _is_one_hot(value: Value) -> bool:
    """Whether a value is `indices == iota`: numbers beside one another, each compared with the one in its place."""
    made = source(value, _PASSING)
    if made.instruction._opcode == "select" and len(made.instruction._operands) == 3:
        made = source(made.operands()[0], _PASSING)
    compare = made.instruction
    if compare._opcode != "compare" or str(compare.attributes.get("direction")) != "EQ":
        return False
    sides = [source(side, _PASSING).instruction._opcode for side in made.operands()]
    return sides.count("iota") == 1
