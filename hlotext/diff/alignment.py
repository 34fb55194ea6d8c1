"""Modules of one form: each line stands where the other has it, and few say something else.

So it is with two builds of one program of which an option or a constant was changed. Then an operation is the one in the same
place, and only lines that differ need to be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import ne

import hlotext as hlo
from hlotext import analysis
from hlotext.analysis.age import age_for
from hlotext.diff.node_matching import likeness
from hlotext.diff.value_graph import PASSING, TAKING
from hlotext.diff.value_numbering import Said, ValueNumbering
from hlotext.ir.tables.opcode import Elements
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.memory.sharing import is_told_apart

_LEAST = 3
"""Minimum likeness of two operations of different kinds in one place, by themselves: operands and users agree in addition."""
_ROUTES = PASSING | TAKING | {"tuple"}
"""Opcodes of which it depends on the attributes what a value is."""

Pairs = list[tuple[hlo.Instruction, hlo.Instruction]]
"""Operations, new and old."""


def differing(
    structure: ValueNumbering,
    old: Mapping[hlo.Computation, int],
    new: Mapping[hlo.Computation, int],
    settled: set[int],
) -> Pairs | None:
    """Returns the differing lines of two modules of equal structure; None for other modules.

    Args:
        structure: What numbered both.
        old: The classes of the computations of the old module, in its order.
        new: Those of the new one.
        settled: The classes of which both have as many.
    """
    if len(old) != len(new):
        return None
    places = tuple({computation: place for place, computation in enumerate(side)} for side in (new, old))
    found: Pairs = []
    for (mine, my_class), (theirs, their_class) in zip(new.items(), old.items(), strict=True):
        if my_class == their_class:
            continue
        first, second = structure.said[mine], structure.said[theirs]
        if my_class in settled or their_class in settled or not _have_one_form(first, second):
            return None
        nodes = zip(mine.instructions, theirs.instructions, strict=True)
        for (node, other), said, was in compress(
            zip(nodes, first.lines, second.lines, strict=True), map(ne, first.lines, second.lines)
        ):
            if not _have_one_place(said, was) or [places[0].get(c) for c in node.called_computations] != [
                places[1].get(c) for c in other.called_computations
            ]:
                return None
            if structure.local(node) == structure.local(other):
                continue
            if node.opcode in TAKING or (
                node.opcode != other.opcode and not _ROUTES.isdisjoint((node.opcode, other.opcode))
            ):
                return None
            if structure.loose(node) != structure.loose(other) and likeness(node, other) < _LEAST:
                return None
            found.append((node, other))
    # What says here what another line said there may have moved.
    if {structure.local(node) for node, _ in found} & {structure.local(node) for _, node in found}:
        return None
    return found


def cost_the_same(old: hlo.Module, new: hlo.Module, pairs: Pairs) -> bool:
    """Returns True if two modules of equal structure have the same costs and memory.

    Checks what the models depend on; corresponding loops must have equal trip counts.
    """
    return (
        all(_is_as_costly(*pair) for pair in pairs)
        and dict(old.attributes) == dict(new.attributes)
        and analysis.backend_of(old) is analysis.backend_of(new)
        and age_for(old) == age_for(new)
        and list(analysis.call_graph(old).trips.values()) == list(analysis.call_graph(new).trips.values())
    )


def _is_as_costly(new: hlo.Instruction, old: hlo.Instruction) -> bool:
    """True for two elementwise operations of one cost rule and shape, whose operands may share memory with them alike."""
    rows = OPCODES.get(new.opcode), OPCODES.get(old.opcode)
    mine, theirs = (
        (row.family, row.cost_rule, row.elements, row.keeps_layout) if row else None for row in rows
    )
    return (
        mine is not None
        and mine == theirs
        and mine[2] is Elements.POINTWISE
        and not is_told_apart(new)
        and not is_told_apart(old)
        and new.shape == old.shape
        and dict(new.attributes) == dict(old.attributes)
    )


def _have_one_form(first: Said, second: Said) -> bool:
    return (first.thread, first.root, len(first.lines)) == (second.thread, second.root, len(second.lines))


def _have_one_place(said: tuple[object, ...], was: tuple[object, ...]) -> bool:
    """True if two lines read the same, callees aside."""
    if isinstance(said[0], tuple) and isinstance(was[0], tuple):
        return said[0][1:] == was[0][1:] and said[2] == was[2]
    return said[1:] == was[1:] and type(said[0]) is type(was[0])
