"""Passes that run inside JAX's compiler: registration, compilation-cache keys, and error reports."""

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

    Registrations are independent, even under the same name: `remove()` removes this pass only. Used as a context manager,
    a registration removes itself at the end of the block. Its `outcomes` has the result for each module.

    Modules are exchanged as protos, never as text, so donation, aliasing, the schedule and the exact bits of constants are
    preserved; proto fields that `Module` cannot hold are copied from JAX's proto. If the function leaves a module
    unchanged, JAX continues with its own.

    JAX's persistent compilation cache does not take passes into account. With a `cache_key`, a text that must change
    whenever the pass changes its behavior (such as a version), programs compiled with the pass get separate cache entries,
    identified by this text and the function's bytecode. A pipeline of hlotext's own passes needs none. Any other pass
    disables the cache while it is registered, with a warning. Programs that this process has already compiled stay in
    memory until `jax.clear_caches()`.

    At these stages XLA has already inserted copies (on CPU before both, elsewhere before the second), and a pass may make
    others necessary, so copy insertion, as modeled by hlotext, runs after every pass that changed the module. Both stages
    follow layout assignment and fusion; a multiplication, for example, may be inside a fusion. To change a program as JAX
    wrote it, use `change_lowered`.

    Args:
        function: Changes a module in place.
        name: Name of the pass in messages; None uses that of the function or pipeline.
        stage: `pre_scheduler` or `post_scheduler` (JAX's `PipelineStage`).
        platforms: Platforms as in JAX, such as `cpu`; None runs the pass on all.
        cache_key: Version of the pass, for the keys of JAX's persistent cache.
        may_drop_copies: Do not restore copies that the pass removes. Without a copy that is needed, XLA may compute wrong
            results or crash.
        on_error: `raise`: an exception in the function aborts the compilation, with the name of the pass and the line of
            the function. `skip`: the module is compiled as it was before the pass, and a RuntimeWarning gives the pass,
            the module and the reason.
        keep_donation: Never change a module that donates arguments if this jaxlib loses the donation of modules returned
            by a pass, as 0.10.2 and 0.12.0.1 do: such a change counts as an error. Otherwise the donation is lost, with
            one warning.
        dry_run: Compile every module as it was; `outcomes` then shows which ones would have been changed.

    Returns:
        The registration.

    Raises:
        ValueError: Unknown stage, platform or choice, or a pass that must run before layouts are final.
        NotImplementedError: This JAX has no `jax.extend.xla`, or its compiler accepts passes but never runs them, as may
            be the case on GPU.
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
    given: object = function  # refused here: inside the compiler nobody would see what was wrong
    if not isinstance(given, Pipeline) and (not callable(given) or isinstance(given, type)):
        use = "; hlotext.rewrite.make_pass(name) makes one" if isinstance(given, str) else ""
        raise TypeError(
            f"expected a function of a module, a Pass or a Pipeline, not {type(given).__name__}{use}"
        )
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
    """True if XLA has already inserted copies, so that they must be updated after the pass."""
    platform: str
    """The only platform; empty to detect it from the module."""
    is_skipping: bool
    keeps_donation: bool
    is_dry: bool
    forgets_donation: bool
    has_warned: bool = False

    def transform(self, proto: bytes) -> bytes | None:
        """The changed module; None for the compiler to continue with its own."""
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
        """The module after the pass; None if nothing changed. Raises whatever the pass raises."""
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
        """Warns that donation is lost, or raises DonationError if it must be kept."""
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
    """Warns from inside the compiler, without aborting the compilation if warnings are errors."""
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except RuntimeWarning:
        _log.warning("%s", text)


def _place_of(error: BaseException, code: CodeType | None) -> str:
    """The line of the user's code that raised an error: the innermost frame outside hlotext and installed packages."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if frame.f_code is not code and (file.startswith(_PACKAGE) or "site-packages" in file):
            continue
        source = linecache.getline(file, line).strip()
        found = f" ({file}:{line} in {frame.f_code.co_name}{f': {source}' if source else ''})"
    return found
