"""The table of checks that look at one instruction, and the way through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import attrs

from hlotext.ir import caches
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.tables.opcodes import CALLS_NOTHING
from hlotext.ir.values.literal import Literal
from hlotext.semantics import (
    aliasing,
    calls,
    conditions,
    custom,
    devices,
    forwarded_layouts,
    layouts,
    origins,
    results,
    shardings,
)
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.problems import Problem

Error: TypeAlias = tuple[str, str]
"""The code of what is wrong, and a sentence."""


@attrs.frozen
class OpCheck:
    """A check of a single instruction.

    Its result depends only on the opcode, the attributes, the shapes of operands, result and literal, the signatures of
    called computations, and the options, so that equal operations are checked once.
    """

    run: Callable[[Instruction, VerifierOptions], Iterable[Problem]]
    opcodes: frozenset[str] | None = None
    """The opcodes that it is for; None: all."""
    attribute: str | None = None
    """It is only for instructions that have this attribute; None: for all."""
    needs_shapes: bool = False
    """Without meaning where shapes are wrong already, and then left out."""


OP_CHECKS = (
    OpCheck(results.check_result),
    OpCheck(results.check_precision),
    OpCheck(results.check_shape),
    OpCheck(calls.check_reducer, calls.REDUCING),
    OpCheck(calls.check_operands, frozenset({"fusion"})),
    OpCheck(calls.check_extra_operands, frozenset({"convolution", "dot"})),
    OpCheck(results.check_comparison, frozenset({"compare"}), "type"),
    OpCheck(results.check_comparison, frozenset({"compare"}), "order"),
    OpCheck(results.check_outfeed, frozenset({"outfeed"}), "outfeed_shape"),
    OpCheck(results.check_copy, frozenset({"copy"})),
    OpCheck(results.check_algorithm, attribute="algorithm"),
    OpCheck(layouts.check_layout),
    OpCheck(layouts.check_packing),
    OpCheck(custom.check_composite, frozenset({"call"}), "is_composite"),
    OpCheck(custom.check_known, frozenset({"custom-call"}), "custom_call_target"),
    OpCheck(devices.check_groups),
    OpCheck(devices.check_pairs, attribute="source_target_pairs"),
    OpCheck(devices.check_offsets, attribute="slice_sizes"),
    OpCheck(devices.check_channel, frozenset({"all-reduce", "all-reduce-start"}), "channel_id"),
    OpCheck(shardings.check_sharding, attribute="sharding"),
    OpCheck(origins.check_frame, attribute="metadata"),
    OpCheck(origins.check_origin, attribute="origin"),
    OpCheck(forwarded_layouts.check_forwarded, needs_shapes=True),
    OpCheck(forwarded_layouts.check_same_layout, forwarded_layouts.KEEP_LAYOUT, needs_shapes=True),
    OpCheck(forwarded_layouts.check_bitcast, frozenset({"bitcast"}), needs_shapes=True),
    OpCheck(forwarded_layouts.check_constraints, attribute="operand_layout_constraints", needs_shapes=True),
    OpCheck(aliasing.check_operands, attribute="output_to_operand_aliasing"),
)
"""Every check of single instructions, in the order in which they run."""


@caches.weighted_cache(1 << 10)
def checks_for(opcode: str) -> tuple[OpCheck, ...]:
    """The checks that an opcode may need."""
    return tuple(check for check in OP_CHECKS if check.opcodes is None or opcode in check.opcodes)


def check_operation(instruction: Instruction, facts: VerifierOptions) -> tuple[Problem, ...]:
    """Checks an instruction by its operands, attributes and shapes."""
    found: list[Problem] = []
    attributes = instruction._attributes
    wrong_shapes = False
    for check in checks_for(instruction._head.opcode):
        if check.attribute is not None and check.attribute not in attributes:
            continue
        if check.needs_shapes and wrong_shapes:
            continue
        found += check.run(instruction, facts)
        wrong_shapes = wrong_shapes or any(problem.is_error for problem in found)
    return tuple(found)


_REMEMBERED = CALLS_NOTHING - conditions.LOOK_FURTHER - frozenset(ROLES)
"""Opcodes whose errors follow from shapes and attributes alone, so that equal operations have equal errors."""


def errors_of(instruction: Instruction, facts: VerifierOptions) -> tuple[Error, ...]:
    """Returns the errors of an instruction by the rules of XLA's parser and verifier.

    Cached for equal operations. Shapes and values are compared by identity, since most are shared and hashing would
    take as long as some checks.
    """
    attributes = instruction._attributes
    if instruction._head.opcode not in _REMEMBERED or "control-predecessors" in attributes:
        return _errors_of(instruction, facts)
    argument, shape = instruction._head.argument, instruction._head.shape
    shapes = [operand._head.shape for operand in instruction._operands]
    key = (
        instruction._head.opcode, id(shape), *map(id, shapes), *attributes, *map(id, attributes.values()),
        id(argument.shape) if type(argument) is Literal else 0, instruction._form is Form.IMPLICIT, facts.key,
    )  # fmt: skip
    known = _ERRORS.results.get(key)
    if known is None:
        known = _errors_of(instruction, facts), attributes, shape, shapes, argument
        _ERRORS.put(key, known)  # with what the ids are of, so that it lives on
    found: tuple[Error, ...] = known[0]
    return found


_ERRORS = caches.Cache(1 << 13)


def _errors_of(instruction: Instruction, facts: VerifierOptions) -> tuple[Error, ...]:
    found = list(check_operation(instruction, facts))
    if instruction._form is not Form.IMPLICIT:
        found += conditions.of_opcode(instruction)
        found += conditions.of_values(instruction)
    return tuple((problem.code, problem.message) for problem in found if problem.is_error)
