"""Origins of arrays: the argument of the program, or the instruction that computes it."""

from __future__ import annotations

import attrs

from hlotext.analysis.entries import program_name
from hlotext.analysis.views import VIEWS, fetched
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.traits import STARTS

_MOST_STEPS = 300
"""Maximum number of instructions followed."""


@attrs.frozen
class ArrayOrigin:
    """The origin of an array."""

    instruction: Instruction
    """The parameter of the entry computation, or the instruction that computes the array."""
    index: int | None = None
    """Its element of the instruction's result, if that is a tuple."""
    loops: tuple[Instruction, ...] = ()
    """Loops, innermost first, that change the array in each iteration; `instruction` gives its initial value."""

    def __str__(self) -> str:
        one = self.instruction
        name = program_name(one)
        text = f"{name} ({one.name})" if name and name != one.name else one.name
        text += f" element {self.index}" if self.index is not None else ""
        return f"{text}, updated in {' and '.join(loop.name for loop in self.loops)}" if self.loops else text


def array_origin(instruction: Instruction) -> ArrayOrigin:
    """Returns where the result of an instruction comes from, which is itself if it computes something.

    Followed are bitcasts, copies, prefetches, elements of tuples, and parameters of fusions, calls and loops up to the first
    caller of each. An element of a loop's state leads to its initial value.
    """
    one = instruction
    indices: list[int] = []
    """Elements of the tuple that `one` is, the outermost last."""
    loops: list[Instruction] = []
    for _ in range(_MOST_STEPS):
        before = _before(one, indices, loops)
        if before is None:
            break
        one = before
    return ArrayOrigin(one, indices[-1] if indices else None, tuple(dict.fromkeys(loops)))


def _before(one: Instruction, indices: list[int], loops: list[Instruction]) -> Instruction | None:
    """The instruction whose result, or element of it, `one` passes on; None if it is computed here."""
    opcode, operands = one.opcode, one.operands
    if opcode == "tuple" and indices and indices[-1] < len(operands):
        return operands[indices.pop()]
    if opcode == "while" and indices and operands and _passes_on(one, indices[-1]):
        return operands[0]
    if opcode == "parameter":
        return _handed(one, indices, loops)
    if opcode in ("async-done", "custom-call"):
        return fetched(one)
    if opcode == "get-tuple-element":
        index = one.attributes.get("index")
        if not isinstance(index, int) or not operands:
            return None
        indices.append(index)
        return operands[0]
    return operands[0] if opcode in VIEWS and operands else None


def _handed(parameter: Instruction, indices: list[int], loops: list[Instruction]) -> Instruction | None:
    """The operand of the first caller for a parameter of another computation than the entry."""
    home, number = parameter.computation, parameter.parameter_number
    if home is None or home.is_entry or number is None:
        return None
    caller = next(iter(home.callers), None)
    if caller is None:
        return None
    if caller.opcode == "while":
        if not (indices and _passes_on(caller, indices[-1])):
            loops.append(caller)
        return caller.operands[0] if caller.operands else None
    if caller.opcode in ("fusion", "call") or caller.opcode in STARTS:
        return caller.operands[number] if number < len(caller.operands) else None
    return None


def _passes_on(loop: Instruction, index: int) -> bool:
    """True if a loop does not change an element of its state."""
    body = loop.attributes.get("body")
    if not isinstance(body, Computation) or not len(body) or body.root.opcode != "tuple":
        return False
    if index >= len(body.root.operands):
        return False
    one = body.root.operands[index]
    for _ in range(_MOST_STEPS):
        if one.opcode == "get-tuple-element":
            return one.attributes.get("index") == index and one.operands[0].opcode == "parameter"
        if one.opcode not in VIEWS or not one.operands:
            return False
        one = one.operands[0]
    return False
