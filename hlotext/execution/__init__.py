"""Execution of modules on jaxlib's CPU client, in child processes that may crash. Extra: `hlotext[jax]`."""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.execution.client import Ran, Runner
    from hlotext.execution.comparing import difference, distance
    from hlotext.execution.equivalence import largest_difference
    from hlotext.execution.errors import NotExecutable
    from hlotext.execution.inputs import random_arrays
    from hlotext.execution.plain_text import PlainModule, narrow_types, plain
    from hlotext.execution.rule_checks import RuleCheck, check_rules
    from hlotext.execution.running import Execution, run
    from hlotext.execution.smallest import DifferingPair, smallest_difference

__getattr__ = lazy_submodules(
    __name__,
    client=("Ran", "Runner"),
    comparing=("difference", "distance"),
    equivalence=("largest_difference",),
    errors=("NotExecutable",),
    inputs=("random_arrays",),
    plain_text=("PlainModule", "narrow_types", "plain"),
    rule_checks=("RuleCheck", "check_rules"),
    running=("Execution", "run"),
    smallest=("DifferingPair", "smallest_difference"),
)

__all__ = [
    "DifferingPair",
    "Execution",
    "NotExecutable",
    "PlainModule",
    "Ran",
    "RuleCheck",
    "Runner",
    "check_rules",
    "difference",
    "distance",
    "largest_difference",
    "narrow_types",
    "plain",
    "random_arrays",
    "run",
    "smallest_difference",
]
