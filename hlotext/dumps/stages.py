"""The stages of a compilation, and which pass belongs to which: XLA's "From HLO to thunks", as data.

The tables cover every pass of the pipelines that XLA's CPU, GPU and TPU compilers ran in 2026 (CPU and GPU: their sources;
TPU: what libtpu's metadata names). The stage of a pass was assigned by its effect; XLA has no such list. A pass's own name
decides first, in whatever pipeline it runs; then the pipeline's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import overload

import attrs

from hlotext.ir.caches import weighted_cache


@attrs.frozen
class Stage:
    """A stage of compilation."""

    name: str
    """Name in hlotext: `sharding`, `layout`, ..."""
    title: str
    what: str
    """Description, in one sentence."""
    passes: str = ""
    """Names of passes that belong to it wherever they run, as a regular expression."""
    pipelines: str = ""
    """Names of pipelines whose other passes belong to it, as a regular expression. Spaces are written `_`."""
    kinds: tuple[str, ...] = ()
    """Kinds of files (`hlotext.dumps.kinds`) that show it, besides per-pass dumps."""


_STAGES = (
    Stage(
        "input",
        "Before optimization",
        "Brings the framework's program into the form that the compiler expects.",
        pipelines=r"annotate-host-compute|hlo_device_type_async_wrapper|Before_X64_rewriter|X64_elimination|After_X64_rewriter.*"
        r"|SubbytePacker_pipeline|async-collective|host-compute|pre-optimization.*|Process_DebugLog_custom_call",
        kinds=("hlo-before", "input-module", "input-options", "input-topology"),
    ),
    Stage(
        "sharding",
        "Sharding and partitioning",
        "Propagates shardings and turns the program for all devices into the one that each device runs (SPMD).",
        r"(gpu-)?spmd-partitioning|tpu-spmd-partitioning|shardy-xla|sharding-(remover|propagation)|spmd-prepare"
        r"|tpu-spmd-concat-rewriter|stateful-rng-spmd-partitioner",
        r"pre-spmd-pipeline|(pre-)?spmd-partitioner|spmd-(cleanup|simplify)|sharding-removal|xla-partitioner.*|spatial-partitioner-cleanup"
        r"|optimizer-tpu-spmd-collectives",
        ("shardy", "hlo-spmd"),
    ),
    Stage(
        "optimize",
        "Simplification",
        "Simplifies algebra, folds constants and removes dead code and common subexpressions, for any target.",
        pipelines=r"optimization|simplification.*|HLO_passes_through_layout_assignment|post_scatter_expansion_simplification"
        r"|Phase_[12]_pre-layout_assignment_passes|convolution_folding|while-loop-simplification"
        r"|post-space-to-batch-simplification|.*after_conv_canonicalization|after_conditional_code_motion.*|embedded_scatter_expansion",
    ),
    Stage(
        "collectives",
        "Collectives",
        "Combines collectives, moves them out of loops, and replaces them with cheaper ones.",
        r"(gpu-)?(all-gather|all-reduce|reduce-scatter|collective|ragged-all-to-all|all_to_all|all-to-all|ar-crs|cpu-all-reduce"
        r"|tpu-all-gather|tpu-all-reduce)[-_a-z]*|while-loop-all-reduce-code-motion|latency-bound-all-reduce-decomposer"
        r"|split-ici-dcn",
        r"collective-optimizations|pipelining|loop-ar-motion|Channel_id_assignment|while-loop-all-reduce-code-motion-setup",
    ),
    Stage(
        "layout",
        "Layout assignment",
        "Assigns a dimension order, and on TPUs a tiling, to every array.",
        r"layout-assignment|tpu-tiling-rewriter.*|post-fusion-tiling-assignment|plumb-vmem-info",
        r"layout_assignment|Layout_assignment|Pre_layout_assignment.*|Post_Fusion_Tiling_Assignment|layout_fixup",
    ),
    Stage(
        "normalize",
        "Layout normalization",
        "Rewrites operations so that every array has the default layout, with bitcasts in between.",
        r"layout_normalization|reshape-decomposer|move_copy_to_users|tpu-copy-normalizer",
        r"layout_normalization|hlo_normalization",
    ),
    Stage(
        "post-layout",
        "Libraries and kernels",
        "Assigns operations to libraries and code generators that need certain layouts, and tunes tile sizes.",
        r"triton-(gemm|softmax)-rewriter|cublas-.*|gemm-fusion-swap-operands|hoist-fused-bitcasts|gemv-rewriter|splitk-rewriter"
        r"|autotuner|convert_triton_gemm_config|triangular-solve-rewriter|dot-library-rewriter|conv-rewriter|cudnn.*"
        r"|conv-padding-legalization|block-scaling-rewriter",
        r"(nvptx|AMDGPU)_post-layout_assignment.*|post-layout_assignment|autotuner|dot-library-passes|JF_dot_canonicalization"
        r"|JF_after_layout_assignment|Post_layout_assignment|after_layout_assignment|simplification_after_layout_assignment"
        r"|Pre_main_fusion|dynamic-slice|pre-fusion|conv_canonicalization|host_offloading"
        r"|SparseCore_(Manual_)?Offload|config-assigner|autotune-fusion-emitters|HLO_passes_after_layout_assignment",
        ("autotune-results", "hlo-config", "hlo-autotuner", "cudnn-graph"),
    ),
    Stage(
        "float",
        "Float normalization",
        "Replaces types that the device cannot compute with, and moves or removes converts.",
        r"float-normalization-.*|float-type-correction|bfloat16-(propagation|fold)|simplify-fp-conversions|xprecision-rewriter"
        r"|change-op-data-type",
        r"float_normalization|remove-no-op-reduce-precision.*|Float_type_correction.*",
    ),
    Stage(
        "fusion",
        "Fusion",
        "Groups operations into fusions, each of which becomes one kernel.",
        r"priority-fusion|multi_output_fusion|tpu_(multi_output_)?fusion|fusion|sort-iota-fusion|variadic-op-splitter|copy_fusion"
        r"|trivial-fusion-remover|tpu_trivial_instruction_unfuser|tpu-loop-fusion-enhancer|fusion_constant_sinking"
        r"|fusion-tuple-deduplicator|rename_fusions|rename-tensor-core-fusion-ops",
        r"fusion|Main_fusion|horizontal_fusion|horizontal-loop-fusion.*",
        ("priority-fusion", "hlo-fusion"),
    ),
    Stage(
        "post-fusion",
        "After fusion",
        "Wraps unfused operations in fusions and cleans up fusions.",
        r"fusion-wrapper",
        r"post-fusion.*|JF_after_main_fusion|Post_main_fusion|multi_output_fusion_and_bf16_folding|Rename_TensorCore_Fusions"
        r"|fusion-wrapper|fusion-dispatch-pipeline|propagate-call-metadata|invariant-checkers|After_rewrite_shapes"
        r"|HLO_SC_Pipeline|HT_info_assignment",
    ),
    Stage(
        "async",
        "Asynchronous operations",
        "Splits collectives and transfers into start and done so that they can overlap with other work.",
        r".*(async).*|host_compute_asyncifier|gpu-convert-async-collectives-to-sync|host-memory-transfer-asyncifier",
        kinds=("host-transfers",),
    ),
    Stage(
        "copies",
        "Copy insertion",
        "Inserts copies where two simultaneously live values would share a buffer.",
        r"copy-insertion.*|adding_.*|removing_unnecessary_copies",
        r"pre-scheduling-copy-insertion|Global_Copy_Insertion|Post-Global_Copy_Insertion|copy-insertion",
    ),
    Stage(
        "schedule",
        "Scheduling",
        "Fixes the execution order, hiding transfers and collectives behind computation.",
        r"latency-hiding-scheduler|hlo-memory-scheduler.*|.*schedul(e|ing|er).*|collectives-schedule-linearizer"
        r"|constant-deferring|aggregate-send-recv",
        r"async-.*|async_scheduling|apply_xla_transforms.*|latency-hiding-scheduler|pre-scheduling-passes"
        r"|collective-schedule-linearizer|final_scheduler|scheduled-gpu-module|p2p-schedule-preparation|post-sched.*"
        r"|HLO_passes_after_scheduling|sanitize-constant-names|annotate-sync-collectives|pdl-launch-annotation|HLO_sanitization_after_codegen",
    ),
    Stage(
        "memory",
        "Memory",
        "Rematerializes or moves values that do not fit; on TPUs, places arrays in fast memory.",
        r"remat.*|.*memory-space-assignment|pin-.*|tpu-memory-precolor",
        r"remat-pipeline|final_rematerialization|MSA_for_SMEM|Pre_memory_space_assignment|.*memory_space_assignment",
        ("hlo-buffers",),
    ),
    Stage(
        "final",
        "The final program",
        "The module after the last pass, from which code is generated.",
        kinds=("hlo-final",),
    ),
    Stage(
        "buffers",
        "Buffer assignment",
        "Assigns every value an offset in an allocation.",
        kinds=("buffer-assignment", "buffer-values", "live-range", "memory-usage"),
    ),
    Stage(
        "thunks",
        "Thunks",
        "Turns scheduled instructions into thunks, the steps that the runtime executes.",
        kinds=("thunk-sequence", "thunk-metadata"),
    ),
    Stage(
        "command-buffers",
        "Command buffers",
        "Records runs of thunks to be launched together.",
        kinds=("thunk-sequence-after",),
    ),
    Stage(
        "executable",
        "The executable",
        "Kernels as machine code, with their metadata.",
        kinds=(
            "hlo-codegen",
            "ptx",
            "llvm-no-opt",
            "llvm-with-opt",
            "llvm-pass",
            "mlir-pass",
            "hlo-sanitized",
            "object",
            "compiler-metadata",
            "triton",
            "mlir-log",
        ),
    ),
)

_PASS_ORDER = (
    "sharding", "layout", "normalize", "float", "post-layout", "fusion", "post-fusion", "async", "schedule", "memory",
    "copies", "collectives",
)  # fmt: skip
"""The stages whose expressions of passes are tried, in this order."""
_PIPELINE_ORDER = (
    "input", "sharding", "collectives", "layout", "normalize", "float", "post-layout", "fusion", "post-fusion", "schedule",
    "memory", "copies", "optimize",
)  # fmt: skip
"""The stages whose expressions of pipelines are tried, in this order."""
_ENDS = ("pipeline-start", "pipeline-end")


class Stages(Sequence[Stage]):
    """All stages, roughly in compilation order."""

    def __init__(self, rows: Sequence[Stage]) -> None:
        self._rows = tuple(rows)
        self._by_name = {stage.name: stage for stage in rows}
        self._by_kind = {kind: stage for stage in rows for kind in stage.kinds}

    @overload
    def __getitem__(self, index: int | str) -> Stage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Stage]: ...
    def __getitem__(self, index: int | str | slice) -> Stage | Sequence[Stage]:
        """A stage by its place, or by its name. Raises IndexError, KeyError."""
        return self._by_name[index] if isinstance(index, str) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._rows)

    def of_kind(self, kind: str) -> Stage | None:
        """Returns the stage shown by files of a kind, or None for kinds that belong to no single stage."""
        return self._by_kind.get(kind)

    @weighted_cache(4096)
    def of(self, pipeline: str, name: str) -> Stage | None:
        """The stage of a pass in a pipeline; None for names that no row knows. Spaces and `_` are the same in pipelines."""
        pipeline, name = pipeline.replace(" ", "_"), name.replace(" ", "_")
        found = None
        if name not in _ENDS:
            found = self._first(_PASS_ORDER, "passes", name)
        return (
            found
            or self._first(_PIPELINE_ORDER, "pipelines", pipeline)
            or self._first(_PASS_ORDER, "passes", pipeline)
        )

    def _first(self, order: Sequence[str], field: str, name: str) -> Stage | None:
        for stage in order:
            expression: str = getattr(self._by_name[stage], field)
            if expression and re.fullmatch(expression, name):
                return self._by_name[stage]
        return None


stages = Stages(_STAGES)
"""The stages of a compilation."""
