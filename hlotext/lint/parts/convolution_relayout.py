"""Transposes into the order of dimensions in which a GPU's library convolves, and back."""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.analysis import Backend, byte_text
from hlotext.analysis.heroes import MOVES
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcodes import ELEMENTWISE
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.lint.alike_fusions import alike
from hlotext.lint.helpers import counted, is_convolution_call, is_of_own_function
from hlotext.lint.moving import moved_array, moved_bytes
from hlotext.lint.rule import Context, Report, Rule
from hlotext.lint.values import VIEWS, result_elements

_SAME_ORDER = (ELEMENTWISE | VIEWS | traits.SOURCES | traits.TUPLES | {"broadcast"}) - MOVES
"""Opcodes of fusions whose result has the order in memory of their operands of its size."""
_VIEWS = (VIEWS | {"get-tuple-element"}) - MOVES
_SPATIAL = ("", "W", "HW", "DHW")


class ConvolutionRelayout(Rule):
    needs_optimized = True
    backends = frozenset({Backend.GPU})

    def check_module(self, context: Context) -> Iterator[Report]:
        moves = _moves(context)
        if not moves:
            return
        first = max(moves, key=context.prices.seconds)
        convolution = moves[first]
        labels = convolution.attributes["dim_labels"]
        orders = [_spelled(part) for part in str(labels).replace("->", "_").split("_")]
        size = sum(moved_bytes(one, one.operands[0]) * context.runs(one) for one in moves)
        yield Report(
            first,
            f"{counted(len(moves), 'only transposes', 'only transpose')} arrays to or from the dimension order of the "
            f"convolution library, {orders[0]} with {orders[1]} kernels: {byte_text(size)} is read and written",
            f"convolve with dimension_numbers={tuple(orders)}, and store inputs, weights and optimizer state in this order",
            size,
            seconds=context.prices.together(moves),
            spares=dict.fromkeys(moves, 1.0),
            origin=convolution,
            covers=frozenset(moves) - {first},
        )


def _moves(context: Context) -> dict[Instruction, Instruction]:
    """Operations that only bring an array into the order of a convolution, or out of it, each with the convolution.

    Between the two only elementwise operations may stand, such as the update of a kernel by its gradient.
    """
    calls = [
        one
        for one in context.census.by_opcode.get("custom-call", ())
        if is_convolution_call(one)
        and isinstance(one.attributes.get("dim_labels"), ConvolutionDimensionNumbers)
    ]
    bodies, found = alike(context.module), dict[Instruction, Instruction]()
    pending = [(one, operand) for one in calls for operand in (*one.operands[:2], one)]
    seen = {value for _, value in pending}
    while pending:
        convolution, value = pending.pop()
        for one in (value, *value.users):
            if one in found or is_convolution_call(one) or result_elements(one) != result_elements(value):
                continue
            if one.opcode in _VIEWS or bodies.opcodes(one) <= _SAME_ORDER:
                near = [one, *one.operands]
            elif _only_turns(one, context):
                found[one] = convolution
                continue
            else:
                continue
            for other in near:
                if other not in seen and result_elements(other) == result_elements(value):
                    seen.add(other)
                    pending.append((convolution, other))
    return found


def _only_turns(one: Instruction, context: Context) -> bool:
    """True if the compiler has it write an array in another order, in its own type: another one would take this time too.

    What a function of JAX computes, such as a resized image, has the order that its matmuls give it.
    """
    moved = moved_array(one, context)
    if moved is None or moved.shape is None or one.shape is None or not context.is_stepped(one):
        return False
    name = one.metadata.op_name if one.metadata is not None else ""
    return (
        moved.shape.element_type is one.shape.element_type
        and name.rpartition("/")[2] not in MOVES
        and not is_of_own_function(one)
    )


def _spelled(labels: str) -> str:
    """Dimensions as programs say them: `b01f` as NHWC, `o01i` as OHWI."""
    letters = dict(zip("bfoi", "NCOI", strict=True))
    spatial = _SPATIAL[min(len(labels) - 2, len(_SPATIAL) - 1)]
    return "".join(letters.get(label) or spatial[int(label) : int(label) + 1] or label for label in labels)
