"""Copy insertion: copies so that no value is written over while somebody may still read it (`CopyInsertion`).

Its three steps are files of their own: `resolve_interference.py`, `remove_unnecessary_copies.py`,
`special_case_copies.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import attrs

from hlotext.analysis import Backend
from hlotext.analysis.age import age_for
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.platforms import platform_of
from hlotext.compiler.remove_unnecessary_copies import REMOVED, remove_copies
from hlotext.compiler.resolve_interference import add_copies, in_place_pairs, tidy
from hlotext.compiler.special_case_copies import add_special_copies
from hlotext.ir import gc_control
from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.age import XlaAge
from hlotext.rewrite.passes.base import Age, Pass, PassResult, is_age
from hlotext.rewrite.passes.cleanup.dce import DeadCodeElimination


@attrs.frozen
class CopyInsertion(Pass):
    """Inserts the copies that XLA would insert (`CopyInsertion`).

    Inserts copies generously, removes those that turn out to be unnecessary, and inserts those that results need.
    """

    name: ClassVar[str] = "copy-insertion"
    summary: ClassVar[str] = (
        "Inserts the copies that keep live values from being overwritten (all three steps)."
    )

    platform: str = ""
    """`cpu`, `gpu` or `tpu`; empty: as the text tells."""
    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a module, which is modified in place. Raises MemoryModelError if buffers cannot be
        determined.
        """
        before = sum(i.opcode == "copy" for i in module.instructions())
        _all_steps(module, platform_of(module, self.platform), age_for(module, self.age or None))
        return PassResult.of({"copies": abs(sum(i.opcode == "copy" for i in module.instructions()) - before)})


@attrs.frozen
class PostSchedulingCopies(Pass):
    """Copy passes that GPU runs after scheduling, based on the schedule instead of dependencies.

    Corresponds to `RunPostSchedulingCopyInsertion` in `xla/service/gpu/gpu_compiler.cc`, except for copies into
    collective memory.
    """

    name: ClassVar[str] = "post-scheduling-copies"
    summary: ClassVar[str] = "Removes copies that the schedule makes unnecessary, as XLA's GPU compiler does."

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        """Runs the pass on a scheduled module, which is modified in place.

        Raises ValueError if the module is not scheduled, and MemoryModelError if buffers cannot be determined.
        """
        before = sum(i.opcode == "copy" for i in module.instructions())
        _after_schedule(module, age_for(module, self.age or None))
        return PassResult.of({"copies": abs(sum(i.opcode == "copy" for i in module.instructions()) - before)})


def _all_steps(module: Module, platform: Backend, age: XlaAge) -> list[Decision]:
    """The three steps; of the copies that are left why they were added and why they stay, then what became of the others."""
    added = {d.instruction: d for d in add_copies(module, platform, age)}
    decisions = []
    pairs = in_place_pairs(platform)
    for found in remove_copies(module, platform, age, pairs):
        origin = added.pop(found.instruction, None)
        if origin is None:
            decisions.append(found)
            continue
        others = tuple(dict.fromkeys((*origin.others, *found.others)))
        is_kept = found.rule.startswith("kept")
        because = f"{origin.because}; {'it is kept because ' if is_kept else 'it is removed because '}{found.because}"
        decisions.append(
            Decision(found.instruction, f"{origin.rule}, {found.rule}", because, others, found.source)
        )
    decisions += add_special_copies(module, platform, pairs)
    tidy(module, age)
    return decisions


def _after_schedule(module: Module, age: XlaAge) -> list[Decision]:
    if not module.is_scheduled:
        raise ValueError("the module has no schedule")
    decisions = remove_copies(module, Backend.GPU, age)
    DeadCodeElimination().run(module)
    decisions += add_special_copies(module, Backend.GPU)
    DeadCodeElimination().run(module)
    return decisions


def _on_copy(module: Module, work: Callable[[Module], list[Decision]]) -> Outcome:
    with gc_control.gc_paused(
        collect_first=False
    ):  # what is made here is no garbage, however much there is of it
        copy = module.clone()
        with copy.transaction():
            decisions = work(copy)
    return Outcome(copy, tuple(decisions))


def copy_insertion(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Models copy insertion, with the reasons why each copy was added, and kept or removed.

    The module should be at the point of a compilation where XLA runs the pass: optimized, not scheduled, and with each
    computation called from one place (`flatten-call-graph`).

    Args:
        module: The module.
        platform: `cpu`, `gpu` or `tpu`, which decides which operations run in place and which buffers may be
            overwritten. None (the default) detects it from the module text.
        age: The XLA version to model. None (the default) detects it from the module text.

    Returns:
        The module with copies inserted, and the decisions.

    Raises:
        MemoryModelError: The buffers of the module cannot be determined.
        ValueError: The platform or age is unknown.
    """
    expect_module(module)
    return _on_copy(
        module, lambda copy: _all_steps(copy, platform_of(module, platform), age_for(module, age))
    )


def adding_copies(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Models step 1 alone: adds copies where values that must share memory may be live simultaneously.

    Raises MemoryModelError if buffers cannot be determined, and ValueError if the platform or age is unknown.
    """
    return _on_copy(
        module, lambda copy: add_copies(copy, platform_of(module, platform), age_for(module, age))
    )


def removing_copies(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Models step 2 alone: removes unnecessary copies, with the reason for each that is kept.

    Raises MemoryModelError if buffers cannot be determined, and ValueError if the platform or age is unknown.
    """
    return _on_copy(
        module, lambda copy: remove_copies(copy, platform_of(module, platform), age_for(module, age))
    )


def special_copies(module: Module, platform: str | None = None) -> Outcome:
    """Models step 3 alone: adds copies of read-only values that would be overwritten, and of results that share memory.

    Raises MemoryModelError if buffers cannot be determined, and ValueError if the platform is unknown.
    """
    return _on_copy(module, lambda copy: add_special_copies(copy, platform_of(module, platform)))


def post_scheduling_copies(module: Module, *, age: Age | None = None) -> Outcome:
    """Models the GPU copy passes that run after scheduling, with the reasons why each copy was added or removed.

    `age` is the XLA version to model. None (the default) detects it from the module text. Raises MemoryModelError if the
    buffers cannot be determined, and ValueError if the module is not scheduled or the age is unknown.
    """
    expect_module(module)
    return _on_copy(module, lambda copy: _after_schedule(copy, age_for(module, age)))


def standing_copies(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Explains the copies of a final module by the values that would be overwritten without them.

    A copy that the passes would remove was reinserted by them, for the reason that they have now. A copy without such a
    reason has no decision. Raises MemoryModelError if buffers cannot be determined, and ValueError if the platform or
    age is unknown.
    """
    expect_module(module)
    backend, xla = platform_of(module, platform), age_for(module, age)

    def work(copy: Module) -> list[Decision]:
        found = []
        decisions = remove_copies(copy, backend, xla)
        taken_out = Counter(d.others[0] for d in decisions if d.rule == REMOVED)
        DeadCodeElimination().run(copy)
        reasons = {d.others[0]: d for d in add_special_copies(copy, backend)}
        for d in decisions:
            if d.rule != REMOVED:
                found.append(d)
            # Of several copies of one value the text does not tell which one the reason is for.
            elif taken_out[d.others[0]] == 1 and (reason := reasons.get(d.others[0])) is not None:
                found.append(attrs.evolve(reason, instruction=d.instruction, is_refusal=True))
        return found

    return attrs.evolve(_on_copy(module, work), module=module)
