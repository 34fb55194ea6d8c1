"""Attributes as the rows of the opcode table use them, and the ones that every instruction takes."""

from __future__ import annotations

from hlotext.ir.tables.opcode import AttributeUse, Calls, Derived, Printing, Role

_P = Printing


def required(name: str) -> AttributeUse:
    """Creates a required attribute, printed as given."""
    return AttributeUse(name, required=True)


def flag(name: str) -> AttributeUse:
    """Creates a bool attribute that defaults to false and is printed only if true."""
    return AttributeUse(name, _P.IF_TRUE, default=False)


def listed(name: str, role: Role = Role.MEANING) -> AttributeUse:
    """Creates a list attribute that defaults to empty and is printed only if not empty."""
    return AttributeUse(name, _P.IF_NOT_EMPTY, default=(), role=role)


def called(name: str) -> AttributeUse:
    """Creates a required attribute that names one computation."""
    return AttributeUse(name, required=True, calls=Calls.ONE)


def ignored(name: str, calls: Calls = Calls.NONE) -> AttributeUse:
    """Creates an attribute that is accepted on input, has no meaning, and is never printed."""
    return AttributeUse(name, _P.INPUT_ONLY, calls=calls)


def obsolete(name: str) -> AttributeUse:
    """Creates an attribute that only older releases have."""
    return AttributeUse(name, old=True)


DIMENSIONS = required("dimensions")
TO_APPLY = called("to_apply")
CALLS = called("calls")

# Windows and convolutions
WINDOW = listed("window")
DIM_LABELS = AttributeUse("dim_labels")
FEATURE_GROUP_COUNT = AttributeUse("feature_group_count", _P.IF_NOT_DEFAULT, default=1)
BATCH_GROUP_COUNT = AttributeUse("batch_group_count", _P.IF_NOT_DEFAULT, default=1)
OPERAND_PRECISION = AttributeUse("operand_precision", _P.IF_ANY_NOT_DEFAULT, default="default")

# Dots
DOT_DIMENSIONS = (
    listed("lhs_batch_dims"),
    AttributeUse("lhs_contracting_dims", _P.ALWAYS, default=()),
    listed("rhs_batch_dims"),
    AttributeUse("rhs_contracting_dims", _P.ALWAYS, default=()),
)
DOT_ALGORITHM = AttributeUse("algorithm", _P.IF_NOT_DEFAULT, default="unset")
SPARSITY_CONFIG = listed("sparsity_config")
NEW_SPARSITY_CONFIG = AttributeUse("sparsity_config", _P.IF_NOT_EMPTY, default=(), new=True)
BLOCK_SCALING_CONFIG = AttributeUse("block_scaling_config", _P.IF_NOT_EMPTY, default=(), new=True)

# Collectives and transfers
CHANNEL_ID = AttributeUse("channel_id", role=Role.IDENTIFIER)
REPLICA_GROUPS = AttributeUse("replica_groups", _P.ALWAYS, default=())
CONSTRAIN_LAYOUT = flag("constrain_layout")
USE_GLOBAL_DEVICE_IDS = flag("use_global_device_ids")
HAS_DYNAMIC_ROOT = AttributeUse("has_dynamic_root", default=False, new=True)
ALIASING = listed("output_to_operand_aliasing")
NEW_ALIASING = AttributeUse("output_to_operand_aliasing", _P.IF_NOT_EMPTY, default=(), new=True)

ALL_REDUCE = (CHANNEL_ID, REPLICA_GROUPS, CONSTRAIN_LAYOUT, USE_GLOBAL_DEVICE_IDS, TO_APPLY, ignored("mode"))
ALL_GATHER = (CHANNEL_ID, REPLICA_GROUPS, CONSTRAIN_LAYOUT, DIMENSIONS, USE_GLOBAL_DEVICE_IDS)
COLLECTIVE_PERMUTE = (CHANNEL_ID, required("source_target_pairs"), listed("slice_sizes"))
TRANSFER = (CHANNEL_ID, flag("is_host_transfer"))

ASYNC_EXECUTION_THREAD = AttributeUse("async_execution_thread", _P.IF_NOT_DEFAULT, default="main")
ASYNC_GROUP_ID = obsolete("async_group_id")
ASYNC_LATER = (ASYNC_GROUP_ID, ignored("calls", Calls.ONE), ignored("async_execution_thread"))
"""On async-update and async-done: accepted when they repeat what the async-start says."""

BATCH_NORM = (required("epsilon"), required("feature_index"))
COMPARISON_ORDER = AttributeUse("order", _P.IF_NOT_DEFAULT, default=Derived.COMPARISON_ORDER, new=True)
COMPARISON_TYPE = AttributeUse("type", _P.IF_NOT_DEFAULT, default=Derived.COMPARISON_TYPE)

GATHER = (
    required("offset_dims"),
    required("collapsed_slice_dims"),
    required("start_index_map"),
    listed("operand_batching_dims"),
    listed("start_indices_batching_dims"),
    required("index_vector_dim"),
    required("slice_sizes"),
    flag("indices_are_sorted"),
)
SCATTER = (
    required("update_window_dims"),
    required("inserted_window_dims"),
    required("scatter_dims_to_operand_dims"),
    listed("input_batching_dims"),
    listed("scatter_indices_batching_dims"),
    required("index_vector_dim"),
    flag("indices_are_sorted"),
    flag("unique_indices"),
    TO_APPLY,
)
CUSTOM_CALL = (
    AttributeUse("window"),  # here `{}` is printed too
    DIM_LABELS,
    FEATURE_GROUP_COUNT,
    BATCH_GROUP_COUNT,
    OPERAND_PRECISION,
    AttributeUse("padding_type", _P.IF_NOT_DEFAULT, default="PADDING_INVALID"),
    required("custom_call_target"),
    AttributeUse("operand_layout_constraints"),
    flag("custom_call_has_side_effect"),
    AttributeUse("literal"),
    ALIASING,
    AttributeUse("schedule", _P.IF_NOT_DEFAULT, default="SCHEDULE_NONE"),
    AttributeUse("api_version", _P.IF_NOT_DEFAULT, default="API_VERSION_ORIGINAL"),
    AttributeUse("called_computations", _P.IF_NOT_EMPTY, default=(), calls=Calls.LIST),
    ignored("to_apply", Calls.ONE),
)

RESULT_ACCURACY = listed("result_accuracy")

COMMON_ATTRIBUTES = (
    AttributeUse("sharding", role=Role.SHARDING),
    listed("frontend_attributes", Role.ANNOTATION),
    listed("control-predecessors", Role.CONTROL),
    listed("statistics", Role.PROVENANCE),
    RESULT_ACCURACY,
    AttributeUse("origin", role=Role.PROVENANCE),
    listed("metadata", Role.PROVENANCE),
    listed("backend_config", Role.ANNOTATION),
)
"""Attributes of every instruction, printed in this order after its own; `result_accuracy` is not on every opcode."""
