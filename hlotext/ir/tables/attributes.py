"""The attribute table: what each attribute of op lines and module headers holds.

Which opcode takes which attribute, and when it is printed there, stands in the opcode table.
"""

from __future__ import annotations

import attrs

from hlotext.ir.values.value import Value


@attrs.frozen(repr=False)
class AttributeInfo(Value):
    """One row of the attribute table."""

    name: str
    """As it stands in the text, without `=`."""
    value: str
    """What kind of value it holds, in words."""
    doc: str
    """What it means."""
    printed: str = "if given"
    """When XLA prints it; the opcode table says it for each opcode."""
    era: str = ""
    """`old` or `new` where the XLA release that is imitated does not know the attribute; empty otherwise."""


_TRUE = "if true"
_ENTRIES = "if not empty"
_ALWAYS = "always"
_NEVER = "never, it is only read"
_NUMBER = "whole number"
_NUMBERS = "list of whole numbers"
_BOOL = "true or false"
_CALLED = "computation"

_INSTRUCTION_ROWS: tuple[tuple[str, ...], ...] = (
    # Every instruction
    ("sharding", "Sharding", "how the result is spread over devices"),
    ("frontend_attributes", "FrontendAttributes", "notes of the front end", _ENTRIES),
    ("control-predecessors", "list of instructions", "what must run before, besides the operands", _ENTRIES),
    ("statistics", "Statistics", "numbers to show in a picture", _ENTRIES),
    ("result_accuracy", "ResultAccuracy", "how exact the result must be", "if not the default mode"),
    ("origin", "OriginalValue", "where the value was before optimisation"),
    ("metadata", "Metadata", "the operation of the source program", "if one of its key fields is set"),
    ("backend_config", "BackendConfig", "text that only the backend understands", _ENTRIES),
    # Called computations
    ("body", _CALLED, "the loop's body: state to state"),
    ("branch_computations", "list of computations", "one for each branch"),
    ("called_computations", "list of computations", "what a custom call may call", _ENTRIES),
    ("calls", _CALLED, "the fused or wrapped computation"),
    ("condition", _CALLED, "whether the loop goes on: state to pred"),
    ("false_computation", _CALLED, "the branch for false"),
    ("scatter", _CALLED, "how scattered values are combined"),
    ("select", _CALLED, "which of two elements a window selects"),
    ("to_apply", _CALLED, "what is called, or applied to each pair of elements"),
    ("true_computation", _CALLED, "the branch for true"),
    ("is_composite", _BOOL, "whether the call stands for one operation of the front end", _TRUE),
    # Dimensions and numbers
    ("dimensions", _NUMBERS, "the dimensions that the operation works on; for transpose the permutation"),
    ("index", _NUMBER, "which element of the tuple"),
    ("inferred_dimension", _NUMBER, "the result's dimension whose size follows from the others", "if not -1"),
    ("iota_dimension", _NUMBER, "the dimension along which the numbers rise"),
    ("delta", _NUMBER, "by how much the state is advanced"),
    ("feature_index", _NUMBER, "the feature dimension of a batch norm"),
    ("epsilon", "number", "what a batch norm adds to the variance"),
    ("exponent_bits", _NUMBER, "bits of the exponent that remain"),
    ("mantissa_bits", _NUMBER, "bits of the mantissa that remain"),
    ("k", _NUMBER, "how many elements are kept"),
    ("largest", _BOOL, "the largest elements, not the smallest", _ALWAYS),
    ("is_stable", _BOOL, "whether equal elements keep their order", _TRUE),
    ("dynamic_slice_sizes", _NUMBERS, "sizes of the slice"),
    ("slice", "SliceDimensions", "start, limit and stride of each dimension"),
    ("shifts", _NUMBERS, "how far the elements of each dimension are rotated", "if given", "new"),
    ("indices", "Literal with its shape", "where each element comes from", "if given", "new"),
    ("padding", "PaddingConfig", "what is put before, behind and between the elements of each dimension"),
    ("fft_length", _NUMBERS, "sizes of the transformed dimensions"),
    ("fft_type", "FftType", "direction, and whether one side is real"),
    ("direction", "ComparisonDirection", "which comparison"),
    ("type", "ComparisonType", "how the operands are ordered", "if not the one of operand 0's type"),
    ("distribution", "RandomDistribution", "of the random numbers"),
    ("lower", _BOOL, "whether the lower triangle is meant", _TRUE),
    ("left_side", _BOOL, "whether a x = b is solved, not x a = b", _TRUE),
    ("unit_diagonal", _BOOL, "whether the diagonal is taken as 1", _TRUE),
    ("transpose_a", "TransposeA", "what is done with a before", "if not TRANSPOSE_INVALID"),
    # Scan
    ("num_carries", _NUMBER, "how many operands are carried on"),
    ("is_reverse", _BOOL, "whether it runs from the end", _TRUE),
    ("is_associative", _BOOL, "whether the steps may be regrouped", _ALWAYS),
    # Gather and scatter
    ("offset_dims", _NUMBERS, "result dimensions that lie inside a slice"),
    ("collapsed_slice_dims", _NUMBERS, "operand dimensions of size 1 that vanish"),
    ("start_index_map", _NUMBERS, "the operand dimension of each part of an index"),
    ("operand_batching_dims", _NUMBERS, "batch dimensions of the operand", _ENTRIES),
    ("start_indices_batching_dims", _NUMBERS, "batch dimensions of the indices", _ENTRIES),
    ("index_vector_dim", _NUMBER, "the dimension of the indices that holds one index"),
    ("slice_sizes", "list of whole numbers, or list of such lists", "sizes of each slice"),
    ("indices_are_sorted", _BOOL, "whether the indices are known to ascend", _TRUE),
    ("unique_indices", _BOOL, "whether no two indices are equal", _TRUE),
    ("update_window_dims", _NUMBERS, "update dimensions that lie inside a window"),
    ("inserted_window_dims", _NUMBERS, "operand dimensions of size 1 that the updates lack"),
    ("scatter_dims_to_operand_dims", _NUMBERS, "the operand dimension of each part of an index"),
    ("input_batching_dims", _NUMBERS, "batch dimensions of the operand", _ENTRIES),
    ("scatter_indices_batching_dims", _NUMBERS, "batch dimensions of the indices", _ENTRIES),
    # Dots and convolutions
    ("lhs_batch_dims", _NUMBERS, "batch dimensions of operand 0", _ENTRIES),
    ("lhs_contracting_dims", _NUMBERS, "summed dimensions of operand 0", _ALWAYS),
    ("rhs_batch_dims", _NUMBERS, "batch dimensions of operand 1", _ENTRIES),
    ("rhs_contracting_dims", _NUMBERS, "summed dimensions of operand 1", _ALWAYS),
    ("lhs_ragged_dims", _NUMBERS, "the dimension of operand 0 that falls into groups", _ENTRIES),
    ("rhs_group_dims", _NUMBERS, "the dimension of operand 1 that counts the groups", _ENTRIES),
    ("operand_precision", "list of Precision", "how exact the products are", "if one entry is not default"),
    ("algorithm", "PrecisionAlgorithm or RandomAlgorithm", "types of operands and sums; or the generator"),
    ("window", "Window", "how the window slides", _ENTRIES),
    ("dim_labels", "ConvolutionDimensionNumbers", "what each dimension means"),
    ("feature_group_count", _NUMBER, "groups of features that do not mix", "if not 1"),
    ("batch_group_count", _NUMBER, "groups of batch entries that do not mix", "if not 1"),
    ("convolution_kind", "ConvolutionKind", "forward, or which gradient", "if not unset"),
    ("sparsity_config", "SparsityConfig", "structured sparsity of the operands", _ENTRIES),
    ("block_scaling_config", "BlockScalingConfig", "how blocks of the operands are scaled", _ENTRIES, "new"),
    ("sparsity", "DotSparsity", "structured sparsity of a dot's operands", "if given", "old"),
    ("conv_kind", "ConvolutionKind", "the name of convolution_kind for a short time", "if given", "old"),
    # Collectives and transfers
    ("channel_id", _NUMBER, "tells communicating operations apart, also across modules"),
    ("replica_groups", "ReplicaGroups", "which devices work together", _ALWAYS),
    ("use_global_device_ids", _BOOL, "whether the groups count devices, not replicas", _TRUE),
    ("constrain_layout", _BOOL, "whether the layout must stay", _TRUE),
    ("has_dynamic_root", _BOOL, "whether the sender is an operand", _ALWAYS, "new"),
    ("mode", "CollectiveMode or ShuffleMode", "what the groups count; or how elements move", _NEVER),
    ("source_target_pairs", "list of pairs", "who sends to whom"),
    ("is_host_transfer", _BOOL, "whether the other side is the host", _TRUE),
    ("cross_program_prefetch_index", _NUMBER, "the number of a copy that another program starts"),
    ("is_cross_program_prefetch", _BOOL, "whether another program starts the copy", "if given", "old"),
    ("async_execution_thread", "text", "where the wrapped computation runs", "if not main"),
    ("async_group_id", _NUMBER, "ties the parts of an asynchronous operation together", "if given", "old"),
    # Others
    ("kind", "FusionKind", "how the fusion is to be made into code"),
    (
        "output_to_operand_aliasing",
        "OutputToOperandAliasing",
        "results that lie in operands' buffers",
        _ENTRIES,
    ),
    ("custom_call_target", "text", "what is called"),
    ("custom_call_has_side_effect", _BOOL, "whether it must stay even if unused", _TRUE),
    ("api_version", "CustomCallApiVersion", "how it is called", "if not API_VERSION_ORIGINAL"),
    ("schedule", "CustomCallSchedule", "how early or late it is to run", "if not SCHEDULE_NONE"),
    ("padding_type", "PaddingType", "how a convolution is padded", "if not PADDING_INVALID"),
    ("operand_layout_constraints", "list of shapes", "the layouts that the operands must have"),
    ("literal", "Literal with its shape", "a constant that goes with the call"),
    ("infeed_config", "text", "for the device's infeed", _ENTRIES),
    ("outfeed_config", "text", "for the device's outfeed", _ENTRIES),
    ("outfeed_shape", "Shape", "what leaves the device", _ALWAYS),
    ("parameter_replication", "list of true or false", "which arrays all replicas share", _ENTRIES),
    ("domain", "Domain", "the property on both sides of a border"),
)

_HEADER_ROWS: tuple[tuple[str, ...], ...] = (
    ("is_scheduled", _BOOL, "whether the order of instructions is that of execution", _TRUE),
    ("input_output_alias", "InputOutputAliasConfig", "results that lie in parameters' buffers", _ENTRIES),
    ("buffer_donor", "BufferDonorConfig", "parameters whose buffers may be used again", _ENTRIES),
    ("alias_passthrough_params", _BOOL, "whether parameters that are results share buffers", _TRUE),
    (
        "entry_computation_layout",
        "ComputationLayout",
        "shapes and layouts of the entry's parameters and result",
    ),
    (
        "allow_spmd_sharding_propagation_to_parameters",
        "list of true or false",
        "whether the partitioner may choose the parameters' shardings",
        "if not {false}",
    ),
    (
        "allow_spmd_sharding_propagation_to_output",
        "list of true or false",
        "whether the partitioner may choose the results' shardings",
        "if not {false}",
    ),
    ("replica_count", _NUMBER, "copies of the program that run at once on different data", "if not 1"),
    ("num_partitions", _NUMBER, "devices over which each copy is spread", "if not 1"),
    ("frontend_attributes", "FrontendAttributes", "notes of the front end", _ENTRIES),
    ("origin_recovery_table", "RecoveryTable", "how lost original values are computed again", _ENTRIES),
    ("debug_attributes", "DebugAttributes", "what is logged of original values", _ENTRIES, "new"),
)

ATTRIBUTES: dict[str, AttributeInfo] = {row[0]: AttributeInfo(*row) for row in _INSTRUCTION_ROWS}
"""Every attribute of op lines that is known, by name."""

HEADER_ATTRIBUTES: dict[str, AttributeInfo] = {row[0]: AttributeInfo(*row) for row in _HEADER_ROWS}
"""Every attribute of the module header that is known, by name, in the order in which XLA prints them."""
