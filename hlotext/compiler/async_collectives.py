"""Collectives become pairs of start and done, and those between which nothing happens are marked as synchronous again.

After `AsyncCollectiveCreator` (`xla/hlo/transforms/collectives/async_collective_creator.cc`) with the settings of GPU,
which splits every collective whatever its size, and `GpuConvertAsyncCollectivesToSync`
(`xla/backends/gpu/transforms/collectives/convert_async_collectives_to_sync.cc`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from hlotext.compiler.decision import Decision, Outcome
from hlotext.edit.cloning import own_attributes
from hlotext.edit.structure import set_root
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.builder import Builder
from hlotext.rewrite.passes.base import Pass, PassResult, nonfusion_computations
from hlotext.rewrite.passes.editor import CONTROL, relay_control, set_control

SPLIT = ("all-reduce", "all-gather", "collective-permute")
"""Collectives that have a start and a done of their own."""
WRAPPED = ("all-to-all", "collective-broadcast", "ragged-all-to-all", "reduce-scatter")
"""Collectives that are put into a computation which async-start and async-done run."""
NO_WORK = frozenset({"parameter", "constant", "bitcast", "get-tuple-element"})
"""Opcodes that do not count as work between a start and its done."""
SYNCHRONOUS = "synchronous"
STARTS = frozenset({*(f"{opcode}-start" for opcode in SPLIT), "async-start"})
CONFIG: dict[str, Any] = {
    "operation_queue_id": "0",
    "collective_backend_config": {
        "is_sync": True,
        "is_pipelined": False,
        "backend": "DEFAULT",
        "collectives_mode": "COLLECTIVES_MODE_INVALID",
        "kernel_strategy": "KERNEL_STRATEGY_DEFAULT",
    },
    "force_earliest_schedule": False,
    "reification_cost": [],
    "device_type": "DEVICE_TYPE_INVALID",
}
"""`GpuBackendConfig` of a collective about which nothing was said before, as XLA prints it."""


@attrs.frozen
class AsyncCollectiveCreator(Pass):
    """Splits every collective into a start and a done (`AsyncCollectiveCreator`, as GPU runs it)."""

    name: ClassVar[str] = "async-collective-creator"
    summary: ClassVar[str] = "Splits collectives into start and done, as XLA's GPU compiler does."

    def run(self, module: Module) -> PassResult:
        """Changes the module."""
        return PassResult.of({"split": sum(1 for _ in _split_all(module))})


@attrs.frozen
class ConvertAsyncCollectivesToSync(Pass):
    """Marks as synchronous what has nothing to overlap with (`GpuConvertAsyncCollectivesToSync`); scheduled modules only."""

    name: ClassVar[str] = "gpu-convert-async-collectives-to-sync"
    summary: ClassVar[str] = "Marks collectives as synchronous where nothing runs between start and done."

    def run(self, module: Module) -> PassResult:
        """Changes the module."""
        return PassResult.of({"synchronous": sum(d.rule == SYNCHRONOUS for d in _mark_all(module))})


def async_collective_creator(module: Module) -> Outcome:
    """What the pass makes of a module, with a decision for each collective."""
    copy = module.clone()
    with copy.transaction():
        decisions = tuple(_split_all(copy))
    return Outcome(copy, decisions)


def convert_async_collectives_to_sync(module: Module) -> Outcome:
    """What the pass makes of a scheduled module, with a decision for each start."""
    copy = module.clone()
    with copy.transaction():
        decisions = tuple(_mark_all(copy))
    return Outcome(copy, decisions)


# ---- start and done


def _split_all(module: Module) -> Iterator[Decision]:
    for computation in nonfusion_computations(module):
        if any(caller.opcode == "async-start" for caller in computation.callers):
            continue
        for i in [i for i in computation if i.opcode in SPLIT or i.opcode in WRAPPED]:
            name, opcode = i.name, i.opcode
            start, done = _split(module, i) if opcode in SPLIT else _wrap(module, i)
            _replace(i, start, done)
            yield Decision(
                name, "split", f"every {opcode} may overlap with other work: {name} became {start.name} and {done.name}",
                (start.name, done.name), "AsyncCollectiveCreator::ReplaceCollectives",
            )  # fmt: skip


def _kept(i: Instruction) -> dict[str, Any]:
    """What start and done take over of the collective."""
    return {key: i.attributes[key] for key in ("metadata", "backend_config") if key in i.attributes}


def _new(
    module: Module, name: str, opcode: str, shape: Shape, operands: Any, attributes: dict[str, Any]
) -> Instruction:
    return Instruction(module.instruction_names.unique(name), opcode, shape, tuple(operands), attributes)


def _split(module: Module, i: Instruction) -> tuple[Instruction, Instruction]:
    """`CreateAsyncAllReduce`, `CreateAsyncAllGather`, `CreateAsyncCollectivePermute`."""
    own = {
        k: v
        for k, v in i.attributes.items()
        if k not in (CONTROL, "frontend_attributes", "sharding", "origin")
    }
    assert i.shape is not None
    shape = i.shape
    given = tuple(o.shape for o in i.operands if o.shape is not None)
    if i.opcode == "all-gather":
        shape = Shape.tuple((given[0] if len(given) == 1 else Shape.tuple(given), i.shape))
    elif i.opcode == "collective-permute":
        shape = _permute_shape(given, i.shape, is_in_place="slice_sizes" in i.attributes)
    start = _new(module, f"{i.opcode}-start", f"{i.opcode}-start", shape, i.operands, own)
    done = _new(module, f"{i.opcode}-done", f"{i.opcode}-done", i.shape, (start,), _kept(i))
    return start, done


def _permute_shape(given: tuple[Shape, ...], result: Shape, *, is_in_place: bool) -> Shape:
    """Shape of the start (`InferCollectivePermuteStartShape`): what is sent, and what is received."""
    if is_in_place:
        return Shape.tuple((given[0], given[1], *(s for s in given[2:])))
    return Shape.tuple((given[0], result) if len(given) == 1 else (Shape.tuple(given), result))


def _wrap(module: Module, i: Instruction) -> tuple[Instruction, Instruction]:
    """Puts a collective into a computation of its own (`CreateAsyncInstructions`)."""
    home = i.computation
    assert home is not None
    assert i.shape is not None
    builder = Builder.new(module, "async_computation", before=home)
    parameters = [builder.parameter(o.shape) for o in i.operands if o.shape is not None]
    own = {k: v for k, v in own_attributes(i).items() if k != CONTROL}
    root = Instruction(module.instruction_names.unique(i.name), i.opcode, i.shape, tuple(parameters), own)
    builder.computation.add(root, typed=False)
    body = builder.finish(root)
    inputs = Shape.tuple(tuple(o.shape for o in i.operands if o.shape is not None))
    shape = Shape.tuple((inputs, i.shape))
    said = {k: i.attributes[k] for k in ("frontend_attributes",) if k in i.attributes}
    start = _new(
        module, f"{i.opcode}-start", "async-start", shape, i.operands, {"calls": body, **_kept(i), **said}
    )
    done = _new(module, f"{i.opcode}-done", "async-done", i.shape, (start,), {**_kept(i), **said})
    return start, done


def _replace(old: Instruction, start: Instruction, done: Instruction) -> None:
    """Puts a pair in the place of a collective; the start waits for what it waited for, and who waited waits for the done."""
    home = old.computation
    assert home is not None
    home.add(start, old, typed=False)
    home.add(done, old, typed=False)
    predecessors, successors = old.control_predecessors, old.control_successors
    if predecessors:
        set_control(old, ())
        set_control(start, predecessors)
    if successors:
        relay_control(old, done, (), successors)
    theirs = old.attributes.get("sharding")
    if theirs is not None:
        done.change(attributes={**done.attributes, "sharding": theirs}, typed=False)
    old.replace_all_uses_with(done)
    if old.is_root:
        set_root(home, done, typed=False)
    home.remove(old)


# ---- synchronous again


def _mark_all(module: Module) -> Iterator[Decision]:
    if not module.is_scheduled:
        return
    for computation in nonfusion_computations(module):
        yield from _mark(computation)


def _mark(computation: Computation) -> Iterator[Decision]:
    """One walk along the schedule (`ConvertAsyncCollectivesToSync::RunOnComputation`)."""
    source = "ConvertAsyncCollectivesToSync::RunOnComputation"
    in_flight: dict[Instruction, None] = {}
    overlapped: dict[Instruction, Instruction] = {}
    pairs: list[tuple[Instruction, Instruction]] = []
    for i in computation:
        if is_start(i):
            in_flight[i] = None
        elif i.operands and is_done(i):
            start = i.operands[0]
            if start in in_flight:
                del in_flight[start]
                pairs.append((start, i))
            elif start in overlapped:
                other = overlapped[start]
                yield Decision(
                    start.name, "stays asynchronous", f"{other.opcode} {other.name} runs between it and {i.name}",
                    (i.name, other.name), source,
                )  # fmt: skip
        elif in_flight and i.opcode not in NO_WORK:
            overlapped.update(dict.fromkeys(in_flight, i))
            in_flight.clear()
    for start, done in pairs:
        _set_synchronous(start)
        yield Decision(
            start.name,
            SYNCHRONOUS,
            f"nothing that takes time runs between it and {done.name}",
            (done.name,),
            source,
        )
    _move_together(computation, pairs)


def is_start(i: Instruction) -> bool:
    """Whether a collective starts here (`IsAsyncCollectiveStartOp`); of async-starts those that run one."""
    return i.opcode in STARTS and (i.opcode != "async-start" or _wraps_collective(i))


def is_done(i: Instruction) -> bool:
    """Whether a collective ends here (`IsAsyncCollectiveDoneOp`)."""
    if i.opcode == "async-done":
        return _wraps_collective(i)
    return i.opcode.endswith("-done") and f"{i.opcode[:-5]}-start" in STARTS


def _wraps_collective(i: Instruction) -> bool:
    inner = i.async_wrapped_instruction
    return inner is not None and inner.opcode in (*SPLIT, *WRAPPED)


def _set_synchronous(start: Instruction) -> None:
    """Sets `is_sync` in the collective's configuration, and what XLA fills in with it."""
    found = start.backend_config
    text = json.dumps(CONFIG, separators=(",", ":"))
    if found is not None:
        known = found.json()
        if isinstance(known, dict):
            inner = known.get("collective_backend_config")
            known["collective_backend_config"] = {
                **CONFIG["collective_backend_config"], **(inner if isinstance(inner, dict) else {}), "is_sync": True
            }  # fmt: skip
            text = json.dumps(known, separators=(",", ":"))
    start.change(attributes={**start.attributes, "backend_config": BackendConfig(text)}, typed=False)


def _move_together(computation: Computation, pairs: list[tuple[Instruction, Instruction]]) -> None:
    """Moves each start right before its done."""
    for start, done in pairs:
        start.move_before(done)
