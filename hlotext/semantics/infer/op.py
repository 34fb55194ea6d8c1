"""Input of shape inference: a value, so that equal operations are inferred once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.tables.opcode import Calls, Family, Opcode
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.types import ElementType
from hlotext.semantics.infer import shapes
from hlotext.semantics.infer.errors import CannotInfer, ShapeInferenceError
from hlotext.semantics.message_text import index_text

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction

T = TypeVar("T")

NO_DEFAULT = object()


@attrs.frozen(cache_hash=True)
class ProgramShape:
    """Signature of a computation, without layouts."""

    parameters: tuple[Shape, ...]
    result: Shape

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parameters))}) -> {self.result}"


@attrs.frozen(cache_hash=True)
class Op:
    """The parts of an instruction that determine its result shape, all without layouts."""

    opcode: str
    operands: tuple[Shape, ...] = ()
    attributes: tuple[tuple[str, Any], ...] = ()
    """Opcode-specific attributes by name, excluding references to computations."""
    called: tuple[tuple[str, tuple[ProgramShape, ...]], ...] = ()
    """Signatures of the called computations, by attribute name."""
    stated: Shape | None = None
    """The stated shape, used only for parts that operands do not determine, or None if not stated.
    """
    literal: Shape | None = None
    """Shape of a constant's value, or None for other opcodes."""
    replica_count: int = 1
    num_partitions: int = 1

    # ---- operands

    def operand(self, number: int) -> Shape:
        """Returns the shape of operand `number`. Raises ShapeInferenceError if there is none."""
        if number >= len(self.operands):
            raise ShapeInferenceError(
                f"{self.opcode} takes an operand {number}, counted from 0, but has {len(self.operands)}",
                operand=number,
            )
        return self.operands[number]

    def array(self, number: int) -> Shape:
        """Returns the shape of operand `number`. Raises ShapeInferenceError if it is not an array."""
        shape = self.operand(number)
        if not shape.is_array:
            raise ShapeInferenceError(
                f"operand {number} of {self.opcode} must be an array, not {shape}", operand=number
            )
        return shape

    def arrays(self) -> tuple[Shape, ...]:
        """Returns the shapes of all operands. Raises ShapeInferenceError unless there are one or more, all arrays."""
        self.operand(0)
        return tuple(self.array(number) for number in range(len(self.operands)))

    # ---- attributes

    def get(self, name: str, kind: type[T], default: object = NO_DEFAULT) -> T:
        """Returns the value of an attribute, or `default` if it is missing.

        Raises ShapeInferenceError if it is not of type `kind`, or is missing and there is no default.
        """
        for key, value in self.attributes:
            if key == name:
                if isinstance(value, kind):
                    return value
                raise ShapeInferenceError(f"{name}={value} is not a {kind.__name__}", attribute=name)
        if default is NO_DEFAULT:
            raise ShapeInferenceError(f"{self.opcode} needs the attribute {name}", attribute=name)
        return default  # type: ignore[return-value]

    def integers(self, name: str, default: object = NO_DEFAULT) -> tuple[int, ...]:
        """Returns an integer-list attribute, or `default` if it is missing. Raises ShapeInferenceError as `get` does."""
        numbers: tuple[int, ...] = self.get(name, tuple, default)
        if not all(isinstance(number, int) for number in numbers):
            raise ShapeInferenceError(f"{name}={numbers} must be a list of numbers", attribute=name)
        return numbers

    def dimension_numbers(self, name: str, rank: int, default: object = NO_DEFAULT) -> tuple[int, ...]:
        """Returns an attribute's dimension numbers, or `default` if it is missing.

        Raises ShapeInferenceError as `get` does, and unless the numbers are distinct and below `rank`.
        """
        numbers = self.integers(name, default)
        for number in numbers:
            self.check_dimension(name, number, rank)
        if len(set(numbers)) != len(numbers):
            raise ShapeInferenceError(f"{name}={index_text(numbers)} lists a dimension twice", attribute=name)
        return numbers

    def sorted_dimension_numbers(self, name: str, rank: int, default: object = NO_DEFAULT) -> tuple[int, ...]:
        """Returns an attribute's dimension numbers, or `default` if it is missing.

        Raises ShapeInferenceError as `get` does, and unless the numbers are ascending and below `rank`.
        """
        numbers = self.dimension_numbers(name, rank, default)
        if list(numbers) != sorted(numbers):
            raise ShapeInferenceError(f"{name}={index_text(numbers)} must be ascending", attribute=name)
        return numbers

    def dimension(self, rank: int, name: str = "dimensions") -> int:
        """Returns the only dimension number of the attribute `name`.

        Raises ShapeInferenceError unless there is exactly one, below `rank`.
        """
        numbers = self.dimension_numbers(name, rank)
        if len(numbers) != 1:
            raise ShapeInferenceError(f"{self.opcode} needs exactly one dimension in {name}", attribute=name)
        return numbers[0]

    def check_dimension(self, name: str, number: int, rank: int) -> None:
        """Raises ShapeInferenceError unless `number` is a valid dimension number for a rank."""
        if not 0 <= number < rank:
            raise ShapeInferenceError(
                f"dimension {number} in {name} is out of range for {rank} dimensions", attribute=name
            )

    # ---- called computations

    def programs(self, name: str) -> tuple[ProgramShape, ...]:
        """Returns the signatures of the computations in an attribute.

        Raises ShapeInferenceError if the attribute is missing.
        """
        for key, signatures in self.called:
            if key == name:
                return signatures
        raise ShapeInferenceError(f"{self.opcode} needs the attribute {name}", attribute=name)

    def program(self, name: str) -> ProgramShape:
        """Returns the signature of the computation in an attribute.

        Raises ShapeInferenceError if the attribute is missing or names several computations.
        """
        signatures = self.programs(name)
        if len(signatures) != 1:
            raise ShapeInferenceError(f"{name} of {self.opcode} must be one computation", attribute=name)
        return signatures[0]

    # ---- what the operands leave open

    def open_shape(self, what: str) -> Shape:
        """Returns the stated shape, for parts that operands do not determine (named by `what` in the error).

        Raises CannotInfer if no shape is stated.
        """
        if self.stated is None:
            raise CannotInfer(f"{self.opcode} does not determine the {what} of its result")
        return self.stated

    def open_array(self, what: str) -> Shape:
        """Returns the stated shape, which must be an array.

        Raises CannotInfer if none is stated, and ShapeInferenceError if it is not an array.
        """
        shape = self.open_shape(what)
        if not shape.is_array:
            raise ShapeInferenceError(f"the result of {self.opcode} must be an array, not {shape}")
        return shape

    def common_type(self, a: ElementType, b: ElementType) -> ElementType:
        """Returns the one of two types that has the higher precision (`primitive_util::HigherPrecisionType`).

        Raises ShapeInferenceError if two different types have the same precision.
        """
        found = shapes.higher_precision(a, b)
        if found is None:
            raise ShapeInferenceError(f"{self.opcode} of {a} and {b} has no common type")
        return found


def op_of(instruction: Instruction, row: Opcode, *, with_stated: bool) -> Op:
    """Converts an instruction to the input of shape inference. Raises CannotInfer if the shape of an operand is
    unknown.
    """
    operands = []
    for operand in instruction.operands:
        if operand.shape is None:
            raise CannotInfer(f"the shape of operand {operand.name} is unknown")
        operands.append(shapes.without_layout(operand.shape))
    attributes = instruction.attributes
    given = [use for use in row.attributes if use.name in attributes]
    stated = instruction.shape if with_stated else None
    literal = instruction.literal
    module = instruction.computation.module if instruction.computation is not None else None
    devices = module.attributes if module is not None and row.family is Family.COLLECTIVE else {}
    return Op(
        row.name,
        tuple(operands),
        tuple((use.name, attributes[use.name]) for use in given if use.calls is Calls.NONE),
        tuple((use.name, _signatures(attributes[use.name])) for use in given if use.calls is not Calls.NONE),
        shapes.without_layout(stated) if stated is not None else None,
        shapes.without_layout(literal.shape) if literal is not None else None,
        devices.get("replica_count", 1),
        devices.get("num_partitions", 1),
    )


def _signatures(value: object) -> tuple[ProgramShape, ...]:
    """Signatures of the computation, or computations, that an attribute holds."""
    callees = value if isinstance(value, tuple) else (value,)
    return tuple(program_shape(callee) for callee in callees)


def program_shape(computation: object) -> ProgramShape:
    """Returns the signature of a computation, without layouts.

    Raises CannotInfer for a name without a definition, and if a shape is unknown.
    """
    if not isinstance(computation, Computation) or not len(computation):
        raise CannotInfer(f"the computation {getattr(computation, 'name', computation)} is unknown")
    found = []
    for instruction in (*computation.parameters, computation.root):
        if instruction.shape is None:
            raise CannotInfer(f"the shape of {instruction.name} in {computation.name} is unknown")
        found.append(shapes.without_layout(instruction.shape))
    return ProgramShape(tuple(found[:-1]), found[-1])
