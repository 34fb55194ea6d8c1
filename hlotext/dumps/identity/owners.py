"""Finds the pass that made a step of a dump: the one running when the text was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hlotext.dumps.step import Step

PROGRAM = "program"
START = "pipeline-start"
_BEFORE = "before_"
"""Beginning of the name of a dump that a pass writes before it changes anything."""


@attrs.frozen
class Owner:
    """The pass responsible for the changes in a step."""

    name: str
    """XLA's name of the pass; for the first and final HLO, the label in the file name."""
    is_bracket: bool = False
    """True if the pass is unknown, except that it ran between the previous step and this one."""
    inside: str = ""
    """The enclosing pass or pipeline, if its name differs."""
    after: str = ""
    """If `is_bracket`, the last dumped pass before the change; otherwise empty."""

    def __str__(self) -> str:
        if self.is_bracket:
            return (
                f"compiler code between {self.after} and {self.name}"
                if self.after
                else "a pass that was not dumped"
            )
        return f"{self.name} (inside {self.inside})" if self.inside else self.name


def owner(steps: Sequence[Step], index: int) -> Owner:
    """Returns the owner of the step at `index`. `steps` are all steps of the compilation."""
    step = steps[index]
    if not step.is_pass:
        return (
            Owner(step.name, is_bracket=True, after=_shown_before(steps, index)) if index else Owner(PROGRAM)
        )
    if step.next_pass is None:  # NNNN.PASS.STEP: written while the pass ran
        outer = _enclosing(steps, index, step.pipeline)
        if outer is None or outer == step.pipeline:
            return Owner(step.pipeline)
        if step.name.startswith(_BEFORE) and index and steps[index - 1].pipeline != step.pipeline:
            return Owner(outer)  # the inner pass has not changed anything yet
        return Owner(step.pipeline, inside=outer)
    if step.name != START:
        return Owner(step.name)
    outer = _enclosing(steps, index, step.pipeline)
    if outer is not None:
        return Owner(outer)
    return Owner(step.pipeline, is_bracket=True, after=_shown_before(steps, index))


def _shown_before(steps: Sequence[Step], index: int) -> str:
    """The name of the last pass that a step before shows; "" for none."""
    return next((step.name for step in reversed(steps[:index]) if step.is_pass and step.name != START), "")


def _enclosing(steps: Sequence[Step], index: int, inner: str) -> str | None:
    """The pass of an outer pipeline that was running: the outer pipeline goes on behind the dumps of the inner one."""
    step = steps[index]
    before = {other.pipeline for other in steps[:index] if other.is_pass and other.pipeline != step.pipeline}
    for later in steps[index + 1 :]:
        if not later.is_pass:
            return None
        if later.pipeline == step.pipeline:
            continue
        if later.name == START and later.pipeline not in before:
            continue  # another pipeline inside, or behind
        if later.pipeline in before and later.next_pass is not None:
            return None if later.name in (inner, START) else later.name
    return None
