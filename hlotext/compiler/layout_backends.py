"""Layout constraints of XLA's CPU compiler beyond the common rules (`CpuLayoutAssignment`)."""

from __future__ import annotations

from hlotext.analysis import arrays_of
from hlotext.compiler.layout_constraints import ConstraintSolver
from hlotext.compiler.layout_values import Interface, Orders, default_orders, order_of
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.shape import Shape
from hlotext.layout.permutations import descending
from hlotext.memory.value_sets import shape_of

COLUMN_MAJOR_BYTES = 32
"""Vectors of fewer bytes are not worth a matrix in column-major order (`ProfitableToMakeDotOperandColumnMajor`)."""

_GEMM_TYPES = frozenset({"f16", "f32", "f64", "c64", "c128", "s32"})
"""Element types of Eigen's matrix multiplication (`AreGemmShapes`)."""


class CpuBackend:
    """The constraints of `CpuLayoutAssignment::AddBackendConstraints`."""

    def reduces_rows(self, reduce: Instruction) -> bool:
        """Returns False: the CPU compiler has no such preference."""
        return False

    def constrain(self, engine: ConstraintSolver, interface: Interface) -> None:
        """Constrains operands to row-major order, except where another order is allowed or required."""
        columns: dict[Instruction, bool] = {}
        for i in engine.vector(interface.computation):
            shape = shape_of(i)
            if _must_be_row_major(i):
                why = f"{i.opcode} {i.name} needs row-major arrays"
                engine.set_instruction(default_orders(shape), i, why)
                for number, operand in enumerate(i.operands):
                    engine.set_operand(default_orders(shape_of(operand)), i, number, why)
            elif _wants_column_major(i, columns):
                rank = shape_of(i.operands[1]).rank
                why = f"{i.name} needs the constant matrix in column-major order"
                engine.set_operand({(): tuple(range(rank))}, i, 1, why)
            elif i.opcode in ("reduce-scatter", "all-gather"):
                along = i.attributes["dimensions"][0]
                why = f"{i.opcode} {i.name} needs dimension {along} most major"
                engine.set_instruction(_with_major(shape, along), i, why)
            else:
                for number, operand in enumerate(i.operands):
                    given = shape_of(operand)
                    if (
                        given.is_array
                        and (i, number) not in interface.operands
                        and not engine.sources.is_handed_on(i, number)
                    ):
                        why = f"{i.opcode} {i.name} needs row-major operands on CPU"
                        engine.set_operand({(): descending(given.rank)}, i, number, why)


def _must_be_row_major(i: Instruction) -> bool:
    """`OperandsAndResultMustHaveRowMajorLayout`."""
    if i.opcode == "convolution":
        return _may_be_eigen_convolution(i)
    if i.opcode == "dot":
        return _is_product_of_matrices(i)
    return i.opcode == "custom-call" and i.attributes.get("custom_call_target") == "TopK"


def _may_be_eigen_convolution(i: Instruction) -> bool:
    """Channels last, kernel with its filters last, no reversal (`PotentiallyImplementedAsEigenConvolution`)."""
    source, kernel = (shape_of(operand) for operand in i.operands)
    if not source.element_count or not kernel.element_count or str(source.element_type) not in ("f16", "f32"):
        return False
    window, labels = i.attributes.get("window"), i.attributes.get("dim_labels")
    if window is not None and any(d.window_reversal for d in window.dimensions):
        return False
    text = str(labels)
    spatial = source.rank - 2
    numbers = "".join(map(str, range(spatial)))
    return 1 <= spatial <= 3 and text == f"b{numbers}f_{numbers}io->b{numbers}f"


def _is_product_of_matrices(i: Instruction) -> bool:
    """`DotOperandsAndResultMustHaveRowMajorLayout`: in batches, or by Eigen or the tiled emitter."""
    if i.attributes.get("lhs_batch_dims", ()):
        return True
    left, right, result = shape_of(i.operands[0]), shape_of(i.operands[1]), shape_of(i)
    type_ = result.element_type
    is_number = type_.is_floating or type_.is_integral
    if is_number and (result.rank <= 1 or (result.rank == 2 and 1 in result.dimensions)):
        return False  # matrix and vector
    if is_number and _is_tiny(left) and _is_tiny(right):
        return False
    return (
        bool(left.element_count and right.element_count)
        and str(type_) in _GEMM_TYPES
        and left.rank == right.rank == result.rank == 2
    )


def _is_tiny(shape: Shape) -> bool:
    return shape.rank <= 1 or (shape.rank == 2 and min(shape.dimensions) <= 3)


def _wants_column_major(i: Instruction, known: dict[Instruction, bool]) -> bool:
    """True if the matrix of a product is a constant that all its users want column by column."""
    if not _gains_from_columns(i) or i.operands[1].opcode != "constant":
        return False
    matrix = i.operands[1]
    if matrix not in known:
        known[matrix] = all(
            _gains_from_columns(user) and user.operands[1] is matrix and user.operands.count(matrix) == 1
            for user in matrix.users
        )
    return known[matrix]


def _gains_from_columns(i: Instruction) -> bool:
    """`ProfitableToMakeDotOperandColumnMajor`."""
    if i.opcode != "dot" or shape_of(i).rank > 1 or shape_of(i.operands[0]).rank != 1:
        return False
    if tuple(i.attributes.get("rhs_contracting_dims", ()))[:1] != (0,):
        return False
    return shape_of(i).element_type.bits // 8 * shape_of(i.operands[0]).element_count >= COLUMN_MAJOR_BYTES


def _with_major(shape: Shape, along: int) -> Orders:
    """The orders of a shape with one dimension moved to the major end (`ShapeUtil::MoveDimToMajor`)."""
    return {index: (*(d for d in order_of(leaf) if d != along), along) for index, leaf in arrays_of(shape)}
