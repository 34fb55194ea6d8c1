"""Words in attributes: a class for each of XLA's enumerations, members spelt as XLA prints them."""

from __future__ import annotations

from enum import StrEnum


class ComparisonDirection(StrEnum):
    """`direction=` of compare (`ComparisonDirection`)."""

    EQ = "EQ"
    NE = "NE"
    GE = "GE"
    GT = "GT"
    LE = "LE"
    LT = "LT"


class ComparisonOrder(StrEnum):
    """`order=` of compare (`Comparison::Order`): order of the operands; in text from the autumn of 2026 on."""

    TOTAL = "TOTAL"
    PARTIAL = "PARTIAL"
    WEAK = "WEAK"


class ComparisonType(StrEnum):
    """`type=` of compare (`Comparison::Type`): order of the operands, in text until the autumn of 2026."""

    FLOAT = "FLOAT"
    TOTALORDER = "TOTALORDER"
    SIGNED = "SIGNED"
    UNSIGNED = "UNSIGNED"


class FftType(StrEnum):
    """`fft_type=` (`FftType`)."""

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"


class FusionKind(StrEnum):
    """`kind=` of fusion (`HloInstruction::FusionKind`)."""

    LOOP = "kLoop"
    INPUT = "kInput"
    OUTPUT = "kOutput"
    CUSTOM = "kCustom"


class PaddingType(StrEnum):
    """`padding_type=` of custom-call (`PaddingType`)."""

    INVALID = "PADDING_INVALID"
    VALID = "PADDING_VALID"
    SAME = "PADDING_SAME"


class TransposeA(StrEnum):
    """`transpose_a=` of triangular-solve (`TriangularSolveOptions::Transpose`)."""

    INVALID = "TRANSPOSE_INVALID"
    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


class CollectiveMode(StrEnum):
    """`mode=` of all-reduce and reduce-scatter (`CollectiveOpGroupMode`). XLA parses it without storing it."""

    CROSS_REPLICA = "cross_replica"
    CROSS_PARTITION = "cross_partition"
    CROSS_REPLICA_AND_PARTITION = "cross_replica_and_partition"
    FLATTENED_ID = "flattened_id"


class ShuffleMode(StrEnum):
    """`mode=` of shuffle (`ShuffleMode`): how the elements move; in text from the middle of 2026 on."""

    ROTATE = "rotate"


class RandomDistribution(StrEnum):
    """`distribution=` of rng (`RandomDistribution`)."""

    INVALID = "rng_invalid"
    UNIFORM = "rng_uniform"
    NORMAL = "rng_normal"


class RandomAlgorithm(StrEnum):
    """`algorithm=` of rng-bit-generator (`RandomAlgorithm`)."""

    DEFAULT = "rng_default"
    THREE_FRY = "rng_three_fry"
    PHILOX = "rng_philox"


class PrecisionAlgorithm(StrEnum):
    """`algorithm=` of dots (`PrecisionConfig::Algorithm`): types of the operands, and of accumulation."""

    UNSET = "unset"
    DOT_ANY_F8_ANY_F8_F32 = "dot_any_f8_any_f8_f32"
    DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM = "dot_any_f8_any_f8_f32_fast_accum"
    DOT_F16_F16_F16 = "dot_f16_f16_f16"
    DOT_F16_F16_F32 = "dot_f16_f16_f32"
    DOT_BF16_BF16_BF16 = "dot_bf16_bf16_bf16"
    DOT_BF16_BF16_F32 = "dot_bf16_bf16_f32"
    DOT_BF16_BF16_F32_X3 = "dot_bf16_bf16_f32_x3"
    DOT_BF16_BF16_F32_X6 = "dot_bf16_bf16_f32_x6"
    DOT_BF16_BF16_F32_X9 = "dot_bf16_bf16_f32_x9"
    DOT_BF16_BF16_FP8X3 = "dot_bf16_bf16_fp8x3"
    DOT_BF16_BF16_FP8X4 = "dot_bf16_bf16_fp8x4"
    DOT_TF32_TF32_F32 = "dot_tf32_tf32_f32"
    DOT_TF32_TF32_F32_X3 = "dot_tf32_tf32_f32_x3"
    DOT_F32_F32_F32 = "dot_f32_f32_f32"
    DOT_F64_F64_F64 = "dot_f64_f64_f64"


class Precision(StrEnum):
    """One entry of `operand_precision=` (`PrecisionConfig::Precision`)."""

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"


class CustomCallSchedule(StrEnum):
    """`schedule=` of custom-call (`CustomCallSchedule`)."""

    NONE = "SCHEDULE_NONE"
    LATEST = "SCHEDULE_LATEST"
    EARLIEST = "SCHEDULE_EARLIEST"


class CustomCallApiVersion(StrEnum):
    """`api_version=` of custom-call (`CustomCallApiVersion`)."""

    UNSPECIFIED = "API_VERSION_UNSPECIFIED"
    ORIGINAL = "API_VERSION_ORIGINAL"
    STATUS_RETURNING = "API_VERSION_STATUS_RETURNING"
    STATUS_RETURNING_UNIFIED = "API_VERSION_STATUS_RETURNING_UNIFIED"
    TYPED_FFI = "API_VERSION_TYPED_FFI"


class ConvolutionKind(StrEnum):
    """`convolution_kind=` of convolution (`ConvolutionKind`): forward, or the gradient of filter or input."""

    UNSET = "unset"
    FPROP = "fprop"
    WGRAD = "wgrad"
    DGRAD = "dgrad"


class ResultAccuracyMode(StrEnum):
    """`result_accuracy={mode=...}` (`ResultAccuracy::Mode`)."""

    DEFAULT = "default"
    HIGHEST = "highest"


class AliasKind(StrEnum):
    """Kind of alias between an output and a parameter (`HloInputOutputAliasConfig::AliasKind`)."""

    MAY = "may-alias"
    MUST = "must-alias"


class DebugLogMode(StrEnum):
    """`log_mode` of the header's debug attributes."""

    DEFAULT = "default"
    FUSION_DEBUGGER = "fusion_debugger"


class ShardingType(StrEnum):
    """`OpSharding::Type`: the word in the text, or XLA's lower-case name if the text has no word for it."""

    REPLICATED = "replicated"
    MAXIMAL = "maximal"
    TUPLE = "tuple"
    OTHER = "other"
    MANUAL = "manual"
    UNKNOWN = "unknown"
    UNREDUCED = "unreduced"
