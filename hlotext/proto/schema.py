"""The schema of XLA's protos as a table: message, field, number, type.

Field numbers and types are those of `xla/service/hlo.proto`, `xla/xla_data.proto`, `xla/xla.proto` and
`tsl/profiler/protobuf/xplane.proto`, as of July 2026. A message is one entry: its name, then `field=number:type` for each
field. A type is a scalar, a message, an enumeration or `map(key,value)`; behind it `*` says repeated, `?` that presence is
kept for a scalar, `|name` that the field belongs to that oneof. Nested messages and enumerations are listed flat, by their
own name, or with their parent's where that is not unique. Fields that are not listed survive as unknown fields.
"""

from __future__ import annotations

ENUMS: dict[str, str] = {
    "AliasKind": "UNDEFINED_ALIAS=0 MAY_ALIAS=1 MUST_ALIAS=2",
    "Algorithm": (
        "ALG_UNSET=0 ALG_DOT_ANY_F8_ANY_F8_F32=1 ALG_DOT_ANY_F8_ANY_F8_F32_FAST_ACCUM=2 ALG_DOT_F16_F16_F16=3 "
        "ALG_DOT_F16_F16_F32=4 ALG_DOT_BF16_BF16_BF16=5 ALG_DOT_BF16_BF16_F32=6 ALG_DOT_BF16_BF16_F32_X3=7 "
        "ALG_DOT_BF16_BF16_F32_X6=8 ALG_DOT_TF32_TF32_F32=9 ALG_DOT_TF32_TF32_F32_X3=10 ALG_DOT_F32_F32_F32=11 "
        "ALG_DOT_F64_F64_F64=12 ALG_DOT_BF16_BF16_F32_X9=13 "
        "ALG_DOT_BF16_BF16_FP8X3=14 ALG_DOT_BF16_BF16_FP8X4=15"
    ),
    "CompilationEvent": (
        "COMPILATION_EVENT_UNKNOWN_EVENT=0 COMPILATION_EVENT_FIRST_COMPILATION=1 COMPILATION_EVENT_RECOMPILATION=2"
    ),
    "ConvolutionKind": (
        "CONVOLUTION_KIND_UNSET=0 CONVOLUTION_KIND_FPROP=1 CONVOLUTION_KIND_DGRAD=2 CONVOLUTION_KIND_WGRAD=3"
    ),
    "CustomCallApiVersion": (
        "API_VERSION_UNSPECIFIED=0 API_VERSION_ORIGINAL=1 API_VERSION_STATUS_RETURNING=2 "
        "API_VERSION_STATUS_RETURNING_UNIFIED=3 API_VERSION_TYPED_FFI=4"
    ),
    "CustomCallSchedule": "SCHEDULE_NONE=0 SCHEDULE_LATEST=1 SCHEDULE_EARLIEST=2",
    "DebugLogModeProto": "NONE=0 DEFAULT=1 FUSION_DEBUGGER=2 NO_FUSION=3 GUARANTEED=4",
    "DimLevelType": "DIM_DENSE=0 DIM_COMPRESSED=1 DIM_SINGLETON=2 DIM_LOOSE_COMPRESSED=3",
    "EventKind": "ALLOC=0 FREE=1 SHARE_WITH=2",
    "FftType": "FFT=0 IFFT=1 RFFT=2 IRFFT=3",
    "ModuleProfileType": "INVALID=0 FLAG=1 FUSION=2 LAYOUT=3 DOT=4 FLAGNET=5 SHARDING=6 SCHEDULE=7",
    "PaddingType": "PADDING_INVALID=0 PADDING_VALID=1 PADDING_SAME=2",
    "Precision": "DEFAULT=0 HIGH=1 HIGHEST=2",
    "PrimitiveType": (
        "PRIMITIVE_TYPE_INVALID=0 PRED=1 S8=2 S16=3 S32=4 S64=5 U8=6 U16=7 U32=8 U64=9 F16=10 F32=11 F64=12 TUPLE=13 "
        "OPAQUE_TYPE=14 C64=15 BF16=16 TOKEN=17 C128=18 F8E5M2=19 F8E4M3FN=20 S4=21 U4=22 F8E4M3B11FNUZ=23 "
        "F8E5M2FNUZ=24 F8E4M3FNUZ=25 S2=26 U2=27 F8E4M3=28 F8E3M4=29 S1=30 U1=31 F4E2M1FN=32 F8E8M0FNU=33 BUFFER=34 "
        "F6E3M2FN=35 F6E2M3FN=36"
    ),
    "ProfileGenerationStrategy": (
        "PROFILE_GENERATION_STRATEGY_UNKNOWN=0 PROFILE_GENERATION_STRATEGY_GA=1 PROFILE_GENERATION_STRATEGY_FANTA=2 "
        "PROFILE_GENERATION_STRATEGY_CFO=3 PROFILE_GENERATION_STRATEGY_EXHAUSTIVE=4 "
        "PROFILE_GENERATION_STRATEGY_LCM_GNN=5 PROFILE_GENERATION_STRATEGY_LCM_MOE=6"
    ),
    "ProfileSource": ("PROFILE_SOURCE_UNKNOWN_SOURCE=0 PROFILE_SOURCE_EMBEDDED=1 PROFILE_SOURCE_REMOTE=2"),
    "ProfileType": "INVALID=0 WINDOW=1 FLAG=2 INTEGER=3",
    "RandomAlgorithm": "RNG_DEFAULT=0 RNG_THREE_FRY=1 RNG_PHILOX=2",
    "RandomDistribution": "RNG_INVALID=0 RNG_UNIFORM=1 RNG_NORMAL=2",
    "ReductionOpProto": "SUM=0 MAX=1 MIN=2",
    "ResultAccuracyMode": "DEFAULT=0 HIGHEST=1",
    "ShardGroupType": "AS=0 LIKE=1",
    "ShardingType": "REPLICATED=0 MAXIMAL=1 TUPLE=2 OTHER=3 MANUAL=4 UNKNOWN=5 UNREDUCED=6",
    "Transpose": "TRANSPOSE_INVALID=0 NO_TRANSPOSE=1 TRANSPOSE=2 ADJOINT=3",
    "TriState": "TRI_STATE_UNSPECIFIED=0 TRI_STATE_TRUE=1 TRI_STATE_FALSE=2",
}
"""Each enumeration with its values."""

_XLA_DATA = """
PaddingConfigDimension edge_padding_low=1:i64 edge_padding_high=2:i64 interior_padding=3:i64
PaddingConfig dimensions=1:PaddingConfigDimension*
TileProto dimensions=1:i64*
SplitConfigProto dimension=1:i64 split_indices=2:i64*
LayoutProto minor_to_major=1:i64* tiles=6:TileProto* element_size_in_bits=7:i64 memory_space=8:i64
  dim_level_types=9:DimLevelType* physical_shape=10:ShapeProto index_primitive_type=11:PrimitiveType
  pointer_primitive_type=12:PrimitiveType dim_unique=13:bool* dim_ordered=14:bool*
  dynamic_shape_metadata_prefix_bytes=15:i64 tail_padding_alignment_in_elements=16:i64 split_configs=17:SplitConfigProto*
ShapeProto element_type=2:PrimitiveType dimensions=3:i64* tuple_shapes=4:ShapeProto* layout=5:LayoutProto
  is_dynamic_dimension=6:bool*
ProgramShapeProto parameters=1:ShapeProto* result=2:ShapeProto parameter_names=3:str*
Payload value=1:bytes|payload_source id=2:i64|payload_source
OpProfileInfo profile_type=1:ProfileType* relative_speedup=2:f64 profile_source=3:ProfileSource
  compilation_event=4:CompilationEvent profile_generation_strategy=5:ProfileGenerationStrategy
OpMetadata op_type=1:str op_name=2:str source_file=3:str source_line=4:i32 profile_type=5:ProfileType*
  size_of_generated_code_in_bytes=8:i64 size_of_memory_working_set_in_bytes=9:i64 profile_info=10:OpProfileInfo
  deduplicated_name=12:str stack_frame_id=15:i32 scheduling_name=16:str source_end_line=17:i32 source_column=18:i32
  source_end_column=19:i32 metadata_payload=20:Payload
ComputationDevice replica_device_ids=1:i64*
DeviceAssignmentProto replica_count=1:i32 computation_count=2:i32 computation_devices=3:ComputationDevice*
LiteralProto shape=1:ShapeProto preds=2:bool* u8s=3:bytes s32s=4:i32* s64s=5:i64* u32s=6:u32* u64s=7:u64* f32s=8:f32*
  f64s=9:f64* tuple_literals=10:LiteralProto* f16s=11:bytes c64s=12:f32* bf16s=13:bytes sparse_indices=14:i64*
  s8s=15:bytes u16s=16:bytes s16s=17:bytes c128s=18:f64* f8e5m2s=19:bytes f8e4m3fns=20:bytes s4s=21:bytes u4s=22:bytes
  f8e4m3b11fnuzs=23:bytes f8e5m2fnuzs=24:bytes f8e4m3fnuzs=25:bytes s2s=26:bytes u2s=27:bytes f8e4m3s=28:bytes
  f8e3m4s=29:bytes s1s=30:bytes u1s=31:bytes f4e2m1fns=32:bytes f8e8m0fnus=33:bytes dynamic_sizes=34:i32*
  f6e3m2fns=35:bytes f6e2m3fns=36:bytes
WindowDimension size=1:i64 stride=2:i64 padding_low=3:i64 padding_high=4:i64 window_dilation=5:i64 base_dilation=6:i64
  window_reversal=7:bool
Window dimensions=1:WindowDimension*
GatherDimensionNumbers offset_dims=1:i64* collapsed_slice_dims=2:i64* start_index_map=3:i64* index_vector_dim=4:i64
  operand_batching_dims=5:i64* start_indices_batching_dims=6:i64*
ScatterDimensionNumbers update_window_dims=1:i64* inserted_window_dims=2:i64* scatter_dims_to_operand_dims=3:i64*
  index_vector_dim=4:i64 input_batching_dims=5:i64* scatter_indices_batching_dims=6:i64*
ConvolutionDimensionNumbers kernel_input_feature_dimension=3:i64 kernel_output_feature_dimension=4:i64
  kernel_spatial_dimensions=6:i64* input_batch_dimension=7:i64 input_feature_dimension=8:i64 output_batch_dimension=9:i64
  output_feature_dimension=10:i64 input_spatial_dimensions=11:i64* output_spatial_dimensions=12:i64*
TensorSparsityConfig num_non_zero=1:i64 block_size=2:i64 dimension=3:i64 stride=4:i64
  idx=5:i64
TensorBlockScalingConfig scale_idx=1:i64 zero_idx=2:i64? strides=3:i64* steps=4:i64*
BlockScalingConfig lhs=1:TensorBlockScalingConfig rhs=2:TensorBlockScalingConfig
RotateShuffle shifts=1:i64*
ShuffleMode rotate=1:RotateShuffle
SparsityConfig lhs=1:TensorSparsityConfig rhs=2:TensorSparsityConfig
DotDimensionNumbers lhs_contracting_dimensions=1:i64* rhs_contracting_dimensions=2:i64* lhs_batch_dimensions=3:i64*
  rhs_batch_dimensions=4:i64*
RaggedDotDimensionNumbers dot_dimension_numbers=1:DotDimensionNumbers lhs_ragged_dimensions=2:i64*
  rhs_group_dimensions=3:i64*
TriangularSolveOptions left_side=1:bool lower=2:bool unit_diagonal=3:bool transpose_a=4:Transpose
CholeskyOptions lower=1:bool
FrontendAttributes map=1:map(str,str)
Statistic stat_name=1:str stat_val=2:f64
StatisticsViz stat_index_to_visualize=1:i64 statistics=2:Statistic*
MeshAxis name=1:str size=2:i64
IotaTransform reshape_dims=1:i64* transpose_perm=2:i64*
MeshProto axes=1:MeshAxis* device_ids=2:i64* iota_transform=3:IotaTransform
SubAxis pre_size=1:i64 size=2:i64
AxisRefProto mesh_axis_index=1:i64 sub_axis_info=2:SubAxis
DimensionSharding axes=1:AxisRefProto* is_closed=2:bool
NamedShardingProto mesh=2:MeshProto dim_shardings=3:DimensionSharding* replicated_axes=4:AxisRefProto*
  unreduced_axes=5:AxisRefProto* metadata=6:OpMetadata* manual_axes=7:AxisRefProto* reduction_op=8:ReductionOpProto
OpSharding type=1:ShardingType tile_shape=2:ShapeProto tile_assignment_dimensions=3:i64* tile_assignment_devices=4:i64*
  tuple_shardings=5:OpSharding* replicate_on_last_tile_dim=6:bool metadata=7:OpMetadata* last_tile_dims=8:ShardingType*
  iota_reshape_dims=9:i64* iota_transpose_perm=10:i32* is_shard_group=11:bool shard_group_id=12:i64
  shard_group_type=13:ShardGroupType named_sharding=14:NamedShardingProto
ReplicaGroup replica_ids=1:i64*
MeshAxesReplicaGroupListProto mesh=1:MeshProto axes=2:AxisRefProto*
IotaReplicaGroupListProto num_replica_groups=1:i64 num_devices_per_group=2:i64 iota_reshape_dims=3:i64*
  iota_transpose_perm=4:i32*
CollectiveDeviceListProto replica_groups=1:ReplicaGroup*
SourceTarget source=1:i64 target=2:i64
Tolerance atol=1:f64 rtol=2:f64 ulps=3:i64
ResultAccuracy mode=1:ResultAccuracyMode|specs tolerance=2:Tolerance|specs
PrecisionConfig operand_precision=1:Precision* algorithm=2:Algorithm
ParameterReplication replicated_at_leaf_buffers=1:bool*
OutputOperandAliasing output_shape_index=1:i64* operand_index=2:i64 operand_shape_index=3:i64*
OriginalArrayProto instruction_name=1:str shape_index=2:i64*
OriginalValueElementProto shape_index=1:i64* original_array=2:OriginalArrayProto
OriginalValueProto elements=1:OriginalValueElementProto* is_synthetic_call=2:bool
  call_hierarchy=3:str?
"""

_HLO = """
SliceDimensions start=1:i64 limit=2:i64 stride=3:i64
HloInstructionProto name=1:str opcode=2:str shape=3:ShapeProto metadata=7:OpMetadata literal=8:LiteralProto
  parameter_number=9:i64 fusion_kind=11:str tuple_index=13:i64 dimensions=14:i64* window=15:Window
  convolution_dimension_numbers=16:ConvolutionDimensionNumbers slice_dimensions=17:SliceDimensions* exponent_bits=18:i32
  mantissa_bits=19:i32 dynamic_slice_sizes=20:i64* padding_config=21:PaddingConfig outfeed_config=22:bytes
  distribution=23:RandomDistribution epsilon=24:f32 feature_index=25:i64 channel_id=26:i64 infeed_config=27:bytes
  custom_call_target=28:str outfeed_shape=29:ShapeProto dot_dimension_numbers=30:DotDimensionNumbers fft_type=31:FftType
  fft_length=32:i64* gather_dimension_numbers=33:GatherDimensionNumbers gather_slice_sizes=34:i64* id=35:i64
  operand_ids=36:i64* control_predecessor_ids=37:i64* called_computation_ids=38:i64* sharding=40:OpSharding
  backend_config=43:bytes all_reduce_id=45:i64 is_host_transfer=47:bool
  scatter_dimension_numbers=48:ScatterDimensionNumbers replica_groups=49:ReplicaGroup* feature_group_count=50:i64
  precision_config=51:PrecisionConfig source_target_pairs=52:SourceTarget* domain_entry_sharding=54:OpSharding
  domain_exit_sharding=55:OpSharding constrain_layout=56:bool operand_shapes_with_layout=57:ShapeProto*
  batch_group_count=58:i64 triangular_solve_options=59:TriangularSolveOptions is_stable=60:bool
  parameter_replication=61:ParameterReplication cholesky_options=62:CholeskyOptions comparison_direction=63:str
  custom_call_has_side_effect=65:bool delta=66:i64 indices_are_sorted=67:bool frontend_attributes=68:FrontendAttributes
  unique_indices=69:bool rng_algorithm=70:RandomAlgorithm use_global_device_ids=71:bool comparison_type=72:str
  is_cross_program_prefetch=73:bool output_operand_aliasing=74:OutputOperandAliasing* padding_type=75:PaddingType
  custom_call_schedule=76:CustomCallSchedule custom_call_api_version=77:CustomCallApiVersion
  async_execution_thread=79:str cross_program_prefetch_index=80:i32|optional_cross_program_prefetch_index k=81:i64
  statistics_viz=82:StatisticsViz largest=85:bool
  collective_device_list=87:CollectiveDeviceListProto|replica_group_list original_value=88:OriginalValueProto
  is_composite=89:bool ragged_dot_dimension_numbers=90:RaggedDotDimensionNumbers result_accuracy=91:ResultAccuracy
  iota_collective_device_list=92:IotaReplicaGroupListProto|replica_group_list
  mesh_axes_replica_group_list=93:MeshAxesReplicaGroupListProto|replica_group_list is_reverse=94:bool num_carries=95:i64
  is_associative=96:TriState conv_kind=97:ConvolutionKind sparsity_config=98:SparsityConfig
  backend_config_payload=99:Payload has_dynamic_root=100:bool
  block_scaling_config=101:BlockScalingConfig comparison_order=102:str shuffle_mode=103:ShuffleMode
HloComputationProto name=1:str instructions=2:HloInstructionProto* program_shape=4:ProgramShapeProto id=5:i64 root_id=6:i64
  is_fusion_computation=7:bool execution_thread=8:str backend_config=9:bytes
InstructionSequence instruction_ids=1:i64*
HloScheduleProto sequences=1:map(i64,InstructionSequence)
AliasEntryProto output_shape_index=1:i64* parameter_number=2:i64 parameter_shape_index=3:i64* kind=4:AliasKind
HloInputOutputAliasProto entries=1:AliasEntryProto*
BufferDonorEntryProto parameter_number=1:i64 parameter_shape_index=2:i64*
HloBufferDonorProto entries=1:BufferDonorEntryProto*
CrossProgramPrefetch parameter=1:i64 index=2:i64* offset=3:i64
FileLocation file_name_id=1:i32 function_name_id=2:i32 line=3:i32 column=4:i32 end_line=5:i32 end_column=6:i32
StackFrame file_location_id=1:i32 parent_frame_id=2:i32
StackFrameIndexProto file_names=1:str* function_names=2:str* file_locations=3:FileLocation* stack_frames=4:StackFrame*
ModuleProfileInfo profile_type=1:ModuleProfileType relative_speedup=2:f64 profile_source=3:ProfileSource
  compilation_event=4:CompilationEvent fingerprint=5:str profile_generation_strategy=6:ProfileGenerationStrategy
  original_changelist=7:i64 changelist=8:i64
DebugAttributesProto log_mode=1:DebugLogModeProto callback_id=2:i64 op_id=3:i64 partitioned=4:bool operands_sharding=5:str
DebugAttributeTableEntryProto original_array=1:OriginalArrayProto debug_attributes=2:DebugAttributesProto*
RecoveryEntry old_original_array=1:OriginalArrayProto new_original_array=2:OriginalArrayProto
  recovery_module=3:HloModuleProto
OriginalValueRecoveryTableProto entries=1:RecoveryEntry*
HloModuleProto name=1:str entry_computation_name=2:str computations=3:HloComputationProto*
  host_program_shape=4:ProgramShapeProto id=5:i64 entry_computation_id=6:i64 schedule=7:HloScheduleProto
  input_output_alias=8:HloInputOutputAliasProto cross_program_prefetches=10:CrossProgramPrefetch* is_dynamic=11:bool
  spmd_output_sharding=12:OpSharding profile_info=13:ModuleProfileInfo* spmd_parameters_shardings=14:OpSharding*
  device_assignment=15:DeviceAssignmentProto use_auto_spmd_partitioning=16:bool stack_frame_index=17:StackFrameIndexProto
  buffer_donor=18:HloBufferDonorProto frontend_attributes=19:FrontendAttributes
  original_value_recovery_table=20:OriginalValueRecoveryTableProto device_type=21:str payloads=22:bytes* pjrt_id=23:i64?
  debug_attributes=24:DebugAttributeTableEntryProto* backend_config=25:bytes
Location instruction_name=2:str shape_index=3:i64* instruction_id=4:i64
LogicalBufferProto id=1:i64 size=2:i64 defined_at=3:Location color=4:i64
Assigned logical_buffer_id=1:i64 offset=2:i64 size=3:i64 element_type=4:PrimitiveType
BufferAllocationProto index=1:i64 size=2:i64 is_thread_local=3:bool is_entry_computation_parameter=5:bool
  parameter_number=6:i64 maybe_live_out=7:bool color=8:i64 assigned=9:Assigned* parameter_shape_index=10:i64*
  is_tuple=11:bool is_constant=12:bool is_parameter_aliased_with_output=13:bool
Event kind=1:EventKind buffer_id=2:i64 computation_name=3:str instruction_name=4:str share_with_canonical_id=5:i64
HeapSimulatorTrace events=1:Event* whole_module_simulation=2:bool buffer_allocation_index=3:i64
BufferAlias source_buffer_id=1:i64 location=2:Location
PeakBuffers index=1:i64 logical_buffer_ids=2:i64*
BufferAssignmentProto logical_buffers=1:LogicalBufferProto* buffer_aliases=2:BufferAlias*
  buffer_allocations=3:BufferAllocationProto* heap_simulator_traces=4:HeapSimulatorTrace* peak_buffers=5:PeakBuffers*
HloProto hlo_module=1:HloModuleProto buffer_assignment=3:BufferAssignmentProto
HloModuleConfigProto entry_computation_layout=1:ProgramShapeProto replica_count=4:i64 num_partitions=5:i64
  alias_passthrough_params=17:bool allow_spmd_sharding_propagation_to_output=27:bool*
  allow_spmd_sharding_propagation_to_parameters=33:bool*
HloModuleProtoWithConfig hlo_module=1:HloModuleProto config=2:HloModuleConfigProto
"""

_XPLANE = """
XStat metadata_id=1:i64 double_value=2:f64|value uint64_value=3:u64|value int64_value=4:i64|value str_value=5:str|value
  bytes_value=6:bytes|value ref_value=7:u64|value
XEvent metadata_id=1:i64 offset_ps=2:i64|data duration_ps=3:i64 stats=4:XStat* num_occurrences=5:i64|data
XLine id=1:i64 name=2:str timestamp_ns=3:i64 events=4:XEvent* duration_ps=9:i64 display_id=10:i64 display_name=11:str
XEventMetadata id=1:i64 name=2:str metadata=3:bytes display_name=4:str stats=5:XStat* child_id=6:i64*
XStatMetadata id=1:i64 name=2:str description=3:str
XPlane id=1:i64 name=2:str lines=3:XLine* event_metadata=4:map(i64,XEventMetadata) stat_metadata=5:map(i64,XStatMetadata)
  stats=6:XStat*
XSpace planes=1:XPlane* errors=2:str* warnings=3:str* hostnames=4:str*
"""

TABLE = _XLA_DATA + _HLO + _XPLANE
"""Every message, as the head of this file says."""
