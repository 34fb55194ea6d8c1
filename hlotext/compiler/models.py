"""Table of the models of XLA's passes, by pass name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from hlotext.compiler.decision import Outcome
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes.base import Age

Model = Callable[[Module, Module | None, str, Age | None], Outcome]
"""Takes the module before a pass, the one after it where there is one, the pass's own log, "" where it wrote none, and of
which XLA it is; None: as the text tells, else the newest."""


def _model(home: str, name: str, *, by_age: bool = False) -> Model:
    """A model that looks at the module before the pass, and by `by_age` tells releases apart. Its file is imported when it is
    first asked: a compilation has use for few of them."""

    def model(before: Module, after: Module | None, log: str, age: Age | None) -> Outcome:
        work = getattr(importlib.import_module(f"hlotext.compiler.{home}"), name)
        found: Outcome = work(before, age=age) if by_age else work(before)
        return found

    return model


def _priority_fusion(before: Module, after: Module | None, log: str, age: Age | None) -> Outcome:
    work = importlib.import_module("hlotext.compiler.priority").priority_fusion
    found: Outcome = work(before, log) if log else Outcome(before)
    return found


MODELS: dict[tuple[str, str | None], Model] = {
    ("adding_copies_to_resolve_interference", None): _model("copies", "adding_copies", by_age=True),
    ("adding_special-case_copies", None): _model("copies", "special_copies"),
    ("async-collective-creator", "gpu"): _model("async_collectives", "async_collective_creator", by_age=True),
    ("copy-insertion", None): _model("copies", "copy_insertion", by_age=True),
    ("fusion", "cpu"): _model("cpu_instruction_fusion", "cpu_fusion", by_age=True),
    ("fusion-wrapper", None): _model("wrapping", "fusion_wrapper", by_age=True),
    ("gpu-convert-async-collectives-to-sync", None): _model(
        "async_collectives", "convert_async_collectives_to_sync", by_age=True
    ),
    ("post-scheduling-copies", None): _model("copies", "post_scheduling_copies", by_age=True),
    ("SCHEDULE", "cpu"): _model("scheduling", "schedule"),
    ("SCHEDULE", "gpu"): _model("scheduling", "schedule"),
    ("removing_unnecessary_copies", None): _model("copies", "removing_copies", by_age=True),
    ("layout-assignment", "cpu"): _model("layout_models", "layout_assignment"),
    ("priority-fusion", "gpu"): _priority_fusion,
}
"""By XLA's name of the pass and the platform; None: on every platform."""


def model_of(name: str, platform: str | None) -> Model | None:
    """Returns the model of a pass on a platform, or None if there is none.

    >>> model_of("fusion", "cpu") is not None, model_of("fusion", "tpu")
    (True, None)
    """
    return MODELS.get((name, platform), MODELS.get((name, None)))
