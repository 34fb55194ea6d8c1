"""Requirements of XLA's backends on a module returned by a pass.

When JAX runs its transformations (on CPU in both stages, elsewhere after the scheduler), `CopyInsertion` has already given
the elements of a loop's state, the arguments of branches and the program's results buffers of their own. Equal values are
then no longer interchangeable: without its copy, one element of a loop's state overwrites another. A pass written for any
stage does not preserve this, so copy insertion, as modeled by `hlotext.compiler`, runs again after it.
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
    """Raised if the copies that a changed module needs cannot be determined."""


class NotEmittedError(RuntimeError):
    """Raised if a pass creates an operation for which the platform's compiler emits no code at this stage."""


class ScheduleError(RuntimeError):
    """Raised if a pass before XLA's scheduler creates a schedule: XLA would discard it, although copies depend on it."""


class DonationError(RuntimeError):
    """Raised with `keep_donation=True` if a pass changes a module that donates arguments and this jaxlib would lose that.

    It is the cause of the RuntimeError that aborts the compilation.
    """


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
    """Raises NotEmittedError for a new operation outside fusions for which XLA:CPU has no thunk."""
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
