"""Layout assignment as XLA's compilers do it, with the reason of every layout and of every copy."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from hlotext.compiler.apply_layouts import LayoutApplier
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.layout_backends import CpuBackend
from hlotext.compiler.layout_constraints import Backend, ConstraintSolver
from hlotext.compiler.layout_values import aliases_of
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.memory.value_sets import shape_of
from hlotext.rewrite.kit.edits import Editor
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations


def layout_assignment(module: Module, platform: str = "cpu") -> Outcome:
    """Models layout assignment: chooses layouts as XLA would, with the reason for each.

    `platform` is the platform whose rules apply; only those of `cpu` are modeled. Raises ValueError for any other.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[8,4]{1,0} parameter(0)  t = f32[4,8]{1,0} transpose(x), dimensions={1,0}"
    ...     "  ROOT n = f32[4,8]{1,0} negate(t) }")
    >>> for decision in layout_assignment(m).decisions[1:3]:
    ...     print(decision.because)
    t has layout {0,1}: it makes the transpose a bitcast of its operand x with layout {1,0}
    n has layout {1,0}: same layout as its operand t: negate n needs row-major operands on CPU
    """
    expect_module(module)
    if platform not in BACKENDS:
        raise ValueError(f"layout assignment for {platform} is unknown; known: {', '.join(BACKENDS)}")
    copy = module.clone()
    with copy.transaction():
        applying = _assign(copy, BACKENDS[platform]())
    return Outcome(copy, tuple(applying.decisions))


@attrs.frozen
class CpuLayoutAssignment(Pass):
    """Assigns layouts as XLA's CPU compiler does, with copies where an operand has another layout.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = f32[8,4]{1,0} parameter(0)  t = f32[4,8]{1,0} transpose(x), dimensions={1,0}"
    ...     "  ROOT n = f32[4,8]{1,0} negate(t) }")
    >>> CpuLayoutAssignment().run(m).statistics
    {'copies': 1}
    """

    name: ClassVar[str] = "cpu-layout-assignment"
    is_early: ClassVar[bool] = True
    summary: ClassVar[str] = "Assigns layouts as XLA's CPU compiler does."
    is_one_round: ClassVar[bool] = True

    def run(self, module: Module) -> PassResult:
        return PassResult.of({"copies": _assign(module, CpuBackend()).copies})


BACKENDS: dict[str, type[CpuBackend]] = {"cpu": CpuBackend}
"""The backends whose rules are known."""


def _assign(module: Module, backend: Backend) -> LayoutApplier:
    editor = Editor(module)
    computations = [c for c in nonfusion_computations(module) if len(c)]
    for computation in computations:
        for i in list(computation.instructions):
            _copy_aliased(editor, i)
    engine = ConstraintSolver(module, computations, backend)
    engine.run()
    header = module.attributes.get("entry_computation_layout")
    applying = LayoutApplier(engine, editor)
    applying.run()
    if header is not None and module.attributes.get("entry_computation_layout") != header:
        module.attributes["entry_computation_layout"] = header
    return applying


def _copy_aliased(editor: Editor, i: Instruction) -> None:
    """Operands whose memory an instruction with fixed layouts takes over are copied first (`AddCopyForOperand`)."""
    numbers = []
    if i.opcode == "send":
        numbers = [0]
    elif i.opcode == "custom-call" and "operand_layout_constraints" in i.attributes:
        numbers = list(dict.fromkeys(alias.operand_index for alias in aliases_of(i)))
    for number in numbers:
        operand = i.operands[number]
        if operand.opcode == "copy" and len(operand.users) == 1:
            continue
        editor.place = i
        names = ("sharding", "metadata", "frontend_attributes")
        noted: dict[str, Any] = {
            name: operand.attributes[name] for name in names if name in operand.attributes
        }
        copy = editor.create("copy", shape_of(operand), (operand,), **noted)
        given = list(i.operands)
        given[number] = copy
        i.change(operands=given, typed=False)
    editor.place = None


__all__ = ["CpuLayoutAssignment", "Decision", "layout_assignment"]
