"""Which model speaks for which pass of XLA: what explanations ask."""

from __future__ import annotations

from collections.abc import Callable

from hlotext.compiler.cpu_fusing import cpu_fusion
from hlotext.compiler.decision import Outcome
from hlotext.ir.nodes.module import Module

Model = Callable[[Module, Module | None, str], Outcome]
"""Takes the module before a pass, the one after it where there is one, and the pass's own log, "" where it wrote none."""


def _cpu_fusion(before: Module, after: Module | None, log: str) -> Outcome:
    return cpu_fusion(before)


MODELS: dict[tuple[str, str | None], Model] = {
    ("fusion", "cpu"): _cpu_fusion,
}
"""By XLA's name of the pass and the platform; None: on every platform."""


def model_of(name: str, platform: str | None) -> Model | None:
    """The model of a pass on a platform; None where there is none.

    >>> model_of("fusion", "cpu") is not None, model_of("fusion", "tpu")
    (True, None)
    """
    return MODELS.get((name, platform), MODELS.get((name, None)))
