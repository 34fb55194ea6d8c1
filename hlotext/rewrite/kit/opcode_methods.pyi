"""The builder's methods, one for each opcode. Made from the opcode table by `python -m tests.stubs`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables.opcode import Opcode
from hlotext.ir.values.accuracy import ResultAccuracy
from hlotext.ir.values.aliasing import OutputToOperandAliasing
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.enums import (
    CollectiveMode,
    ConvolutionKind,
    CustomCallApiVersion,
    CustomCallSchedule,
    FftType,
    FusionKind,
    PaddingType,
    Precision,
    PrecisionAlgorithm,
    RandomAlgorithm,
    RandomDistribution,
    ShuffleMode,
    TransposeA,
)
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.original_value import OriginalValue
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Domain, Sharding
from hlotext.ir.values.sparsity import BlockScalingConfig, DotSparsity, SparsityConfig
from hlotext.ir.values.statistics import Statistics
from hlotext.ir.values.window import PaddingConfig, Window
from hlotext.rewrite.kit.typed_numbers import Operand

METHODS: Mapping[str, Opcode]

class Common(TypedDict, total=False):
    name: str | None
    sharding: Sharding | str | None
    frontend_attributes: Mapping[str, str] | str | None
    control_predecessors: Sequence[Instruction] | None
    statistics: Statistics | Mapping[str, object] | str | None
    origin: OriginalValue | str | None
    metadata: Metadata | Mapping[str, object] | str | None
    backend_config: BackendConfig | str | None

class OpcodeMethods:
    def abs(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def acos(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def acosh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def add(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def add_dependency(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def after_all(
        self, *operands: Operand, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def all_gather(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def all_gather_done(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def all_gather_start(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def all_reduce(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def all_reduce_done(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def all_reduce_start(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def all_to_all(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        dimensions: Sequence[int] | int | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def and_(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def asin(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def asinh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def async_done(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        async_group_id: int | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def async_start(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        calls: Computation,
        async_group_id: int | None = ...,
        async_execution_thread: str | None = ...,
        output_to_operand_aliasing: OutputToOperandAliasing | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def async_update(
        self,
        operand0: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        async_group_id: int | None = ...,
        output_to_operand_aliasing: OutputToOperandAliasing | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def atan(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def atan2(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def atanh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def batch_norm_grad(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        operand3: Operand,
        operand4: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        epsilon: float,
        feature_index: int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def batch_norm_inference(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        operand3: Operand,
        operand4: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        epsilon: float,
        feature_index: int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def batch_norm_training(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        epsilon: float,
        feature_index: int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def bitcast_convert(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def call(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        is_composite: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def cbrt(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def ceil(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def cholesky(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        lower: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def clamp(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def collective_broadcast(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        has_dynamic_root: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def collective_permute(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        source_target_pairs: Sequence[tuple[int, int]],
        channel_id: int | None = ...,
        slice_sizes: Sequence[int] | Sequence[Sequence[int]] | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def collective_permute_done(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def collective_permute_start(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        source_target_pairs: Sequence[tuple[int, int]],
        channel_id: int | None = ...,
        slice_sizes: Sequence[int] | Sequence[Sequence[int]] | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def collective_reduce(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        has_dynamic_root: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def complex(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def concatenate(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def conditional(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        true_computation: Computation | None = ...,
        false_computation: Computation | None = ...,
        branch_computations: Sequence[Computation] | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def convolution(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dim_labels: ConvolutionDimensionNumbers | str,
        window: Window | Mapping[str, object] | str | None = ...,
        feature_group_count: int | None = ...,
        batch_group_count: int | None = ...,
        convolution_kind: ConvolutionKind | str | None = ...,
        operand_precision: Sequence[Precision] | None = ...,
        algorithm: PrecisionAlgorithm | RandomAlgorithm | str | None = ...,
        sparsity_config: SparsityConfig | str | None = ...,
        block_scaling_config: BlockScalingConfig | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def copy(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def copy_done(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def copy_start(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        cross_program_prefetch_index: int | None = ...,
        is_cross_program_prefetch: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def cosh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def cosine(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def count_leading_zeros(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def custom_call(
        self,
        *operands: Operand,
        shape: Shape | str,
        custom_call_target: str,
        window: Window | Mapping[str, object] | str | None = ...,
        dim_labels: ConvolutionDimensionNumbers | str | None = ...,
        feature_group_count: int | None = ...,
        batch_group_count: int | None = ...,
        operand_precision: Sequence[Precision] | None = ...,
        padding_type: PaddingType | str | None = ...,
        operand_layout_constraints: Sequence[Shape] | None = ...,
        custom_call_has_side_effect: bool | None = ...,
        literal: Literal | str | None = ...,
        output_to_operand_aliasing: OutputToOperandAliasing | str | None = ...,
        schedule: CustomCallSchedule | str | None = ...,
        api_version: CustomCallApiVersion | str | None = ...,
        called_computations: Sequence[Computation] | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def divide(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def domain(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        domain: Domain | str,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def dot(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        lhs_batch_dims: Sequence[int] | int | None = ...,
        lhs_contracting_dims: Sequence[int] | int | None = ...,
        rhs_batch_dims: Sequence[int] | int | None = ...,
        rhs_contracting_dims: Sequence[int] | int | None = ...,
        operand_precision: Sequence[Precision] | None = ...,
        algorithm: PrecisionAlgorithm | RandomAlgorithm | str | None = ...,
        sparsity_config: SparsityConfig | str | None = ...,
        block_scaling_config: BlockScalingConfig | str | None = ...,
        sparsity: DotSparsity | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def dynamic_reshape(
        self,
        operand0: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def dynamic_slice(
        self,
        operand0: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dynamic_slice_sizes: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def dynamic_update_slice(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def erf(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def exp2(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def exponential(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def exponential_minus_one(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def fft(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        fft_type: FftType | str,
        fft_length: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def floor(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def fusion(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        kind: FusionKind | str,
        calls: Computation,
        output_to_operand_aliasing: OutputToOperandAliasing | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def gather(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        offset_dims: Sequence[int] | int,
        collapsed_slice_dims: Sequence[int] | int,
        start_index_map: Sequence[int] | int,
        index_vector_dim: int,
        slice_sizes: Sequence[int] | Sequence[Sequence[int]],
        operand_batching_dims: Sequence[int] | int | None = ...,
        start_indices_batching_dims: Sequence[int] | int | None = ...,
        indices_are_sorted: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def get_dimension_size(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def imag(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def infeed(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        infeed_config: str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def is_finite(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def log(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def log_plus_one(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def log2(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def logistic(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def map(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        dimensions: Sequence[int] | int | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def maximum(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def minimum(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def mulhi(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def multiply(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def negate(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def not_(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def opt_barrier(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def or_(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def outfeed(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        outfeed_shape: Shape | str | None = ...,
        outfeed_config: str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def pad(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        padding: PaddingConfig | Sequence[Sequence[int]] | str,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def partition_id(self, *, shape: Shape | str | None = ..., **common: Unpack[Common]) -> Instruction: ...
    def popcnt(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def power(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def ragged_all_to_all(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        operand3: Operand,
        operand4: Operand,
        operand5: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def ragged_dot(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        lhs_batch_dims: Sequence[int] | int | None = ...,
        lhs_contracting_dims: Sequence[int] | int | None = ...,
        rhs_batch_dims: Sequence[int] | int | None = ...,
        rhs_contracting_dims: Sequence[int] | int | None = ...,
        lhs_ragged_dims: Sequence[int] | int | None = ...,
        rhs_group_dims: Sequence[int] | int | None = ...,
        operand_precision: Sequence[Precision] | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def real(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def recv(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        is_host_transfer: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def recv_done(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        is_host_transfer: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def reduce(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        to_apply: Computation,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def reduce_precision(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        exponent_bits: int,
        mantissa_bits: int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def reduce_scatter(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        to_apply: Computation,
        channel_id: int | None = ...,
        replica_groups: ReplicaGroups | Sequence[Sequence[int]] | str | None = ...,
        constrain_layout: bool | None = ...,
        use_global_device_ids: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def reduce_window(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        to_apply: Computation,
        window: Window | Mapping[str, object] | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def remainder(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def replica_id(self, *, shape: Shape | str | None = ..., **common: Unpack[Common]) -> Instruction: ...
    def reverse(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def rng(
        self,
        *operands: Operand,
        shape: Shape | str | None = ...,
        distribution: RandomDistribution | str,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def rng_bit_generator(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        algorithm: PrecisionAlgorithm | RandomAlgorithm | str,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def rng_get_and_update_state(
        self, *, shape: Shape | str | None = ..., delta: int, **common: Unpack[Common]
    ) -> Instruction: ...
    def round_nearest_afz(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def round_nearest_even(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def rsqrt(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def scaled_dot(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        operand3: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        lhs_batch_dims: Sequence[int] | int | None = ...,
        lhs_contracting_dims: Sequence[int] | int | None = ...,
        rhs_batch_dims: Sequence[int] | int | None = ...,
        rhs_contracting_dims: Sequence[int] | int | None = ...,
        operand_precision: Sequence[Precision] | None = ...,
        algorithm: PrecisionAlgorithm | RandomAlgorithm | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def scan(
        self,
        operand0: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        num_carries: int,
        to_apply: Computation,
        is_reverse: bool | None = ...,
        is_associative: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def scatter(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        update_window_dims: Sequence[int] | int,
        inserted_window_dims: Sequence[int] | int,
        scatter_dims_to_operand_dims: Sequence[int] | int,
        index_vector_dim: int,
        to_apply: Computation,
        input_batching_dims: Sequence[int] | int | None = ...,
        scatter_indices_batching_dims: Sequence[int] | int | None = ...,
        indices_are_sorted: bool | None = ...,
        unique_indices: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def select(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def select_and_scatter(
        self,
        operand0: Operand,
        operand1: Operand,
        operand2: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        select: Computation,
        scatter: Computation,
        window: Window | Mapping[str, object] | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def send(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        is_host_transfer: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def send_done(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        channel_id: int | None = ...,
        is_host_transfer: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def set_dimension_size(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def shift_left(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def shift_right_arithmetic(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def shift_right_logical(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def shuffle(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        mode: CollectiveMode | ShuffleMode | str,
        shifts: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def sign(
        self, operand0: Operand, /, *, shape: Shape | str | None = ..., **common: Unpack[Common]
    ) -> Instruction: ...
    def sine(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def sinh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def sort(
        self,
        operand0: Operand,
        /,
        *operands: Operand,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        to_apply: Computation,
        is_stable: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def sqrt(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def stochastic_convert(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def subtract(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def tan(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def tanh(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        result_accuracy: ResultAccuracy | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def topk(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        k: int,
        largest: bool | None = ...,
        is_stable: bool | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def transpose(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        dimensions: Sequence[int] | int,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def triangular_solve(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        left_side: bool | None = ...,
        lower: bool | None = ...,
        unit_diagonal: bool | None = ...,
        transpose_a: TransposeA | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def while_(
        self,
        operand0: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        condition: Computation,
        body: Computation,
        **common: Unpack[Common],
    ) -> Instruction: ...
    def xor(
        self,
        operand0: Operand,
        operand1: Operand,
        /,
        *,
        shape: Shape | str | None = ...,
        **common: Unpack[Common],
    ) -> Instruction: ...
