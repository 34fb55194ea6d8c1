"""Passes in JAX's compiler: registered, kept apart in its compilation cache, and reported where they fail."""

from __future__ import annotations

import linecache
import logging
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

import attrs

from hlotext.interop.jax import cache, choices
from hlotext.interop.jax.backend import DonationError, ScheduleError, check_emitted, insert_copies
from hlotext.interop.jax.probes import check_heard, forgets_donation
from hlotext.interop.jax.protos import donates, module_of_proto, proto_of_module
from hlotext.interop.jax.registration import PassOutcome, Registration
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import PLATFORM_NAMES, Pass
from hlotext.rewrite.pipeline import Pipeline

ModulePass = Callable[[Module], "object"]
"""Changes a module in place."""

_log = logging.getLogger(__name__)
_PACKAGE = str(Path(__file__).parents[2])


def register_pass(
    function: ModulePass | Pass | Pipeline,
    *,
    name: str | None = None,
    stage: str = "pre_scheduler",
    platforms: Sequence[str] | str | None = None,
    cache_key: str | None = None,
    may_drop_copies: bool = False,
    on_error: str = "raise",
    keep_donation: bool = False,
    dry_run: bool = False,
) -> Registration:
    """Runs a function, a pass or a pipeline on every module that JAX compiles, until the registration is removed.

    The registration is unique, whatever its name: `remove()` removes this pass only, and may be called twice; as
    a context manager it removes itself at the end of the block. Its `outcomes` has the result for each module.

    The module is passed as a proto, without text in between: donation and aliasing, the schedule and the bits of
    constants go along, and fields that modules have no place for are kept from JAX's. A module that the function leaves as it
    is is not handed back, so it keeps all that it has.

    JAX's persistent compilation cache knows nothing of passes. `cache_key` is a text that changes whenever the pass
    would do something else (a version): with it programs made with the pass have entries of their own, under that text and
    the function's own code. A pipeline of
    hlotext's own passes needs none. Any other pass turns the cache off as long as it is registered, with one warning.
    What this process has compiled before stays in its memory until `jax.clear_caches()`.

    XLA has placed its copies by then (on the CPU in both stages, elsewhere in the second), and a pass may make others
    necessary: copy insertion, as hlotext models it, runs behind a pass that changed something. Both stages lie behind layout
    assignment and fusion, so multiplications of scalars, say, may stand in a fusion's body; for a program as JAX wrote it see
    `change_lowered`.

    Args:
        function: Changes a module in place.
        name: What messages call the pass; None: the function's or the pipeline's own name.
        stage: `pre_scheduler` or `post_scheduler` (JAX's `PipelineStage`).
        platforms: As in JAX, `cpu` for one; None: all.
        cache_key: The version of the pass in JAX's persistent cache.
        may_drop_copies: Whether copies that the pass takes away stay away: the pass knows what it does. XLA may compute
            something else without one, or end the process.
        on_error: `raise`: what the function raises, JAX raises from the compilation, with the name of the pass and the
            line of the function. `skip`: the module is compiled as it was before the pass, and a RuntimeWarning names
            pass, module and reason.
        keep_donation: Whether modules that donate arguments stay as they are where this jaxlib forgets donation in what a
            pass hands back (0.10.2 and 0.12.0.1 do). Else a warning says it once, before the compilation goes on.
        dry_run: Whether every module is compiled as it was, and `outcomes` only tell what would have been changed.

    Raises:
        ValueError: A stage, platform or choice that does not exist, or a pass that belongs before layouts are final.
        NotImplementedError: A JAX without `jax.extend.xla`, or a compiler that takes passes but never runs them, as that of
            GPUs may.
    """
    try:
        from jax.extend import xla
    except ImportError:
        raise NotImplementedError("this JAX has no jax.extend.xla: passes need JAX 0.10.2 or later") from None
    choices.check("stage", stage, [one.name.lower() for one in xla.PipelineStage])
    choices.check("on_error", on_error, ("raise", "skip"))
    choices.check_platforms(platforms)
    if isinstance(function, Pass):
        function = Pipeline([function])
    for pass_ in function.passes if isinstance(function, Pipeline) else ():
        if pass_.is_early:
            raise ValueError(
                f"{pass_.name} makes decisions that XLA has already made before both of JAX's stages; use it only on texts "
                "from before that"
            )
    own_name = function.name if isinstance(function, Pipeline) else getattr(function, "__name__", "hlotext")
    label = name or str(own_name)
    place = xla.PipelineStage[stage.upper()]
    only = [platforms] if isinstance(platforms, str) else platforms
    check_heard(place, platforms)
    entry = cache.enter(label, function, f"{label} {stage} {platforms}", cache_key)
    registration = Registration(label, place, platforms, entry)
    work = _Work(
        function,
        registration,
        is_placed=not may_drop_copies
        and (place is xla.PipelineStage.POST_SCHEDULER or only is None or "cpu" in only),
        platform=only[0] if only is not None and len(only) == 1 else "",
        is_skipping=on_error == "skip",
        keeps_donation=keep_donation,
        is_dry=dry_run,
        forgets_donation=forgets_donation(place, platforms),
    )
    try:
        registration.add(work.transform)
    except BaseException:
        registration.remove()
        raise
    return registration


@attrs.define(eq=False)
class _Work:
    """The work of a registration on each module."""

    function: ModulePass | Pipeline
    registration: Registration
    is_placed: bool
    """True if XLA has placed its copies, and they are to be right again behind the pass."""
    platform: str
    """The only platform; empty: as the module tells."""
    is_skipping: bool
    keeps_donation: bool
    is_dry: bool
    forgets_donation: bool
    has_warned: bool = False

    def transform(self, proto: bytes) -> bytes | None:
        """The changed module; None where the compiler is to go on with the one that it has."""
        name = "a module that could not be read"
        try:
            module = module_of_proto(proto)
            name = module.name
            new = self._changed(module, proto)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}{_place_of(error, self._code())}"
            if not self.is_skipping:
                _log.exception("the pass %s failed", self.registration.label)
                raise RuntimeError(f"hlotext pass {self.registration.label}: {reason}") from error
            self._skip(name, reason)
            return None
        self.registration.outcomes.append(PassOutcome(name, "unchanged" if new is None else "changed"))
        return None if self.is_dry else new

    def _changed(self, module: Module, proto: bytes) -> bytes | None:
        """The module behind the pass; None where that changed nothing. Raises whatever the pass raises."""
        before, was_scheduled = module.revision, module.is_scheduled
        opcodes = {i.opcode for i in module.instructions()}
        function = self.function
        if isinstance(function, Pipeline):
            function.following(self.platform if self.platform in PLATFORM_NAMES else "").run(module)
        else:
            function(module)
        if module.revision == before:
            return None
        if module.is_scheduled and not was_scheduled:
            raise ScheduleError("the pass created a schedule, but XLA's scheduler has not run yet")
        if self.is_placed:
            insert_copies(module, self.platform)
        check_emitted(module, self.platform, opcodes)
        new = proto_of_module(module, proto)
        if self.forgets_donation and donates(proto):
            self._donation(module.name)
        return new

    def _donation(self, module: str) -> None:
        """Says that donation is lost, or raises where it is to be kept."""
        lost = "this jaxlib loses donation (input_output_alias, buffer_donor) in modules that a pass changes"
        if self.keeps_donation:
            raise DonationError(f"{lost}, and {module} donates arguments")
        if not self.has_warned and not self.is_dry:
            self.has_warned = True
            label = self.registration.label
            _warn(f"{lost}: what {label} changes needs memory for arguments and results at the same time")

    def _skip(self, module: str, reason: str) -> None:
        self.registration.outcomes.append(PassOutcome(module, "skipped", reason))
        _log.warning("the pass %s skipped %s: %s", self.registration.label, module, reason)
        _warn(f"hlotext pass {self.registration.label}: {module} was compiled without it: {reason}")

    def _code(self) -> CodeType | None:
        return None if isinstance(self.function, Pipeline) else getattr(self.function, "__code__", None)


def _warn(text: str) -> None:
    """A warning from inside the compiler, which must not end the compilation where warnings are errors."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        _log.warning("%s", text)


def _place_of(error: BaseException, code: CodeType | None) -> str:
    """The line of the user's own code in which an error came up: the innermost one outside of hlotext."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if frame.f_code is not code and (file.startswith(_PACKAGE) or "site-packages" in file):
            continue
        source = linecache.getline(file, line).strip()
        found = f" ({file}:{line} in {frame.f_code.co_name}{f': {source}' if source else ''})"
    return found
