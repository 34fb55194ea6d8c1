"""Constants computed from constants."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import Computation, instruction_post_order, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.literal import Literal
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.kit.facts import is_unused
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.simplify.evaluator import evaluate, known_type

Array = np.ndarray[Any, Any]


@attrs.frozen
class ConstantFolding(Pass):
    """Replaces operations on constants with their value (XLA's `HloConstantFolding`).

    At least one operand must be a constant, and all others constants, broadcasts of constants or iotas: an operation on
    broadcasts only is better applied before broadcasting, and broadcasts themselves are kept as the more compact form. Loops,
    side effects, control dependencies and large results are kept. A parameter that receives the same constant from all
    callers becomes that constant.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { a = s32[2] constant({1, 2})  b = s32[2] constant({3, 4})  ROOT r = s32[2] multiply(a, b) }")
    >>> ConstantFolding().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root)
    ROOT %r.1 = s32[2] constant({3, 8})
    """

    name: ClassVar[str] = "constant-folding"
    summary: ClassVar[str] = "Evaluates instructions whose operands are all constants."

    max_elements: int = 45_000_000
    """Elements of the result, and of all operands together, at most."""

    def run(self, module: Module) -> PassResult:
        folder = _Folder(module, self.max_elements)
        chosen = set(nonfusion_computations(module))
        for computation in reversed(post_order(module.computations)):
            if computation in chosen and len(computation):
                folder.propagate_arguments(computation)
                for i in instruction_post_order(computation):
                    if i.computation is computation and not is_unused(i):
                        folder.fold(i)
        return PassResult.of({"instructions": folder.count, "parameters": folder.parameters})


class _Folder(Editor):
    def __init__(self, module: Module, max_elements: int) -> None:
        super().__init__(module)
        self.max_elements = max_elements
        self.count = self.parameters = 0
        self._foldable: dict[Computation, bool] = {}

    def propagate_arguments(self, computation: Computation) -> None:
        """Sinks constants that all calls pass alike into a computation (`PropagateIdenticalConstantArguments`)."""
        callers = computation.callers
        parameters = computation.parameters
        if any(caller.opcode != "call" or len(caller.operands) != len(parameters) for caller in callers):
            return
        alike = [
            bool(callers)
            and all(c.operands[n].literal is not None for c in callers)
            and all(c.operands[n].literal == callers[0].operands[n].literal for c in callers)
            for n in range(len(parameters))
        ]
        if all(alike) or not callers:
            return
        for parameter, is_alike in zip(parameters, alike, strict=True):
            if is_alike and parameter.users:
                self.place = computation.instructions[0]
                constant = callers[0].operands[parameter.parameter_number or 0]
                literal = constant.literal
                if literal is None or literal.is_partly_elided or constant.shape is None:
                    continue
                own = {k: v for k, v in constant.attributes.items() if k != "control-predecessors"}
                copy = self.create(
                    "constant", constant.shape, argument=literal, **own, computation=computation
                )
                parameter.replace_all_uses_with(copy)
                self.parameters += 1

    def fold(self, i: Instruction) -> None:
        """Puts a constant in an instruction's place where that is possible."""
        if i.opcode in _AS_IT_IS or not any(o.opcode == "constant" for o in i.operands):
            return
        if not all(_is_known(o) for o in i.operands) or not self._is_foldable(i):
            return
        values = [self._value(o) for o in i.operands]
        known = [value for value in values if value is not None]
        value = evaluate(i, known) if len(known) == len(values) else None
        if value is None or i.shape is None:
            return
        self.place = i
        literal = Literal.from_array(value, i.shape)
        new = self.create("constant", i.shape, like=i, argument=literal, name=i.name)
        i.replace_all_uses_with(new)
        self.remove_unused(i)
        self.count += 1

    def _value(self, operand: Instruction) -> Array | None:
        if operand.literal is not None:
            return operand.literal.known_array
        if operand.opcode == "iota":
            return evaluate(operand, [])
        inner = operand.operands[0].literal
        array = inner.known_array if inner is not None else None
        return evaluate(operand, [array]) if array is not None else None

    def _is_foldable(self, i: Instruction) -> bool:
        """`IsFoldable`."""
        if i.opcode in _NEVER or i.opcode in ROLES or self.has_effect(i):
            return False
        if i.control_predecessors or i.control_successors:
            return False
        if not all(map(self._is_foldable_computation, i.called_computations)):
            return False
        if i.opcode == "pad" and i.operands[0].opcode == "broadcast" and i.operands[1].opcode == "constant":
            return False
        if not known_type(i.shape) or not all(known_type(o.shape) for o in i.operands):
            return False
        sizes = [o.shape.element_count for o in i.operands if o.shape is not None and o.shape.is_static]
        return (
            i.shape is not None
            and i.shape.is_static
            and max(sum(sizes), i.shape.element_count) <= self.max_elements
        )

    def _is_foldable_computation(self, computation: Computation) -> bool:
        if computation not in self._foldable:
            for inner in post_order([computation], self._foldable):
                self._foldable[inner] = not any(
                    i.opcode in _NEVER
                    or i.control_predecessors
                    or self.has_effect(i)
                    or not all(self._foldable.get(c, False) for c in i.called_computations)
                    for i in inner
                )
        return self._foldable[computation]


_AS_IT_IS = traits.GIVEN | {"tuple"}

_NEVER = frozenset({"broadcast", "iota", "fft", "while", "after-all", "rng", "rng-bit-generator"})
"""Opcodes that are never folded, nor any caller of them."""


def _is_known(operand: Instruction) -> bool:
    """True if an operand is a constant, a broadcast of one, or an iota."""
    if operand.opcode == "broadcast":
        return operand.operands[0].opcode == "constant"
    return operand.opcode in ("constant", "iota")
