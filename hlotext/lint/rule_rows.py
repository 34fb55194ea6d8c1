"""The built-in rules by code: made from their classes by `python -m tests.stubs`."""

from hlotext.lint.rule_row import RuleNeeds, RuleRow

RULE_ROWS: dict[str, RuleRow] = {
    "C101": RuleRow(
        "c101_all_gather_in_loop", "AllGatherInLoop", needs=(RuleNeeds(needs_communication=True),)
    ),
    "C102": RuleRow(
        "c102_loop_invariant_collective",
        "LoopInvariantCollective",
        needs=(RuleNeeds(needs_communication=True),),
    ),
    "C103": RuleRow(
        "c103_group_of_one", "GroupOfOne", is_default=False, needs=(RuleNeeds(needs_optimized=True),)
    ),
    "C104": RuleRow(
        "c104_all_reduce_then_slice", "AllReduceThenSlice", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "C105": RuleRow("c105_twice", "Twice", former=("D106", "G115"), needs=(RuleNeeds(needs_optimized=True),)),
    "C106": RuleRow(
        "c106_exposed",
        "Exposed",
        is_default=False,
        former=("S102", "S103", "S104"),
        needs=(
            RuleNeeds(needs_optimized=True, backends="gpu tpu"),
            RuleNeeds(needs_schedule=True, backends="gpu tpu"),
            RuleNeeds(needs_schedule=True, needs_any="copy-start"),
        ),
    ),
    "C107": RuleRow(
        "c107_wide_collective", "WideCollective", needs=(RuleNeeds(needs_optimized=True, backends="gpu tpu"),)
    ),
    "C108": RuleRow("c108_gather_then_slice", "GatherThenSlice", needs=(RuleNeeds(needs_optimized=True),)),
    "C109": RuleRow(
        "c109_many_small_collectives",
        "ManySmallCollectives",
        is_default=False,
        needs=(RuleNeeds(needs_optimized=True),),
    ),
    "C110": RuleRow(
        "c110_replicated_parameter", "ReplicatedParameter", needs=(RuleNeeds(needs_partitions=True),)
    ),
    "C111": RuleRow(
        "c111_reshard",
        "Resharded",
        needs=(
            RuleNeeds(needs_optimized=True, needs_communication=True),
            RuleNeeds(needs_partitions=True),
        ),
    ),
    "C112": RuleRow(
        "c112_axis_over_slow_link",
        "AxisOverSlowLink",
        is_default=False,
        needs=(RuleNeeds(needs_optimized=True, backends="gpu tpu"),),
    ),
    "C113": RuleRow("c113_sum_after_loop", "SumsAddedUp", needs=(RuleNeeds(needs_communication=True),)),
    "C114": RuleRow("c114_equal_already", "EqualAlready", needs=(RuleNeeds(needs_optimized=True),)),
    "C115": RuleRow("c115_gather_to_sum", "GatherToSum", needs=(RuleNeeds(needs_optimized=True),)),
    "C116": RuleRow("c116_gathered_to_reduce", "GatheredToReduce", needs=(RuleNeeds(needs_optimized=True),)),
    "C117": RuleRow("c117_whole_on_each", "WholeOnEach", needs=(RuleNeeds(needs_optimized=True),)),
    "C118": RuleRow("c118_idle_axis", "IdleAxis"),
    "C119": RuleRow("c119_whole_batch", "WholeBatchOnEach", needs=(RuleNeeds(needs_optimized=True),)),
    "C120": RuleRow(
        "c120_gathered_for_few_rows", "GatheredForFewRows", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "C121": RuleRow("c121_sharded_sort", "ShardedSort", needs=(RuleNeeds(needs_optimized=True),)),
    "D101": RuleRow("d101_wide", "Wide", former=("D103", "D105")),
    "D102": RuleRow(
        "d102_needless_round_trip",
        "NeedlessRoundTrip",
        is_default=False,
        needs=(RuleNeeds(needs_any="convert"),),
    ),
    "D104": RuleRow(
        "d104_repeated_reduce_precision",
        "RepeatedReducePrecision",
        is_default=False,
        needs=(RuleNeeds(needs_optimized=True, needs_any="reduce-precision"),),
    ),
    "D107": RuleRow(
        "d107_one_hot_product",
        "OneHotProduct",
        needs=(RuleNeeds(needs_any="convolution dot ragged-dot scaled-dot"),),
    ),
    "G101": RuleRow(
        "g101_unknown_trip_count",
        "UnknownTripCount",
        is_default=False,
        needs=(RuleNeeds(needs_optimized=True),),
    ),
    "G102": RuleRow("g102_unused_parameter", "UnusedParameter"),
    "G103": RuleRow("g103_dead_computation", "DeadComputation", is_default=False),
    "G104": RuleRow(
        "g104_dead_instruction", "DeadInstruction", is_default=False, needs=(RuleNeeds(needs_optimized=True),)
    ),
    "G105": RuleRow(
        "g105_unknown_custom_call",
        "UnknownCustomCall",
        is_default=False,
        needs=(RuleNeeds(needs_optimized=True, needs_any="custom-call"),),
    ),
    "G106": RuleRow(
        "g106_host_callback",
        "HostCallback",
        needs=(
            RuleNeeds(
                needs_any="custom-call infeed outfeed recv recv-done rng rng-get-and-update-state send send-done"
            ),
        ),
    ),
    "G107": RuleRow(
        "g107_huge_fusion", "HugeFusion", is_default=False, needs=(RuleNeeds(needs_any="fusion"),)
    ),
    "G109": RuleRow("g109_dynamic_shape", "DynamicShape"),
    "G110": RuleRow(
        "g110_slow_on_tpu", "SlowOnTpu", needs=(RuleNeeds(backends="tpu", needs_any="gather scatter sort"),)
    ),
    "G111": RuleRow("g111_lost_metadata", "LostMetadata", is_default=False),
    "G112": RuleRow(
        "g112_tuple_noise", "TupleNoise", is_default=False, needs=(RuleNeeds(needs_any="get-tuple-element"),)
    ),
    "G113": RuleRow(
        "g113_small",
        "Small",
        former=("G114",),
        needs=(
            RuleNeeds(needs_optimized=True),
            RuleNeeds(needs_schedule=True, backends="gpu"),
        ),
    ),
    "G116": RuleRow(
        "g116_loop_invariant_work", "LoopInvariantWork", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "G117": RuleRow(
        "g117_dense_gradient", "DenseGradient", needs=(RuleNeeds(needs_optimized=True, needs_any="scatter"),)
    ),
    "G118": RuleRow("g118_unused_elements", "UnusedElements", needs=(RuleNeeds(needs_optimized=True),)),
    "G119": RuleRow("g119_product_order", "ProductOrder", needs=(RuleNeeds(needs_optimized=True),)),
    "G120": RuleRow("g120_explicit_inverse", "ExplicitInverse", needs=(RuleNeeds(needs_optimized=True),)),
    "G121": RuleRow(
        "g121_lu_of_symmetric",
        "LuOfSymmetric",
        needs=(RuleNeeds(needs_optimized=True, needs_any="custom-call"),),
    ),
    "G122": RuleRow(
        "g122_computed_at_both_ends", "ComputedAtBothEnds", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "G123": RuleRow(
        "g123_product_by_elements", "ProductByElements", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "G124": RuleRow("g124_off_the_recurrence", "OffTheRecurrence", needs=(RuleNeeds(needs_optimized=True),)),
    "G125": RuleRow(
        "g125_product_with_triangle", "ProductWithTriangle", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "G126": RuleRow(
        "g126_factored_band",
        "FactoredBand",
        needs=(RuleNeeds(needs_optimized=True, needs_any="cholesky custom-call"),),
    ),
    "G127": RuleRow(
        "g127_scattered_picks",
        "ScatteredPicks",
        needs=(RuleNeeds(needs_optimized=True, needs_any="scatter"),),
    ),
    "G131": RuleRow("g131_loops_side_by_side", "LoopsSideBySide", needs=(RuleNeeds(needs_optimized=True),)),
    "K101": RuleRow("k101_large_constant", "LargeConstant", needs=(RuleNeeds(needs_any="constant"),)),
    "K102": RuleRow(
        "k102_elided_constant", "ElidedConstant", is_default=False, needs=(RuleNeeds(needs_any="constant"),)
    ),
    "K103": RuleRow("k103_duplicate_constant", "DuplicateConstant", is_default=False),
    "L101": RuleRow("l101_padding", "Padding", needs=(RuleNeeds(backends="tpu"),)),
    "L102": RuleRow(
        "l102_narrow_minor_dimension",
        "NarrowMinorDimension",
        is_default=False,
        needs=(RuleNeeds(backends="tpu"),),
    ),
    "L103": RuleRow(
        "l103_relayout",
        "Relayout",
        former=("L105",),
        needs=(
            RuleNeeds(needs_optimized=True, backends="gpu"),
            RuleNeeds(needs_optimized=True),
        ),
    ),
    "M101": RuleRow("m101_donated_not_aliased", "DonatedNotAliased", needs=(RuleNeeds(needs_schedule=True),)),
    "M102": RuleRow(
        "m102_donation_without_use", "DonationWithoutUse", needs=(RuleNeeds(needs_schedule=True),)
    ),
    "M103": RuleRow("m103_missing_donation", "MissingDonation", needs=(RuleNeeds(needs_schedule=True),)),
    "M104": RuleRow(
        "m104_host_traffic_in_loop",
        "HostTrafficInLoop",
        needs=(RuleNeeds(needs_any="async-start copy copy-start dynamic-slice dynamic-update-slice fusion"),),
    ),
    "M105": RuleRow("m105_rematerialized", "Rematerialized", needs=(RuleNeeds(needs_optimized=True),)),
    "M107": RuleRow(
        "m107_needless_remat", "NeedlessRemat", is_default=False, needs=(RuleNeeds(needs_optimized=True),)
    ),
    "M108": RuleRow(
        "m108_peak",
        "PeakOfMemory",
        is_default=False,
        former=("M109", "M110"),
        needs=(RuleNeeds(needs_schedule=True),),
    ),
    "M111": RuleRow("m111_carried_copy", "CarriedCopy", needs=(RuleNeeds(needs_optimized=True),)),
    "M112": RuleRow("m112_through_scan", "ThroughScan", needs=(RuleNeeds(needs_optimized=True),)),
    "M113": RuleRow("m113_joined", "Joined", needs=(RuleNeeds(needs_optimized=True),)),
    "M114": RuleRow("m114_repeated", "MaterializedBroadcast", needs=(RuleNeeds(needs_optimized=True),)),
    "M115": RuleRow("m115_stacked_results", "StackedResults", needs=(RuleNeeds(needs_optimized=True),)),
    "M116": RuleRow("m116_scan_residuals", "ScanResiduals", needs=(RuleNeeds(needs_optimized=True),)),
    "M117": RuleRow("m117_rolled", "Rolled", needs=(RuleNeeds(needs_optimized=True, backends="tpu"),)),
    "M118": RuleRow("m118_does_not_fit", "DoesNotFit", needs=(RuleNeeds(needs_schedule=True),)),
    "M119": RuleRow(
        "m119_rewritten_for_slice", "RewrittenForSlice", needs=(RuleNeeds(needs_optimized=True),)
    ),
    "M120": RuleRow("m120_wide_rows", "WideRows", needs=(RuleNeeds(needs_optimized=True),)),
    "M121": RuleRow("m121_kept_for_backward", "KeptForBackward", needs=(RuleNeeds(needs_schedule=True),)),
    "M122": RuleRow("m122_stacked_arguments", "StackedArguments", needs=(RuleNeeds(needs_optimized=True),)),
    "M123": RuleRow(
        "m123_copied_slices", "CopiedSlices", needs=(RuleNeeds(needs_optimized=True, backends="gpu"),)
    ),
    "M124": RuleRow("m124_layer_residuals", "LayerResiduals", needs=(RuleNeeds(needs_schedule=True),)),
    "M125": RuleRow("m125_attention_scores", "AttentionScores", needs=(RuleNeeds(needs_schedule=True),)),
    "M131": RuleRow("m131_whole_at_once", "WholeAtOnce", needs=(RuleNeeds(needs_schedule=True),)),
    "S101": RuleRow("s101_unscheduled", "Unscheduled", is_default=False),
    "S105": RuleRow(
        "s105_host_is_waited_for", "HostIsWaitedFor", needs=(RuleNeeds(needs_schedule=True, backends="gpu"),)
    ),
    "X301": RuleRow("x301_deprecated_syntax", "DeprecatedSyntax", is_default=False),
}
