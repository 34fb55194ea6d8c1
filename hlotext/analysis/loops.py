"""What stays the same from one round of a loop to the next."""

from __future__ import annotations

from hlotext.analysis.facts import fact
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation, instruction_post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits

_CHANGING = (traits.HOST_EFFECTS - traits.DONES) | {"custom-call", "parameter", "after-all"}
"""Opcodes whose result may differ although their operands do not, or whose doing matters."""


@fact
def _found_before(module: Module) -> dict[Instruction, frozenset[Instruction]]:
    """The answers of `invariant_instructions`, filled in as it is asked."""
    return {}


def invariant_instructions(loop: Instruction) -> frozenset[Instruction]:
    """The instructions of a while's body that compute the same in every round.

    Elements of the state that the body passes on unchanged, constants, and what is computed from these alone. Empty where
    the state is no tuple whose elements are told apart.
    """
    module = loop.computation.module if loop.computation is not None else None
    if module is None:
        return _invariant(loop)
    known = _found_before(module)
    if loop not in known:
        known[loop] = _invariant(loop)
    return known[loop]


def _invariant(loop: Instruction) -> frozenset[Instruction]:
    body = loop.attributes.get("body")
    if not isinstance(body, Computation) or not len(body) or body.root.opcode != "tuple":
        return frozenset()
    passed = {
        index
        for index, operand in enumerate(body.root.operands)
        if operand.opcode == "get-tuple-element"
        and operand.attributes.get("index") == index
        and operand.operands[0].opcode == "parameter"
    }
    found: set[Instruction] = set()
    for instruction in _operands_first(body):
        opcode = instruction.opcode
        if opcode == "get-tuple-element" and instruction.operands[0].opcode == "parameter":
            if instruction.attributes.get("index") in passed:
                found.add(instruction)
        elif opcode in _CHANGING or (opcode in ROLES and opcode.startswith(("send", "recv"))):
            continue
        elif all(operand in found for operand in instruction.operands):
            found.add(instruction)
    return frozenset(found)


def _operands_first(body: Computation) -> list[Instruction]:
    """The instructions in an order in which operands come before users; the text's order where that is one."""
    seen: set[Instruction] = set()
    for instruction in body:
        if any(operand not in seen and operand.computation is body for operand in instruction.operands):
            return instruction_post_order(body)
        seen.add(instruction)
    return list(body)
