"""The attribute table: the type of each attribute of op lines and module headers, and how it is read and written.

The opcode table lists the attributes of each opcode and when they are printed. Further requirements of XLA on values
are functions of `hlotext.semantics`.
"""

from __future__ import annotations

import enum
import importlib

import attrs

from hlotext.ir.tables.opcode_attributes import COMMON_ATTRIBUTES
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.value import Value


class Multiplicity(enum.Enum):
    """Number of values of an attribute."""

    ONE = "one value of the class"
    LIST = "a tuple of such values"
    PAIRS = "a tuple of pairs"
    NUMBERS = "a tuple of numbers, or of such tuples"
    COMPUTATION = "a computation"
    COMPUTATIONS = "a tuple of computations"
    INSTRUCTIONS = "a tuple of instructions"


@attrs.frozen(repr=False)
class AttributeType(Value):
    """Type of attribute values: their Python class, and the grammar rule that parses them."""

    rule: str
    """Rule of the grammar that reads the text after `=`; `str()` of the value is that text again, in the usual form."""
    words: str
    """The type in words."""
    class_names: tuple[str, ...] = ()
    """`int`, `bool`, `float` or `str`, or `file:Class` below `hlotext.ir.values`; empty for nodes."""
    form: Multiplicity = Multiplicity.ONE

    def classes(self) -> tuple[type, ...]:
        """Returns the Python classes of a value, or of its elements; empty for node references."""
        return tuple(map(_class, self.class_names))


def _class(name: str) -> type:
    module, _, word = name.partition(":")
    found: type = (
        _PLAIN[name] if not word else getattr(importlib.import_module(f"hlotext.ir.values.{module}"), word)
    )
    return found


_PLAIN: dict[str, type] = {"int": int, "bool": bool, "float": float, "str": str}


def _one(rule: str, *names: str) -> AttributeType:
    """Values of these classes, which are their own description."""
    return AttributeType(rule, " or ".join(name.partition(":")[2] for name in names), names)


_KINDS = (
    AttributeType("integer", "integer", ("int",)),
    AttributeType("int_list", "list of integers", ("int",), Multiplicity.LIST),
    AttributeType("slice_sizes", "list of integers, or list of such lists", ("int",), Multiplicity.NUMBERS),
    AttributeType("source_target_pairs", "list of pairs", ("int",), Multiplicity.PAIRS),
    AttributeType("boolean", "boolean", ("bool",)),
    AttributeType("bool_list", "list of booleans", ("bool",), Multiplicity.LIST),
    AttributeType("bool_or_list", "list of booleans", ("bool",), Multiplicity.LIST),
    AttributeType("number", "number", ("float",)),
    AttributeType("string", "string", ("str",)),
    AttributeType("computation", "computation", (), Multiplicity.COMPUTATION),
    AttributeType("computation_list", "list of computations", (), Multiplicity.COMPUTATIONS),
    AttributeType("instruction_list", "list of instructions", (), Multiplicity.INSTRUCTIONS),
    # Words
    _one("algorithm", "enums:PrecisionAlgorithm", "enums:RandomAlgorithm"),
    _one("collective_mode", "enums:CollectiveMode", "enums:ShuffleMode"),
    _one("comparison_direction", "enums:ComparisonDirection"),
    _one("comparison_order", "enums:ComparisonOrder"),
    _one("comparison_type", "enums:ComparisonType"),
    _one("convolution_kind", "enums:ConvolutionKind"),
    _one("custom_call_api_version", "enums:CustomCallApiVersion"),
    _one("custom_call_schedule", "enums:CustomCallSchedule"),
    _one("fft_type", "enums:FftType"),
    _one("fusion_kind", "enums:FusionKind"),
    _one("padding_type", "enums:PaddingType"),
    _one("random_distribution", "enums:RandomDistribution"),
    _one("transpose_a", "enums:TransposeA"),
    AttributeType("operand_precision", "list of Precision", ("enums:Precision",), Multiplicity.LIST),
    # Shapes and constants
    _one("shape", "shape:Shape"),
    AttributeType("shape_list", "list of shapes", ("shape:Shape",), Multiplicity.LIST),
    AttributeType("literal_with_shape", "Literal with its shape", ("literal:Literal",)),
    # Values with fields
    _one("backend_config", "configs:BackendConfig"),
    _one("block_scaling_config", "sparsity:BlockScalingConfig"),
    _one("dim_labels", "convolution:ConvolutionDimensionNumbers"),
    _one("domain", "sharding:Domain"),
    _one("dot_sparsity", "sparsity:DotSparsity"),
    _one("frontend_attributes", "configs:FrontendAttributes"),
    _one("metadata", "metadata:Metadata"),
    _one("origin", "original_value:OriginalValue"),
    _one("output_to_operand_aliasing", "aliasing:OutputToOperandAliasing"),
    _one("padding", "window:PaddingConfig"),
    _one("replica_groups", "replica_groups:ReplicaGroups"),
    _one("result_accuracy", "accuracy:ResultAccuracy"),
    _one("sharding", "sharding:Sharding"),
    _one("slice_dimensions", "window:SliceDimensions"),
    _one("sparsity_config", "sparsity:SparsityConfig"),
    _one("statistics", "statistics:Statistics"),
    _one("window", "window:Window"),
    # The header's
    _one("buffer_donor", "aliasing:BufferDonorConfig"),
    _one("computation_layout", "shape:ComputationLayout"),
    _one("debug_attributes", "module_attributes:DebugAttributes"),
    _one("input_output_alias", "aliasing:InputOutputAliasConfig"),
    _one("recovery_table", "module_attributes:RecoveryTable"),
)

KINDS: dict[str, AttributeType] = {kind.rule: kind for kind in _KINDS}
"""Every kind of value by the rule that reads it."""


@attrs.frozen(repr=False)
class AttributeInfo(Value):
    """A row of the attribute table."""

    name: str
    """Name in the text, without `=`."""
    kind: AttributeType
    """The type of its value."""
    doc: str
    """Its meaning."""
    printed: str = "if given"
    """When XLA prints it; the opcode table says it for each opcode."""
    default: object = None
    """Value of an absent header attribute; not printed. None if there is none."""
    era: str = ""
    """`old` or `new` where the XLA release that is imitated does not know the attribute; empty otherwise."""

    @property
    def value(self) -> str:
        """Description of the type."""
        return self.kind.words

    @property
    def opcodes(self) -> tuple[str, ...] | None:
        """Opcodes with this attribute, in alphabetical order, or None for an attribute that all opcodes may have."""
        if any(use.name == self.name for use in COMMON_ATTRIBUTES) and self.name != "result_accuracy":
            return None
        return tuple(
            name
            for name, row in OPCODES.items()
            if row.attribute(self.name) is not None
            or (self.name == "result_accuracy" and row.result_accuracy)
        )


_TRUE = "if true"
_ENTRIES = "if not empty"
_ALWAYS = "always"
_NEVER = "never, only read"

_INSTRUCTION_ROWS: tuple[tuple[str, ...], ...] = (
    # Every instruction
    ("sharding", "sharding", "sharding of the result"),
    ("frontend_attributes", "frontend_attributes", "frontend attributes", _ENTRIES),
    (
        "control-predecessors",
        "instruction_list",
        "instructions that must run before it, in addition to operands",
        _ENTRIES,
    ),
    ("statistics", "statistics", "numbers for visualization", _ENTRIES),
    ("result_accuracy", "result_accuracy", "required accuracy of the result", "if not the default mode"),
    ("origin", "origin", "origin of the value before optimization"),
    ("metadata", "metadata", "the operation of the source program", "if one of its key fields is set"),
    ("backend_config", "backend_config", "opaque backend data", _ENTRIES),
    # Called computations
    ("body", "computation", "the loop's body: state to state"),
    ("branch_computations", "computation_list", "one for each branch"),
    ("called_computations", "computation_list", "computations that a custom call may call", _ENTRIES),
    ("calls", "computation", "the fused or wrapped computation"),
    ("condition", "computation", "loop condition: state to pred"),
    ("false_computation", "computation", "the branch for false"),
    ("scatter", "computation", "how scattered values are combined"),
    ("select", "computation", "which of two elements a window selects"),
    ("to_apply", "computation", "the called computation, or the reducer"),
    ("true_computation", "computation", "the branch for true"),
    ("is_composite", "boolean", "whether the call represents one frontend operation", _TRUE),
    # Dimensions and numbers
    ("dimensions", "int_list", "the dimensions that the operation works on; for transpose the permutation"),
    ("index", "integer", "which element of the tuple"),
    (
        "inferred_dimension",
        "integer",
        "the result dimension whose size follows from the others",
        "if not -1",
    ),
    ("iota_dimension", "integer", "the dimension along which the numbers increase"),
    ("delta", "integer", "by how much the state is advanced"),
    ("feature_index", "integer", "the feature dimension of a batch norm"),
    ("epsilon", "number", "value added to the variance of a batch norm"),
    ("exponent_bits", "integer", "exponent bits"),
    ("mantissa_bits", "integer", "mantissa bits"),
    ("k", "integer", "number of elements to keep"),
    ("largest", "boolean", "the largest elements, not the smallest", _ALWAYS),
    ("is_stable", "boolean", "whether equal elements keep their order", _TRUE),
    ("dynamic_slice_sizes", "int_list", "sizes of the slice"),
    ("slice", "slice_dimensions", "start, limit and stride of each dimension"),
    ("shifts", "int_list", "rotation along each dimension", "if given", "new"),
    ("padding", "padding", "padding before, after and between elements of each dimension"),
    ("fft_length", "int_list", "sizes of the transformed dimensions"),
    ("fft_type", "fft_type", "direction, and whether one side is real"),
    ("direction", "comparison_direction", "comparison direction"),
    (
        "order",
        "comparison_order",
        "order of the operands",
        "if not the default for operand 0's type",
        "new",
    ),
    ("type", "comparison_type", "the same in older text", "if not the default for operand 0's type"),
    ("distribution", "random_distribution", "random distribution"),
    ("lower", "boolean", "lower triangle, not upper", _TRUE),
    ("left_side", "boolean", "solve a x = b, not x a = b", _TRUE),
    ("unit_diagonal", "boolean", "whether the diagonal is assumed to be 1", _TRUE),
    ("transpose_a", "transpose_a", "transformation applied to a", "if not TRANSPOSE_INVALID"),
    # Scan
    ("num_carries", "integer", "number of carried operands"),
    ("is_reverse", "boolean", "whether it runs in reverse", _TRUE),
    ("is_associative", "boolean", "whether the steps may be regrouped", _ALWAYS),
    # Gather and scatter
    ("offset_dims", "int_list", "result dimensions inside a slice"),
    ("collapsed_slice_dims", "int_list", "collapsed operand dimensions of size 1"),
    ("start_index_map", "int_list", "operand dimension of each index component"),
    ("operand_batching_dims", "int_list", "batch dimensions of the operand", _ENTRIES),
    ("start_indices_batching_dims", "int_list", "batch dimensions of the indices", _ENTRIES),
    ("index_vector_dim", "integer", "the dimension of the index vectors"),
    ("slice_sizes", "slice_sizes", "sizes of each slice"),
    ("indices_are_sorted", "boolean", "whether the indices are sorted", _TRUE),
    ("unique_indices", "boolean", "whether no two indices are equal", _TRUE),
    ("update_window_dims", "int_list", "update dimensions inside a window"),
    ("inserted_window_dims", "int_list", "operand dimensions of size 1 that the updates lack"),
    ("scatter_dims_to_operand_dims", "int_list", "operand dimension of each index component"),
    ("input_batching_dims", "int_list", "batch dimensions of the operand", _ENTRIES),
    ("scatter_indices_batching_dims", "int_list", "batch dimensions of the indices", _ENTRIES),
    # Dots and convolutions
    ("lhs_batch_dims", "int_list", "batch dimensions of operand 0", _ENTRIES),
    ("lhs_contracting_dims", "int_list", "summed dimensions of operand 0", _ALWAYS),
    ("rhs_batch_dims", "int_list", "batch dimensions of operand 1", _ENTRIES),
    ("rhs_contracting_dims", "int_list", "summed dimensions of operand 1", _ALWAYS),
    ("lhs_ragged_dims", "int_list", "the ragged dimension of operand 0", _ENTRIES),
    ("rhs_group_dims", "int_list", "the group dimension of operand 1", _ENTRIES),
    ("operand_precision", "operand_precision", "precision of the products", "if one entry is not default"),
    ("algorithm", "algorithm", "operand and accumulator types; or the generator"),
    ("window", "window", "window sizes, strides and padding", _ENTRIES),
    ("dim_labels", "dim_labels", "dimension numbers"),
    ("feature_group_count", "integer", "number of feature groups", "if not 1"),
    ("batch_group_count", "integer", "number of batch groups", "if not 1"),
    ("convolution_kind", "convolution_kind", "forward, or which gradient", "if not unset"),
    ("sparsity_config", "sparsity_config", "structured sparsity of the operands", _ENTRIES),
    (
        "block_scaling_config",
        "block_scaling_config",
        "block scaling of the operands",
        _ENTRIES,
        "new",
    ),
    ("sparsity", "dot_sparsity", "structured sparsity of a dot's operands", "if given", "old"),
    # Collectives and transfers
    ("channel_id", "integer", "identifies communicating operations, also across modules"),
    ("replica_groups", "replica_groups", "groups of participating devices", _ALWAYS),
    ("use_global_device_ids", "boolean", "whether groups contain device ids, not replica ids", _TRUE),
    ("constrain_layout", "boolean", "whether the layout is fixed", _TRUE),
    ("has_dynamic_root", "boolean", "whether the sender is an operand", _ALWAYS, "new"),
    ("mode", "collective_mode", "meaning of the groups; or shuffle mode", _NEVER),
    ("source_target_pairs", "source_target_pairs", "source and target of each transfer"),
    ("is_host_transfer", "boolean", "whether the other side is the host", _TRUE),
    ("cross_program_prefetch_index", "integer", "index of a copy started by another program"),
    ("is_cross_program_prefetch", "boolean", "whether another program starts the copy", "if given", "old"),
    ("async_execution_thread", "string", "thread of the wrapped computation", "if not main"),
    ("async_group_id", "integer", "links the parts of an asynchronous operation", "if given", "old"),
    # Others
    ("kind", "fusion_kind", "code generation strategy of the fusion"),
    (
        "output_to_operand_aliasing",
        "output_to_operand_aliasing",
        "results that alias operands",
        _ENTRIES,
    ),
    ("custom_call_target", "string", "name of the call target"),
    ("custom_call_has_side_effect", "boolean", "whether it is kept even if unused", _TRUE),
    ("api_version", "custom_call_api_version", "calling convention", "if not API_VERSION_ORIGINAL"),
    ("schedule", "custom_call_schedule", "scheduling preference", "if not SCHEDULE_NONE"),
    ("padding_type", "padding_type", "how a convolution is padded", "if not PADDING_INVALID"),
    ("operand_layout_constraints", "shape_list", "required operand layouts"),
    ("literal", "literal_with_shape", "a constant passed with the call"),
    ("infeed_config", "string", "for the device's infeed", _ENTRIES),
    ("outfeed_config", "string", "for the device's outfeed", _ENTRIES),
    ("outfeed_shape", "shape", "shape of the outfed data", _ALWAYS),
    ("parameter_replication", "bool_list", "arrays shared by all replicas", _ENTRIES),
    ("domain", "domain", "shardings on both sides of the boundary"),
)

_HEADER_ROWS: tuple[tuple[str, ...], ...] = (
    ("is_scheduled", "boolean", "whether instructions are in execution order", _TRUE),
    ("input_output_alias", "input_output_alias", "results that alias parameters", _ENTRIES),
    ("buffer_donor", "buffer_donor", "parameters whose buffers may be reused", _ENTRIES),
    ("alias_passthrough_params", "boolean", "whether parameters returned as results are aliased", _TRUE),
    (
        "entry_computation_layout",
        "computation_layout",
        "shapes and layouts of the entry's parameters and result",
    ),
    (
        "allow_spmd_sharding_propagation_to_parameters",
        "bool_or_list",
        "whether the partitioner may choose the parameters' shardings",
        "if not {false}",
    ),
    (
        "allow_spmd_sharding_propagation_to_output",
        "bool_or_list",
        "whether the partitioner may choose the results' shardings",
        "if not {false}",
    ),
    ("replica_count", "integer", "number of replicas, which run on different data", "if not 1"),
    ("num_partitions", "integer", "number of partitions per replica", "if not 1"),
    ("frontend_attributes", "frontend_attributes", "frontend attributes", _ENTRIES),
    ("backend_config", "backend_config", "opaque backend data", _ENTRIES, "new"),
    ("origin_recovery_table", "recovery_table", "how lost original values are recomputed", _ENTRIES),
    ("debug_attributes", "debug_attributes", "what to log of original values", _ENTRIES, "new"),
)


_HEADER_DEFAULTS: dict[str, object] = {
    "is_scheduled": False,
    "alias_passthrough_params": False,
    "allow_spmd_sharding_propagation_to_parameters": (False,),
    "allow_spmd_sharding_propagation_to_output": (False,),
    "replica_count": 1,
    "num_partitions": 1,
}


def _info(name: str, rule: str, doc: str, printed: str = "if given", era: str = "") -> AttributeInfo:
    return AttributeInfo(name, KINDS[rule], doc, printed, era=era)


ATTRIBUTES: dict[str, AttributeInfo] = {row[0]: _info(*row) for row in _INSTRUCTION_ROWS}
"""Every attribute of op lines that is known, by name."""

HEADER_ATTRIBUTES: dict[str, AttributeInfo] = {
    row[0]: attrs.evolve(_info(*row), default=_HEADER_DEFAULTS.get(row[0])) for row in _HEADER_ROWS
}
"""Every known attribute of the module header, by name, in XLA's print order."""
