"""When operations are there for the first time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

import hlotext as hlo
from hlotext.diff.graph import Graph, base_opcode, plain_shape
from hlotext.diff.matching import Matching
from hlotext.dumps.changes import changes
from hlotext.dumps.lines import Line, computations, lines_of, usual_form
from hlotext.dumps.step import Step
from hlotext.dumps.timeline import whole_text

_DEFINED = re.compile(r"\n  (?:ROOT )?%([\w.\-]+) = ", re.ASCII)


@attrs.frozen
class Birth:
    """Where an operation is there for the first time."""

    step: Step
    name: str
    """What it is called there."""


def births(steps: Sequence[Step], names: Iterable[str]) -> dict[str, Birth]:
    """For each name of the last step's text, the first of the steps from which on the operation is there.

    It may have had other names before: it was only renamed where a step shows a name for the first time, but no more
    operations of its kind than the step before. Names that the last text does not have are left out. All texts are gone
    through once. Raises InputError, HloSyntaxError.
    """
    if not steps:
        return {}
    text = usual_form(steps[-1].file.text())
    lines = _lines(text, {name.removeprefix("%") for name in names})
    pending = {name: (name, line) for name, line in lines.items()}
    """By the name asked for: the name and line in the text that is looked at."""
    found: dict[str, Birth] = {}
    at = steps[-1]
    """The first step that has the text that is looked at, as far as steps were looked at."""
    for index in range(len(steps) - 1, 0, -1):
        if not pending:
            return found
        earlier = whole_text(steps[index - 1])
        if earlier is None:
            continue  # what cannot be read is passed over
        if earlier == text:
            at = steps[index - 1]
            continue
        before = _lines(earlier, {name for name, _ in pending.values()})
        comparison: _Renamed | None = None
        for asked, (name, line) in list(pending.items()):
            was = before.get(name)
            if was is None or was.opcode != line.opcode:
                comparison = comparison or _Renamed(earlier, text)
                was = comparison.before(line)
            if was is None:
                found[asked] = Birth(at, name)
                del pending[asked]
            else:
                pending[asked] = was.name, was
        text, at = earlier, steps[index - 1]
    return found | {asked: Birth(at, name) for asked, (name, _) in pending.items()}


def _lines(text: str, names: set[str]) -> dict[str, Line]:
    """The lines that define some names."""
    found: dict[str, Line] = {}
    for match in _DEFINED.finditer(text):
        if match[1] in names and match[1] not in found:
            end = text.find("\n", match.end())
            line = next(lines_of(text[match.start() : end if end >= 0 else len(text)]), None)
            if line is not None:
                found[line.name] = line
    return found


class _Renamed:
    """What operations of a text were called in the one before, where they have only another name."""

    def __init__(self, old: str, new: str) -> None:
        self._texts = old, new
        self._counts = _count(old), _count(new)
        self._renamed = {change.name: change.old_name for change in changes(old, new).renamed}
        self._matching: Matching | None = None

    def before(self, line: Line) -> Line | None:
        """The operation that has only another name now; None for one that is new."""
        kind = _kind(line)
        if self._counts[1][kind] > self._counts[0][kind]:
            return None
        if line.name in self._renamed:
            return _lines(self._texts[0], {self._renamed[line.name]}).get(self._renamed[line.name])
        if self._matching is None:
            old, new = self._texts
            self._matching = Matching(Graph(hlo.parse(old)), Graph(hlo.parse(new)))
        node = self._matching.new.names.get(line.name)
        partner = self._matching.partner(node) if node is not None else None
        if partner is None or node is None or base_opcode(partner) != base_opcode(node):
            return None
        if plain_shape(partner.shape) != plain_shape(node.shape):
            return None
        return _lines(self._texts[0], {partner.name}).get(partner.name)


def _count(text: str) -> Counter[tuple[str, str]]:
    """How many operations there are of each opcode and shape, layouts aside."""
    return Counter(_kind(line) for part in computations(text) for line in lines_of(part))


def _kind(line: Line) -> tuple[str, str]:
    return line.opcode, line.shape.partition("{")[0]
