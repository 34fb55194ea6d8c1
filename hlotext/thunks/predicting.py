"""Prediction: the thunks of a scheduled module, from its text and the options of its compilation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext import memory as memory_model
from hlotext.analysis.age import age_for
from hlotext.analysis.backend import Backend, backend_of
from hlotext.ir.tables import xla_changes
from hlotext.thunks import cpu, gpu
from hlotext.thunks.buffers import ThunkBuffers, link
from hlotext.thunks.emission import Emitter
from hlotext.thunks.sequence import Thunks
from hlotext.thunks.settings import ThunkSettings
from hlotext.thunks.thunk import ThunkError, ThunkNote
from hlotext.verify.well_formed import needs_well_formed

if TYPE_CHECKING:
    from datetime import date

    from hlotext.ir.nodes.module import Module
    from hlotext.ir.values.age import XlaAge


def predict(
    module: Module,
    options: Any = None,
    *,
    platform: str | None = None,
    memory: Any = None,
    age: XlaAge | date | str | None = None,
) -> Thunks:
    """Predicts the thunks that XLA emits for a scheduled module (GPU, CPU).

    For XLA versions before 2026-03-28, kinds, order and names are predicted, but not ids.

    Args:
        module: The module.
        options: Compile options (`Compilation.options`). None uses XLA's defaults.
        platform: `cpu` or `gpu`. None (the default) detects it from the module text.
        memory: Result of `memory.assign` or `memory.load` for this module. None (the default) computes it. If that
            fails, a note says so, no thunk has a `previous` or `next`, and copies that depend on whether two buffers
            are the same are assumed to be needed.
        age: The XLA version: an XlaAge, a date or a jaxlib release ("0.10.2"). None (the default) detects it from the
            module text, or else assumes the newest.

    Raises:
        ThunkError: The module is not scheduled, has no entry, is recursive or otherwise invalid, or is for a platform
            without thunks (TPU).
        ValueError: `age` is not an age of XLA.
    """
    known_age = age_for(module, age)
    if not module.computations:
        raise ThunkError("this text has no computation")
    wanted = platform or _platform(module)
    if wanted == "tpu":
        raise ThunkError(
            "TPU programs have no thunks; after_codegen texts and backend_config show what runs there"
        )
    if not module.is_scheduled:
        raise ThunkError(
            "this module is not scheduled (is_scheduled=true), so its thunks have no order; use the text after optimization"
        )
    if wanted not in ("cpu", "gpu"):
        raise ThunkError(
            "the text does not show whether it is for GPU or CPU; set the platform to gpu or cpu"
        )
    empty = next((c.name for i in module.instructions() for c in i.called_computations if not len(c)), None)
    if empty is not None:
        raise ThunkError(f"the text does not contain computation {empty}, which it calls")
    notes: list[ThunkNote] = []
    if memory is None:
        memory = _memory(module, wanted, known_age, notes)
    emitter = Emitter(
        module=module,
        options=ThunkSettings.of(options),
        buffers=ThunkBuffers(memory),
        rule_of=gpu.rule_of if wanted == "gpu" else cpu.rule_of,
        counts=wanted == "gpu" and known_age.has(xla_changes.THUNK_KINDS),
        age=known_age,
        notes=notes,
    )
    with needs_well_formed(module, ThunkError):
        found = Thunks(
            thunks=tuple(emitter.emit(module.entry)),
            platform=wanted,
            module=module,
            options=options,
            age=known_age,
            notes=tuple(notes),
            buffers=emitter.buffers,
        )
        link(found.thunks, emitter.buffers)
    return found


def _platform(module: Module) -> str | None:
    backend = backend_of(module)
    return backend.value if isinstance(backend, Backend) else None


def _memory(module: Module, platform: str, age: XlaAge, notes: list[ThunkNote]) -> Any:
    try:
        return memory_model.assign(module, platform=platform, age=age)
    except ValueError as error:
        notes.append(ThunkNote(message=f"buffers are unknown: {error}"))
        return None
