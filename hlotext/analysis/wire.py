"""Bytes that a device sends for each kind of communication, by algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape

Algorithm = Literal["ring", "tree"]
ALGORITHMS: tuple[Algorithm, ...] = ("ring", "tree")


@attrs.frozen
class WireRule:
    """What a device sends of D bytes that it puts in and R that it gets, in a group of n."""

    counts: Literal["operands", "results"] = "operands"
    """Whether D or R is what the share is of."""
    is_shared: bool = False
    """Whether a device keeps its own part: (n - 1) / n of it is sent."""
    rounds: int = 1
    """How often everything goes around: twice where a reduction is followed by handing out the sum."""
    is_at_most: bool = False
    """Whether the real figure is known only when it runs."""


RULES: Mapping[str, WireRule] = {
    # As NCCL's bus bandwidth counts, and as rings and trees work; permutes and sends count for a device that is a source.
    "all-gather": WireRule("results", is_shared=True),
    "all-reduce": WireRule(is_shared=True, rounds=2),
    "all-to-all": WireRule(is_shared=True),
    "collective-broadcast": WireRule(),
    "collective-permute": WireRule(),
    "collective-reduce": WireRule(),
    "infeed": WireRule("results", rounds=0),
    "outfeed": WireRule(),
    "ragged-all-to-all": WireRule(is_shared=True, is_at_most=True),
    "recv": WireRule("results", rounds=0),
    "reduce-scatter": WireRule(is_shared=True),
    "send": WireRule(),
}
"""One row for each kind of communication."""


def wire_bytes(
    kind: str, operand_bytes: int, result_bytes: int, devices: int | None, algorithm: Algorithm = "ring"
) -> int | None:
    """Bytes that a device sends; None where that depends on a number of devices that is not known.

    Rounded to whole bytes. A tree sends a whole all-reduce up and down again, whatever the number of devices.
    """
    rule = RULES.get(kind, WireRule())
    if devices == 1:
        return 0
    size = result_bytes if rule.counts == "results" else operand_bytes
    if not size or not rule.rounds:
        return 0
    if not rule.is_shared or (algorithm == "tree" and kind == "all-reduce"):
        return size * rule.rounds
    if devices is None or devices < 1:
        return None
    return (2 * size * rule.rounds * (devices - 1) + devices) // (2 * devices)


def latency_steps(kind: str, devices: int | None, algorithm: Algorithm = "ring") -> int | None:
    """Messages that follow each other in a group of so many devices; None where that number is not known."""
    if kind in ("all-gather", "all-reduce", "reduce-scatter", "collective-broadcast", "all-to-all"):
        if devices is None:
            return None
        if kind == "all-to-all":
            return devices // 2
        if algorithm == "tree":
            return max(0, devices - 1).bit_length() * (2 if kind == "all-reduce" else 1)
        return (devices - 1) * (2 if kind == "all-reduce" else 1)
    return 1


def slice_bytes(instruction: Instruction) -> int | None:
    """Bytes of the slices that an in-place collective-permute sends; None for what is none.

    It has `slice_sizes`; its operands are input, output and where the slices begin in each.
    """
    sizes = instruction.attributes.get("slice_sizes")
    if "source_target_pairs" not in instruction.attributes or not isinstance(sizes, tuple):
        return None
    shape = instruction.operands[0].shape if instruction.operands else None
    inputs = shape.tuple_shapes if shape is not None and shape.is_tuple else (shape,)
    each = sizes if sizes and isinstance(sizes[0], tuple) else (sizes,)
    total = 0
    for number, dimensions in enumerate(each):
        source = inputs[min(number, len(inputs) - 1)]
        if not isinstance(source, Shape) or not source.is_array:
            return None
        count = 1
        for size in dimensions:
            count *= size
        total += count * source.element_type.byte_width
    return total
