"""G127: gradients of one element of each row, which are scattered into zeros."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import byte_text
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.lint.helpers import fusions_around, size_of
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, Value, consumers, elements_of, source
from hlotext.lint.wording import sizes

_SAME = VIEWS | traits.REARRANGES_ELEMENTS | {"convert"}
_ZEROS = _SAME | {"broadcast"}
_FEW = 8
"""Minimum number of elements of a row, one of which is added to."""
_OPERANDS = 3


class ScatteredPicks(Rule):
    code = "G127"
    name = "scattered-picks"
    title = "a gradient of one element of each row that is scattered into zeros, which are written and read in full"
    waste = "dense"
    needs_optimized = True
    opcodes = frozenset({"scatter"})

    def check(self, instruction: Instruction, context: Context) -> Iterator[Report]:
        reducer = instruction.attributes.get("to_apply")
        if (
            len(instruction.operands) != _OPERANDS
            or not isinstance(reducer, Computation)
            or reducer.root.opcode != "add"
        ):  # it is not an addition to one array
            return
        rows, elements = elements_of(instruction.operands[2].shape), elements_of(instruction.shape)
        if not rows or _FEW * rows > elements or not _is_one_of_each_row(instruction, context):
            return  # it does not add to one element of each row
        fusions = fusions_around(instruction, context)
        zeros = Value(instruction.operands[0], fusions)
        if source(zeros, _ZEROS).instruction.opcode != "constant":  # it does not add to zeros
            return
        whole = (*fusions, instruction)[0]
        readers = {user.writer for user, _ in consumers(Value(whole), _SAME)}
        if not readers or any(one.opcode == "tuple" for one in readers):  # it is a result
            return
        made = source(Value(whole.operands[0]), VIEWS).writer if whole.operands else whole
        runs = context.runs(whole)
        size = size_of(instruction.shape)
        # Whoever reads the result reads less; but a comparison reads all of what was indexed, in the forward pass.
        seconds = context.prices.together({whole, made}) + (len(readers) - 1) * runs * context.prices.reading(
            size
        )
        yield Report(
            instruction,
            f"zeros of {byte_text(size)} ({sizes(instruction.shape)}) are written, one element of each of {rows:,} rows is "
            f"added to, and all is read again: the gradient of an indexed element, as by jnp.take_along_axis",
            "select the element by comparison, jnp.where(jnp.arange(n) == index[..., None], x, 0).sum(-1), of which the "
            "gradient is computed where it is read",
            seconds=seconds,
            spares={whole: 1.0, made: 1.0},
            covers=frozenset({made}),
        )


def _is_one_of_each_row(scatter: Instruction, context: Context) -> bool:
    """True if each index consists of its own position, and of a number along one dimension."""
    value = source(Value(scatter.operands[1], fusions_around(scatter, context)), _SAME)
    rank = scatter.shape.rank if scatter.shape is not None and scatter.shape.is_array else 0
    batches = scatter.attributes.get("input_batching_dims", ())
    if batches:
        return len(batches) == rank - 1
    if value.instruction.opcode != "concatenate":
        return False
    parts = [source(part, _SAME).instruction.opcode for part in value.operands()]
    return len(parts) == rank > 1 and parts.count("iota") == rank - 1
