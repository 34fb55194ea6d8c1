"""Table of the models of XLA's passes, by pass name."""

from __future__ import annotations

from collections.abc import Callable

from hlotext.compiler.async_collectives import async_collective_creator, convert_async_collectives_to_sync
from hlotext.compiler.copies import (
    adding_copies,
    copy_insertion,
    post_scheduling_copies,
    removing_copies,
    special_copies,
)
from hlotext.compiler.cpu_instruction_fusion import cpu_fusion
from hlotext.compiler.decision import Outcome
from hlotext.compiler.layout_models import layout_assignment
from hlotext.compiler.priority import priority_fusion
from hlotext.compiler.scheduling import schedule
from hlotext.compiler.wrapping import fusion_wrapper
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import Age

Model = Callable[[Module, Module | None, str, Age | None], Outcome]
"""Takes the module before a pass, the one after it where there is one, the pass's own log, "" where it wrote none, and of
which XLA it is; None: as the text tells, else the newest."""


def _alone(work: Callable[[Module], Outcome]) -> Model:
    """A model that looks at the module before the pass, and at nothing else."""
    return lambda before, after, log, age: work(before)


def _by_age(work: Callable[..., Outcome]) -> Model:
    """The same for one that tells releases apart."""
    return lambda before, after, log, age: work(before, age=age)


def _priority_fusion(before: Module, after: Module | None, log: str, age: Age | None) -> Outcome:
    return priority_fusion(before, log) if log else Outcome(before)


MODELS: dict[tuple[str, str | None], Model] = {
    ("adding_copies_to_resolve_interference", None): _by_age(adding_copies),
    ("adding_special-case_copies", None): _alone(special_copies),
    ("async-collective-creator", "gpu"): _by_age(async_collective_creator),
    ("copy-insertion", None): _by_age(copy_insertion),
    ("fusion", "cpu"): _by_age(cpu_fusion),
    ("fusion-wrapper", None): _by_age(fusion_wrapper),
    ("gpu-convert-async-collectives-to-sync", None): _by_age(convert_async_collectives_to_sync),
    ("post-scheduling-copies", None): _by_age(post_scheduling_copies),
    ("SCHEDULE", "cpu"): _alone(schedule),
    ("SCHEDULE", "gpu"): _alone(schedule),
    ("removing_unnecessary_copies", None): _by_age(removing_copies),
    ("layout-assignment", "cpu"): _alone(layout_assignment),
    ("priority-fusion", "gpu"): _priority_fusion,
}
"""By XLA's name of the pass and the platform; None: on every platform."""


def model_of(name: str, platform: str | None) -> Model | None:
    """The model of a pass on a platform; None where there is none.

    >>> model_of("fusion", "cpu") is not None, model_of("fusion", "tpu")
    (True, None)
    """
    return MODELS.get((name, platform), MODELS.get((name, None)))
