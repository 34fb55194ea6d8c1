"""The kinds of files that XLA leaves in a dump folder, one row for each.

This is the one place that knows how they are called. Names are those that `xla/service/dump.cc` and its callers make
(`FilenameFor` and the suffix), and those that libtpu was seen to write.
"""

from __future__ import annotations

import functools
import re

import attrs

_FINAL = r"(?:cpu_|sm_[\w.]+_gpu_|[^.]*gpu_)?after_optimizations"
"""The name of the final HLO: with a prefix from CPU and GPU compilers, without one from TPU's."""


@attrs.frozen
class FileKind:
    """A kind of dump file."""

    name: str
    """Name in hlotext: `hlo-pass`, `thunk-sequence`, ..."""
    suffix: str
    """Part of the file name after `module_NNNN.MODULE.`, as a regular expression."""
    format: str
    """`hlo`, `textproto`, `options` (`name: value` lines), `text` (a form of its own), `ir`, `graph`, `binary`."""
    what: str
    """Contents, in a few words."""
    platforms: tuple[str, ...] = ("cpu", "gpu", "tpu")
    source: str = "observed"
    """Where the name comes from: a file of XLA's, or `observed` in dumps."""

    @property
    def is_hlo(self) -> bool:
        """True for the HLO text of a module."""
        return self.format == "hlo"


_CPU, _GPU, _TPU = ("cpu",), ("gpu",), ("tpu",)

KINDS = (
    # ---- texts of modules
    FileKind("hlo-before", r"before_optimizations?\.(?:txt|hlo)", "hlo", "the input program", source="dump.cc"),
    FileKind(
        "hlo-final", rf"(?:{_FINAL}|after_optimization)\.(?:txt|hlo)", "hlo", "the optimized program",
        source="dump.cc",
    ),
    FileKind(
        "hlo-sanitized", r"after_codegen_after_hlo_sanitization\.txt", "hlo", "after post-codegen checks", _TPU
    ),
    FileKind("hlo-codegen", r"after_codegen\.(?:txt|hlo)", "hlo", "the same with complete backend configs", _TPU),
    FileKind(
        "hlo-buffers", r"after_optimizations_(?:before|after)_buffer_assignment\.txt", "hlo",
        "around memory-space assignment", _TPU,
    ),
    FileKind("hlo-spmd", r"after_spmd_partitioner\.txt", "hlo", "after partitioning", _GPU, "gpu_compiler.cc"),
    FileKind("hlo-config", r"before_config_assignment\.txt", "hlo", "before autotuning", _GPU, "gpu_compiler.cc"),
    FileKind(
        "hlo-autotuner", r"autotuner_\d+\..+\.(?:before|after)\.txt", "hlo", "one instruction, before or after tuning", _GPU,
        "config_assigner.cc",
    ),
    # ---- memory
    FileKind("buffer-assignment", rf"{_FINAL}-buffer-assignment\.txt", "text", "allocations", source="dump.cc"),
    FileKind("buffer-values", rf"{_FINAL}-buffer-assignment-values\.txt", "text", "values", source="dump.cc"),
    FileKind("live-range", rf"{_FINAL}-live-range\.txt", "text", "live ranges of values", source="dump.cc"),
    FileKind(
        "memory-usage", rf"{_FINAL}-memory-usage-report\.txt", "text", "the largest allocations",
        source="dump.cc",
    ),
    # ---- what runs
    FileKind("thunk-sequence", r"thunk_sequence\.txt", "text", "thunks as emitted", _GPU, "gpu_compiler.cc"),
    FileKind(
        "thunk-sequence-after", r"thunk_sequence_after_thunk_passes\.txt", "text", "thunks after thunk passes", _GPU,
        "gpu_executable.cc",
    ),
    FileKind(
        "thunk-metadata", r"thunk_metadata\.txt", "textproto", "the instruction of each thunk", _GPU,
        "gpu_executable.cc",
    ),
    # ---- what decided
    FileKind(
        "priority-fusion", r"priority_fusion_dump\.txt", "textproto", "fusion decisions, with reasons", _GPU,
        "priority_fusion.cc",
    ),
    FileKind(
        "autotune-results", r"autotune_results\.pbtxt", "textproto", "tiles and algorithms chosen", _GPU,
        "gpu_compiler.cc",
    ),
    FileKind(
        "gpu-target-config", r"gpu_target_config\.pbtxt", "textproto", "the device and its versions", _GPU,
        "gpu_compiler.cc",
    ),
    FileKind(
        "module-config", r"config\.pbtxt|hlo_module_config\.txt", "textproto",
        "layouts, partitions, options", ("gpu", "tpu"), "dump.cc",
    ),
    FileKind(
        "debug-options", r"debug_options", "options", "options that differ from their defaults",
        source="dump.cc",
    ),
    FileKind(
        "pass-metadata", r"metadata\.textproto", "textproto", "passes and their times", ("gpu", "tpu"),
        "dump.cc",
    ),
    FileKind(
        "lhs-schedule", r"schedule\.txt", "textproto", "the latency-hiding schedule", _GPU,
        "latency_hiding_scheduler.cc",
    ),
    FileKind("sdc-metadata", r"sdc_metadata\.txt", "textproto", "silent data corruption checks", _TPU),
    FileKind("flagfile", r"flagfile", "options", "compiler flags", _TPU),
    FileKind("tpu-environment", r"tpu_comp_env\.txt", "textproto", "compiler settings", _TPU),
    FileKind("execution-options", r"execution_options\.txt", "textproto", "devices and partitions", _TPU),
    FileKind("target-arguments", r"target_arguments\.txt", "textproto", "the chip and its topology", _TPU),
    FileKind("transfer-stats", r"transfer_stats\.txt", "textproto", "sizes of transfers", _TPU),
    FileKind("host-transfers", r"host_transfers\.txt", "textproto", "host transfers", _TPU),
    FileKind("compiler-metadata", r"basic_compiler_metadata\.txt", "textproto", "the size of the executable", _TPU),
    # ---- other languages
    FileKind("ptx", r"(?:\d+\.)?ptx", "ir", "a kernel in PTX", _GPU, "nvptx_compiler.cc"),
    FileKind(
        "llvm-no-opt", r"(?:.+\.)?ir-no-opt(?:\.part_\d+)?\.ll", "ir", "LLVM IR before optimization", ("cpu", "gpu"),
        "llvm_util.cc",
    ),
    FileKind(
        "llvm-with-opt", r"(?:.+\.)?ir-with-opt(?:\.part_\d+)?\.ll", "ir", "LLVM IR after optimization", ("cpu", "gpu"),
        "llvm_util.cc",
    ),
    FileKind(
        "llvm-pass", r"(?:.+\.)?pass-\d+\.(?:before|after)\..+\.ll", "ir", "LLVM IR between passes", ("cpu", "gpu"),
        "llvm_compiler.cc",
    ),
    FileKind("object", r"(?:.+\.)?(?:o|hsaco|cubin)", "binary", "machine code", ("cpu", "gpu"), "cpu_compiler.cc"),
    FileKind("mlir", r"(?:.+\.)?mlir", "ir", "MLIR", source="dump.cc"),
    FileKind(
        "mlir-log", r".+\.(?:mlir-passes\.log|triton-passes\.log|mlir-trace\.txt)", "ir", "MLIR pass by pass", ("cpu", "gpu"),
        "mlir_kernel_emitter.cc",
    ),
    FileKind(
        "mlir-pass", r".+\.(?:canonicalize-cse|xtile-to-triton|triton-to-llvm)\.txt", "ir", "MLIR between passes", _GPU,
        "xtile_compiler.cc",
    ),
    FileKind("triton", r".+\.ttir(?:\.txt)?", "ir", "Triton's IR", _GPU, "xtile_compiler.cc"),
    FileKind("cudnn-graph", r"cudnn_fusion_.+\.json", "text", "a cuDNN graph", _GPU, "cudnn_fusion_compiler.cc"),
    # ---- on demand
    FileKind("graph", r".+\.(?:dot|html|url)|.+_fusion\.(?:pyz|html)", "graph", "a picture", source="dump.cc"),
    FileKind("proto-hlo", r".+\.hlo\.pb", "binary", "a module as a protobuf", source="dump.cc"),
    FileKind("proto", r".+\.(?:pb|riegeli|fdo_profile)", "binary", "a protobuf", source="dump.cc"),
    FileKind("hlo-fusion", r".+\.hlo", "hlo", "one fusion", _GPU, "xtile_compiler.cc"),
    # ---- steps: last, since nearly every name would fit
    FileKind("hlo-pass", r"\d{4,}\.[^\d].*\.txt", "hlo", "after a pass", source="dump.cc"),
)  # fmt: skip
"""Kinds whose suffix follows the module's number and name in a file name. The first match counts."""

SHARDY = FileKind("shardy", r"\d\d\..*\.mlir", "ir", "a step of Shardy, in MLIR")
INPUTS = (
    FileKind("input-module", r"module\.mlir", "ir", "the program passed to libtpu", _TPU),
    FileKind("input-options", r"compile_options\.(?:textproto|pb)", "textproto", "compile options", _TPU),
    FileKind("input-topology", r"topology\.(?:textproto|pb)", "textproto", "target devices", _TPU),
)
"""Kinds in folders that are called like a module."""
OTHER = FileKind("other", "", "other", "not recognized as XLA's")

BY_NAME = {kind.name: kind for kind in (*KINDS, SHARDY, *INPUTS, OTHER)}
"""All kinds, by their name."""

_VARIABLE = frozenset(kind.name for kind in KINDS if ".+" in kind.suffix or ".*" in kind.suffix)
"""Kinds whose suffix may hold anything, so that it cannot tell where the module's name ends."""


@functools.cache
def _joined(variable: bool) -> re.Pattern[str]:
    rows = [kind for kind in KINDS if (kind.name in _VARIABLE) == variable]
    return re.compile(
        "|".join(f"(?P<{kind.name.replace('-', '_')}>{kind.suffix})" for kind in rows), re.DOTALL
    )


@functools.cache
def _with_module(variable: bool) -> re.Pattern[str]:
    # A suffix that may hold anything would hold the module's name as well.
    first = "?" if variable else "??"
    return re.compile(
        rf"(?:(?P<module>.+?)\.){first}(?P<cl>cl_\d+\.)?(?:{_joined(variable).pattern})", re.DOTALL
    )


def kind_of_suffix(suffix: str) -> FileKind | None:
    """Returns the kind of a file by the suffix after the module's name, or None if unknown."""
    match = _joined(False).fullmatch(suffix) or _joined(True).fullmatch(suffix)
    return None if match is None else BY_NAME[str(match.lastgroup).replace("_", "-")]


_LOOSE_FINAL = re.compile(r"(?:.+\.)?after_(?:optimizations?|codegen)\.(?:txt|hlo)", re.DOTALL)


def is_loose_final(name: str) -> bool:
    """Returns True for a file not written by XLA that is named like final HLO: `my_model.after_optimizations.txt`."""
    return _LOOSE_FINAL.fullmatch(name) is not None


def split(rest: str, *, variable: bool) -> tuple[str | None, FileKind, bool] | None:
    """Splits a file name after `module_NNNN.` into the module's name (None if omitted), the kind, and whether it has a
    `cl_` number.

    Returns None if no kind matches. Without `variable`, only kinds with a fixed suffix are tried, since these show
    where the module's name ends.
    """
    match = _with_module(variable).fullmatch(rest)
    if match is None:
        return None
    return match["module"], BY_NAME[str(match.lastgroup).replace("_", "-")], match["cl"] is not None
