"""Dead code elimination."""

from __future__ import annotations

import contextlib
import itertools
from typing import ClassVar

import attrs

from hlotext.ir.computation import Computation
from hlotext.ir.errors import EditError
from hlotext.ir.instruction import Instruction
from hlotext.ir.module import Module
from hlotext.ir.uses import is_finished_by
from hlotext.rewrite.effects import fixed
from hlotext.rewrite.parameters import remove_parameter
from hlotext.rewrite.passes.base import Pass, PassResult


@attrs.frozen
class DeadCodeElimination(Pass):
    """Takes out instructions that nothing uses and that have no effect, and computations that nothing calls (`HloDCE`).

    Parameters stay, but for those of fusions, as do instructions with control dependencies, and an asynchronous operation
    with an effect up to its done. One walk over each computation from its end, so the time is proportional to the module.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] negate(x)  z = f32[] sine(y)  ROOT r = f32[] cosine(x) }")
    >>> DeadCodeElimination().run(m).statistics
    {'instructions': 2}
    """

    name: ClassVar[str] = "dce"
    summary: ClassVar[str] = "Takes out what nothing uses, computations too."

    computations: bool = True
    """Also takes out computations that the entry does not reach."""

    def run(self, module: Module) -> PassResult:
        kept = fixed(module)
        counts = {"instructions": 0, "parameters": 0, "computations": 0}
        for computation in module.computations:
            if computation.is_implicit or not computation._instructions:
                continue
            unused = _unused(computation)
            if any(i._opcode != "parameter" and i not in kept for i in unused):
                counts["instructions"] += _sweep(computation, kept)
                unused = _unused(computation)
            counts["parameters"] += _drop_parameters(computation, unused)
        if self.computations:
            counts["computations"] = remove_unreached(module)
        return PassResult.of(counts)


def _unused(computation: Computation) -> list[Instruction]:
    """The instructions that nothing uses, but for the root."""
    instructions = computation._instructions
    used = set(itertools.chain.from_iterable([i._operands for i in instructions]))
    root = computation.root
    return [i for i in instructions if i not in used and i is not root]


def _sweep(computation: Computation, kept: set[Instruction]) -> int:
    """Takes the dead instructions of a computation out at once; how many."""
    needed: set[Instruction] = {computation.root}
    dead: list[Instruction] = []

    def stays(i: Instruction) -> bool:
        if i in needed or i in kept or i._opcode == "parameter":
            return True
        return any(is_finished_by(operand, i) and stays(operand) for operand in i._operands[:1])

    for i in reversed(computation._instructions):
        if stays(i):
            needed.update(i._operands)
        else:
            dead.append(i)
    computation.remove_all(dead)
    return len(dead)


def _drop_parameters(computation: Computation, unused: list[Instruction]) -> int:
    """Takes the parameters of a fusion's computation away that nothing uses, and what the fusion passes for them."""
    unused = [i for i in unused if i._opcode == "parameter" and not i.control_successors]
    if not unused or not computation.is_fusion_body:
        return 0
    count = 0
    for parameter in sorted(unused, key=lambda i: i.parameter_number or 0, reverse=True):
        with contextlib.suppress(EditError):  # a fusion that aliases operands by number, or another caller
            remove_parameter(computation, parameter.parameter_number or 0)
            count += 1
    return count


def remove_unreached(module: Module) -> int:
    """Takes out the computations that the entry does not reach; how many."""
    dead: dict[Computation, None] = {}
    before = -1
    while len(dead) > before:  # once and once more, but for texts in which callers stand before callees
        before = len(dead)
        for computation in reversed(module.computations):
            callers = module.calls_of(computation)
            if not computation.is_entry and all(caller.computation in dead for caller in callers):
                dead[computation] = None
    if dead:
        module.remove_all(dead)
    return len(dead)
