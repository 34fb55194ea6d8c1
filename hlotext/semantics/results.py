"""Is the result's shape the one that operands and attributes give? Do types and precisions fit?"""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.ir.caches import weighted_cache
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import opcodes, traits
from hlotext.ir.tables.comparison import default_order, order_of
from hlotext.ir.tables.opcode import Calls
from hlotext.ir.values.enums import ComparisonOrder, PrecisionAlgorithm, RandomAlgorithm
from hlotext.ir.values.shape import UNBOUNDED_SIZE, Shape
from hlotext.ir.values.types import ElementType
from hlotext.layout.checks import INT64_MAX
from hlotext.layout.errors import shorten
from hlotext.semantics.facts import VerifierOptions
from hlotext.semantics.infer import Agreement, CannotInfer, ShapeInferenceError, agreement, infer_shape
from hlotext.semantics.infer.shapes import compatible, without_layout
from hlotext.semantics.message_text import index_text
from hlotext.semantics.problems import Callee, Part, Problem

DIMENSION_NUMBERS = frozenset(
    [
        *("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims"),
        *("lhs_ragged_dims", "rhs_group_dims", "dim_labels", "window", "feature_group_count"),
        *("batch_group_count", "offset_dims", "collapsed_slice_dims", "start_index_map", "slice_sizes"),
        *("operand_batching_dims", "start_indices_batching_dims", "index_vector_dim"),
        *("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
        *("input_batching_dims", "scatter_indices_batching_dims"),
    ]
)
"""Attributes that say what the dimensions of a dot, a convolution, a gather or a scatter mean."""

_WITH_DIMENSION_NUMBERS = traits.CONTRACTIONS | {"gather", "scatter"}


_APPLYING = traits.REDUCTIONS | {"map"}


def check_result(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks the stated shape against the inferred shape (`ShapeVerifier::CheckShape`), and reports errors of
    inference.
    """
    stated = instruction.shape
    if stated is None:
        return
    try:
        inferred = infer_shape(instruction)
    except CannotInfer:
        return
    except ShapeInferenceError as error:
        yield _misfit(instruction, error)
        return
    how = agreement(instruction.opcode, stated, inferred)
    if how is Agreement.NONE and instruction.opcode == "constant":
        yield Problem("V109", f"the literal is {shorten(str(inferred))}, not {_text(stated)}", Part.SHAPE)
    elif how is Agreement.NONE:
        what = _first_difference(inferred, stated) or f"{shorten(str(inferred))}, not {_text(stated)}"
        related = tuple(range(len(instruction.operands)))[:3]
        help = _left_out(instruction)
        yield Problem("V101", f"{instruction.opcode} produces {what}", Part.SHAPE, help, related=related)
    elif how is Agreement.DYNAMIC:
        yield Problem(
            "V111", f"{instruction.opcode} produces {shorten(str(inferred))}, not {_text(stated)}", Part.SHAPE
        )
    elif how is Agreement.FLOAT_PRECISION and not facts.mixed_precision:
        yield Problem(
            "V106", f"{instruction.opcode} produces {shorten(str(inferred))}, not {_text(stated)}", Part.SHAPE,
            "use a convert to change the precision",
        )  # fmt: skip


def _left_out(instruction: Instruction) -> str:
    """The attributes of a dot that sums over nothing, which XLA takes for an outer product; empty for others."""
    if instruction.opcode != "dot" or any("contracting" in name for name in instruction._attributes):
        return ""
    left, right = (operand.shape for operand in instruction.operands[:2])
    if left is None or right is None or not left.dimensions or left.dimensions[-1] not in right.dimensions:
        return ""
    last, first = left.rank - 1, right.dimensions.index(left.dimensions[-1])
    return f"for a matrix product, write `lhs_contracting_dims={{{last}}}, rhs_contracting_dims={{{first}}}`"


def _text(shape: Shape) -> str:
    return shorten(str(without_layout(shape)))


def _first_difference(inferred: Shape, stated: Shape) -> str:
    """The first differing element of a tuple, in words; empty for arrays and for tuples of another structure."""
    leaves, others = dict(inferred.leaves()), dict(without_layout(stated).leaves())
    if leaves.keys() != others.keys() or len(leaves) < 2:
        return ""
    for index, leaf in leaves.items():
        if not compatible(leaf, others[index]):
            return f"{leaf} as element {index_text(index)}, not {others[index]}"
    return ""


def _misfit(instruction: Instruction, error: ShapeInferenceError) -> Problem:
    """Converts an error of inference to a problem with its code."""
    name = error.attribute
    if name is None:
        where = Part.OPCODE if error.operand is None else error.operand
        related = range(len(instruction.operands))[:3] if error.operand is None else (error.operand,)
        return Problem("V102", error.message, where, error.help, related=tuple(related))
    row = opcodes.opcode(instruction.opcode)
    use = row.attribute(name) if row is not None else None
    if use is not None and use.calls is not Calls.NONE:
        return Problem("V105", error.message, name, related=_called(instruction, name))
    is_numbers = name in DIMENSION_NUMBERS and instruction.opcode in _WITH_DIMENSION_NUMBERS
    return Problem("V104" if is_numbers else "V103", error.message, name, related=(0,))


def _called(instruction: Instruction, name: str) -> tuple[Callee, ...]:
    """The roots of the computations that an attribute names."""
    return tuple(Callee(i) for i, (attribute, _) in enumerate(instruction.callees()) if attribute == name)


# ---- precision


def check_precision(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that floating-point operands have one precision, unless mixed precision is allowed.

    Corresponds to `ShapeVerifier::CheckMixedPrecisionOperands`, and for reduce, reduce-window and map to
    `SameElementTypesForOperandsAndToApplyParameters`.
    """
    if facts.mixed_precision:
        return
    opcode = instruction.opcode
    if opcode not in traits.MIXES_PRECISION:
        first: tuple[int, ElementType] | None = None
        for number, operand in enumerate(instruction.operands):
            for found in _float_types(operand.shape):
                if first is None:
                    first = number, found
                elif found is not first[1]:
                    yield Problem(
                        "V106", f"{opcode} needs floats of one precision, not {first[1]} and {found}", number,
                        "use a convert to change the precision", (first[0], number),
                    )  # fmt: skip
                    return
    if opcode in _APPLYING:
        yield from _parameters(instruction)


def _float_types(shape: Shape | None) -> list[ElementType]:
    if shape is None:
        return []
    return [leaf.element_type for _, leaf in shape.leaves() if leaf.element_type.is_floating]


def _parameters(instruction: Instruction) -> Iterator[Problem]:
    """The parameters of to_apply have exactly the operands' element types."""
    for computation in instruction.called_computations:
        for number, (parameter, operand) in enumerate(
            zip(computation.parameters, instruction.operands, strict=False)
        ):
            if parameter.shape is None or operand.shape is None:
                continue
            takes, gets = parameter.shape.element_type, operand.shape.element_type
            if takes is not gets and takes.is_floating and gets.is_floating:
                yield Problem(
                    "V106", f"to_apply takes {takes} as parameter {number}, but receives {gets}", number,
                    related=(number, Callee(0, number)),
                )  # fmt: skip
                return


# ---- single shapes and opcodes


def check_shape(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that a shape is valid, and that dynamic dimensions have bounds."""
    shape = instruction.shape
    if shape is None:
        return
    if message := too_large(shape):
        yield Problem("V108", message, Part.SHAPE)
    given = (operand.shape for operand in instruction.operands if operand.shape is not None)
    if shape.is_unbounded and not any(operand.is_unbounded for operand in given):
        yield Problem(
            "V107", f"{_text(shape)} has a dimension without a bound", Part.SHAPE,
            "compilers need a known size: refine the shapes, or add a bound, as in [<=8]",
        )  # fmt: skip


@weighted_cache(1 << 14)
def too_large(shape: Shape) -> str:
    """Error in the sizes of a shape; empty if there is none (`ValidateDimensions`, `ValidateShapeSize`)."""
    for _, leaf in shape.leaves():
        array = leaf.tuple_shapes[0] if leaf.is_buffer else leaf
        count = 1
        for number, size in enumerate(array.dimensions):
            if size != UNBOUNDED_SIZE:
                if size < 0:
                    return f"dimension {number} of {array} has a negative size"
                count *= size
        # XLA multiplies without looking for zeros, but a zero that comes first hides what follows.
        if count * max(1, array.element_type.byte_width) > INT64_MAX:
            return f"{array} has more than 2^63 - 1 bytes"
    return ""


def check_comparison(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that compare orders integers and pred totally (`CheckElementwiseInstruction`), in old and new words."""
    shape = instruction.operands[-1].shape if instruction.operands else None
    if shape is None or not shape.is_array or default_order(shape.element_type) is not ComparisonOrder.TOTAL:
        return
    order = order_of(instruction.attributes, shape.element_type)
    if order is not None and order is not ComparisonOrder.TOTAL:
        word = "order" if "order" in instruction.attributes else "type"
        given = instruction.attributes[word]
        yield Problem(
            "V110", f"{shape.element_type} comparisons use a total order, not {word}={given}", word, related=(1,)
        )  # fmt: skip


def check_outfeed(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that `outfeed_shape` is compatible with the shape of operand 0 (`ShapeVerifier::HandleOutfeed`)."""
    stated = instruction.attributes.get("outfeed_shape")
    shape = instruction.operands[0].shape if instruction.operands else None
    if shape is not None and isinstance(stated, Shape) and not compatible(stated, shape):
        yield Problem(
            "V103", f"outfeed_shape is {_text(stated)}, not {_text(shape)}", "outfeed_shape", related=(0,)
        )


def check_copy(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that a copy is not of opaque type, whose unknown size aborts XLA's parser (`CreateNary`)."""
    if instruction.shape is not None and instruction.shape.is_opaque:
        yield Problem("V102", "opaque[] cannot be copied, since its size is unknown", Part.SHAPE)


def check_algorithm(instruction: Instruction, facts: VerifierOptions) -> Iterator[Problem]:
    """Checks that random generators and dots name an algorithm of their own kind (`AttrTy::kRandomAlgorithm`)."""
    algorithm = instruction._attributes["algorithm"]
    is_generator = instruction._head.opcode == "rng-bit-generator"
    known, other = (
        (RandomAlgorithm, PrecisionAlgorithm) if is_generator else (PrecisionAlgorithm, RandomAlgorithm)
    )
    if isinstance(algorithm, other):
        listed = ", ".join(str(one) for one in known)
        what = "generates random bits" if is_generator else "multiplies"
        message = f"algorithm={algorithm} is not an algorithm that {what}"
        yield Problem("V103", message, "algorithm", f"one of {listed}")
