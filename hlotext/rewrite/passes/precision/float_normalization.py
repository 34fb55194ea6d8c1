"""Operations on narrow floats computed in a wider type."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import attrs

from hlotext.analysis.age import age_for
from hlotext.edit.cloning import clone_computation
from hlotext.edit.structure import set_root
from hlotext.ir.nodes.computation import Computation, instruction_post_order, post_order
from hlotext.ir.nodes.effects import has_side_effect
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.rewrite.kit.facts import is_typed
from hlotext.rewrite.kit.limits import InstructionBudget
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age, is_platform
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination
from hlotext.rewrite.passes.compilation_stage import is_tpu, layouts_count, multiplies_8_bit_floats
from hlotext.rewrite.passes.loops.loop_rebuilding import LoopEditor
from hlotext.rewrite.passes.precision.float_support import FloatSupport, needs_no_more
from hlotext.rewrite.passes.simplify.tuple_simplifier import TupleSimplifier

UNTOUCHED = (
    traits.RUNS_CALLEE
    | traits.GENERIC_ASYNC
    | traits.NAMES_VALUE
    | traits.CONVERSIONS
    | traits.BINDS_OPERANDS
    | {"custom-call", "domain"}
)
"""Opcodes that take what they are given."""
PARTS = ("-start", "-update", "-done")
"""Ends of opcodes of parts of asynchronous operations, which belong together; XLA makes these later."""
SEVERAL = frozenset({"sort", "all-reduce", "reduce-scatter"})
"""Opcodes whose results may have a type each (`HandleMultipleOutputs`)."""


class FloatTypeError(ValueError):
    """Raised for an unknown float type, or one that is not narrower than the other."""


@attrs.frozen
class FloatNormalization(Pass):
    """Widens operations whose narrow float type the compiler does not support (XLA's `FloatNormalization`).

    Operands are converted to the wide type and results back. Where narrow and wide values may not be mixed, all become narrow
    if that loses nothing, otherwise wide. The conversion of a widened result is omitted, as XLA does where excess precision
    is allowed, so results differ in precision. For GPU, the types that Hopper does not support are widened.

    >>> import hlotext as hlo
    >>> m = hlo.parse("ENTRY e { x = bf16[4] parameter(0)  ROOT y = bf16[4] tanh(x) }")
    >>> FloatNormalization().run(m).statistics
    {'instructions': 1}
    >>> print(m.entry.root, m.entry["y"], sep=chr(10))
    ROOT convert.1 = bf16[4] convert(y)
    y = f32[4] tanh(convert)
    """

    name: ClassVar[str] = "float-normalization"
    summary: ClassVar[str] = "Widens operations whose narrow float type the compiler does not support."
    preserves_results: ClassVar[bool] = False

    low: str = "bf16"
    """The narrow type."""
    high: str = "f32"
    """The wide type."""
    platform: str = attrs.field(default="", validator=is_platform)
    """`cpu` or `gpu`; by default `gpu` for modules with layouts assigned, since the CPU compiler has run this before. Without
    layouts what multiplies 8-bit floats stays as it is: the CPU compiler has widened these by then, GPU's does it later."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest, whose CPU compiler moves bf16."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass. Raises FloatTypeError for an option that is not a float type, or not narrower than the other."""
        low, high = ELEMENT_TYPES.get(self.low), ELEMENT_TYPES.get(self.high)
        if low is None or high is None or low.bits >= high.bits:
            raise FloatTypeError(f"{self.low} and {self.high} are not a type and a wider one")
        if self.platform == "tpu":
            raise FloatTypeError("tpu is neither cpu nor gpu")
        is_late = layouts_count(module) and not is_tpu(module)
        if self.platform != "cpu" and not is_late and low.name == "bf16" and multiplies_8_bit_floats(module):
            return PassResult.of({})
        on_gpu = is_late if self.platform in ("", "auto") else self.platform == "gpu"
        normalizer = _Normalizer(module, FloatSupport(low, high, on_gpu, age_for(module, self.age or None)))
        computations = [c for c in post_order(module.computations) if not c.is_sugared]
        skipped = normalizer.split_callees(computations)
        for computation in computations:
            if computation not in skipped:
                for i in instruction_post_order(computation):
                    if i.computation is computation and is_typed(i):
                        normalizer.visit(i)
        if not normalizer.count:
            return PassResult.of({})
        statistics = {"instructions": normalizer.count, **TupleSimplifier().run(module).statistics}
        return PassResult.of({**statistics, **DeadCodeElimination().run(module).statistics})


def _with_type(shape: Shape, old: ElementType, new: ElementType) -> Shape:
    """The shape with one type for another, in tuples too."""
    if shape.is_tuple:
        return Shape.tuple(tuple(_with_type(part, old, new) for part in shape.tuple_shapes))
    if not shape.is_array or shape.element_type is not old:
        return shape
    return Shape(new, shape.dimensions, shape.dynamic_dimensions, shape.layout)


def _count(i: Instruction, type_: ElementType) -> int:
    """Arrays of a type in a result (`CountSubshapesWithMatchingType`)."""
    return sum(leaf.is_array and leaf.element_type is type_ for _, leaf in _leaves(i))


def _leaves(i: Instruction) -> list[tuple[tuple[int, ...], Shape]]:
    return list(i.shape.leaves()) if i.shape is not None else []


class _Normalizer(LoopEditor):
    """`FloatNormalizationVisitor`."""

    def __init__(self, module: Module, support: FloatSupport) -> None:
        super().__init__(module, InstructionBudget("float-normalization", module))
        self.support = support
        self.low, self.high = support.low, support.high
        self.count = 0

    def split_callees(self, computations: list[Computation]) -> set[Computation]:
        """Gives callers whose computations stay some of their own (`CloneComputationsForNonNormalizingInstructions`); the
        computations to leave alone."""
        skipped = set()
        for computation in computations:
            kept = [c for c in computation.callers if self.support.skips_computations(c)]
            if not kept:
                continue
            if len(kept) == len(computation.callers):
                skipped.add(computation)
                continue
            copy = clone_computation(computation)
            for caller in kept:
                self._redirect(caller, {computation: copy})
        return skipped

    def _redirect(self, caller: Instruction, instead: dict[Computation, Computation]) -> None:
        own = dict(caller.attributes)
        for name, value in own.items():
            if isinstance(value, Computation):
                own[name] = instead.get(value, value)
            elif isinstance(value, tuple) and any(isinstance(item, Computation) for item in value):
                own[name] = tuple(instead.get(item, item) for item in value)
        caller.change(attributes=own, typed=False)

    def visit(self, i: Instruction) -> None:
        """`DefaultAction`."""
        if i.opcode in UNTOUCHED or i.opcode.endswith(PARTS) or has_side_effect(i):
            return
        if any(len(index) > 1 for x in (i, *i.operands) for index, _ in _leaves(x)):
            return  # tuples in tuples, which only parts of asynchronous operations have here
        before = self.count
        assert i.shape is not None
        if i.opcode in SEVERAL and i.shape.is_tuple:
            if len(i.shape.tuple_shapes) == len(i.operands):
                self._handle_several(i)
        else:
            self._handle(i)
        self.count = min(self.count, before + 1)  # instructions are counted, not conversions

    def _handle(self, i: Instruction) -> None:
        """`HandleInstruction`."""
        s = self.support
        if s.skips(i):
            return
        lows = sum(_count(x, self.low) for x in (*i.operands, i))
        highs = sum(_count(x, self.high) for x in (*i.operands, i))
        callees, low, high = self._callees(i)
        lows, highs = lows + low, highs + high
        found = sum(_count(operand, self.low) for operand in i.operands)
        if found and not s.takes(i):
            self._convert_operands(i, self.low, self.high)
            lows, highs = lows - found, highs + found
        if not s.gives(i):
            found = _count(i, self.low)
            if found:
                self._change_result(i)
                lows, highs = lows - found, highs + found
        if s.mixes(i) or not lows or not highs:
            return
        if not i.called_computations and self._is_low(i) and self._may_be_low(i):
            self._convert_operands(i, self.high, self.low)
            return
        self._change_result(i)
        self._convert_operands(i, self.low, self.high)
        self._convert_callees(i, callees)

    def _is_low(self, i: Instruction) -> bool:
        return _count(i, self.low) == len(_leaves(i))

    def _may_be_low(self, i: Instruction) -> bool:
        others = [n for n, o in enumerate(i.operands) if not self._is_low(o)]
        return not others or (needs_no_more(i, others) and self.support.takes(i))

    def _callees(self, i: Instruction) -> tuple[list[Computation], int, int]:
        """The called computations that hold narrow values at their ends, and how many narrow and wide ones."""
        found, lows, highs = [], 0, 0
        if self.support.skips_computations(i):
            return [], 0, 0
        for callee in i.called_computations:
            ends = (callee.root, *callee.parameters)
            low = sum(_count(x, self.low) for x in ends)
            highs += sum(_count(x, self.high) for x in ends)
            lows += low
            if low:
                found.append(callee)
        return found, lows, highs

    def _handle_several(self, i: Instruction) -> None:
        """`HandleMultipleOutputs`."""
        s = self.support
        assert i.shape is not None
        types = [o.shape.element_type if o.shape is not None else None for o in i.operands]
        results = [part.element_type for part in i.shape.tuple_shapes]
        lows = sum(t is self.low for t in (*types, *results))
        highs = sum(t is self.high for t in (*types, *results))
        bad_operand = self.low in types and not s.takes(i)
        bad_result = self.low in results and not s.gives(i)
        if not lows:
            return
        found = types.count(self.low)
        if found and (bad_operand or (not s.mixes(i) and (bad_result or highs))):
            self._convert_operands(i, self.low, self.high)
            lows, highs = lows - found, highs + found
        if not bad_result and (s.mixes(i) or not highs or not lows):
            return
        callees, _, _ = self._callees(i)
        self._change_result(i, keeps_conversions=True)
        self._convert_callees(i, callees)

    # ---- conversions

    def _copied(self, i: Instruction, leaf: Callable[[Instruction, int], Instruction]) -> Instruction:
        """A value with its arrays replaced (`DeepCopyInstructionWithCustomCopier`)."""
        assert i.shape is not None
        if not i.shape.is_tuple:
            return leaf(i, 0)
        return self.tuple([leaf(e, n) for n, e in enumerate(self.elements(i))], i.computation)

    def _converted(self, i: Instruction, old: ElementType, new: ElementType) -> Instruction:
        """`ConvertType`."""
        if not _count(i, old):
            return i
        if i.opcode == "convert" and new is self.low and old is self.high:
            source = i.operands[0]
            if source.shape is not None and source.shape.element_type is new:
                return source

        def leaf(value: Instruction, _: int) -> Instruction:
            if value.shape is None or value.shape.element_type is not old:
                return value
            return self._convert(value, _with_type(value.shape, old, new))

        return self._copied(i, leaf)

    def _convert(self, value: Instruction, shape: Shape) -> Instruction:
        self.growth.add(1)
        self.place = None
        return self.create("convert", shape, (value,), computation=value.computation)

    def _convert_operands(self, i: Instruction, old: ElementType, new: ElementType) -> None:
        """`InsertConvertBeforeOperand`, for all operands of a type at once."""
        operands = [self._converted(operand, old, new) for operand in i.operands]
        if operands != list(i.operands):
            i.change(operands=operands, typed=False)
            self.count += 1

    def _change_result(self, i: Instruction, *, keeps_conversions: bool = False) -> None:
        """Makes a result wide, and converts it back for its users (`ChangeOutputTypeThenInsertConvertBack`)."""
        shape = i.shape
        home = i.computation
        if shape is None or home is None or not _count(i, self.low):
            return
        users, was_root = i.users, i.is_root
        wide_shape = _with_type(shape, self.low, self.high)
        self.count += 1
        if not shape.is_tuple:
            back = self._convert(i, shape)
            i.replace_all_uses_with(back)
            i.change(shape=wide_shape, typed=False)
            for user in users:
                if user.opcode == "convert" and not keeps_conversions and self._is_wide(user):
                    user.replace_all_uses_with(i)
            return
        i.change(shape=wide_shape, typed=False)

        def leaf(value: Instruction, n: int) -> Instruction:
            return (
                value if value.shape == shape.tuple_shapes[n] else self._convert(value, shape.tuple_shapes[n])
            )

        back = self._copied(i, leaf)
        for user in users:
            self._swap(user, i, back)
        if was_root:
            set_root(home, back, typed=False)

    def _is_wide(self, i: Instruction) -> bool:
        return i.shape is not None and i.shape.element_type is self.high

    def _swap(self, user: Instruction, old: Instruction, new: Instruction) -> None:
        user.change(operands=[new if o is old else o for o in user.operands], typed=False)

    def _convert_callees(self, i: Instruction, callees: list[Computation]) -> None:
        """Makes called computations take and give wide values (`ConvertCalledComputations`)."""
        copies = {callee: clone_computation(callee) for callee in callees}
        if copies:
            self._redirect(i, copies)
        for copy in copies.values():
            root = copy.root
            users = root.users
            wide = self._converted(root, self.low, self.high)
            if wide is not root:
                for user in users:
                    self._swap(user, root, wide)
                set_root(copy, wide, typed=False)
            for parameter in copy.parameters:
                self._change_result(parameter)
