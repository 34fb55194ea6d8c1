"""Corruptions of operands and of the order of instructions."""

from __future__ import annotations

import random

import attrs

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from tests import support
from tests.corruptions.base import Corruption, before, choose, done, kind, plain, put


@kind
def swapped(module: Module, chance: random.Random) -> Corruption | None:
    """Two operands of different shapes change places."""

    def different(i: Instruction) -> list[tuple[int, int]]:
        return [
            (a, b)
            for a in range(len(i.operands))
            for b in range(a)
            if plain(i.operands[a]) != plain(i.operands[b])
        ]

    chosen = choose(module, chance, lambda i: i.opcode != "custom-call" and different(i))
    if chosen is None:
        return None
    a, b = chance.choice(different(chosen))
    operands = list(chosen.operands)
    operands[a], operands[b] = operands[b], operands[a]
    chosen._operands = tuple(operands)
    return done("swapped", chosen, f"operands {a} and {b} swapped")


@kind
def other_operand(module: Module, chance: random.Random) -> Corruption | None:
    """An operand becomes another instruction of another shape, defined before."""
    chosen = choose(module, chance, lambda i: i.operands and i.opcode != "custom-call")
    if chosen is None:
        return None
    number = chance.randrange(len(chosen.operands))
    old = chosen.operands[number]
    others = [i for i in before(chosen) if plain(i) != plain(old)]
    if not others:
        return None
    other = chance.choice(others)
    chosen._operands = (*chosen.operands[:number], other, *chosen.operands[number + 1 :])
    return done(
        "other_operand", chosen, f"operand {number} became {other.name}, {other.shape} for {old.shape}"
    )


@kind
def operand_count(module: Module, chance: random.Random) -> Corruption | None:
    """An operand fewer, or one twice."""
    chosen = choose(module, chance, lambda i: i.operands and i.opcode not in ("custom-call", "after-all"))
    if chosen is None:
        return None
    number = chance.randrange(len(chosen.operands))
    operands = list(chosen.operands)
    if chance.random() < 0.5:
        del operands[number]
    else:
        operands.insert(number, operands[number])
    chosen._operands = tuple(operands)
    return done("operand_count", chosen, f"now {len(operands)} operands")


@kind
def use_before_definition(module: Module, chance: random.Random) -> Corruption | None:
    """A use moves in front of its definition."""
    chosen = choose(module, chance, lambda i: i.operands and not i.is_root)
    if chosen is None or chosen.computation is None:
        return None
    instructions = chosen.computation._instructions
    instructions.remove(chosen)
    definition = chance.choice(chosen.operands)
    instructions.insert(instructions.index(definition), chosen)
    support.touch(definition)
    return done("use_before_definition", chosen, f"moved in front of {definition.name}")


@kind
def other_start(module: Module, chance: random.Random) -> Corruption | None:
    """A done that finishes something else."""
    chosen = choose(module, chance, lambda i: i.opcode.endswith("-done"))
    if chosen is None:
        return None
    others = [i for i in before(chosen) if i is not chosen.operands[0]]
    if not others:
        return None
    chosen._operands = (chance.choice(others),)
    return done("other_start", chosen, f"finishes {chosen._operands[0].name}")


@kind
def control(module: Module, chance: random.Random) -> Corruption | None:
    """A control predecessor that comes later."""
    chosen = choose(module, chance, lambda i: i.users)
    if chosen is None:
        return None
    put(chosen, control_predecessors=(chosen.users[0],))
    return done("control", chosen, f"after {chosen.users[0].name}")


@kind
def frame(module: Module, chance: random.Random) -> Corruption | None:
    """A stack frame that does not exist."""
    chosen = choose(module, chance, lambda i: i.metadata is not None and i.metadata.stack_frame_id)
    if chosen is None or chosen.metadata is None:
        return None
    put(chosen, metadata=attrs.evolve(chosen.metadata, stack_frame_id=10**6))
    return done("frame", chosen, "frame 1000000")
