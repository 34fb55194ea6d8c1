"""Collectives become pairs of start and done, and those between which nothing happens are synchronous again.

After `AsyncCollectiveCreator` (`xla/hlo/transforms/collectives/async_collective_creator.cc`) with the settings of GPU,
which splits every collective whatever its size, and `GpuConvertAsyncCollectivesToSync`
(`xla/backends/gpu/transforms/collectives/convert_async_collectives_to_sync.cc`). Two things changed in summer 2026: every
collective is run by an async-start now, and those without overlap are plain collectives again, where they were marked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from hlotext.analysis.age import age_for
from hlotext.compiler.decision import Decision, Outcome
from hlotext.edit.cloning import own_attributes
from hlotext.edit.structure import set_root
from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits, xla_changes
from hlotext.ir.tables.opcodes import HALVED
from hlotext.ir.values.age import XlaAge
from hlotext.ir.values.aliasing import OutputOperandAlias, OutputToOperandAliasing
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.shape import Shape
from hlotext.rewrite.kit.builder import Builder
from hlotext.rewrite.kit.control import CONTROL, relay_control, set_control
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age, nonfusion_computations

SPLIT = traits.COLLECTIVE_KINDS & HALVED
"""Collectives that have a start and a done of their own."""
WRAPPED = traits.COLLECTIVE_KINDS - SPLIT - {"collective-reduce"}
"""Collectives that are put into a computation which async-start and async-done run."""
_COLLECTIVES = SPLIT | WRAPPED
NO_WORK = traits.NAMES_VALUE - {"tuple"}
"""Opcodes that do not count as work between a start and its done."""
SYNCHRONOUS = "synchronous"
STATES = traits.GENERIC_ASYNC
"""Starts and dones of other asynchronous operations do not count as overlapping work."""
STARTS = traits.COLLECTIVE_STARTS | {"async-start"}
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
NEW_CONFIG: dict[str, Any] = {
    "collective_backend_config": {
        "backend": "DEFAULT",
        "collectives_mode": "COLLECTIVES_MODE_INVALID",
        "communication_domain": "COLLECTIVE_COMMUNICATION_DOMAIN_UNSPECIFIED",
        "is_pipelined": False,
        "is_spmd_generated": False,
        "is_sync": True,
        "kernel_strategy": "KERNEL_STRATEGY_DEFAULT",
    },
    "device_type": "DEVICE_TYPE_INVALID",
    "force_earliest_schedule": False,
    "operation_queue_id": "0",
    "reification_cost": [],
}
"""The same since synchronous collectives are plain ones: fields in the order of their names."""


@attrs.frozen
class AsyncCollectiveCreator(Pass):
    """Splits every collective into a start and a done (`AsyncCollectiveCreator`, as GPU runs it)."""

    name: ClassVar[str] = "async-collective-creator"
    summary: ClassVar[str] = "Splits collectives into start and done, as XLA's GPU compiler does."

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age whose start forms are written; empty: from the text, else the newest, which uses async-start for each."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place."""
        return PassResult.of({"split": sum(1 for _ in _split_all(module, age_for(module, self.age or None)))})


@attrs.frozen
class ConvertAsyncCollectivesToSync(Pass):
    """Makes collectives synchronous that overlap with nothing (`GpuConvertAsyncCollectivesToSync`). Scheduled modules
    only.
    """

    name: ClassVar[str] = "gpu-convert-async-collectives-to-sync"
    summary: ClassVar[str] = "Makes collectives synchronous where nothing runs between start and done."

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest, which restores plain collectives."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place. Does nothing unless it is scheduled."""
        decisions = _mark_all(module, age_for(module, self.age or None))
        return PassResult.of({"synchronous": sum(d.rule == SYNCHRONOUS for d in decisions)})


def async_collective_creator(module: Module, *, age: Age | None = None) -> Outcome:
    """Models `AsyncCollectiveCreator`, which makes collectives asynchronous, with a decision for each collective.

    `age` is the XLA version to model. None (the default) detects it from the module text. Raises ValueError if it is
    not an age of XLA.
    """
    expect_module(module)
    copy = module.clone()
    with copy.transaction():
        decisions = tuple(_split_all(copy, age_for(module, age)))
    return Outcome(copy, decisions)


def convert_async_collectives_to_sync(module: Module, *, age: Age | None = None) -> Outcome:
    """Models `ConvertAsyncCollectivesToSync` on a scheduled module, with a decision for each start.

    `age` is the XLA version to model. None (the default) detects it from the module text. Raises ValueError if it is
    not an age of XLA.
    """
    expect_module(module)
    copy = module.clone()
    with copy.transaction():
        decisions = tuple(_mark_all(copy, age_for(module, age)))
    return Outcome(copy, decisions)


# ---- start and done


def _split_all(module: Module, age: XlaAge) -> Iterator[Decision]:
    wraps_all = age.has(xla_changes.GENERIC_COLLECTIVES)
    for computation in nonfusion_computations(module):
        if any(caller.opcode == "async-start" for caller in computation.callers):
            continue
        for i in [i for i in computation if i.opcode in _COLLECTIVES]:
            name, opcode = i.name, i.opcode
            start, done = _wrap(module, i) if wraps_all or opcode in WRAPPED else _split(module, i)
            aliasing = _aliasing(i) if wraps_all else None
            if aliasing is not None:
                start.change(
                    attributes={**start.attributes, "output_to_operand_aliasing": aliasing}, typed=False
                )
            _replace(i, start, done)
            yield Decision(
                name, "split", f"every {opcode} may overlap with other work, so {name} became {start.name} and {done.name}",
                (start.name, done.name), "AsyncCollectiveCreator::ReplaceCollectives",
            )  # fmt: skip


def _kept(i: Instruction) -> dict[str, Any]:
    """Attributes that start and done inherit from the collective."""
    return {key: i.attributes[key] for key in ("metadata", "backend_config") if key in i.attributes}


def _new(
    module: Module, name: str, opcode: str, shape: Shape | None, operands: Any, attributes: dict[str, Any]
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


def _aliasing(i: Instruction) -> OutputToOperandAliasing | None:
    """Result buffers aliased to operands: all of an all-reduce, the target of an in-place permute."""
    if i.opcode == "collective-permute" and "slice_sizes" in i.attributes:
        return OutputToOperandAliasing((OutputOperandAlias((1,), 1),))
    if i.opcode != "all-reduce" or i.shape is None:
        return None
    if not i.shape.is_tuple:
        return OutputToOperandAliasing((OutputOperandAlias((1,), 0),))
    count = len(i.shape.tuple_shapes)
    return OutputToOperandAliasing(tuple(OutputOperandAlias((1, n), n) for n in range(count)))


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


def _mark_all(module: Module, age: XlaAge) -> Iterator[Decision]:
    if not module.is_scheduled:
        return
    unwraps = age.has(xla_changes.PLAIN_SYNCHRONOUS)
    for computation in nonfusion_computations(module):
        if unwraps:
            yield from _restore_marked(computation)
        yield from _mark(computation, unwraps)


def _restore_marked(computation: Computation) -> Iterator[Decision]:
    """Restores plain collectives that were marked before scheduling, whatever they overlap with."""
    for start in [i for i in computation if is_start(i) and is_synchronous(i)]:
        users = start.users
        if len(users) == 1 and is_done(users[0]):
            name, done = start.name, users[0].name
            _unwrap(start, users[0])
            because = (
                f"it was marked as synchronous, so {name} and {done} were merged back into one collective"
            )
            yield Decision(name, SYNCHRONOUS, because, (done,), "GpuConvertAsyncCollectivesToSync::RunImpl")


def _mark(computation: Computation, unwraps: bool) -> Iterator[Decision]:
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
        elif in_flight and i.opcode not in NO_WORK and not (unwraps and i.opcode in STATES):
            overlapped.update(dict.fromkeys(in_flight, i))
            in_flight.clear()
    for start, done in pairs:
        names = start.name, done.name
        _set_synchronous(start, NEW_CONFIG if unwraps else CONFIG)
        if unwraps:
            _unwrap(start, done)
        yield Decision(
            names[0],
            SYNCHRONOUS,
            f"no work runs between it and {names[1]}",
            (names[1],),
            source,
        )
    if not unwraps:
        _move_together(pairs)


def _unwrap(start: Instruction, done: Instruction) -> None:
    """Puts the collective itself in the place of a pair (`ReplaceWithSyncVariant`); its computation stays, unused."""
    home, inner = done.computation, start.async_wrapped_instruction
    assert home is not None
    module = home.module
    assert module is not None
    if inner is None:
        own = {k: v for k, v in start.attributes.items() if k != CONTROL}
        opcode, name = start.opcode.removesuffix("-start"), start.opcode.removesuffix("-start")
    else:
        own = {k: v for k, v in own_attributes(inner).items() if k not in (CONTROL, "metadata")}
        opcode, name = inner.opcode, inner.name
    for key, source in (("metadata", start), ("backend_config", start), ("frontend_attributes", done)):
        own.pop(key, None)
        if key in source.attributes:
            own[key] = source.attributes[key]
    new = _new(module, name, opcode, done.shape, start.operands, own)
    home.add(new, done, typed=False)
    predecessors, successors = start.control_predecessors, done.control_successors
    for old in (start, done):
        if old.control_predecessors:
            set_control(old, ())
    for user in start.control_successors:
        set_control(user, tuple(p for p in user.control_predecessors if p is not start))
    if predecessors:
        set_control(new, predecessors)
    if successors:
        relay_control(done, new, (), successors)
    done.replace_all_uses_with(new)
    if done.is_root:
        set_root(home, new, typed=False)
    home.remove_all((start, done))


def is_start(i: Instruction) -> bool:
    """Returns True for the start of a collective (`IsAsyncCollectiveStartOp`), including an async-start that wraps one."""
    return i.opcode in STARTS and (i.opcode != "async-start" or _wraps_collective(i))


def is_done(i: Instruction) -> bool:
    """Returns True for the done of a collective (`IsAsyncCollectiveDoneOp`)."""
    if i.opcode == "async-done":
        return _wraps_collective(i)
    return i.opcode.endswith("-done") and f"{i.opcode[:-5]}-start" in STARTS


def is_synchronous(i: Instruction) -> bool:
    """Returns True if a collective's backend config marks it as synchronous (`IsGPUSyncCollective`)."""
    config = i.backend_config
    if config is None:
        return False
    try:
        found = config.json()
    except ValueError:
        return False
    inner = found.get("collective_backend_config") if isinstance(found, dict) else None
    return isinstance(inner, dict) and bool(inner.get("is_sync"))


def _wraps_collective(i: Instruction) -> bool:
    inner = i.async_wrapped_instruction
    return inner is not None and inner.opcode in _COLLECTIVES


def _set_synchronous(start: Instruction, config: dict[str, Any]) -> None:
    """Sets `is_sync` in the collective's configuration, and what XLA fills in with it."""
    found = start.backend_config
    text = json.dumps(config, separators=(",", ":"))
    if found is not None:
        known = found.json()
        if isinstance(known, dict):
            inner = known.get("collective_backend_config")
            known["collective_backend_config"] = {
                **config["collective_backend_config"], **(inner if isinstance(inner, dict) else {}), "is_sync": True
            }  # fmt: skip
            text = json.dumps(known, separators=(",", ":"))
    start.change(attributes={**start.attributes, "backend_config": BackendConfig(text)}, typed=False)


def _move_together(pairs: list[tuple[Instruction, Instruction]]) -> None:
    """Moves each start right before its done."""
    for start, done in pairs:
        start.move_before(done)
