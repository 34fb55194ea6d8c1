"""The checks, one file for each family, and the table of those that look at one instruction."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from hlotext.ir.memo import remembered
from hlotext.ir.nodes.instruction import Instruction
from hlotext.verify.checks import (
    aliasing,
    calls,
    custom,
    devices,
    layouts,
    metadata,
    passing,
    shapes,
    shardings,
)
from hlotext.verify.facts import Facts
from hlotext.verify.problems import Problem


@attrs.frozen
class OpCheck:
    """A check of one instruction.

    It looks at nothing but the opcode, the attributes, the shapes of operands, result and literal, the signatures of
    called computations, and the facts. So equal operations have equal problems and are checked once.
    """

    run: Callable[[Instruction, Facts], Iterable[Problem]]
    opcodes: frozenset[str] | None = None
    """The opcodes that it is for; None: all."""
    attribute: str | None = None
    """It is only for instructions that have this attribute; None: for all."""
    needs_shapes: bool = False
    """Without meaning where shapes are wrong already, and then left out."""


OP_CHECKS = (
    OpCheck(shapes.check_result),
    OpCheck(shapes.check_precision),
    OpCheck(shapes.check_shape),
    OpCheck(calls.check_reducer, calls.REDUCING),
    OpCheck(calls.check_operands, frozenset({"dot", "fusion"})),
    OpCheck(shapes.check_comparison, frozenset({"compare"}), "type"),
    OpCheck(shapes.check_outfeed, frozenset({"outfeed"}), "outfeed_shape"),
    OpCheck(layouts.check_layout),
    OpCheck(layouts.check_packing),
    OpCheck(custom.check_composite, frozenset({"call"}), "is_composite"),
    OpCheck(custom.check_known, frozenset({"custom-call"}), "custom_call_target"),
    OpCheck(devices.check_groups),
    OpCheck(devices.check_pairs, attribute="source_target_pairs"),
    OpCheck(devices.check_offsets, attribute="slice_sizes"),
    OpCheck(devices.check_channel, frozenset({"all-reduce", "all-reduce-start"}), "channel_id"),
    OpCheck(shardings.check_sharding, attribute="sharding"),
    OpCheck(metadata.check_frame, attribute="metadata"),
    OpCheck(metadata.check_origin, attribute="origin"),
    OpCheck(passing.check_passing, needs_shapes=True),
    OpCheck(passing.check_kept, passing.KEEP_LAYOUT, needs_shapes=True),
    OpCheck(passing.check_bitcast, frozenset({"bitcast"}), needs_shapes=True),
    OpCheck(passing.check_constraints, attribute="operand_layout_constraints", needs_shapes=True),
    OpCheck(aliasing.check_operands, attribute="output_to_operand_aliasing"),
)
"""Every check of single instructions, in the order in which they run."""


@remembered(1 << 10)
def checks_for(opcode: str) -> tuple[OpCheck, ...]:
    """The checks that an opcode may need."""
    return tuple(check for check in OP_CHECKS if check.opcodes is None or opcode in check.opcodes)
