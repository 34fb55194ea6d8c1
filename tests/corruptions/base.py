"""Single semantic corruptions of real modules: each leaves text that looks like HLO and is none.

A kind takes a module and a source of chance, changes one thing behind the back of the editing interface (which would
refuse it), and says what; None where the module has nothing of the sort.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from tests import support


@attrs.frozen
class Corruption:
    """One thing that was changed."""

    kind: str
    what: str
    instruction: Instruction | None
    """The instruction at fault; None for the module's header."""


Kind = Callable[[Module, random.Random], Corruption | None]
KINDS: dict[str, Kind] = {}
"""Every kind by its name."""


def kind(function: Kind) -> Kind:
    """Makes a function a kind, of its own name."""
    KINDS[function.__name__] = function
    return function


# ---- choosing and changing


def candidates(module: Module, wanted: Callable[[Instruction], Any]) -> list[Instruction]:
    """The instructions with a line of their own for which something holds."""
    return [
        i for c in module.computations if not c.is_sugared for i in c if i.form is Form.LINE and wanted(i)
    ]


def choose(module: Module, chance: random.Random, wanted: Callable[[Instruction], Any]) -> Instruction | None:
    """One of them; None where there is none."""
    found = candidates(module, wanted)
    return chance.choice(found) if found else None


def shape_of(instruction: Instruction) -> Shape:
    """The result's shape, which every real module states."""
    assert instruction.shape is not None
    return instruction.shape


def plain(instruction: Instruction) -> str:
    """The result's shape without layouts, as text."""
    return str(shape_of(instruction).without_layout())


def before(instruction: Instruction) -> list[Instruction]:
    """The instructions that stand above in the same computation."""
    assert instruction.computation is not None
    instructions = instruction.computation.instructions
    return list(instructions[: instructions.index(instruction)])


def put(instruction: Instruction, **attributes: Any) -> None:
    """Sets attributes; `_` in the first word of `control_predecessors` stands for `-`."""
    renamed = {key.replace("control_", "control-"): value for key, value in attributes.items()}
    instruction._attributes = {**instruction._attributes, **renamed}


def state(instruction: Instruction, shape: Shape) -> None:
    """Sets the result's shape, and with it what the computation's header says."""
    instruction._shape = shape
    if instruction.computation is not None:
        instruction.computation._is_signature_touched = True


def done(name: str, instruction: Instruction, what: str) -> Corruption:
    """The corruption of an instruction, which is printed anew."""
    support.touch(instruction)
    return Corruption(name, f"{instruction.opcode} {instruction.name}: {what}", instruction)


def mixes_precisions(module: Module) -> bool:
    """Whether layouts have tiles, so that the verifier lets precisions mix."""
    leaves = (leaf for i in module.instructions() for _, leaf in shape_of(i).leaves())
    return any(leaf.layout is not None and leaf.layout.tiles for leaf in leaves)


# ---- where a corruption may be found


def near(corruption: Corruption) -> set[Instruction]:
    """The corrupted instruction, its direct users, and for parameters and roots the callers."""
    instruction = corruption.instruction
    if instruction is None or instruction.computation is None:
        return set()
    computation, module = instruction.computation, instruction.computation.module
    users = {i for i in computation if instruction in i._operands or instruction in i.control_predecessors}
    callers: Iterable[Instruction] = ()
    if module is not None and (instruction.opcode == "parameter" or instruction.is_root):
        callers = [i for i in module.instructions() if computation in called(i)]
    return {instruction, *users, *callers}


def called(instruction: Instruction) -> list[Computation]:
    """The computations in an instruction's attributes, whatever these are."""
    values = [
        value
        for attribute in instruction._attributes.values()
        for value in (attribute if isinstance(attribute, tuple) else (attribute,))
    ]
    return [value for value in values if isinstance(value, Computation)]
