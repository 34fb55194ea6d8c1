"""Programs changed before XLA optimizes them, and passes tried on texts without any compilation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

import hlotext
from hlotext.execution.errors import NotExecutable
from hlotext.interop.jax.protos import module_of_proto, proto_of_module
from hlotext.interop.jax.registration import PassOutcome, summary
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits
from hlotext.ir.values.sharding import Sharding
from hlotext.rewrite.passes.base import Pass
from hlotext.rewrite.pipeline import Pipeline


def _apply(function: Callable[[Module], object] | Pass | Pipeline, module: Module) -> None:
    if isinstance(function, Pass | Pipeline):
        function.run(module)
    else:
        function(module)


def change_lowered(lowered: Any, function: Callable[[Module], object] | Pass | Pipeline) -> Any:
    """Changes a lowered program before XLA's optimizations, while multiplications, dots and all-gathers are still separate.

    JAX has no stage for passes before XLA's optimizations (0.10.2 and 0.12.0.1 offer `pre_scheduler` and `post_scheduler`
    alone), so this goes from `jax.stages.Lowered` to a module and back. Donation, shardings and the names of results stay.
    The result compiles to the changed program, `.compile()(*arguments)`; what was given, and the function that was lowered,
    keep theirs, whether or not they have run already.

    Args:
        lowered: What `jax.jit(f).lower(*arguments)` gives.
        function: Changes the module in place; parameters and results must stay what they are.

    Returns:
        A lowered program of its own; the given one where the function changed nothing.

    Raises:
        NotExecutable: `verify` refuses what the function made, or XLA does not compile it: a collective of several arrays
            within `shard_map`, whose sharding XLA's reader of StableHLO gives to each of them (0.10.2 and 0.12.0.1).
        ValueError: Parameters or results are others than before.
        NotImplementedError: This JAX keeps lowered programs in another way.

    Warns:
        UserWarning: A sharding was set that Shardy does not read.
    """
    from jaxlib import _hlo, _jax
    from jaxlib.mlir import ir

    lowering: Any = getattr(lowered, "_lowering", None)
    if not (hasattr(lowering, "_hlo") and hasattr(lowering, "_executable")):
        raise NotImplementedError("this JAX stores lowered programs differently from 0.10.2 and 0.12.0.1")
    proto = lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto()
    module = module_of_proto(proto)
    before, signature = module.revision, _signature(module)
    known = {i: i.sharding for i in module.instructions()}
    _apply(function, module)
    if module.revision == before:
        return lowered
    if _signature(module) != signature:
        raise ValueError(
            f"{module.name}: parameters or results are no longer {signature}, which JAX relies on"
        )
    _check_partitioned(module, known)
    text = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto_of_module(module, proto)))
    # JAX keeps a function's lowering, and in it the executable of its first call: both stay as they are.
    changed = copy.copy(lowered)
    changed._lowering = copy.copy(lowering)
    with lowering._hlo.context, ir.Location.unknown():
        changed._lowering._hlo = ir.Module.parse(text)
    changed._lowering._executable = None
    return changed


def _check_partitioned(module: Module, known: Mapping[Instruction, Sharding | None]) -> None:
    """Raises NotExecutable for what XLA does not compile where Shardy partitions; warns of what Shardy does not read."""
    if "xla.sdy.meshes" not in module.attributes.get("frontend_attributes", {}):
        return
    is_manual = any(i.attributes.get("custom_call_target") == _TO_LOCAL for i in module.instructions())
    for i in module.instructions():
        if is_manual and i not in known and i.opcode in traits.COLLECTIVE_KINDS and len(i.operands) > 1:
            raise NotExecutable(
                f"{i.name}: XLA does not compile {i.opcode} of {len(i.operands)} arrays within shard_map, because "
                "each array gets the sharding of all; reshape and concatenate them into one, and slice its result"
            )
        constrains = i.attributes.get("custom_call_target") == "Sharding"
        if (
            i.sharding is None
            or (i in known and i.sharding == known[i])
            or (i not in known and not constrains)
        ):
            continue
        if not (constrains and "xla.sdy.sharding" in i.frontend_attributes):
            warnings.warn(
                f"{i.name}: sharding={i.sharding} has no effect: Shardy partitions this program, and reads "
                "xla.sdy.sharding of custom calls of Sharding, as with_sharding_constraint writes them "
                "(shardings of parameters are JAX's)",
                stacklevel=3,
            )


_TO_LOCAL = "xla.sdy.GlobalToLocalShape"


def _signature(module: Module) -> str:
    parameters = [p.shape.text_without_layout() for p in module.entry.parameters if p.shape is not None]
    root = module.entry.root.shape
    return f"({', '.join(parameters)})->{root.text_without_layout() if root is not None else '?'}"


@attrs.frozen
class DryRun:
    """The outcomes of a pass that was tried on copies of modules."""

    outcomes: tuple[PassOutcome, ...]

    def __str__(self) -> str:
        return f"would {summary(self.outcomes).replace('changes', 'change').replace('skips', 'skip')}"


def dry_run(function: Callable[[Module], object] | Pass | Pipeline, sources: Iterable[Any]) -> DryRun:
    """Tries a pass on copies of modules, files, and whatever else `hlotext.load` takes; nothing is compiled.

    >>> from hlotext.rewrite import Pipeline, parse_passes
    >>> module = hlotext.parse("ENTRY e { x = f32[] parameter(0)  y = f32[] sine(x)  ROOT r = f32[] negate(x) }")
    >>> print(dry_run(Pipeline(parse_passes("dce")), [module]))
    would change 1 of 1 module
    """
    outcomes = []
    for source in sources:
        for module in _modules(source):
            tried = module.clone()
            before = tried.revision
            try:
                _apply(function, tried)
            except Exception as error:
                outcomes.append(PassOutcome(module.name, "skipped", f"{type(error).__name__}: {error}"))
            else:
                outcomes.append(
                    PassOutcome(module.name, "unchanged" if tried.revision == before else "changed")
                )
    return DryRun(tuple(outcomes))


def _modules(source: Any) -> Iterable[Module]:
    if isinstance(source, Module):
        return [source]
    return hlotext.load_all(source) if isinstance(source, str | Path) else [hlotext.load(source)]
