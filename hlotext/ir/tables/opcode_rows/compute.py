"""Rows of the opcode table: reductions, windows, sorting, dots, convolutions, transforms, random numbers."""

from __future__ import annotations

from hlotext.ir.tables import opcode_attributes as a
from hlotext.ir.tables.opcode import Arity, AttributeUse, Count, Family, Opcode, Printing
from hlotext.ir.tables.opcode_rows.examples import ADD, LESS, SCAN_STEP

ROWS: tuple[Opcode, ...] = (
    Opcode(
        "batch-norm-grad",
        Family.NORMALIZATION,
        Arity(5, 5),
        "Gradients of batch normalization with respect to operand, scale and offset.",
        "(f32[2,4], f32[4], f32[4]) batch-norm-grad(f32[2,4] x, f32[4] s, f32[4] m, f32[4] v, "
        "f32[2,4] g), epsilon=0.001, feature_index=1",
        attributes=a.BATCH_NORM,
        shape_rule="batch_norm_grad",
        shape_optional=True,
    ),
    Opcode(
        "batch-norm-inference",
        Family.NORMALIZATION,
        Arity(5, 5),
        "Normalizes each feature with the mean and variance given.",
        "f32[2,4] batch-norm-inference(f32[2,4] x, f32[4] s, f32[4] o, f32[4] m, f32[4] v), "
        "epsilon=0.001, feature_index=1",
        attributes=a.BATCH_NORM,
        shape_rule="batch_norm_inference",
        shape_optional=True,
    ),
    Opcode(
        "batch-norm-training",
        Family.NORMALIZATION,
        Arity(3, 3),
        "Normalizes each feature over the batch; gives output, mean and variance.",
        "(f32[2,4], f32[4], f32[4]) batch-norm-training(f32[2,4] x, f32[4] s, f32[4] o), "
        "epsilon=0.001, feature_index=1",
        attributes=a.BATCH_NORM,
        shape_rule="batch_norm_training",
        shape_optional=True,
    ),
    Opcode(
        "cholesky",
        Family.LINEAR_ALGEBRA,
        Arity(1, 1),
        "Cholesky factor of each matrix in the last two dimensions.",
        "f32[4,4] cholesky(f32[4,4] x), lower=true",
        attributes=(a.flag("lower"),),
        shape_rule="cholesky",
        shape_optional=True,
    ),
    Opcode(
        "convolution",
        Family.CONTRACTION,
        Arity(2, 2),
        "Slides the kernel (operand 1) over the input (operand 0) and sums the products over window "
        "and input features.",
        "f32[1,2,2,8] convolution(f32[1,4,4,3] x, f32[3,3,3,8] k), window={size=3x3}, "
        "dim_labels=b01f_01io->b01f",
        attributes=(
            a.WINDOW,
            a.required("dim_labels"),
            a.FEATURE_GROUP_COUNT,
            a.BATCH_GROUP_COUNT,
            AttributeUse("convolution_kind", Printing.IF_NOT_DEFAULT, default="unset"),
            a.obsolete("conv_kind"),
            a.OPERAND_PRECISION,
            AttributeUse("algorithm", Printing.IF_NOT_DEFAULT, default="unset", new=True),
            a.listed("sparsity_config"),
            AttributeUse("block_scaling_config", Printing.IF_NOT_EMPTY, new=True),
        ),
        shape_rule="convolution",
        shape_optional=True,
    ),
    Opcode(
        "dot",
        Family.CONTRACTION,
        # Sparse operands brought their metadata as further operands; XLA's reader still ignores what is too many.
        Arity(2, 4),
        "Sum of products over the contracting dimensions, for each index of the batch dimensions. "
        "Result: batch, lhs, rhs dimensions.",
        "f32[2,3] dot(f32[2,4] x, f32[4,3] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        attributes=(*a.DOT_DIMENSIONS, a.OPERAND_PRECISION, a.DOT_ALGORITHM, a.obsolete("sparsity")),
        shape_rule="dot",
        shape_optional=True,
    ),
    Opcode(
        "fft",
        Family.LINEAR_ALGEBRA,
        Arity(1, 1),
        "Fourier transform over the last dimensions, as many as fft_length has entries.",
        "c64[3] fft(f32[4] x), fft_type=RFFT, fft_length={4}",
        attributes=(a.required("fft_type"), a.required("fft_length")),
        shape_rule="fft",
        shape_optional=True,
    ),
    Opcode(
        "ragged-dot",
        Family.CONTRACTION,
        Arity(3, 3),
        "A dot for each group of rows; operand 2 holds the groups' sizes along the ragged dimension.",
        "f32[6,3] ragged-dot(f32[6,4] x, f32[2,4,3] y, s32[2] sizes), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
        attributes=(
            *a.DOT_DIMENSIONS,
            a.listed("lhs_ragged_dims"),
            a.listed("rhs_group_dims"),
            a.OPERAND_PRECISION,
        ),
        shape_rule="ragged_dot",
        shape_optional=True,
    ),
    Opcode(
        "reduce",
        Family.REDUCTION,
        Arity(2, None, Count.EVEN),
        "Combines the elements along some dimensions with a computation: N arrays, then N initial values.",
        f"f32[2] reduce(f32[2,4] x, f32[] init), dimensions={{1}}, to_apply={ADD}",
        attributes=(a.DIMENSIONS, a.TO_APPLY),
        shape_rule="reduce",
        shape_optional=True,
    ),
    Opcode(
        "reduce-window",
        Family.REDUCTION,
        Arity(2, None, Count.EVEN),
        "Combines the elements of each position of a sliding window: N arrays, then N initial values.",
        f"f32[3] reduce-window(f32[4] x, f32[] init), window={{size=2}}, to_apply={ADD}",
        attributes=(a.WINDOW, a.TO_APPLY),
        shape_rule="reduce_window",
        shape_optional=True,
    ),
    Opcode(
        "rng",
        Family.RANDOM,
        Arity(),
        "Random numbers from a distribution whose two parameters are the operands.",
        "f32[4] rng(f32[] low, f32[] high), distribution=rng_uniform",
        attributes=(a.required("distribution"),),
        shape_rule="rng",
    ),
    Opcode(
        "rng-bit-generator",
        Family.RANDOM,
        Arity(1, 1),
        "Random bits from a state; the result is (new state, bits).",
        "(u64[2], u32[4]) rng-bit-generator(u64[2] state), algorithm=rng_three_fry",
        attributes=(a.required("algorithm"),),
        shape_rule="rng_bit_generator",
    ),
    Opcode(
        "rng-get-and-update-state",
        Family.RANDOM,
        Arity(0, 0),
        "The device's global random state, which then moves on by delta.",
        "u64[2] rng-get-and-update-state(), delta=1",
        attributes=(a.required("delta"),),
        shape_rule="rng_state",
    ),
    Opcode(
        "scaled-dot",
        Family.CONTRACTION,
        Arity(4, 4),
        "A dot of narrow operands (0, 1) that are first multiplied by scales (2, 3), one for each "
        "block of elements.",
        "f32[2,3] scaled-dot(f8e4m3fn[2,64] x, f8e4m3fn[3,64] y, f8e8m0fnu[2,2] xs, f8e8m0fnu[3,2] ys), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        attributes=(*a.DOT_DIMENSIONS, a.OPERAND_PRECISION, a.DOT_ALGORITHM),
        shape_rule="scaled_dot",
        shape_optional=True,
    ),
    Opcode(
        "scan",
        Family.REDUCTION,
        Arity(1, None, Count.CALLED_PARAMETERS),
        "Runs a computation along one dimension of the inputs, handing carries from step to step; "
        "gives outputs, then carries.",
        f"(f32[4], f32[]) scan(f32[4] x, f32[] c), dimensions={{0}}, num_carries=1, "
        f"is_associative=false, to_apply={SCAN_STEP}",
        attributes=(
            a.DIMENSIONS,
            a.required("num_carries"),
            a.flag("is_reverse"),
            AttributeUse("is_associative", Printing.ALWAYS, default=False),
            a.TO_APPLY,
        ),
        shape_rule="scan",
        shape_optional=True,
    ),
    Opcode(
        "select-and-scatter",
        Family.REDUCTION,
        Arity(3, 3),
        "Selects one element in each window of operand 0 and combines operand 1's values into those places.",
        f"f32[4] select-and-scatter(f32[4] x, f32[2] s, f32[] init), window={{size=2 stride=2}}, "
        f"select={LESS}, scatter={ADD}",
        attributes=(a.WINDOW, a.called("select"), a.called("scatter")),
        shape_rule="select_and_scatter",
        shape_optional=True,
    ),
    Opcode(
        "sort",
        Family.SORTING,
        Arity(1),
        "The operands reordered together along one dimension so that neighbours satisfy the comparator.",
        f"f32[4] sort(f32[4] x), dimensions={{0}}, to_apply={LESS}",
        attributes=(a.DIMENSIONS, a.flag("is_stable"), a.TO_APPLY),
        shape_rule="sort",
        shape_optional=True,
    ),
    Opcode(
        "topk",
        Family.SORTING,
        Arity(1, 1),
        "The k largest (or smallest) elements of the last dimension and their indices.",
        "(f32[2], s32[2]) topk(f32[4] x), k=2, largest=true",
        attributes=(
            a.required("k"),
            AttributeUse("largest", Printing.ALWAYS, default=True),
            AttributeUse("is_stable", default=True, new=True),
        ),
        shape_rule="topk",
        shape_optional=True,
    ),
    Opcode(
        "triangular-solve",
        Family.LINEAR_ALGEBRA,
        Arity(2, 2),
        "Solves a triangular system (operand 0) for the right-hand sides in operand 1.",
        "f32[4,2] triangular-solve(f32[4,4] m, f32[4,2] b), left_side=true, lower=true, "
        "transpose_a=NO_TRANSPOSE",
        attributes=(
            a.flag("left_side"),
            a.flag("lower"),
            a.flag("unit_diagonal"),
            AttributeUse("transpose_a", Printing.IF_NOT_DEFAULT, default="TRANSPOSE_INVALID"),
        ),
        shape_rule="triangular_solve",
        shape_optional=True,
    ),
)
