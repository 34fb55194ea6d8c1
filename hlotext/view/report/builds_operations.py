"""Operations that a build added, as its card names them, and what is told of one that is clicked."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_count, seconds
from hlotext.view.report.builds_text import PARTS, place_text
from hlotext.view.report.parts import PageTable, columns_of

if TYPE_CHECKING:
    from hlotext.tables.history import BuildStep, Grown

_OPERATIONS = columns_of("report.builds_operations")
_MOST_OPERATIONS, _PART = 10, 0.01
"""Kinds of operations in a card, and the part of the largest that one has to have to be in it."""
_AMOUNTS = ("more_held", "more_bytes", "more_flops", "more_seconds")


@attrs.frozen
class Operation:
    """An operation named on a card, with the facts shown when it is clicked."""

    id: str
    name: str
    facts: Sequence[tuple[str, str]]
    commands: Sequence[tuple[str, str]]
    """Commands that show more, each behind its purpose."""


def operation(id: str, one: Grown, build: str, module: str, path: str | None) -> Operation:
    """Returns known facts of an operation of a build, and commands that show more."""
    sizes = [
        ("holds more at the peak", byte_text(one.more_held) if one.more_held > 0 else ""),
        ("writes more", byte_text(one.more_bytes) if one.more_bytes > 0 else ""),
        ("more minimum time", seconds(one.more_seconds) if one.more_seconds > 0 else ""),
        ("more flops", format_count(one.more_flops) if one.more_flops > 0 else ""),
        ("sends more", byte_text(one.more_sent) if one.more_sent > 0 else ""),
    ]
    facts = [
        ("what", f"new {one.label}" if one.is_new_collective else one.label),
        ("build", f"{build}, {module}"),
        ("Python", place_text(one.file, one.line)),
        ("scope", one.scope),
        ("shape", one.shape),
        ("of its kind", f"{one.alike:,}" if one.alike > 1 else ""),
        *sizes,
    ]
    commands = []
    if path:
        at, name = shlex.quote(path), shlex.quote(one.name)
        commands = [
            ("Its line, operands and users", f"hlotext show {at} -i {name}"),
            ("The graph around it", f"hlotext graph {at} -i {name} -o operation.html"),
        ]
    return Operation(id, one.name, [(title, text) for title, text in facts if text], commands)


def grown_most(steps: Sequence[BuildStep]) -> tuple[Sequence[Grown], int]:
    """Returns the operations that grew most, and their number: new collectives first, then by the first metric that
    rose.

    Operations whose part in every metric is negligible are left out.
    """
    # A kind of operations has another example in each figure; that of the first is shown. What grew most in one is there.
    kinds: dict[tuple[str, str], Grown] = {}
    for one in itertools.chain((one.grown[0] for one in steps if one.grown), *(one.grown for one in steps)):
        kinds.setdefault((one.label, one.scope), one)
    firsts = {(one.grown[0].label, one.grown[0].scope) for one in steps if one.grown}
    most = [max((getattr(one, name) for one in kinds.values()), default=0) for name in _AMOUNTS]

    def has_part(one: Grown) -> bool:
        parts = zip((getattr(one, name) for name in _AMOUNTS), most, strict=True)
        return any(value > 0 and value >= _PART * largest for value, largest in parts)

    measures = [PARTS[one.figure] for one in steps if one.is_worse and one.figure in PARTS]

    def order(one: Grown) -> tuple[bool, list[float], float, str]:
        parts = [-getattr(one, measure) for measure in measures]
        return not one.is_new_collective, parts, -one.more_bytes, one.name

    needed = [one for key, one in kinds.items() if one.is_new_collective or key in firsts]
    others = sorted((one for key, one in kinds.items() if one not in needed and has_part(one)), key=order)
    grown = sorted([*needed, *others[: max(0, _MOST_OPERATIONS - len(needed))]], key=order)
    return grown, max((one.grown_kinds for one in steps), default=0)


def table(grown: Sequence[Grown], total: int, links: Mapping[str, str]) -> PageTable:
    """Returns a table of a card's operations, with links to their facts."""
    rows = [
        (
            one.name,
            place_text(one.file, one.line),
            max(one.more_held, 0) or None,
            max(one.more_bytes, 0) or None,
            one.more_seconds if one.more_seconds > 0 else None,
            one.more_flops if one.more_flops > 0 else None,
            max(one.more_sent, 0) or None,
            one.alike if one.alike > 1 else None,
            f"new {one.label}" if one.is_new_collective else one.label,
            one.shape,
        )
        for one in grown
    ]
    return PageTable(
        "operations",
        "New or larger operations, grouped by kind and scope",
        _OPERATIONS,
        rows,
        total,
        links=links,
    )
