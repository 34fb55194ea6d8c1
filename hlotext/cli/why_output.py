"""Answers of models about an instruction, as text and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import hlotext as hlo
from hlotext import dumps
from hlotext.compiler import Answer, Decision


def facts(answers: Iterable[Answer]) -> list[tuple[str, str]]:
    """A line for each decision, with the model and the step that it belongs to."""
    found = []
    for answer in answers:
        where = f"{answer.model} (step {answer.step.index})" if answer.step is not None else answer.model
        doubt = ", where the model differs from XLA" if answer.verdict == "differs" else ""
        for decision in answer.decisions[:_MOST]:
            rule = "" if decision.rule == decision.because else decision.rule
            told = f" [{rule}{doubt if rule else doubt[2:]}]" if rule or doubt else ""
            found.append((where, f"{decision.instruction}: {decision.because}{told}"))
            where = ""
        if len(answer.decisions) > _MOST:
            found.append(("", f"... and {len(answer.decisions) - _MOST:,} more (--format json has all)"))
    return found


_MOST = 6
"""Decisions of one model that are shown."""


def as_json(answer: Answer) -> dict[str, Any]:
    """One answer, for JSON."""
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
    """Decisions of models, for JSON."""
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
    """True if a path is a file that is no part of a dump folder."""
    if not os.path.isfile(path):
        return path == "-"
    try:
        return not dumps.open(path).compilations
    except hlo.InputError:
        return False
