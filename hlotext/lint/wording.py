"""Wording of findings: operations in terms of the program, sizes, iterations."""

from __future__ import annotations

from collections.abc import Sequence

from hlotext import cost
from hlotext.analysis import byte_text, total_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.aliasing import ShapeIndex
from hlotext.ir.values.shape import Shape
from hlotext.lint.rounds import parts_of

_QUIET = frozenset(
    {
        "bitcast", "broadcast", "constant", "convert", "copy", "get-tuple-element", "iota", "parameter", "reshape", "slice",
        "tuple",
    }
)  # fmt: skip
"""Opcodes that do not say what an instruction is for."""
_FIRST = (
    "convolution",
    "dot",
    "sort",
    "gather",
    "scatter",
    "fft",
    "cholesky",
    "triangular-solve",
    "reduce-window",
)
"""Opcodes that say it whatever stands beside them."""


def sizes(shape: Shape | None) -> str:
    """Returns `2048x8192`, or `a scalar`; empty for a tuple."""
    if shape is None or not shape.is_array:
        return ""
    return "x".join(map(str, shape.dimensions)) or "a scalar"


def described(instruction: Instruction) -> str:
    """Describes an instruction: `the matmul of 2048x8192 and 8192x2048`, `the gather of 1048576x16`, `the copy of 4.00 "
    "MiB`."""
    parts = list(parts_of(instruction))
    main = next((one for opcode in _FIRST for one in parts if one.opcode == opcode), None)
    if main is None and instruction.opcode == "custom-call":
        target = str(instruction.attributes.get("custom_call_target", ""))
        if target.startswith(("__cublas$", "__onednn$matmul")) and len(instruction.operands) > 1:
            return f"the matmul of {_pair(instruction)}"
        return f"the custom call {target} ({byte_text(total_of(instruction.shape).allocated_bytes)})"
    if main is not None and main.opcode == "dot":
        return f"the matmul of {_pair(main)}"
    if main is not None:
        return f"the {main.opcode} of {sizes(main.shape) or byte_text(total_of(instruction.shape).allocated_bytes)}"
    said = list(dict.fromkeys(one.opcode for one in parts if one.opcode not in _QUIET))
    if not said:
        said = list(
            dict.fromkeys(
                one.opcode for one in parts if one.opcode in ("broadcast", "convert", "copy", "slice")
            )
        )
    words = listed(said[:3]) or instruction.opcode
    kind = "fused " if len(said) > 1 else ""
    return f"the {kind}{words} of {byte_text(total_of(instruction.shape).allocated_bytes)}"


def listed(words: Sequence[str]) -> str:
    """Returns `a`, `a and b`, or `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def written(instruction: Instruction, index: ShapeIndex = ()) -> str:
    """Describes one array of a result by the operation that computes its elements, of a fusion that of the one output.

    `the matmul of 2048x8192 and 8192x2048`, `the exponential of 8x8192x8192`; unlike `described`, which tells what a
    fusion does in all.
    """
    one, left = instruction, list(index)
    seen: set[Instruction] = set()
    while one not in seen:
        seen.add(one)
        if one.opcode in ("fusion", "call") and one.called_computations:
            one = one.called_computations[0].root
        elif one.opcode == "tuple" and left and left[0] < len(one.operands):
            one = one.operands[left.pop(0)]
        elif one.opcode == "get-tuple-element" and one.operands:
            left.insert(0, int(one.attributes.get("index", 0)))
            one = one.operands[0]
        elif one.opcode in _QUIET and len(one.operands) == 1 and one.opcode != "tuple":
            one = one.operands[0]
    if one.opcode == "add" and (product := next(filter(None, map(_product_behind, one.operands)), None)):
        one = product
    if one.opcode in _QUIET or one.opcode == "custom-call" or one.shape is None or not one.shape.is_array:
        return described(instruction)
    is_product = one.opcode == "dot" or cost.product_sizes(one) is not None
    return f"the matmul of {_pair(one)}" if is_product else f"the {one.opcode} of {sizes(one.shape)}"


def _product_behind(one: Instruction) -> Instruction | None:
    """The product that an array is, perhaps in another form: a bias or a residual is added to it on the way out."""
    while one.opcode in _QUIET and len(one.operands) == 1:
        one = one.operands[0]
    return one if one.opcode in traits.CONTRACTIONS else None


def _pair(product: Instruction) -> str:
    return " and ".join(sizes(operand.shape) for operand in product.operands[:2])


def every_round(rounds: int, is_known: bool) -> str:
    """Returns `in each of 200 iterations`, or `in every iteration` if their number is unknown."""
    return f"in {iterations(rounds, is_known)}"


def iterations(rounds: int, is_known: bool) -> str:
    """Returns `each of 200 iterations`, or `every iteration` if their number is unknown."""
    return f"each of {rounds:,} iterations" if is_known and rounds > 1 else "every iteration"
