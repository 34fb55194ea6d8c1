"""Hoists loop-invariant instructions out of while bodies."""

from __future__ import annotations

from collections.abc import Container
from typing import ClassVar

import attrs

from hlotext.analysis.trip_count import counted_trips
from hlotext.ir.nodes.computation import instruction_post_order, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.shape import Shape
from hlotext.layout import unpadded_bytes
from hlotext.rewrite.kit.edits import post_order_from
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Pass, PassResult, is_platform
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.compilation_stage import is_for_tpu, layouts_count
from hlotext.rewrite.passes.loops.loop_rebuilding import (
    LoopEditor,
    body_of,
    invariant_elements,
    is_whole,
    parameter_of,
)
from hlotext.rewrite.passes.simplify.tuple_simplifier import TupleSimplifier

NOT_ALONE = frozenset({"bitcast", "broadcast", "iota", "reverse", "slice", "transpose", "tuple"})
"""Opcodes that are hoisted only where something that uses them is (`NotWorthHoistingIndividually`)."""
MARKERS = frozenset({"SPMDFullToShardShape", "SPMDShardShapeToFull", "MoveToDevice", "MoveToHost"})
"""Targets of custom calls that keep everything in a loop's body where it is."""


@attrs.frozen
class WhileLoopInvariantCodeMotion(Pass):
    """Hoists loop-invariant instructions out of loops (XLA's `WhileLoopInvariantCodeMotion`).

    Instructions that depend only on constants and on elements that the body forwards unchanged are computed before the loop,
    which carries them as additional elements. Instructions that only move data are hoisted only with a user. Loops that run
    at most once are not changed. DCE and the tuple simplifier come last.

    >>> import hlotext as hlo
    >>> m = hlo.parse('''
    ... body { s = (f32[], f32[]) parameter(0)  x = f32[] get-tuple-element(s), index=0
    ...   y = f32[] get-tuple-element(s), index=1  h = f32[] sine(x)  z = f32[] add(y, h)
    ...   ROOT t = (f32[], f32[]) tuple(x, z) }
    ... cond { s = (f32[], f32[]) parameter(0)  y = f32[] get-tuple-element(s), index=1
    ...   x = f32[] get-tuple-element(s), index=0  ROOT lt = pred[] compare(y, x), direction=LT }
    ... ENTRY e { s = (f32[], f32[]) parameter(0)  ROOT w = (f32[], f32[]) while(s), condition=cond, body=body }''')
    >>> WhileLoopInvariantCodeMotion().run(m).statistics["hoisted"]
    1
    >>> [i.opcode for i in m.entry if i.opcode not in ("parameter", "get-tuple-element", "tuple")]
    ['sine', 'while']
    """

    name: ClassVar[str] = "while-loop-invariant-code-motion"
    summary: ClassVar[str] = "Hoists loop-invariant instructions out of loops."
    is_one_round: ClassVar[bool] = True

    hoist_constants: bool = False
    """Moves constants too, by themselves. Once layouts are assigned for TPU nothing else is moved (inferred from dumps)."""
    hoist_reshapes: bool = False
    """Moves reshapes too, by themselves."""
    hoist_other: bool = True
    """Moves what is neither a constant nor a reshape."""
    hoist_size_inflation_ratio: int = 0
    """Maximum ratio of result bytes to operand bytes of a hoisted instruction, or of those hoisted with it. 0: 1 for TPU
    (inferred from dumps), so that nothing is computed from broadcasts before a loop; no limit elsewhere."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu`, `gpu` or `tpu`, whose compilers differ; empty: TPU where the text shows it, else all others."""

    def run(self, module: Module) -> PassResult:
        editor = LoopEditor(module, InstructionBudget(self.name, module))
        mode = self
        if is_for_tpu(module, self.platform):
            mode = attrs.evolve(mode, hoist_size_inflation_ratio=self.hoist_size_inflation_ratio or 1)
            if layouts_count(module):
                mode = attrs.evolve(mode, hoist_constants=True, hoist_other=False)
        loops = [
            i
            for computation in post_order(module.computations)
            for i in computation.instructions
            if i.opcode == "while"
        ]
        count = sum(mode._hoist(editor, loop) for loop in loops if loop.computation is not None)
        if not count:
            return PassResult.of({})
        editor.place = None
        swept = DeadCodeElimination().run(module).statistics
        tidied = TupleSimplifier().run(module).statistics
        return PassResult.of({"hoisted": count, **swept, **tidied})

    def _hoist(self, editor: LoopEditor, loop: Instruction) -> int:
        """Number of instructions hoisted (`TryHoistingInvariantInstructionsFromWhileBody`)."""
        shape = loop.shape
        if shape is None or not shape.is_tuple or not is_whole(loop):
            return 0
        if "_xla_disable_loop_instr_hoisting" in loop.frontend_attributes:
            return 0
        body = body_of(loop)
        trips = counted_trips(loop)
        if (trips is not None and trips <= 1) or any(i.shape is None or _is_marker(i) for i in body):
            return 0
        waiting = {i for _, i in invariant_elements(body) if i.shape is not None and i.shape.is_array}
        if not waiting and not self.hoist_constants:
            return 0
        outside: dict[Instruction, Instruction] = {parameter_of(body): loop.operands[0]}
        moved: list[Instruction] = []
        editor.place = loop
        for i in instruction_post_order(body):
            if i in waiting or not self._may_move(editor, i):
                continue
            if not all(o in outside or o in waiting or o.opcode == "constant" for o in i.operands):
                continue
            if parameter_of(body) in i.operands:
                continue
            if self._stays_alone(i):
                waiting.add(i)
                continue
            _copy_outside(editor, i, outside)
            moved.append(i)
        if moved:
            _widen(editor, loop, shape, moved, [outside[i] for i in moved])
        return len(moved)

    def _may_move(self, editor: LoopEditor, i: Instruction) -> bool:
        if i.opcode in ("after-all", "parameter") or editor.has_effect(i):
            return False
        if i.control_predecessors or i.control_successors:
            return False
        if not self.hoist_other and i.opcode not in ("constant", "reshape"):
            return False
        return i.opcode == "constant" or not self._is_inflated(i)

    def _is_inflated(self, i: Instruction) -> bool:
        taken = sum(unpadded_bytes(o.shape) for o in i.operands if o.shape is not None)
        made = unpadded_bytes(i.shape) if i.shape is not None else 0
        ratio = self.hoist_size_inflation_ratio
        return bool(ratio) and made > ratio * taken

    def _stays_alone(self, i: Instruction) -> bool:
        """`NotWorthHoistingIndividually`."""
        if i.opcode == "constant":
            return not self.hoist_constants
        if i.opcode == "reshape":
            return not self.hoist_reshapes
        return i.opcode in NOT_ALONE or i.attributes.get("custom_call_target") == "Sharding"


def hoist(editor: LoopEditor, loop: Instruction, wanted: Container[Instruction]) -> int:
    """Hoists instructions, with everything that they need, out of a loop's body, and returns the number hoisted.

    What they need must be loop-invariant: constants, forwarded elements, and pure operations on these. Returns 0, and
    changes nothing, if the loop cannot carry more elements. Raises EditError if an edit is rejected.
    """
    shape = loop.shape
    if shape is None or not shape.is_tuple or not is_whole(loop):
        return 0
    body = body_of(loop)
    handed_on = {i for _, i in invariant_elements(body)}
    outside: dict[Instruction, Instruction] = {parameter_of(body): loop.operands[0]}
    moved: dict[Instruction, None] = {}
    editor.place = loop
    fixed = set(handed_on)
    for i in instruction_post_order(body):
        if i.opcode == "parameter" or i.shape is None or editor.has_effect(i):
            continue
        if i in fixed or not all(o in fixed for o in i.operands):
            continue
        fixed.add(i)
        if i in wanted or (i.opcode == "get-tuple-element" and i.operands[0] in moved):
            _copy_outside(editor, i, outside)
            moved[i] = None
    arrays = [
        i
        for i in moved
        if i.shape is not None and i.shape.is_array and any(user not in moved for user in i.users)
    ]
    if arrays:
        _widen(editor, loop, shape, arrays, [outside[i] for i in arrays])
    return len(arrays)


def _is_marker(i: Instruction) -> bool:
    return i.opcode == "domain" or i.attributes.get("custom_call_target") in MARKERS


def _copy_outside(editor: LoopEditor, i: Instruction, outside: dict[Instruction, Instruction]) -> None:
    """Copies an instruction and what it needs to the place in front of the loop (`CreateLoopInvariantCopy`)."""
    for item in post_order_from(i, outside):
        outside[item] = editor.clone(item, [outside[o] for o in item.operands])


def _widen(
    editor: LoopEditor, loop: Instruction, shape: Shape, moved: list[Instruction], values: list[Instruction]
) -> None:
    """Makes a loop carry further values, which its body takes for what it computed itself (`MakeInstructionsLiveIn`)."""
    count = len(shape.tuple_shapes)
    added = tuple(value.shape for value in values if value.shape is not None)
    wide = Shape.tuple((*shape.tuple_shapes, *added))
    init = editor.tuple((*editor.elements(loop.operands[0]), *values), loop.computation)

    def narrow(value: Instruction) -> Instruction:
        return editor.tuple([editor.element(value, n) for n in range(count)], value.computation)

    def widened(root: Instruction, given: Instruction) -> Instruction:
        parts = [editor.element(root, n) for n in range(count)]
        return editor.tuple((*parts, *(editor.element(given, count + n) for n in range(len(values)))))

    places = {i: count + n for n, i in enumerate(moved)}
    editor.transformed(loop, wide, init, narrow, widened, places, relay_control=True)
