"""The instructions that a name may be meant for that a module does not have."""

from __future__ import annotations

from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables.opcodes import OPCODES

_MOST = 3
"""Names that a message suggests."""


def meant_instruction(module: Module, name: str) -> Instruction | None:
    """The instruction of that name; else, if the name is an opcode, the only one that has it."""
    found = module.find(name)
    if isinstance(found, Instruction):
        return found
    of_opcode = [one for one in module.instructions() if one.opcode == name]
    return of_opcode[0] if len(of_opcode) == 1 else None


def names_meant(module: Module, name: str) -> str:
    """The end of a message about a name that no instruction has: "; did you mean ...?", or nothing.

    The instructions of that opcode, those of the entry first, since users call an operation by what it does; else the names
    that look like it.
    """
    entry = module.entry
    named = sorted(_of_opcode(module, name), key=lambda one: one.computation is not entry)
    if named:
        return f"; did you mean {' or '.join(f'`{one.name}`' for one in named[:_MOST])}?"
    meant = did_you_mean(name, [one.name for one in module.instructions()])
    return f"; {meant}" if meant else ""


def _of_opcode(module: Module, name: str) -> list[Instruction]:
    """Instructions of the opcode that a name is, or begins with: `sort`, `sort.5`."""
    opcode = name.removeprefix("%")
    stem, _, number = opcode.rpartition(".")
    opcode = stem if number.isdecimal() else opcode
    return [one for one in module.instructions() if one.opcode == opcode] if opcode in OPCODES else []
