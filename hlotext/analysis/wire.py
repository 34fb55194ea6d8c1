"""Bytes that a device sends for each kind of communication, by algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.tables.opcode import WireRule
from hlotext.ir.values.shape import Shape

Algorithm = Literal["ring", "tree"]
ALGORITHMS: tuple[Algorithm, ...] = ("ring", "tree")


RULES: Mapping[str, WireRule] = traits.WIRE_RULES
"""One row for each kind of communication, as NCCL's bus bandwidth counts, and as rings and trees work."""


def wire_bytes(
    kind: str, operand_bytes: int, result_bytes: int, devices: int | None, algorithm: Algorithm = "ring"
) -> int | None:
    """Returns the bytes that a device sends, or None if this depends on an unknown number of devices.

    Rounded to whole bytes. With `tree`, an all-reduce sends all bytes up and down, regardless of the number of devices.
    """
    rule = RULES.get(kind, WireRule())
    if devices == 1:
        return 0
    size = result_bytes if rule.counts == "results" else operand_bytes
    if not size or not rule.rounds:
        return 0
    if not rule.is_shared or (algorithm == "tree" and rule.rounds > 1):
        return size * rule.rounds
    if devices is None or devices < 1:
        return None
    return (2 * size * rule.rounds * (devices - 1) + devices) // (2 * devices)


def latency_steps(kind: str, devices: int | None, algorithm: Algorithm = "ring") -> int | None:
    """Returns the number of sequential messages in a group of this many devices, or None if the number is unknown."""
    rule = RULES.get(kind, WireRule())
    if rule.steps == "one":
        return 1
    if devices is None:
        return None
    if rule.steps == "exchange":
        return devices // 2
    return (max(0, devices - 1).bit_length() if algorithm == "tree" else devices - 1) * rule.rounds


def slice_shapes(instruction: Instruction) -> tuple[Shape, ...] | None:
    """Returns the shapes of the slices that an in-place collective-permute sends; None for other instructions.

    Such a collective-permute has `slice_sizes`, and as operands the input, the output, and the slice offsets in each.
    """
    sizes = instruction.attributes.get("slice_sizes")
    if "source_target_pairs" not in instruction.attributes or not isinstance(sizes, tuple):
        return None
    shape = instruction.operands[0].shape if instruction.operands else None
    inputs = shape.tuple_shapes if shape is not None and shape.is_tuple else (shape,)
    each: Any = sizes if sizes and isinstance(sizes[0], tuple) else (sizes,)
    slices = []
    for number, dimensions in enumerate(each):
        source = inputs[min(number, len(inputs) - 1)]
        if not isinstance(source, Shape) or not source.is_array:
            return None
        slices.append(Shape(source.element_type, tuple(dimensions)))
    return tuple(slices)
