"""Changes lowered programs before XLA optimizes them, and tries passes on texts without compiling."""

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
    """Changes a lowered program before XLA optimizes it, while dots and all-gathers are still separate.

    JAX runs no passes before XLA's optimizations (0.10.2 and 0.12.0.1 only have `pre_scheduler` and `post_scheduler`),
    so this converts a `jax.stages.Lowered` to a module and back. Donation, shardings and the names of results are
    preserved. `.compile()(*arguments)` of the result runs the changed program. The given `Lowered`, and the function
    that it was lowered from, are not affected, even if they have not been compiled yet.

    Args:
        lowered: The result of `jax.jit(f).lower(*arguments)`.
        function: Changes the module in place. It must keep the types of parameters and results.

    Returns:
        A new `Lowered`; the given one if the function changed nothing.

    Raises:
        NotExecutable: The changed module is rejected by `verify`, or XLA cannot compile it: inside `shard_map`, a
            collective on several arrays, each of which XLA's StableHLO reader gives the sharding of all (0.10.2 and
            0.12.0.1).
        ValueError: The types of parameters or results changed.
        NotImplementedError: This JAX stores lowered programs differently.

    Warns:
        UserWarning: The function set a sharding that Shardy ignores.
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
    """Raises NotExecutable if XLA cannot compile the module with Shardy; warns about shardings that Shardy ignores."""
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
                f"{i.name}: sharding={i.sharding} has no effect: Shardy partitions this program, and only reads the "
                "frontend attribute xla.sdy.sharding of Sharding custom calls, which with_sharding_constraint creates "
                "(shardings of parameters are set by JAX)",
                stacklevel=3,
            )


_TO_LOCAL = "xla.sdy.GlobalToLocalShape"


def _signature(module: Module) -> str:
    parameters = [p.shape.text_without_layout() for p in module.entry.parameters if p.shape is not None]
    root = module.entry.root.shape
    return f"({', '.join(parameters)})->{root.text_without_layout() if root is not None else '?'}"


@attrs.frozen
class DryRun:
    """Outcomes of trying a pass on copies of modules, from `dry_run`. `str()` is a one-line summary."""

    outcomes: tuple[PassOutcome, ...]

    def __str__(self) -> str:
        return f"would {summary(self.outcomes).replace('changes', 'change').replace('skips', 'skip')}"


def dry_run(function: Callable[[Module], object] | Pass | Pipeline, sources: Iterable[Any]) -> DryRun:
    """Tries a pass on copies of modules, and reports which ones it would change; compiles nothing.

    Args:
        function: The pass. If it raises an exception, the outcome is `skipped`, with the error as the reason.
        sources: Modules, files, and anything else that `hlotext.load` accepts.

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
