"""Answers of models about an instruction, as text and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import responsible_frame
from hlotext.analysis.entries import program_name
from hlotext.ir.tables import traits

if TYPE_CHECKING:
    from hlotext.compiler import Answer, Decision


def facts(answers: Iterable[Answer], module: hlo.Module | None = None) -> list[tuple[str, str]]:
    """Returns a line for each decision, with its model and step, and the program's names of the instructions in it.

    `module` is the text for answers without a step.
    """
    found = []
    places: dict[str, dict[str, None]] = {}
    for answer in answers:
        where = f"{answer.model} (step {answer.step.index})" if answer.step is not None else answer.model
        doubt = ", where the model differs from XLA" if answer.verdict == "differs" else ""
        for decision in answer.decisions[:_MOST]:
            rule = "" if decision.rule == decision.because else decision.rule
            told = f" [{rule}{doubt if rule else doubt[2:]}]" if rule or doubt else ""
            found.append((where, f"{decision.instruction}: {decision.because}{told}"))
            where = ""
        text = answer.step.module if answer.step is not None else module
        for name in (name for one in answer.decisions[:_MOST] for name in one.others):
            if text is not None and (place := _in_program(text, name)):
                places.setdefault(place, {})[name] = None
        if len(answer.decisions) > _MOST:
            found.append(("", f"... and {len(answer.decisions) - _MOST:,} more (--format json has all)"))
    if places:
        found.append(("lines", "; ".join(f"{', '.join(names)}: {place}" for place, names in places.items())))
    return found


def _in_program(module: hlo.Module, name: str) -> str:
    """The argument that an instruction is, or else the Python line that it is there for; "" where the text tells neither."""
    found = module.find(name)
    if not isinstance(found, hlo.Instruction):
        return ""
    if argument := program_name(found):
        return f"argument {argument}"
    frame = responsible_frame(found)
    return f"{frame.file.rpartition('/')[2]}:{frame.line}" if frame is not None else ""


_MOST = 6
"""Decisions of one model that are shown."""


def wrapped(instruction: hlo.Instruction) -> hlo.Instruction | None:
    """The only operation of a fusion, which says more than the fusion why it is there; None for other instructions."""
    if instruction.opcode != "fusion" or not instruction.called_computations:
        return None
    real = [one for one in instruction.called_computations[0].instructions if one.opcode not in _FREE]
    return real[0] if len(real) == 1 else None


_FREE = traits.GIVEN | traits.FORWARDS_BUFFER | traits.TUPLES
"""Opcodes that compute nothing."""


def as_json(answer: Answer) -> dict[str, Any]:
    """Returns an answer as JSON values."""
    return {
        "model": answer.model,
        "step": None if answer.step is None else answer.step.index,
        "verdict": answer.verdict,
        "changes": [
            {"kind": change.kind, "what": change.what, "name": change.name} for change in answer.changes
        ],
        "decisions": decisions_json(answer.decisions),
    }


def decisions_json(decisions: Iterable[Decision]) -> list[dict[str, Any]]:
    """Returns decisions of models as JSON values."""
    return [
        {
            "instruction": d.instruction,
            "rule": d.rule,
            "because": d.because,
            "others": list(d.others),
            "source": d.source,
        }
        for d in decisions
    ]


def is_module_alone(path: str) -> bool:
    """True if a path is a file that is not part of a dump folder."""
    if not os.path.isfile(path):
        return path == "-"
    try:
        return not dumps.open(path).compilations
    except hlo.InputError:
        return False
