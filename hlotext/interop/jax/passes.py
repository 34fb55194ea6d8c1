"""Passes in JAX's compiler: registered, kept apart in its compilation cache, and reported where they fail."""

from __future__ import annotations

import linecache
import logging
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType

from hlotext.interop.jax import cache
from hlotext.interop.jax.copies import Copies
from hlotext.interop.jax.protos import donates, module_of_proto, proto_of_module
from hlotext.interop.jax.registration import Registration, check_heard
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.pipeline import Pipeline

ModulePass = Callable[[Module], "object"]
"""Changes a module in place."""

_log = logging.getLogger(__name__)
_PACKAGE = str(Path(__file__).parents[2])


def register_pass(
    function: ModulePass | Pipeline,
    *,
    name: str | None = None,
    stage: str = "pre_scheduler",
    platforms: Sequence[str] | str | None = None,
    cache_key: str | None = None,
    may_drop_copies: bool = False,
) -> Registration:
    """Runs a function or a pipeline on every module that JAX compiles, until the registration is removed.

    The registration is unique, whatever its name: `remove()` takes off this pass and no other, and may be called twice; as
    a context manager it removes itself at the end of the block.

    `stage` is `pre_scheduler` or `post_scheduler` (JAX's `PipelineStage`), `platforms` as in JAX (None: all). The module goes
    from proto to proto, with no text in between: donation and aliasing, the schedule and the bits of constants go along,
    and fields that modules have no place for are kept from JAX's. A module that the function leaves as it is is not handed
    back, so it keeps all that it has.

    JAX's persistent compilation cache knows nothing of passes. `cache_key` is a text that changes whenever the pass
    would do something else (a version): with it programs made with the pass have entries of their own, under that text and
    the function's own code. A pipeline of
    hlotext's own passes needs none. Any other pass turns the cache off as long as it is registered, with one warning.
    What this process has compiled before stays in its memory until `jax.clear_caches()`.

    jaxlib 0.10.2 forgets donation in every module that a pass hands back, be it byte for byte the same; where a compiler
    does so, a warning says it once.

    XLA has placed its copies by then (on the CPU in both stages, elsewhere in the second): a pass that takes one away, as
    CSE does, makes a program that may compute something else, and is refused with `CopyError`. `may_drop_copies` says that
    the pass knows what it does.

    What the function raises, JAX raises from the compilation, with the name of the pass and the line of the function.
    Raises NotImplementedError for a JAX without `jax.extend.xla`, and where the compiler of a platform takes passes but never
    runs them, as that of GPUs may.
    """
    try:
        from jax.extend import xla
    except ImportError:
        raise NotImplementedError("this JAX has no jax.extend.xla: passes need JAX 0.10.2 or later") from None
    own_name = function.name if isinstance(function, Pipeline) else getattr(function, "__name__", "hlotext")
    label = name or str(own_name)
    place = xla.PipelineStage[stage.upper()]
    donation = _Donation(label)
    only = [platforms] if isinstance(platforms, str) else platforms
    check_heard(place, platforms)
    is_placed = place is xla.PipelineStage.POST_SCHEDULER or only is None or "cpu" in only

    def transform(proto: bytes) -> bytes | None:
        try:
            module = module_of_proto(proto)
            before = module.revision
            copies = Copies.of(module) if is_placed and not may_drop_copies else None
            function.run(module) if isinstance(function, Pipeline) else function(module)
            if module.revision == before:
                return None
            if copies is not None:
                copies.check(module)
            new = proto_of_module(module, proto)
        except Exception as error:
            _log.exception("the pass %s failed", label)
            code = None if isinstance(function, Pipeline) else getattr(function, "__code__", None)
            raise RuntimeError(
                f"hlotext pass {label}: {type(error).__name__}: {error}{_place_of(error, code)}"
            ) from error
        donation.handed_back(new)
        return new

    entry = cache.enter(label, function, f"{label} {stage} {platforms}", cache_key)
    registration = Registration(label, place, platforms, entry)
    try:
        registration.add(transform)
        registration.add(donation.seen, "donation")
    except BaseException:
        registration.remove()
        raise
    return registration


class _Donation:
    """Compares what a pass hands back with what the compiler goes on with, as the transformation behind it sees it."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.warned = False
        self.expected: set[int] = set()
        """Threads on which a module that donates was handed back last; XLA's own, so `threading.local` forgets them."""

    def handed_back(self, proto: bytes) -> None:
        if not self.warned and donates(proto):
            self.expected.add(threading.get_ident())

    def seen(self, proto: bytes) -> None:
        """The transformation that comes next; changes nothing."""
        thread = threading.get_ident()
        if thread not in self.expected:
            return
        self.expected.discard(thread)
        if not self.warned and not donates(proto):
            self.warned = True
            warnings.warn(
                f"this jaxlib forgets donation (input_output_alias, buffer_donor) in modules that a pass changes: what "
                f"{self.label} changes needs memory for arguments and results at once",
                RuntimeWarning,
                stacklevel=2,
            )


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
