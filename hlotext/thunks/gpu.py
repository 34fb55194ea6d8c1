"""GPU thunk rules: one row for each opcode and each custom-call target.

The rows follow `xla/service/gpu/thunk_emitter.cc`; those marked `is_seen=False` are from that source alone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from hlotext.analysis.devices import CollectiveGroupMode, group_mode
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.thunks import gpu_fusions as fusions
from hlotext.thunks.emission import (
    EmissionRule,
    Emitter,
    Steps,
    branches,
    condition_and_body,
    config,
    loop_facts,
    nothing,
    part,
)
from hlotext.thunks.gpu_fusions import KERNEL, kind_of_age
from hlotext.thunks.thunk import NESTED, Thunk, ThunkError, walk

if TYPE_CHECKING:
    from hlotext.ir.nodes.instruction import Instruction

_COLLECTIVES = {
    name: f"k{one.kind.title().replace('-', '')}"
    for name, one in traits.COMMUNICATION.items()
    if name in traits.COLLECTIVES - traits.DONES
    and one.kind not in ("collective-permute", "collective-reduce")
}
"""Kind of thunk of each collective; what sends to single devices has rows of its own."""
_PERMUTES = ("collective-permute", "collective-permute-start")
_PERMUTE = "kCollectivePermute"
_PLAIN = traits.COLLECTIVE_KINDS - {"collective-reduce"}
"""Collectives that are done when the next thunk runs: synchronous ones since 2026-08-12."""


def is_before_async_start(emitter: Emitter) -> bool:
    """True if the XLA version has no kAsyncStart thunk yet."""
    return not emitter.age.has(xla_changes.THUNK_KINDS)


# ---- plain thunks


def _plain(kind: str, emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    return [emitter.thunk(kind, instruction)]


def _copy(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    thunk = emitter.thunk("kCopy", instruction)
    emitter.buffers.reads(thunk, instruction.operands[0])
    emitter.buffers.writes(thunk, instruction)
    return [thunk]


def _kernel(emitter: Emitter, instruction: Instruction, kind: str = KERNEL) -> list[Thunk]:
    thunk = emitter.thunk(kind_of_age(emitter, kind), instruction)
    emitter.buffers.arguments(thunk, instruction)
    return [thunk]


def _custom_call(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    thunk = emitter.thunk("kCustomCall", instruction)
    thunk.facts = {"target": str(instruction.attributes.get("custom_call_target"))}
    emitter.buffers.arguments(thunk, instruction)
    return [thunk]


def _taken(call: Instruction, count: int) -> tuple[Instruction, ...]:
    """The first operands of a call. Raises ThunkError if it has fewer, as no verifier asks of a library's calls."""
    if len(call.operands) < count:
        raise ThunkError(
            f"{call.name} has fewer operands than {call.attributes.get('custom_call_target')} takes"
        )
    return call.operands[:count]


def _top_k(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    """`EmitTopKCustomCall`: RAFT's select-k for unstable ones of certain sizes, else XLA's own kernel."""
    shape = _taken(instruction, 1)[0].shape
    result = instruction.shape
    kind = KERNEL
    is_unstable = '"is_stable":false' in str(instruction.backend_config or "").replace(" ", "")
    wanted = is_unstable or emitter.options.flag("xla_gpu_experimental_use_raft_select_k")
    if wanted and shape is not None and result is not None and shape.dimensions:
        n, k = shape.dimensions[-1], result.tuple_shapes[0].dimensions[-1]
        if str(shape.element_type) == "f32":
            kind = "kSelectK" if n < 1024 or k > 12 or (n > 1024 and k >= 8) else kind
        elif str(shape.element_type) == "bf16":
            kind = "kSelectK" if n < 1024 or k >= 8 else kind
    return _kernel(emitter, instruction, kind)


def _triangular_solve(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    """In place on b, which is copied first where the result has another buffer."""
    a, b = _taken(instruction, 2)
    thunks = []
    if emitter.buffers.differ(b, (), instruction, (0,)):
        copy = emitter.thunk("kCopy", instruction)
        emitter.buffers.reads(copy, b)
        emitter.buffers.writes(copy, instruction, (0,))
        thunks.append(copy)
    solve = emitter.thunk("kTriangularSolve", instruction)
    emitter.buffers.reads(solve, a)
    emitter.buffers.writes(solve, instruction, (0,))
    emitter.buffers.writes(solve, instruction, (1,))
    thunks.append(solve)
    if len(thunks) == 1:
        return thunks
    return [emitter.thunk("kSequential", instruction, name="", children=((NESTED, tuple(thunks)),))]


def _sort(emitter: Emitter, instruction: Instruction) -> list[Thunk]:
    return fusions.sort(emitter, instruction, instruction)


# ---- control flow


def _while(emitter: Emitter, instruction: Instruction) -> Steps:
    number = emitter.number()
    condition, body = condition_and_body(instruction)
    inside = (yield condition), (yield body)
    thunk = Thunk(
        kind="kWhile",
        number=number,
        instruction=instruction,
        name=instruction.name,
        children=(("condition", tuple(inside[0])), ("body", tuple(inside[1]))),
        facts=loop_facts(instruction),
    )
    emitter.buffers.reads(thunk, condition.root)
    return [thunk]


def _conditional(emitter: Emitter, instruction: Instruction) -> Steps:
    found = []
    for branch in instruction.called_computations:
        found.append((yield branch))
    is_shown = emitter.age.has(xla_changes.PRINTED_BRANCHES)
    thunk = emitter.thunk("kConditional", instruction, children=branches(found) if is_shown else ())
    emitter.buffers.reads(thunk, instruction.operands[0])
    return [thunk]


def _call(emitter: Emitter, instruction: Instruction) -> Steps:
    return (yield instruction.called_computations[0])


# ---- asynchronous operations


def _wrap(emitter: Emitter, start: Instruction, inside: list[Thunk], stream: str) -> list[Thunk]:
    """An async start around thunks; `emitter.asynchronous` remembers it for the done.

    It is numbered after what it holds, and before that since `STARTS_NUMBERED_FIRST`.
    """
    if is_before_async_start(emitter):
        return _begun(emitter, start, inside)
    thunk = emitter.thunk("kAsyncStart", start, children=((NESTED, tuple(inside)),), facts={"stream": stream})
    emitter.asynchronous.setdefault(start, thunk)
    if emitter.age.has(xla_changes.STARTS_NUMBERED_FIRST):
        held = list(walk(inside))
        thunk.number = min((one.number for one in held if one.number is not None), default=thunk.number)
        for one in held:
            one.number = one.number + 1 if one.number is not None else None
    return [thunk]


def _begun(emitter: Emitter, start: Instruction, inside: list[Thunk]) -> list[Thunk]:
    """Form before kAsyncStart existed: the thunk itself, named as a start, and its done."""
    last = inside[-1] if inside else None
    if last is not None and last.kind in (*_COLLECTIVES.values(), _PERMUTE, "kGroup"):
        last.kind += "Start"
    elif last is None or last.kind not in ("kSend", "kRecv", "kCopy"):
        emitter.note(
            start, "how that release of XLA ran this asynchronously is unknown; its thunks are listed inline"
        )
        last = None
    emitter.asynchronous.setdefault(start, last)
    return inside


def _is_synchronous(emitter: Emitter, start: Instruction) -> bool:
    """`IsGPUSyncCollective`, unless collectives may overlap."""
    limit = emitter.options.number("xla_gpu_experimental_parallel_collective_overlap_limit", 1)
    return limit <= 1 and part(config(start), "collective_backend_config").get("is_sync") is True


def _collective(emitter: Emitter, start: Instruction) -> list[Thunk]:
    return _collective_of(emitter, start, start)


def _annotated(emitter: Emitter, start: Instruction, wrapped: Instruction) -> str:
    """The name on the inner thunk: that of the wrapped instruction, unless the text has none for it."""
    is_sugared = wrapped is not start and wrapped.span is None
    return start.name if is_sugared or emitter.options.flag("xla_syntax_sugar_async_ops") else wrapped.name


def _collective_of(emitter: Emitter, start: Instruction, wrapped: Instruction) -> list[Thunk]:
    """A collective inside its start (`EmitCollectiveThunk`, `EmitCollectivePermute`)."""
    is_permute = wrapped.opcode in _PERMUTES
    degenerate = _is_self_permute(wrapped) if is_permute else is_degenerate(wrapped)
    sources = start.operands
    targets = _targets(start, wrapped)
    copies: list[Thunk] = []
    if degenerate:
        for position, source in enumerate(sources):
            copy = emitter.thunk("kCopy", start if is_permute else wrapped)
            emitter.buffers.reads(copy, source)
            emitter.buffers.writes(copy, start, targets[position] if position < len(targets) else ())
            copies.append(copy)
        if not is_permute:
            emitter.asynchronous[start] = None
            if len(copies) == 1:
                return copies
            return [emitter.thunk("kSequential", wrapped, children=((NESTED, tuple(copies)),))]
        inside = copies
    else:
        kind = _PERMUTE if is_permute else _COLLECTIVES[wrapped.opcode]
        is_start = is_permute and not emitter.age.has(xla_changes.PERMUTES_KEEP_THEIR_NAMES)
        name = start.name if is_start else _annotated(emitter, start, wrapped)
        thunk = emitter.thunk(kind, start if is_permute else wrapped, name=name)
        for source in sources:
            emitter.buffers.reads(thunk, source)
        if wrapped.opcode == "ragged-all-to-all":
            for source in (sources[0], *sources[2:]):
                emitter.buffers.writes(thunk, source)
        for target in targets:
            emitter.buffers.writes(thunk, start, target)
        inside = [thunk]
    if start.opcode in _PLAIN:
        return inside
    if _is_synchronous(emitter, start):
        if is_before_async_start(emitter):
            _begun(emitter, start, inside)
            if wrapped is not start:
                return inside
        emitter.asynchronous[start] = None
        return inside
    return _wrap(emitter, start, inside, "communication")


def _targets(start: Instruction, wrapped: Instruction) -> list[tuple[int, ...]]:
    """Where in the shape of the start the results of a collective lie (`GetDstShapeIndex`)."""
    if start.opcode == "all-reduce-start" or start.opcode in _PLAIN:
        return [(i,) for i in range(len(start.operands))] if len(start.operands) > 1 else [()]
    if start.shape is None or not start.shape.is_tuple or len(start.shape.tuple_shapes) < 2:
        return [()]
    result = start.shape.tuple_shapes[1]
    return [(1, i) for i in range(len(result.tuple_shapes))] if result.is_tuple else [(1,)]


def is_degenerate(collective: Instruction) -> bool:
    """True if every group of a collective has one device (`CollectiveConfig::IsDegenerate`)."""
    module = collective.computation.module if collective.computation else None
    replicas = int(module.attributes.get("replica_count", 1)) if module else 1
    partitions = int(module.attributes.get("num_partitions", 1)) if module else 1
    mode = group_mode(collective)
    groups = collective.attributes.get("replica_groups")
    if not isinstance(groups, ReplicaGroups) or not groups.group_count:
        return {
            CollectiveGroupMode.REPLICA: replicas == 1,
            CollectiveGroupMode.PARTITION: partitions == 1,
        }.get(mode, replicas * partitions == 1)
    alone = groups.group_size == 1
    return alone and (mode is not CollectiveGroupMode.BOTH or partitions == 1)


def _is_self_permute(permute: Instruction) -> bool:
    """`CollectivePermuteThunk::IsDegenerate`: every device sends to itself."""
    module = permute.computation.module if permute.computation else None
    name = "num_partitions" if permute.attributes.get("channel_id") is not None else "replica_count"
    devices = int(module.attributes.get(name, 1)) if module else 1
    pairs = permute.attributes.get("source_target_pairs", ())
    return len(pairs) == devices and all(source == target for source, target in pairs)


def _async_start(emitter: Emitter, start: Instruction) -> Steps | list[Thunk]:
    wrapped = start.async_wrapped_instruction
    if wrapped is None:
        emitter.note(start, "this async-start calls nothing, so its thunks are unknown")
        return []
    if "_collectives_group" in start.frontend_attributes:
        return _group(emitter, start)
    if wrapped.opcode in _COLLECTIVES or wrapped.opcode in _PERMUTES:
        return _collective_of(emitter, start, wrapped)
    if wrapped.opcode == "fusion":
        return _wrap(emitter, start, fusions.emit(emitter, wrapped, start), "computation")
    if wrapped.opcode == "call":
        return _async_call(emitter, start, wrapped)
    if wrapped.opcode == "custom-call":
        if wrapped.attributes.get("custom_call_target") == "HostExecute":
            thunk = emitter.thunk("kHostExecuteStart", start)
            emitter.asynchronous[start] = thunk
            return [thunk]
        rule = rule_of(wrapped)
        inside = rule.emit(emitter, wrapped) if rule is not None else []
        assert isinstance(inside, list)
        return _wrap(emitter, start, inside, "computation")
    if wrapped.opcode in ("send", "recv"):
        return _transfer(emitter, wrapped)
    emitter.note(start, f"XLA does not run {wrapped.opcode} asynchronously on GPU")
    return []


def _async_call(emitter: Emitter, start: Instruction, wrapped: Instruction) -> Steps:
    inside = yield wrapped.called_computations[0]
    return _wrap(emitter, start, inside, "computation")


def _group(emitter: Emitter, start: Instruction) -> list[Thunk]:
    """Several collectives, sends and receives that start together (`EmitCollectiveGroupStartThunk`)."""
    inside: list[Thunk] = []
    for instruction in start.called_computations[0].instructions:
        if instruction.opcode in ("send", "recv"):
            inside += [_device_transfer(emitter, instruction)]
        elif (rule := rule_of(instruction)) is not None:
            found = rule.emit(emitter, instruction)
            inside += found if isinstance(found, list) else []
    group = emitter.thunk("kGroup", start, children=((NESTED, tuple(inside)),))
    if _is_synchronous(emitter, start):
        emitter.number()  # the emitter takes the start's number whether or not there is one
        emitter.asynchronous[start] = None
        return [group]
    return _wrap(emitter, start, [group], "communication")


def _async_done(emitter: Emitter, done: Instruction) -> list[Thunk]:
    start = done.operands[0] if done.operands else done
    while start.opcode == "async-update" and start.operands:
        start = start.operands[0]
    wrapped = done.async_wrapped_instruction
    if wrapped is not None and wrapped.attributes.get("custom_call_target") == "HostExecute":
        thunk = emitter.thunk("kHostExecuteDone", done)
        begun = emitter.asynchronous.get(start)
        thunk.facts = {"start": begun.number} if begun is not None else {}
        return [thunk]
    return _done(emitter, done, start)


def _done(emitter: Emitter, done: Instruction, start: Instruction) -> list[Thunk]:
    begun = emitter.asynchronous.get(start)
    if begun is None and start in emitter.asynchronous:
        return []  # the start was synchronous, or a plain copy
    if begun is not None and is_before_async_start(emitter):
        return [emitter.thunk(f"{begun.kind.removesuffix('Start')}Done", done)]
    facts = {"start": begun.number} if begun is not None else {}
    return [emitter.thunk("kAsyncDone", done, facts=facts)]


def _collective_done(emitter: Emitter, done: Instruction) -> list[Thunk]:
    return _done(emitter, done, done.operands[0])


# ---- transfers


def _copy_start(emitter: Emitter, start: Instruction) -> list[Thunk]:
    """`EmitCopyStartThunk`: between host and device, on a stream of its own."""
    thunk = emitter.thunk("kCopy", start, facts={"is_host_copy": True})
    emitter.buffers.reads(thunk, start.operands[0])
    emitter.buffers.writes(thunk, start, (0,))
    return _wrap(emitter, start, [thunk], "computation")


_SAME_EXECUTION = (traits.TRANSFERS & traits.DONES) | {"tuple"}


def _canonical(transfer: Instruction) -> Instruction:
    """The send or recv whose execution this one shares (`FindCanonicalSendRecvStartOp`).

    In a pipelined loop the start before the loop, the start in its body and the dones of both are one execution: that of the
    first of the chain through the loop's tuple.
    """
    found = transfer
    for _ in range(_MAX_CHAIN):
        if found.opcode in _SAME_EXECUTION and found.operands:
            found = found.operands[0]
        elif found.opcode == "get-tuple-element":
            source, index = found.operands[0], found.attributes.get("index")
            if source.opcode == "tuple" and isinstance(index, int):
                found = source.operands[index]
            elif source.opcode in ("while", "parameter") and isinstance(index, int):
                init = _init_of(source)
                if init is None or init.opcode != "tuple":
                    return found
                found = init.operands[index]
            else:
                return found
        else:
            return found
    return found


_MAX_CHAIN = 1_000
"""Steps back from a done to its start: bounds what a hostile text could make of `_canonical`."""


def _init_of(loop: Instruction) -> Instruction | None:
    if loop.opcode == "while":
        return loop.operands[0]
    callers = loop.computation.callers if loop.computation else ()
    return next((caller.operands[0] for caller in callers if caller.opcode == "while"), None)


def _is_host(transfer: Instruction) -> bool:
    return transfer.attributes.get("is_host_transfer") is True


def _device_transfer(emitter: Emitter, transfer: Instruction) -> Thunk:
    thunk = emitter.thunk("kSend" if transfer.opcode == "send" else "kRecv", transfer)
    if transfer.opcode == "send":
        emitter.buffers.reads(thunk, transfer.operands[0])
        emitter.buffers.writes(thunk, transfer.operands[0])
    else:
        emitter.buffers.reads(thunk, transfer, (0,))
        emitter.buffers.writes(thunk, transfer, (0,))
    return thunk


def _transfer(emitter: Emitter, transfer: Instruction) -> list[Thunk]:
    if _is_host(transfer):
        return _plain("kHostSend" if transfer.opcode == "send" else "kHostRecv", emitter, transfer)
    inside = _device_transfer(emitter, transfer)
    canonical = _canonical(transfer)
    (thunk,) = _wrap(emitter, transfer, [inside], "communication")
    emitter.asynchronous.setdefault(canonical, thunk)
    return [thunk]


def _transfer_done(emitter: Emitter, done: Instruction) -> list[Thunk]:
    if _is_host(done):
        return _plain("kHostSendDone" if done.opcode == "send-done" else "kHostRecvDone", emitter, done)
    return _done(emitter, done, _canonical(done))


# ---- the table

_SOURCE = "ThunkEmitter::EmitHloInstruction"


def _row(thunks: str, emit: Any, source: str = _SOURCE, *, is_seen: bool = True) -> EmissionRule:
    return EmissionRule(thunks=thunks, emit=emit, source=source, is_seen=is_seen)


_NONE = _row("none: handled by buffer assignment", nothing)
RULES: dict[str, EmissionRule] = {
    **dict.fromkeys(sorted(traits.IS_FREE - {"domain", "opt-barrier"}), _NONE),
    "async-update": _NONE,
    "copy": _row("kCopy", _copy, "EmitCopy"),
    "copy-start": _row(
        "kAsyncStart{kCopy} between host and device", _copy_start, "EmitCopyStartThunk", is_seen=False
    ),
    "copy-done": _row("kAsyncDone", _collective_done, "EmitCopyDoneThunk", is_seen=False),
    "fusion": _row("see the rows of fusions", fusions.emit_own, "EmitFusion"),
    "sort": _row(
        "kCopy for each operand whose buffer is not the result's, then kCustomKernel", _sort, "EmitSort"
    ),
    "while": _row("kWhile{condition, body}", _while, "EmitWhile"),
    "conditional": _row("kConditional{branches in HLO order}", _conditional, "EmitConditional"),
    "call": _row("the thunks of its computation, inline", _call, "EmitCallComputation"),
    **dict.fromkeys(
        sorted(traits.COLLECTIVE_STARTS),
        _row(
            "synchronous: the collective's own thunk, else kAsyncStart around it; groups of one device: kCopy",
            _collective,
            "EmitCollectiveThunk",
        ),
    ),
    **dict.fromkeys(
        sorted(_PLAIN),
        _row("the collective's own thunk; groups of one device: kCopy", _collective, "EmitCollectiveThunk"),
    ),
    **dict.fromkeys(
        sorted(traits.COLLECTIVE_DONES),
        _row(
            "kAsyncDone, none if the start was synchronous or a copy",
            _collective_done,
            "EmitCollectiveAsyncDone",
        ),
    ),
    "async-start": _row("kAsyncStart around the thunks of what it runs", _async_start, "EmitAsyncStart"),
    "async-done": _row("kAsyncDone; kHostExecuteDone for HostExecute", _async_done, "EmitAsyncDone"),
    "send": _row("kAsyncStart{kSend}; kHostSend to the host", _transfer, "EmitSendThunk"),
    "recv": _row("kAsyncStart{kRecv}; kHostRecv from the host", _transfer, "EmitRecvThunk"),
    "send-done": _row("kAsyncDone; kHostSendDone", _transfer_done, "EmitSendDoneThunk"),
    "recv-done": _row("kAsyncDone; kHostRecvDone", _transfer_done, "EmitRecvDoneThunk"),
    "fft": _row("kFft", partial(_kernel, kind="kFft"), "EmitFftThunk"),
    "partition-id": _row("kPartitionId", partial(_kernel, kind="kPartitionId"), "EmitReplicaOrPartitionId"),
    "replica-id": _row(
        "kReplicaId", partial(_kernel, kind="kReplicaId"), "EmitReplicaOrPartitionId", is_seen=False
    ),
    "infeed": _row("kInfeed", partial(_kernel, kind="kInfeed"), "EmitInfeed", is_seen=False),
    "outfeed": _row("kOutfeed", partial(_kernel, kind="kOutfeed"), "EmitOutfeed", is_seen=False),
    "rng-get-and-update-state": _row("kCustomKernel", _kernel, "EmitRngGetAndUpdateState", is_seen=False),
}
"""By opcode. An opcode without a row does not compile on GPU."""

TARGETS: dict[str, EmissionRule] = {
    "__cublas$lt$matmul": _row(
        "kCublasLtMatmul", partial(_kernel, kind="kCublasLtMatmul"), "EmitCublasLtMatmulThunk"
    ),
    **{
        target: _row("kCublasLtMatmul", partial(_kernel, kind="kCublasLtMatmul"), source, is_seen=False)
        for target, source in (
            ("__cublas$lt$matmul$f8", "EmitCublasLtMatmulThunkF8"),
            ("__cublas$lt$matmul$mx", "EmitCublasLtMatmulThunkMx"),
            ("__cublas$lt$groupedMatmul", "EmitCublasLtGroupedMatmulThunk"),
        )
    },
    "__cublas$gemm": _row("kGemm", partial(_kernel, kind="kGemm"), "GemmThunk", is_seen=False),
    **dict.fromkeys(
        ("__cudnn$convReorderFilter", "__cudnn$convReorderFilterAndBias"),
        _row(
            "kConvolutionReorder",
            partial(_kernel, kind="kConvolutionReorder"),
            "EmitConvolutionReorderThunk",
            is_seen=False,
        ),
    ),
    "__cudnn$conv": _row("kConvolution", partial(_kernel, kind="kConvolution"), "EmitConvolutionThunk"),
    "__cudnn$norm": _row("kNorm", partial(_kernel, kind="kNorm"), "EmitNormThunk", is_seen=False),
    **dict.fromkeys(
        ("__cudnn$fmha", "__cudnn$blockScaledDot"),
        _row("kCuDnn", partial(_kernel, kind="kCuDnn"), "EmitCuDnnThunk", is_seen=False),
    ),
    "__cublas$triangularSolve": _row(
        "kTriangularSolve; kSequential{kCopy, kTriangularSolve} if b is not the result",
        _triangular_solve,
        "EmitTriangularSolveCustomCall",
    ),
    "__gpu$TopK": _row(
        "kCustomKernel; kSelectK for unstable ones of some sizes", _top_k, "EmitTopKCustomCall"
    ),
    "__gpu$xla.gpu.triton": _row("kCustomKernel", _kernel, "EmitTritonCustomCall"),
    **{
        target: _row("kCustomKernel", _kernel, source, is_seen=False)
        for target, source in (
            ("__gpu$xla.gpu.ptx", "EmitPtxCustomCall"),
            ("PadToStatic", "EmitPadToStatic"),
            ("SliceToDynamic", "EmitSliceToDynamic"),
        )
    },
    "GetRngSeed": _row("kRngSeed", partial(_kernel, kind="kRngSeed"), "EmitRngSeedThunk", is_seen=False),
    **dict.fromkeys(
        ("AllocateBuffer", "Pin", "Unpin", "CreateBuffer"),
        _row("none", nothing, "EmitCustomCallSwitch", is_seen=False),
    ),
}
"""By custom-call target; a key of a family (`__cudnn$conv`) matches all targets with that prefix."""
OTHER_TARGET = _row("kCustomCall", _custom_call, "EmitCustomCallThunk")
_FAMILIES = ("__cudnn$convReorder", "__cudnn$conv", "__cudnn$fmha", "__cudnn$blockScaledDot")


def rule_of(instruction: Instruction) -> EmissionRule | None:
    """Returns the rule by which XLA emits an instruction; None if XLA:GPU cannot emit it."""
    if instruction.opcode != "custom-call":
        return RULES.get(instruction.opcode)
    target = str(instruction.attributes.get("custom_call_target"))
    if target in TARGETS:
        return TARGETS[target]
    family = next((name for name in _FAMILIES if target.startswith(name)), None)
    return TARGETS.get(family, OTHER_TARGET) if family else OTHER_TARGET
