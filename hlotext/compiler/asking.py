"""One instruction, and what all models say about it: of a whole compilation, or of one module.

>>> import hlotext as hlo
>>> from hlotext import compiler
>>> text = "ENTRY e { x = f32[8]{0} parameter(0)  c = f32[8]{0} copy(x)  ROOT t = (f32[8]{0}, f32[8]{0}) tuple(c, c) }"
>>> answers = {answer.model: answer for answer in compiler.why_in(hlo.parse(text), "t", "cpu")}
>>> [decision.rule for decision in answers["copy-insertion"].decisions]
['read-only result', 'result twice']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import attrs

import hlotext as hlo
from hlotext.analysis import Backend
from hlotext.analysis.meant import meant_instruction, names_meant
from hlotext.analysis.shards import shards_of
from hlotext.compiler.copies import standing_copies
from hlotext.compiler.decision import Decision, Outcome
from hlotext.compiler.explaining import Explanation, asked, previous
from hlotext.compiler.models import MODELS, model_of
from hlotext.compiler.platforms import platform_of
from hlotext.diff import Change
from hlotext.dumps import Compilation, Step
from hlotext.ir.nodes.expected import expect_module

_UNSCHEDULED = ("layout-assignment", "fusion", "fusion-wrapper", "copy-insertion", "async-collective-creator")
"""Models that are asked about a module without a schedule."""
_SCHEDULED = ("gpu-convert-async-collectives-to-sync",)
"""Models that are asked about a scheduled module."""
_LOG = "priority-fusion"


@attrs.frozen(eq=False)
class Answer:
    """The decisions of one pass model about an instruction, and the changes that the pass made, if known."""

    model: str
    """XLA's name of the pass, or `sharding` for shards of arrays."""
    decisions: tuple[Decision, ...]
    changes: tuple[Change, ...] = ()
    """Changes made by the pass, if the text after it is known."""
    step: Step | None = None
    """The step of the compilation, or None for a module alone."""
    verdict: str | None = None
    """`agrees` or `differs`, comparing the model's result with XLA's, or None if unknown."""


def why(compilation: Compilation, name: str) -> tuple[Answer, ...]:
    """Explains an instruction of the final HLO with all models that apply.

    The instruction is tracked through all steps, where it may have other names. Returns an answer for each modeled pass
    that made a decision about it, in order; empty if there are none. Raises InputError if a file cannot be read, and
    HloSyntaxError if it is not valid HLO.
    """
    birth = compilation.births([name]).get(name)
    own = () if birth is None else (*(event.name for event in birth.history), birth.name)
    names = dict.fromkeys((name, *own))
    known = {model for model, platform in MODELS if platform in (None, compilation.platform)}
    found = []
    for number, step in enumerate(compilation.steps):
        if not number or step.name.removeprefix("after_") not in known or not _speaks_of(step, names):
            continue
        explanation = _explained(compilation, step)
        if explanation is None:
            continue
        decisions = {id(d): d for each in names for d in explanation.decisions_about(each)}
        if decisions:
            changes = {id(c): c for each in names for c in explanation.of(each)[0]}
            answer = Answer(
                step.name, tuple(decisions.values()), tuple(changes.values()), step, explanation.verdict
            )
            found.append(answer)
    return tuple(found)


def _speaks_of(step: Step, names: Iterable[str]) -> bool:
    """False where neither the text before a step nor the one behind it has any of these names: a model need not be asked."""
    # Of an element of a tuple a compact text has the tuple's name alone.
    stems = {stem for name in names for stem in (name, name.rpartition("_")[0]) if stem}
    try:
        return any(stem in text for text in (previous(step).file.text(), step.file.text()) for stem in stems)
    except hlo.InputError:
        return False


def _explained(compilation: Compilation, step: Step) -> Explanation | None:
    """A step with its model; None if a text cannot be read."""
    files = compilation.files_of(_LOG) if step.name == _LOG else ()
    try:
        before, after = previous(step).module, step.module
        log = files[0].text() if files else ""
        return asked(before, after, step.name, platform=compilation.platform, log=log, age=compilation.age)
    except (hlo.InputError, hlo.HloSyntaxError, ValueError):
        return None


def why_in(module: hlo.Module, name: str, platform: str | None = None) -> tuple[Answer, ...]:
    """Explains an instruction of a module with all models that apply.

    Args:
        module: The module.
        name: Name of the instruction.
        platform: `cpu`, `gpu` or `tpu`. None (the default) detects it from the module text.

    Raises:
        LookupError: The module has no instruction with this name.
        ValueError: The platform is unknown.
    """
    expect_module(module)
    instruction = meant_instruction(module, name)
    if instruction is None:
        raise LookupError(f"no instruction {name} in {module.name}{names_meant(module, name)}")
    return tuple(_answers(module, instruction, platform_of(module, platform)))


def _outcomes(module: hlo.Module, backend: Backend) -> Iterator[tuple[str, Outcome]]:
    """Outcomes of the models that fit one module, by name.

    The copy passes have run on a scheduled module: what they would do to it is no answer, only why its copies are there.
    """
    for name in _SCHEDULED if module.is_scheduled else _UNSCHEDULED:
        model = model_of(name, backend.value)
        if model is not None:
            with suppress(ValueError, LookupError, hlo.EditError):
                yield name, model(module, None, "", None)
    if module.is_scheduled:
        with suppress(ValueError, LookupError, hlo.EditError):
            yield "copy-insertion", standing_copies(module, backend.value)


def _answers(module: hlo.Module, i: hlo.Instruction, backend: Backend) -> Iterator[Answer]:
    for model_name, outcome in _outcomes(module, backend):
        decisions = outcome.of(i.name)
        if decisions:
            yield Answer(model_name, decisions)
    held = []
    for shard in shards_of(module, i) if i.sharding is not None else ():
        if shard.problem is None and shard.shape is not None:
            whole, part = shard.shape.without_layout(), shard.shard_shape.without_layout()
            because = f"each device holds {part} of {whole}, from {shard.sharding}"
            held.append(Decision(i.name, "sharded", because))
    if held:
        yield Answer("sharding", tuple(held))
