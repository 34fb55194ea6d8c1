"""Models of XLA's passes that explain their decisions, and the stages of a compilation.

>>> from hlotext import compiler
>>> compiler.stages.of("fusion", "priority-fusion").title
'Fusion'

A model takes a module and returns an `Outcome`: the module as XLA's pass would leave it, and a `Decision` for
everything that it did or decided against.
"""

from typing import TYPE_CHECKING

from hlotext.compiler.executable import Executable, ExecutablePart, Kernel, executable
from hlotext.dumps.stages import stages
from hlotext.ir.lazy_imports import lazy_submodules

if TYPE_CHECKING:
    from hlotext.compiler.asking import Answer, why, why_in
    from hlotext.compiler.async_collectives import async_collective_creator, convert_async_collectives_to_sync
    from hlotext.compiler.copies import (
        copy_insertion,
        post_scheduling_copies,
    )
    from hlotext.compiler.cpu_instruction_fusion import FusionOutcome, cpu_fusion
    from hlotext.compiler.decision import Decision, Outcome
    from hlotext.compiler.explaining import Explanation, Group, explain
    from hlotext.compiler.layout_models import layout_assignment
    from hlotext.compiler.pass_views import View, overlaps, rematerialized
    from hlotext.compiler.priority import priority_fusion
    from hlotext.compiler.scheduling import Candidate, schedule, schedules
    from hlotext.compiler.wrapping import fusion_wrapper

_HOMES = {
    "async_collectives": ("async_collective_creator", "convert_async_collectives_to_sync"),
    "cpu_instruction_fusion": ("FusionOutcome", "cpu_fusion"),
    "copies": ("copy_insertion", "post_scheduling_copies"),
    "decision": ("Decision", "Outcome"),
    "layout_models": ("layout_assignment",),
    "priority": ("priority_fusion",),
    "explaining": ("Explanation", "Group", "explain"),
    "asking": ("Answer", "why", "why_in"),
    "scheduling": ("Candidate", "schedule", "schedules"),
    "pass_views": ("View", "overlaps", "rematerialized"),
    "wrapping": ("fusion_wrapper",),
}
"""Module of each public name. Models are imported on first access, so no file may be referred to like its function."""

__getattr__ = lazy_submodules(__name__, **_HOMES)

__all__ = [
    "Answer",
    "Candidate",
    "Decision",
    "Executable",
    "ExecutablePart",
    "Explanation",
    "FusionOutcome",
    "Group",
    "Kernel",
    "Outcome",
    "View",
    "async_collective_creator",
    "convert_async_collectives_to_sync",
    "copy_insertion",
    "cpu_fusion",
    "executable",
    "explain",
    "fusion_wrapper",
    "layout_assignment",
    "overlaps",
    "post_scheduling_copies",
    "priority_fusion",
    "rematerialized",
    "schedule",
    "schedules",
    "stages",
    "why",
    "why_in",
]
