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
    """Adds the copies that the program needs, and no others that XLA would not add (`CopyInsertion`).

    Adds copies generously, takes out again what turns out not to be needed, and adds those that results need.
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
        """Changes the module."""
        before = sum(i.opcode == "copy" for i in module.instructions())
        _all_steps(module, platform_of(module, self.platform), age_for(module, self.age or None))
        return PassResult.of({"copies": abs(sum(i.opcode == "copy" for i in module.instructions()) - before)})


@attrs.frozen
class PostSchedulingCopies(Pass):
    """Copy passes that GPU runs after scheduling, with the order of the schedule instead of dependences.

    `RunPostSchedulingCopyInsertion` of `xla/service/gpu/gpu_compiler.cc`, but for copies into memory of collectives.
    """

    name: ClassVar[str] = "post-scheduling-copies"
    summary: ClassVar[str] = "Removes copies that the schedule makes unnecessary, as XLA's GPU compiler does."

    age: Age = attrs.field(default="", validator=is_age)
    """XLA age to follow; empty: from the text, else the newest."""

    def run(self, module: Module) -> PassResult:
        """Changes the module."""
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
    """Step 1 alone: copies where values that must share memory might live at once. Raises MemoryModelError, ValueError."""
    return _on_copy(
        module, lambda copy: add_copies(copy, platform_of(module, platform), age_for(module, age))
    )


def removing_copies(module: Module, platform: str | None = None, *, age: Age | None = None) -> Outcome:
    """Step 2 alone: which copies go, and which stay for what. Raises MemoryModelError, ValueError."""
    return _on_copy(
        module, lambda copy: remove_copies(copy, platform_of(module, platform), age_for(module, age))
    )


def special_copies(module: Module, platform: str | None = None) -> Outcome:
    """Step 3 alone: copies of what is read-only, and of results that are one. Raises MemoryModelError."""
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

    A copy that the passes would take out stands in the text all the same, so they have put it back: it has the reason for
    which they would do so now. A copy without such a reason has no decision. Raises MemoryModelError, ValueError.
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
