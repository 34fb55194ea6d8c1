"""When an operation is there for the first time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import hlotext as hlo
from hlotext.diff.graph import Graph, base_opcode, plain_shape
from hlotext.diff.matching import Matching
from hlotext.dumps.lines import Line, computations, lines_of, usual_form
from hlotext.dumps.step import Step


def introduced(steps: Sequence[Step], name: str) -> Step | None:
    """The first of the steps from which on an operation is there, under this name or those that it had before.

    It was only renamed where a step shows the name for the first time, but no more operations of its kind than before.
    """
    if not steps:
        return None
    name = name.removeprefix("%")
    index = len(steps) - 1
    line = _find(_text(steps[index]), name)
    if line is None:
        return None
    later = _text(steps[index])
    while index:
        earlier = _text(steps[index - 1])
        found = line if earlier == later else _find(earlier, name)
        if found is None or found.opcode != line.opcode:
            found = _before(steps[index - 1], steps[index], earlier, later, line)
            if found is None:
                return steps[index]
            name = found.name
        line, later = found, earlier
        index -= 1
    return steps[0]


def _text(step: Step) -> str:
    return usual_form(step.file.text())


def _find(text: str, name: str) -> Line | None:
    """The line that defines a name."""
    start = 0
    wanted = f"%{name} = "
    while (place := text.find(wanted, start)) >= 0:
        begin, end = text.rfind("\n", 0, place), text.find("\n", place)
        found = next(lines_of(text[begin : end if end >= 0 else len(text)]), None)
        if found is not None and found.name == name:
            return found
        start = place + 1
    return None


def _count(text: str) -> Counter[tuple[str, str]]:
    """How many operations there are of each opcode and shape, layouts aside."""
    return Counter(_kind(line) for part in computations(text) for line in lines_of(part))


def _kind(line: Line) -> tuple[str, str]:
    return line.opcode, line.shape.partition("{")[0]


def _before(old: Step, new: Step, old_text: str, new_text: str, line: Line) -> Line | None:
    """The operation of the step before that has only another name now; None for one that is new."""
    kind = _kind(line)
    if _count(new_text)[kind] > _count(old_text)[kind]:
        return None
    before, after = Graph(hlo.parse(old_text)), Graph(hlo.parse(new_text))
    node = after.names.get(line.name)
    if node is None or not after.is_real(node):
        return None
    partner = Matching(before, after).partner(node)
    if (
        partner is None
        or base_opcode(partner) != base_opcode(node)
        or plain_shape(partner.shape) != plain_shape(node.shape)
    ):
        return None
    return _find(old_text, partner.name)
