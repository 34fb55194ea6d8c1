"""Demands of XLA's backends on a module that a pass hands back to them.

By the time that JAX's transformations run (on the CPU in both stages, elsewhere behind the scheduler) `CopyInsertion` has
seen to it that a loop's state, a branch's argument and the program's results lie in buffers of their own. What computes the
same value is then no longer the same: without its copy, one element of a loop's state overwrites another. A pass that was
written for any stage knows nothing of that, so copy insertion, as `hlotext.compiler` models it, runs again behind it.
"""

from __future__ import annotations

from collections.abc import Collection

from hlotext.analysis import Backend
from hlotext.compiler.copies import CopyInsertion
from hlotext.compiler.platforms import platform_of
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.calls.flatten_call_graph import FlattenCallGraph
from hlotext.thunks import cpu


class CopyError(RuntimeError):
    """The copies that a changed module needs cannot be determined."""


class NotEmittedError(RuntimeError):
    """A pass brought an operation that the compiler of the platform does not know at this stage."""


class ScheduleError(RuntimeError):
    """A pass before XLA's scheduler added a schedule; copies would be decided by it, and XLA makes another one."""


class DonationError(RuntimeError):
    """A module that donates arguments, which this jaxlib would forget."""


def insert_copies(module: Module, platform: str = "") -> int:
    """Inserts the copies that a changed module needs and removes those that it no longer needs. Returns the increase.

    Computations that a pass made shared, such as loop bodies, are cloned first: memory is assigned per call.

    `platform` selects the in-place rules; empty: from the text. Raises CopyError if the model of copy insertion does not
    support the module's operations.
    """
    before = _count(module)
    try:
        FlattenCallGraph().run(module)
        CopyInsertion(platform=platform).run(module)
    except Exception as error:
        raise CopyError(
            f"cannot determine which copies {module.name} needs after this pass: {type(error).__name__}: {error}"
        ) from error
    return _count(module) - before


def _count(module: Module) -> int:
    return sum(i.opcode == "copy" for i in module.instructions())


def check_emitted(module: Module, platform: str, before: Collection[str]) -> None:
    """Raises NotEmittedError for a new operation outside of fusions that XLA:CPU makes no thunk of."""
    if platform_of(module, platform) is not Backend.CPU:
        return
    for computation in module.computations:
        if computation.is_fusion_body or computation.is_sugared:
            continue
        for i in computation:
            if i.opcode not in before and cpu.rule_of(i) is None:
                raise NotEmittedError(
                    f"{i.name}: XLA's CPU compiler emits no code for {i.opcode} at this stage"
                )
