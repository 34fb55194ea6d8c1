"""Rules of `AlgebraicSimplifier`, and the visitor that applies them in XLA's order.

A rule is a function of the simplifier and an instruction of its opcode. It says whether it changed anything; if so, the
instruction is done with, else the next rule of that opcode is asked, in the order of XLA's handler. Its docstring is its
example, `before => after`, in op lines whose shapes are left out where they follow; what a part needs stands before it, with
`;` behind. In the examples `x y z` are f32[4,3], `i j` s32[4,3], `a b` u32[4,3], `p q` pred[4,3], `w` is c64[4,3], `s` f32[],
`n` s32[]; `f0 f1 f2` and `i0 i1` are splats of those numbers, `yes no` of true and false, `fneg1` and `ineg1` of -1, `fhalf`
of a half.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

import attrs
import numpy as np

from hlotext import layout as layouts
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType, TypeKind
from hlotext.rewrite.passes.editor import CONTROL, PostOrderVisitor, derived_attributes
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.operation import errors_of

RULES: list[AlgebraRule] = []
"""Every rule, in the order in which XLA's handlers try them."""

PRED = ELEMENT_TYPES["pred"]


@attrs.frozen
class AlgebraicSimplifierOptions:
    """The fields of `AlgebraicSimplifierOptions` that rules use."""

    is_layout_sensitive: bool = False
    executing_on_cpu: bool = False
    enable_dot_strength_reduction: bool = True
    enable_dot_to_multiply_rewrite: bool = True
    supports_non_canonical_dots: bool = True
    keeps_dot_param_on_rhs: bool = False
    """Leaves a transpose of a dot whose second operand alone is made of a parameter (seen in dumps for TPU)."""
    enable_unconditional_reduce_of_concat_replacement: bool = True
    unconditionally_simplify_reduce_of_transpose_or_reshape: bool = False
    rewrite_reshape_transpose_as_slice_concatenate: bool = True
    rewrite_no_op_bitcast_convert_to_bitcast: bool = False
    enable_hoist_transpose_of_reshape: bool = False
    enable_conditional_simplification: bool = False
    enable_remove_no_op_reduce_precision: bool = False
    prefers_transposes: bool = False
    """Makes a broadcast that repeats nothing a transpose, where the rank stays (seen in dumps for TPU)."""
    enable_fast_math: bool = False
    """True to allow rewrites that round differently. On CPU `xla_cpu_enable_fast_math` enables them."""
    age: XlaAge = attrs.field(factory=XlaAge)
    """XLA age whose rules are applied; the newest if unknown."""


Function = Callable[["Simplifier", Instruction], bool]


@attrs.frozen
class AlgebraRule:
    """Rewrite of instructions with some opcodes."""

    name: str
    opcodes: tuple[str, ...]
    handler: str
    """The method of `AlgebraicSimplifierVisitor` that it is taken from."""
    function: Function

    @property
    def doc(self) -> str:
        """The example."""
        return self.function.__doc__ or ""


def rule(*opcodes: str, handler: str) -> Callable[[Function], Function]:
    """Makes a function the rule for instructions of these opcodes."""

    def make(function: Function) -> Function:
        RULES.append(AlgebraRule(function.__name__, opcodes, handler, function))
        return function

    return make


def _is_sound(i: Instruction) -> bool:
    """True if an instruction by itself is as XLA demands, and of a size that can be told."""
    if i.shape is None or any(isinstance(value, RawValue) for value in i.attributes.values()):
        return False
    try:
        layouts.allocated_bytes(i.shape)
    except layouts.LayoutError:
        return False
    return not any(True for _ in errors_of(i, _FACTS))


_FACTS = VerifierOptions(layout_sensitive=False, mixed_precision=True)


class Simplifier(PostOrderVisitor):
    """Applies rules to every instruction, operands first, again and again until none fits."""

    def __init__(
        self, module: Module, options: AlgebraicSimplifierOptions, rules: Iterable[AlgebraRule] = ()
    ) -> None:
        super().__init__(module)
        self.options = options
        self.counts: dict[str, int] = {}
        self.sums: dict[str, Computation] = {}
        """Computations that add two numbers, by type, once rules have needed them."""
        self._rules: dict[str, list[AlgebraRule]] = {}
        for one in rules or RULES:
            for opcode in one.opcodes:
                self._rules.setdefault(opcode, []).append(one)

    def has(self, change: date) -> bool:
        """True if the XLA whose rules are applied has what was changed on a day."""
        return self.options.age.has(change)

    def is_loose(self, change: date) -> bool:
        """True if a rule applies that rounds otherwise: with fast math alone since a day, always before."""
        return self.options.enable_fast_math or not self.has(change)

    def visit(self, i: Instruction) -> None:
        """Applies the first rule that fits."""
        if i.shape is None or any(o.shape is None for o in i.operands):
            return
        if i.opcode == "dot" and len(i.operands) > 2:
            return  # sparse: `HandleDot` leaves those as they are
        for one in self._rules.get(i.opcode, ()):
            if self._apply(one, i):
                self.counts[one.name] = self.counts.get(one.name, 0) + 1
                self.changed = True
                return

    def _apply(self, one: AlgebraRule, i: Instruction) -> bool:
        """Applies a rule, but not to what is no right instruction: rules rely on operands and attributes."""
        try:
            return one.function(self, i)
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
            near = {i, *i.operands, *(o for x in i.operands for o in x.operands), *i.users}
            if all(_is_sound(x) for x in near):
                raise
            return False

    # ---- what becomes of an instruction

    def replace_with(self, old: Instruction, new: Instruction, *, notes: bool = True) -> bool:
        """Puts another instruction in its place (`ReplaceInstruction`)."""
        return self.replace(old, new, preserve_frontend=notes)

    def replace_with_new(
        self,
        old: Instruction,
        opcode: str,
        operands: Sequence[Instruction],
        shape: Shape | None = None,
        *,
        relay: bool = False,
        literal: Literal | None = None,
        **attributes: Any,
    ) -> bool:
        """Puts a new instruction in its place (`ReplaceWithNewInstruction`)."""
        if not relay and (old.control_predecessors or old.control_successors):
            return False
        new = self.create(
            opcode, shape if shape is not None else shape_of(old), operands, literal=literal, **attributes
        )
        return self.replace(old, new, relay_control=relay)

    def replace_if_compatible(self, old: Instruction, new: Instruction) -> bool:
        """Puts another of the same shape in its place, where no sharding is lost (`ReplaceInstructionIfCompatible`)."""
        if old.control_predecessors or not self.same_shape(shape_of(old), shape_of(new)):
            return False
        return self.replace(old, new, preserve_sharding=True)

    def same_shape(self, a: Shape, b: Shape) -> bool:
        """Equal shapes, layouts aside where they do not count (`SameShape`)."""
        if self.options.is_layout_sensitive:
            return layouts.shapes_equal(a, b) if self.has_layouts else a == b
        return a.text_without_layout() == b.text_without_layout()

    def set_operands(self, i: Instruction, operands: Sequence[Instruction]) -> bool:
        """Gives an instruction other operands (`ReplaceOperandWith`)."""
        with contextlib.suppress(EditError):
            i.change(operands=operands, typed=False)
            return True
        return False

    def replace_uses(self, old: Instruction, new: Instruction) -> bool:
        """Makes all users take another; the old one stays (`ReplaceAllUsesWith`)."""
        with contextlib.suppress(EditError):
            old.replace_all_uses_with(new)
            return True
        return False

    # ---- new instructions

    def create(
        self, opcode: str, shape: Shape, operands: Sequence[Instruction] = (), *, literal: Literal | None = None,
        **attributes: Any,
    ) -> Instruction:  # fmt: skip
        """A new instruction that takes nothing over (`HloComputation::AddInstruction`)."""
        return self.add(opcode, shape, operands, argument=literal, attributes=_named(attributes))

    def create_like(
        self, like: Instruction, opcode: str, shape: Shape, operands: Sequence[Instruction] = (), *,
        literal: Literal | None = None, **attributes: Any,
    ) -> Instruction:  # fmt: skip
        """A new instruction that takes sharding and notes over from another (`HloInstruction::AddInstruction`)."""
        return self.add(opcode, shape, operands, like=like, argument=literal, attributes=_named(attributes))

    def copy_annotations_from(self, like: Instruction, new: Instruction) -> Instruction:
        """Gives a new instruction sharding and notes of another (`SetupDerivedInstruction`)."""
        own = dict(new.attributes)
        new.change(attributes=derived_attributes(like, new.opcode, shape_of(new), own), typed=False)
        return new

    def scalar_like(self, base: Instruction, value: float) -> Instruction:
        """That number in the shape of an instruction (`MakeScalarLike`)."""
        shape = static(shape_of(base))
        scalar = self.number(base, value, shape.element_type)
        if not shape.dimensions:
            return scalar
        return self.create_like(base, "broadcast", shape, (scalar,), dimensions=())

    def number(self, like: Instruction, value: Any, type_: ElementType) -> Instruction:
        """A scalar constant."""
        array = np.asarray(value)
        if array.dtype.kind in "iu" and type_.is_integral:
            array = _wrapped(array, type_)
        literal = Literal.from_array(array.astype(type_.dtype).reshape(()), Shape(type_))
        return self.create_like(like, "constant", Shape(type_), literal=literal)

    def zeros(self, shape: Shape) -> Instruction:
        """Zero everywhere (`BroadcastZeros`)."""
        plain = static(shape).with_default_layout() if self.has_layouts else static(shape)
        literal = Literal.from_array(np.zeros((), shape.element_type.dtype), Shape(shape.element_type))
        zero = self.create("constant", Shape(shape.element_type), literal=literal)
        return self.create("broadcast", plain, (zero,), dimensions=())

    def binary(self, opcode: str, x: Instruction, y: Instruction) -> Instruction:
        """An elementwise operation of two values (`MakeBinaryHlo`)."""
        return self.create(opcode, shape_of(x), (x, y))

    def reshape(self, shape: Shape, x: Instruction) -> Instruction:
        """`MakeReshapeHlo`."""
        return self.create_like(x, "reshape", shape, (x,))

    # ---- layouts

    def reshape_is_bitcast(self, source: Shape, target: Shape) -> bool:
        """True if layouts count and a reshape moves nothing (`AlgebraicSimplifierOptions::ReshapeIsBitcast`)."""
        if not self.options.is_layout_sensitive or not _can_compare(source, target):
            return False
        if _tiles(source) or _tiles(target):
            return _is_same_memory(source, target)
        return layouts.reshape_is_bitcast(source, target)

    def replace_with_bitcast(self, i: Instruction, operand: Instruction | None = None) -> bool:
        """Replaces an instruction with a bitcast of `operand`, by default its first one (`ReplaceWithBitcast`)."""
        value = operand if operand is not None else i.operands[0]
        return self.replace_with(i, self.create_like(i, "bitcast", shape_of(i), (value,)))


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    return {k.replace("control_predecessors", CONTROL): v for k, v in attributes.items() if v is not None}


def _wrapped(array: np.ndarray[Any, Any], type_: ElementType) -> np.ndarray[Any, Any]:
    """Whole numbers as they are in a type of so many bits."""
    value = int(array) & ((1 << type_.bits) - 1)
    if type_.kind is TypeKind.SIGNED and value >> (type_.bits - 1):
        value -= 1 << type_.bits
    return np.asarray(value, np.int64 if value < 0 else np.uint64)


def _can_compare(a: Shape, b: Shape) -> bool:
    plain = all(s.is_array and (s.layout is not None or not s.dimensions) and s.is_static for s in (a, b))
    return plain and all(s.layout is None or len(s.layout.minor_to_major) == s.rank for s in (a, b))


MAX_COMPARED = 1 << 20
"""Elements of tiled arrays that are compared one by one."""


def _tiles(shape: Shape) -> tuple[Any, ...]:
    return shape.layout.tiles if shape.layout is not None else ()


def _is_same_memory(a: Shape, b: Shape) -> bool:
    """True if the elements of two tiled arrays, in logical order, lie in the same places."""
    count = a.element_count
    if a.element_type is not b.element_type or count != b.element_count or count > MAX_COMPARED:
        return False
    if layouts.allocated_bytes(a) != layouts.allocated_bytes(b):
        return False
    numbers = np.arange(count)
    first, second = (
        layouts.linear_indices(shape, np.stack(np.unravel_index(numbers, shape.dimensions), -1))
        if shape.dimensions
        else np.zeros(1, np.int64)
        for shape in (a, b)
    )
    return bool(np.array_equal(first, second))


# ---- questions


def shape_of(i: Instruction) -> Shape:
    """The shape of an instruction that has one."""
    assert i.shape is not None
    return i.shape


def static(shape: Shape) -> Shape:
    """The shape with sizes that do not vary (`ShapeUtil::MakeStaticShape`).

    Raises ValueError for an unbounded dimension, which has no size: no rule fits what needs one of it.
    """
    if shape.is_unbounded:
        raise ValueError(f"{shape} has an unbounded dimension")
    return shape if shape.is_static else layouts.make_static(shape)


def sizes(i: Instruction) -> tuple[int, ...]:
    """The dimensions of an instruction's result."""
    return shape_of(i).dimensions


def dims(i: Instruction) -> tuple[int, ...]:
    """The attribute `dimensions`."""
    return tuple(i.attributes.get("dimensions", ()))


def type_of(i: Instruction) -> ElementType:
    """The element type of an instruction's result."""
    return shape_of(i).element_type


def is_whole(i: Instruction) -> bool:
    """`IsIntegralType`: whole numbers."""
    return type_of(i).is_integral


def is_pred(i: Instruction) -> bool:
    """True if an instruction is of type pred."""
    return type_of(i) is PRED


def is_scalar(i: Instruction) -> bool:
    """True if an array has no dimensions."""
    return shape_of(i).is_array and not sizes(i)


def is_one_element(i: Instruction) -> bool:
    """`IsEffectiveScalar`."""
    return shape_of(i).is_array and all(size == 1 for size in sizes(i))


def is_constant(i: Instruction) -> bool:
    """True if an instruction is a constant."""
    return i.opcode == "constant"


def splat_constant(i: Instruction) -> Instruction | None:
    """The scalar constant that an instruction broadcasts (`Broadcast(ConstantScalar())`)."""
    if i.opcode == "broadcast" and is_constant(i.operands[0]) and is_scalar(i.operands[0]):
        return i.operands[0]
    return None


def array_of(i: Instruction) -> np.ndarray[Any, Any] | None:
    """The elements of a constant if the text lists all of them."""
    return i.literal.known_array if i.literal is not None else None


def is_all(i: Instruction, value: float) -> bool:
    """True if every element is that number: a constant, or a broadcast of one (`IsAll`)."""
    while i.opcode == "broadcast":
        i = i.operands[0]
    array = array_of(i)
    if array is None or not array.size:
        return False
    if array.dtype == bool and value not in (0, 1):
        return False
    type_ = type_of(i)
    if value < 0 and type_.kind in (TypeKind.UNSIGNED, TypeKind.PREDICATE):
        return False
    return bool((array.astype(np.complex128 if type_.is_complex else np.float64) == value).all())


def constant_value(i: Instruction) -> float | None:
    """The number of a constant with one element (`GetConstantValue`)."""
    array = array_of(i)
    if array is None or array.size != 1 or not (type_of(i).is_floating or is_whole(i)):
        return None
    return float(array.reshape(-1)[0]) if type_of(i).is_floating else int(array.reshape(-1)[0])


def one_user(i: Instruction) -> bool:
    """True if one instruction alone uses another."""
    return len(i.user_view) == 1


def one_use(i: Instruction) -> bool:
    """True if an instruction is one operand of another, once."""
    users = i.users
    return len(users) == 1 and users[0].operands.count(i) == 1


def count(i: Instruction) -> int:
    """Elements of an instruction's result."""
    return shape_of(i).element_count


def is_empty(i: Instruction) -> bool:
    """`IsZeroElementArray`."""
    return 0 in sizes(i)


def resized(shape: Shape, new_sizes: Sequence[int]) -> Shape:
    """The shape with other sizes in the same layout."""
    return Shape(shape.element_type, tuple(new_sizes), layout=shape.layout)


def without_dimensions(shape: Shape, numbers: Iterable[int]) -> Shape:
    """The shape without some dimensions (`ShapeUtil::DeleteDimensions`)."""
    gone = set(numbers)
    kept = [d for d in range(shape.rank) if d not in gone]
    layout = shape.layout
    if layout is not None:
        place = {d: n for n, d in enumerate(kept)}
        order = tuple(place[d] for d in layout.minor_to_major if d in place)
        layout = attrs.evolve(layout, minor_to_major=order) if kept or layout.tiles else None
    return Shape(
        shape.element_type, tuple(shape.dimensions[d] for d in kept), tuple(shape.dynamic_dimensions[d] for d in kept),
        layout,
    )  # fmt: skip


def without_ones(shape: Shape) -> Shape:
    """The shape without dimensions of size 1 (`DropDegenerateDimensions`)."""
    return without_dimensions(shape, [d for d, size in enumerate(shape.dimensions) if size == 1])
