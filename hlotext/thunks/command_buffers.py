"""Command buffers: which runs of thunks XLA captures into CUDA graphs, and what ends each run.

After `CommandBufferConversionPass` (`xla/backends/gpu/runtime/command_buffer_conversion_pass.cc`). What decides is the
kind of each thunk, the categories that `xla_gpu_enable_command_buffer` switches on, and the CUDA versions of the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from hlotext.analysis.formatting import pluralize
from hlotext.ir.tables import xla_changes
from hlotext.ir.values.age import XlaAge
from hlotext.thunks.settings import ThunkSettings
from hlotext.thunks.thunk import NESTED, Thunk, walk

CATEGORIES: dict[str, str] = {
    **dict.fromkeys(("kCopy", "kCustomKernel", "kKernel", "kPartitionId", "kReplicaId"), "FUSION"),
    "kWhile": "WHILE",
    "kConditional": "CONDITIONAL",
    "kGemm": "CUBLAS",
    "kCublasLtMatmul": "CUBLASLT",
    "kCuDnn": "CUDNN",
    "kConvolution": "CONVOLUTION",
    "kCustomCall": "CUSTOM_CALL",
    **dict.fromkeys(("kDynamicSlice", "kDynamicSliceFusion"), "DYNAMIC_SLICE_FUSION"),
    **dict.fromkeys(
        (
            "kAllGather",
            "kAllReduce",
            "kAllToAll",
            "kCollectiveBroadcast",
            "kCollectivePermute",
            "kRaggedAllToAll",
            "kReduceScatter",
            "kRecv",
            "kSend",
        ),
        "COLLECTIVES",
    ),
}
"""Category of each kind that can be captured (`GetCommandBufferCmdType`); a kind without one never is."""
_TRACED = ("CUBLAS", "CUBLASLT", "CUDNN", "CUSTOM_CALL", "COLLECTIVES", "CONVOLUTION")
_CONTROL_FLOW = ("CONDITIONAL", "WHILE")
_TRACING = (12, 3, 0)
"""CUDA that can trace streams into graphs and run control flow on the device."""
_CHILD_GRAPHS = (12, 9, 0)
"""CUDA whose graphs take moved child nodes, which fusions of slices need."""
_COLLECTIVE_FILTER = {
    "kAllGather": "ALLGATHER",
    "kAllReduce": "ALLREDUCE",
    "kAllToAll": "ALLTOALL",
    "kCollectiveBroadcast": "COLLECTIVEBROADCAST",
    "kCollectivePermute": "COLLECTIVEPERMUTE",
    "kRaggedAllToAll": "RAGGEDALLTOALL",
    "kReduceScatter": "REDUCESCATTER",
}
CAPTURED_TARGETS: dict[str, str] = {
    "xla.gpu.ext.cub_scan": "xla/stream_executor/cuda/cub_scan_kernel_cuda.cc",
    "triton_kernel_call_ffi": "jaxlib/gpu/triton_kernels.cc",
    "mosaic_gpu_v2": "jaxlib/mosaic/gpu/custom_call.cc",
    "xla_buffer_python_gpu_callback_cmd_buffer": "jaxlib/gpu/py_client_gpu.cc",
}
"""Targets whose FFI handler declares `kCmdBufferCompatible`, with where it does; no handler of another target is known to.

Compilations ahead of time have no handlers of JAX's: there none of its calls is captured.
"""


@attrs.frozen
class CaptureBlocker:
    """Reason why a thunk cannot be captured in a command buffer."""

    code: str
    """"kind", "category", "version", "handler", "inside", "loop-offset", "async", "filter" or "short"."""
    message: str
    """The reason, and the change that would allow capture."""
    thunk: Thunk | None = None
    """The blocking thunk, possibly nested in the thunk that ended the run."""


@attrs.frozen(kw_only=True)
class CaptureRun:
    """Consecutive thunks of a sequence that can be captured together."""

    thunks: tuple[Thunk, ...]
    is_captured: bool
    """False if the run is shorter than `xla_gpu_graph_min_graph_size`."""
    ended_by: Thunk | None
    """The next thunk, which cannot be captured, or None at the end of the sequence."""
    cause: CaptureBlocker | None
    """Reason why `ended_by` cannot be captured, or None at the end of the sequence."""
    holder: Thunk | None
    """The while or conditional whose body or branch contains the run; None in the outermost sequence."""
    too_short: CaptureBlocker | None = None
    """Reason why the run itself was not captured, or None if it was captured."""


class Capture:
    """Decides which thunks can be captured in a command buffer under given options. Answers are cached."""

    def __init__(self, settings: ThunkSettings, age: XlaAge) -> None:
        self.settings = settings
        self.counts_branches = age.has(xla_changes.COMMANDS_COUNT_BRANCHES)
        self.wanted = settings.command_types
        self.minimum = max(1, settings.number("xla_gpu_graph_min_graph_size", 5))
        version = min(settings.version("runtime_version"), settings.version("driver_version"))
        self.versions = min(version, settings.version("compile_time_toolkit_version"))
        self.switched_off: dict[str, str] = {}
        """Categories that are wanted and that the device cannot do, with the reason."""
        if settings.is_rocm:
            self._switch_off(_CONTROL_FLOW, "ROCm has no control flow on the device")
        elif version < _TRACING:
            seen = ".".join(map(str, version[:2])) if any(version) else "not in the dump"
            reason = f"needs CUDA 12.3 in runtime and driver, here {seen}"
            knows_no_reason = self.counts_branches and not any(version)
            self._switch_off(_TRACED if knows_no_reason else (*_TRACED, *_CONTROL_FLOW), reason)
        self._known: dict[int, CaptureBlocker | None] = {}

    def size(self, run: Sequence[Thunk]) -> int:
        """Returns the number of thunks that a run counts as."""
        if not self.counts_branches:
            return len(run)
        control_flow = [one for one in run if one.kind in ("kConditional", "kWhile")]
        return len(run) + sum(len(list(walk(tuple(one.nested)))) for one in control_flow)

    def _switch_off(self, categories: Sequence[str], reason: str) -> None:
        self.switched_off |= {category: reason for category in categories if category in self.wanted}

    def why_not(self, top: Thunk) -> CaptureBlocker | None:
        """Returns the reason why a thunk cannot be captured; None if it can."""
        stack = [top]
        while stack:
            thunk = stack[-1]
            if id(thunk) in self._known:
                stack.pop()
                continue
            waiting = [inner for inner in thunk.nested if id(inner) not in self._known]
            if waiting and self._own(thunk) is None:
                stack.extend(waiting)
                continue
            self._known[id(thunk)] = self._own(thunk) or self._inside(thunk)
            stack.pop()
        return self._known[id(top)]

    def _own(self, thunk: Thunk) -> CaptureBlocker | None:
        """Blocker of a thunk itself, apart from what is nested in it."""
        kind = thunk.kind
        if kind in ("kAsyncStart", "kAsyncDone"):
            return None
        category = None if thunk.facts.get("is_host_copy") else CATEGORIES.get(kind)
        if category is None:
            what = "a copy between host and device" if thunk.facts.get("is_host_copy") else kind
            return CaptureBlocker("kind", f"{what} is never captured", thunk)
        if category in self.switched_off:
            return CaptureBlocker("version", f"{category} {self.switched_off[category]}", thunk)
        if category not in self.wanted:
            message = f"{category} is disabled; add it to xla_gpu_enable_command_buffer"
            return CaptureBlocker("category", message, thunk)
        if category == "COLLECTIVES":
            return self._filtered(thunk)
        if kind == "kCustomCall" and thunk.facts.get("target") not in CAPTURED_TARGETS:
            message = f"the handler of {thunk.facts.get('target')} is not known to be compatible with command buffers"
            return CaptureBlocker("handler", message, thunk)
        if kind == "kDynamicSliceFusion":
            return self._slices(thunk)
        if kind == "kWhile":
            return self._loop(thunk)
        return None

    def _filtered(self, thunk: Thunk) -> CaptureBlocker | None:
        name = "xla_gpu_enable_collectives_command_buffer_filter"
        wanted = [v.strip().upper() for v in self.settings.debug.get(name, ())]
        kind = _COLLECTIVE_FILTER.get(thunk.kind)
        if wanted and "ALLCOLLECTIVES" not in wanted and kind is not None and kind not in wanted:
            return CaptureBlocker("filter", f"{kind} is not in {name}", thunk)
        if thunk.kind == "kRaggedAllToAll" and not self.settings.flag(
            "xla_gpu_unsupported_use_ragged_all_to_all_one_shot_kernel", default=True
        ):
            return CaptureBlocker(
                "category", "ragged-all-to-all is captured only with its one-shot kernel", thunk
            )
        return None

    def _slices(self, thunk: Thunk) -> CaptureBlocker | None:
        if self.versions < _CHILD_GRAPHS or self.settings.is_rocm:
            message = "a fusion of slices needs CUDA 12.9 in runtime, driver and toolkit"
            return CaptureBlocker("version", message, thunk)
        if self.settings.flag("xla_gpu_experimental_dynamic_slice_fusion_verify_offsets"):
            return CaptureBlocker("category", "offsets are verified at run time, on the host", thunk)
        return None

    def _loop(self, thunk: Thunk) -> CaptureBlocker | None:
        unrolls = self.settings.flag("xla_gpu_command_buffer_unroll_loops")
        if unrolls and thunk.facts.get("trip_count") is not None:
            return None
        stack = [inner for label, sequence in thunk.children if label == "body" for inner in sequence]
        while stack:
            inner = stack.pop()
            if inner.facts.get("is_loop_dependent"):
                message = (
                    "its slices move with the loop, so capture needs xla_gpu_command_buffer_unroll_loops and a known trip "
                    "count"
                )
                return CaptureBlocker("loop-offset", message, inner)
            stack.extend(inner.nested)
        return None

    def _inside(self, thunk: Thunk) -> CaptureBlocker | None:
        """Why what is nested in a thunk cannot be captured (`ThunkSequenceIsConvertible`)."""
        for _, sequence in thunk.children:
            regions = Regions(sequence, self)
            position = 0
            while position < len(sequence):
                inner = sequence[position]
                cause = self._known[id(inner)]
                if cause is not None:
                    return attrs.evolve(cause, code="inside") if cause.code != "inside" else cause
                if inner.kind != "kAsyncStart":
                    position += 1
                elif (size := regions.size(position)) != 0:
                    position += size
                else:
                    return CaptureBlocker("async", "an asynchronous operation does not end inside", inner)
        return None


class Regions:
    """Asynchronous operations of one sequence: a start is captured together with everything up to its done, or not at
    all.
    """

    def __init__(self, sequence: Sequence[Thunk], capture: Capture) -> None:
        self._sequence = sequence
        self._causes = [capture.why_not(thunk) for thunk in sequence]
        starts = {thunk.number: place for place, thunk in enumerate(sequence) if thunk.kind == "kAsyncStart"}
        self._other: dict[int, int] = {}
        """Place of the done of each start, and of the start of each done."""
        for place, thunk in enumerate(sequence):
            start = starts.get(thunk.facts.get("start")) if thunk.kind == "kAsyncDone" else None
            if start is not None and start < place:
                self._other[start], self._other[place] = place, start
        self._blocked: list[int] = [len(sequence)] * (len(sequence) + 1)
        """For each place, the next one at which a thunk cannot be captured."""
        for place in range(len(sequence) - 1, -1, -1):
            self._blocked[place] = place if self._causes[place] is not None else self._blocked[place + 1]

    def size(self, begin: int) -> int:
        """Returns the length of the shortest run from a start in which every start has its done; 0 if there is none."""
        end = self._other.get(begin, len(self._sequence))
        place = begin
        while place <= end:
            if end >= self._blocked[begin]:
                return 0
            kind = self._sequence[place].kind
            if kind == "kAsyncStart":
                end = max(end, self._other.get(place, len(self._sequence)))
            elif kind == "kAsyncDone" and self._other.get(place, -1) < begin:
                return 0
            place += 1
        return end - begin + 1

    def why_none(self, begin: int) -> CaptureBlocker:
        """Returns the reason why a start begins no such run."""
        blocked = self._blocked[begin]
        if blocked == begin and (cause := self._causes[begin]) is not None:
            return cause
        if blocked < len(self._sequence):
            thunk, cause = self._sequence[blocked], self._causes[blocked]
            assert cause is not None
            message = f"{thunk.name or thunk.kind} comes before its done: {cause.message}"
            return CaptureBlocker("async", message, thunk)
        return CaptureBlocker("async", "its done is not in the same sequence", self._sequence[begin])


@attrs.frozen(kw_only=True)
class Converted:
    """Result of the command-buffer pass for a tree of thunks."""

    thunks: tuple[Thunk, ...]
    runs: tuple[CaptureRun, ...]
    copies: dict[Thunk, Thunk]
    """The copy of each thunk; the given ones are unchanged."""


def convert(thunks: tuple[Thunk, ...], settings: ThunkSettings, age: XlaAge) -> Converted:
    """Applies the command-buffer pass of an XLA version to copies of the thunks. See `Thunks.with_command_buffers`."""
    capture = Capture(settings, age)
    outermost, copies = _duplicate(thunks)
    runs: list[CaptureRun] = []
    top: tuple[Thunk, ...] = ()
    waiting: list[tuple[Thunk | None, str, tuple[Thunk, ...]]] = [(None, "", outermost)]
    while waiting:
        holder, label, sequence = waiting.pop()
        changed = _convert(sequence, holder, capture, runs, waiting)
        if holder is None:
            top = changed
        else:
            holder.children = tuple((n, changed if n == label else inner) for n, inner in holder.children)
    return Converted(thunks=top, runs=tuple(runs), copies=copies)


def _duplicate(thunks: tuple[Thunk, ...]) -> tuple[tuple[Thunk, ...], dict[Thunk, Thunk]]:
    """A copy of the whole tree, and the copy of each thunk."""
    copies: dict[Thunk, Thunk] = {}
    for thunk in reversed(list(walk(thunks))):
        copies[thunk] = Thunk(
            kind=thunk.kind,
            number=thunk.number,
            instruction=thunk.instruction,
            name=thunk.name,
            children=tuple((label, tuple(copies[t] for t in inner)) for label, inner in thunk.children),
            facts=thunk.facts,
        )
    return tuple(copies[thunk] for thunk in thunks), copies


def _convert(
    sequence: tuple[Thunk, ...],
    holder: Thunk | None,
    capture: Capture,
    runs: list[CaptureRun],
    waiting: list[tuple[Thunk | None, str, tuple[Thunk, ...]]],
) -> tuple[Thunk, ...]:
    """One sequence with its long enough runs captured; loops and branches that are to be searched go to `waiting`."""
    regions = Regions(sequence, capture)
    changed: list[Thunk] = []
    run: list[Thunk] = []

    def flush(ended_by: Thunk | None, cause: CaptureBlocker | None) -> None:
        if not run:
            return
        size = capture.size(run)
        is_captured = size >= capture.minimum
        short = f"{pluralize(size, 'thunk')}, fewer than xla_gpu_graph_min_graph_size={capture.minimum}"
        runs.append(
            CaptureRun(
                thunks=tuple(run),
                is_captured=is_captured,
                ended_by=ended_by,
                cause=cause,
                holder=holder,
                too_short=None if is_captured else CaptureBlocker("short", short),
            )
        )
        changed.extend([_captured(run)] if is_captured else run)
        run.clear()

    position = 0
    while position < len(sequence):
        thunk = sequence[position]
        cause = capture.why_not(thunk)
        if thunk.kind == "kAsyncStart":
            size = regions.size(position) if cause is None else 0
            if size:
                run.extend(sequence[position : position + size])
                position += size
                continue
            cause = regions.why_none(position)
        elif thunk.kind == "kAsyncDone":
            cause = CaptureBlocker("async", "its start is not in the run", thunk)
        elif cause is None:
            run.append(thunk)
            position += 1
            continue
        searched = thunk.kind == "kConditional" or thunk.kind == "kWhile"
        waiting.extend(
            (thunk, label, inner)
            for label, inner in (reversed(thunk.children) if searched else ())
            if label != "condition"
        )
        flush(thunk, cause)
        changed.append(thunk)
        position += 1
    flush(None, None)
    return tuple(changed)


def _captured(run: list[Thunk]) -> Thunk:
    """The thunk of a command buffer, named after the first thunk in it."""
    name = f"command_buffer_{run[0].number}"
    return Thunk(kind="kCommandBuffer", number=0, name=name, children=((NESTED, tuple(run)),))
