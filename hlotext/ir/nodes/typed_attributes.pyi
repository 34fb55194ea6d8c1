"""The types of attributes by name. Made from the opcode table by `python -m tests.stubs`."""

from abc import ABCMeta
from collections.abc import MutableMapping
from typing import Any, Literal, overload

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.values.accuracy import ResultAccuracy
from hlotext.ir.values.aliasing import OutputToOperandAliasing
from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.enums import (
    CollectiveMode,
    ComparisonDirection,
    ComparisonOrder,
    ComparisonType,
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
from hlotext.ir.values.literal import Literal as LiteralValue
from hlotext.ir.values.metadata import Metadata
from hlotext.ir.values.original_value import OriginalValue
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Domain, Sharding
from hlotext.ir.values.sparsity import BlockScalingConfig, DotSparsity, SparsityConfig
from hlotext.ir.values.statistics import Statistics
from hlotext.ir.values.window import PaddingConfig, SliceDimensions, Window

class TypedAttributes(MutableMapping[str, Any], metaclass=ABCMeta):
    @overload
    def __getitem__(self, name: Literal["sharding"], /) -> Sharding: ...
    @overload
    def __getitem__(self, name: Literal["frontend_attributes"], /) -> FrontendAttributes: ...
    @overload
    def __getitem__(self, name: Literal["control-predecessors"], /) -> tuple[Instruction, ...]: ...
    @overload
    def __getitem__(self, name: Literal["statistics"], /) -> Statistics: ...
    @overload
    def __getitem__(self, name: Literal["result_accuracy"], /) -> ResultAccuracy: ...
    @overload
    def __getitem__(self, name: Literal["origin"], /) -> OriginalValue: ...
    @overload
    def __getitem__(self, name: Literal["metadata"], /) -> Metadata: ...
    @overload
    def __getitem__(self, name: Literal["backend_config"], /) -> BackendConfig: ...
    @overload
    def __getitem__(
        self,
        name: Literal[
            "body",
            "calls",
            "condition",
            "false_computation",
            "scatter",
            "select",
            "to_apply",
            "true_computation",
        ],
        /,
    ) -> Computation: ...
    @overload
    def __getitem__(
        self, name: Literal["branch_computations", "called_computations"], /
    ) -> tuple[Computation, ...]: ...
    @overload
    def __getitem__(
        self,
        name: Literal[
            "is_composite",
            "largest",
            "is_stable",
            "lower",
            "left_side",
            "unit_diagonal",
            "is_reverse",
            "is_associative",
            "indices_are_sorted",
            "unique_indices",
            "use_global_device_ids",
            "constrain_layout",
            "has_dynamic_root",
            "is_host_transfer",
            "is_cross_program_prefetch",
            "custom_call_has_side_effect",
        ],
        /,
    ) -> bool: ...
    @overload
    def __getitem__(
        self,
        name: Literal[
            "dimensions",
            "dynamic_slice_sizes",
            "shifts",
            "fft_length",
            "offset_dims",
            "collapsed_slice_dims",
            "start_index_map",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "lhs_batch_dims",
            "lhs_contracting_dims",
            "rhs_batch_dims",
            "rhs_contracting_dims",
            "lhs_ragged_dims",
            "rhs_group_dims",
        ],
        /,
    ) -> tuple[int, ...]: ...
    @overload
    def __getitem__(
        self,
        name: Literal[
            "index",
            "inferred_dimension",
            "iota_dimension",
            "delta",
            "feature_index",
            "exponent_bits",
            "mantissa_bits",
            "k",
            "num_carries",
            "index_vector_dim",
            "feature_group_count",
            "batch_group_count",
            "channel_id",
            "cross_program_prefetch_index",
            "async_group_id",
        ],
        /,
    ) -> int: ...
    @overload
    def __getitem__(self, name: Literal["epsilon"], /) -> float: ...
    @overload
    def __getitem__(self, name: Literal["slice"], /) -> SliceDimensions: ...
    @overload
    def __getitem__(self, name: Literal["padding"], /) -> PaddingConfig: ...
    @overload
    def __getitem__(self, name: Literal["fft_type"], /) -> FftType: ...
    @overload
    def __getitem__(self, name: Literal["direction"], /) -> ComparisonDirection: ...
    @overload
    def __getitem__(self, name: Literal["order"], /) -> ComparisonOrder: ...
    @overload
    def __getitem__(self, name: Literal["type"], /) -> ComparisonType: ...
    @overload
    def __getitem__(self, name: Literal["distribution"], /) -> RandomDistribution: ...
    @overload
    def __getitem__(self, name: Literal["transpose_a"], /) -> TransposeA: ...
    @overload
    def __getitem__(
        self, name: Literal["slice_sizes"], /
    ) -> tuple[int, ...] | tuple[tuple[int, ...], ...]: ...
    @overload
    def __getitem__(self, name: Literal["operand_precision"], /) -> tuple[Precision, ...]: ...
    @overload
    def __getitem__(self, name: Literal["algorithm"], /) -> PrecisionAlgorithm | RandomAlgorithm: ...
    @overload
    def __getitem__(self, name: Literal["window"], /) -> Window: ...
    @overload
    def __getitem__(self, name: Literal["dim_labels"], /) -> ConvolutionDimensionNumbers: ...
    @overload
    def __getitem__(self, name: Literal["convolution_kind"], /) -> ConvolutionKind: ...
    @overload
    def __getitem__(self, name: Literal["sparsity_config"], /) -> SparsityConfig: ...
    @overload
    def __getitem__(self, name: Literal["block_scaling_config"], /) -> BlockScalingConfig: ...
    @overload
    def __getitem__(self, name: Literal["sparsity"], /) -> DotSparsity: ...
    @overload
    def __getitem__(self, name: Literal["replica_groups"], /) -> ReplicaGroups: ...
    @overload
    def __getitem__(self, name: Literal["mode"], /) -> CollectiveMode | ShuffleMode: ...
    @overload
    def __getitem__(self, name: Literal["source_target_pairs"], /) -> tuple[tuple[int, int], ...]: ...
    @overload
    def __getitem__(
        self,
        name: Literal["async_execution_thread", "custom_call_target", "infeed_config", "outfeed_config"],
        /,
    ) -> str: ...
    @overload
    def __getitem__(self, name: Literal["kind"], /) -> FusionKind: ...
    @overload
    def __getitem__(self, name: Literal["output_to_operand_aliasing"], /) -> OutputToOperandAliasing: ...
    @overload
    def __getitem__(self, name: Literal["api_version"], /) -> CustomCallApiVersion: ...
    @overload
    def __getitem__(self, name: Literal["schedule"], /) -> CustomCallSchedule: ...
    @overload
    def __getitem__(self, name: Literal["padding_type"], /) -> PaddingType: ...
    @overload
    def __getitem__(self, name: Literal["operand_layout_constraints"], /) -> tuple[Shape, ...]: ...
    @overload
    def __getitem__(self, name: Literal["literal"], /) -> LiteralValue: ...
    @overload
    def __getitem__(self, name: Literal["outfeed_shape"], /) -> Shape: ...
    @overload
    def __getitem__(self, name: Literal["parameter_replication"], /) -> tuple[bool, ...]: ...
    @overload
    def __getitem__(self, name: Literal["domain"], /) -> Domain: ...
    @overload
    def __getitem__(self, name: str, /) -> object: ...
    @overload  # type: ignore[override]
    def get(self, name: Literal["sharding"], /) -> Sharding | None: ...
    @overload
    def get(self, name: Literal["frontend_attributes"], /) -> FrontendAttributes | None: ...
    @overload
    def get(self, name: Literal["control-predecessors"], /) -> tuple[Instruction, ...] | None: ...
    @overload
    def get(self, name: Literal["statistics"], /) -> Statistics | None: ...
    @overload
    def get(self, name: Literal["result_accuracy"], /) -> ResultAccuracy | None: ...
    @overload
    def get(self, name: Literal["origin"], /) -> OriginalValue | None: ...
    @overload
    def get(self, name: Literal["metadata"], /) -> Metadata | None: ...
    @overload
    def get(self, name: Literal["backend_config"], /) -> BackendConfig | None: ...
    @overload
    def get(
        self,
        name: Literal[
            "body",
            "calls",
            "condition",
            "false_computation",
            "scatter",
            "select",
            "to_apply",
            "true_computation",
        ],
        /,
    ) -> Computation | None: ...
    @overload
    def get(
        self, name: Literal["branch_computations", "called_computations"], /
    ) -> tuple[Computation, ...] | None: ...
    @overload
    def get(
        self,
        name: Literal[
            "is_composite",
            "largest",
            "is_stable",
            "lower",
            "left_side",
            "unit_diagonal",
            "is_reverse",
            "is_associative",
            "indices_are_sorted",
            "unique_indices",
            "use_global_device_ids",
            "constrain_layout",
            "has_dynamic_root",
            "is_host_transfer",
            "is_cross_program_prefetch",
            "custom_call_has_side_effect",
        ],
        /,
    ) -> bool | None: ...
    @overload
    def get(
        self,
        name: Literal[
            "dimensions",
            "dynamic_slice_sizes",
            "shifts",
            "fft_length",
            "offset_dims",
            "collapsed_slice_dims",
            "start_index_map",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "update_window_dims",
            "inserted_window_dims",
            "scatter_dims_to_operand_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "lhs_batch_dims",
            "lhs_contracting_dims",
            "rhs_batch_dims",
            "rhs_contracting_dims",
            "lhs_ragged_dims",
            "rhs_group_dims",
        ],
        /,
    ) -> tuple[int, ...] | None: ...
    @overload
    def get(
        self,
        name: Literal[
            "index",
            "inferred_dimension",
            "iota_dimension",
            "delta",
            "feature_index",
            "exponent_bits",
            "mantissa_bits",
            "k",
            "num_carries",
            "index_vector_dim",
            "feature_group_count",
            "batch_group_count",
            "channel_id",
            "cross_program_prefetch_index",
            "async_group_id",
        ],
        /,
    ) -> int | None: ...
    @overload
    def get(self, name: Literal["epsilon"], /) -> float | None: ...
    @overload
    def get(self, name: Literal["slice"], /) -> SliceDimensions | None: ...
    @overload
    def get(self, name: Literal["padding"], /) -> PaddingConfig | None: ...
    @overload
    def get(self, name: Literal["fft_type"], /) -> FftType | None: ...
    @overload
    def get(self, name: Literal["direction"], /) -> ComparisonDirection | None: ...
    @overload
    def get(self, name: Literal["order"], /) -> ComparisonOrder | None: ...
    @overload
    def get(self, name: Literal["type"], /) -> ComparisonType | None: ...
    @overload
    def get(self, name: Literal["distribution"], /) -> RandomDistribution | None: ...
    @overload
    def get(self, name: Literal["transpose_a"], /) -> TransposeA | None: ...
    @overload
    def get(
        self, name: Literal["slice_sizes"], /
    ) -> tuple[int, ...] | tuple[tuple[int, ...], ...] | None: ...
    @overload
    def get(self, name: Literal["operand_precision"], /) -> tuple[Precision, ...] | None: ...
    @overload
    def get(self, name: Literal["algorithm"], /) -> PrecisionAlgorithm | RandomAlgorithm | None: ...
    @overload
    def get(self, name: Literal["window"], /) -> Window | None: ...
    @overload
    def get(self, name: Literal["dim_labels"], /) -> ConvolutionDimensionNumbers | None: ...
    @overload
    def get(self, name: Literal["convolution_kind"], /) -> ConvolutionKind | None: ...
    @overload
    def get(self, name: Literal["sparsity_config"], /) -> SparsityConfig | None: ...
    @overload
    def get(self, name: Literal["block_scaling_config"], /) -> BlockScalingConfig | None: ...
    @overload
    def get(self, name: Literal["sparsity"], /) -> DotSparsity | None: ...
    @overload
    def get(self, name: Literal["replica_groups"], /) -> ReplicaGroups | None: ...
    @overload
    def get(self, name: Literal["mode"], /) -> CollectiveMode | ShuffleMode | None: ...
    @overload
    def get(self, name: Literal["source_target_pairs"], /) -> tuple[tuple[int, int], ...] | None: ...
    @overload
    def get(
        self,
        name: Literal["async_execution_thread", "custom_call_target", "infeed_config", "outfeed_config"],
        /,
    ) -> str | None: ...
    @overload
    def get(self, name: Literal["kind"], /) -> FusionKind | None: ...
    @overload
    def get(self, name: Literal["output_to_operand_aliasing"], /) -> OutputToOperandAliasing | None: ...
    @overload
    def get(self, name: Literal["api_version"], /) -> CustomCallApiVersion | None: ...
    @overload
    def get(self, name: Literal["schedule"], /) -> CustomCallSchedule | None: ...
    @overload
    def get(self, name: Literal["padding_type"], /) -> PaddingType | None: ...
    @overload
    def get(self, name: Literal["operand_layout_constraints"], /) -> tuple[Shape, ...] | None: ...
    @overload
    def get(self, name: Literal["literal"], /) -> LiteralValue | None: ...
    @overload
    def get(self, name: Literal["outfeed_shape"], /) -> Shape | None: ...
    @overload
    def get(self, name: Literal["parameter_replication"], /) -> tuple[bool, ...] | None: ...
    @overload
    def get(self, name: Literal["domain"], /) -> Domain | None: ...
    @overload
    def get(self, name: str, /) -> Any: ...
    @overload
    def get(self, name: str, /, default: Any) -> Any: ...
