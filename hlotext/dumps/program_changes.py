"""Two programs compared by their arguments, results, donation, shardings and header, then by their operations.

These differ before any operation does, and operations differ because of them: another batch, another element type, another
mesh. What is found here is told first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal

import attrs

from hlotext.analysis.entries import EntryArray, arguments, only_counts_differ, results
from hlotext.analysis.formatting import attribute_text, pluralize
from hlotext.analysis.origins import responsible_frame
from hlotext.dumps.fingerprints import (
    FORMS_OF_VALUES,
    NOTATION,
    Signatures,
    differing_values,
    first_difference,
    other_notation,
)
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits

ChangeKind = Literal[
    "mesh",
    "arguments",
    "types",
    "sizes",
    "results",
    "donation",
    "layouts",
    "sharding",
    "header",
    "structure",
    "operations",
    "opcodes",
]

_TOLD = (
    "entry_computation_layout",
    "buffer_donor",
    "input_output_alias",
    "is_scheduled",
    "num_partitions",
    "replica_count",
)
"""Attributes of the header that are compared as arguments, results or settings, or that are of a stage."""
_MESH = re.compile(r"mesh\[('[^\]]*)\]")
_MESHES = re.compile(rf"{_MESH.pattern}|#sdy\.mesh<\[([^\]]*)\]>")
"""A mesh in a sharding, or in the header as JAX 0.10 writes it."""
_SHAPE = re.compile(r"(\w+)\[([\d,<=]*)\]")
_NAMED = 3
"""Arguments that a sentence names; more are counted."""
_LONGEST = 80


@attrs.frozen
class ProgramChange:
    """A change of a program's arguments, results, operations or header."""

    kind: ChangeKind
    text: str

    def __str__(self) -> str:
        return self.text


def program_changes(old: Module, new: Module) -> tuple[ProgramChange, ...]:
    """Returns the changes between two programs, those that explain others first.

    Shardings are not compared between JAX releases with different notations.
    """
    return tuple(_changes(old, new))


def argument_changes(old: Module, new: Module) -> tuple[ProgramChange, ...]:
    """Returns the changes of the shapes and types of the arguments, and of their donation."""
    return tuple(_of_arguments(arguments(old), arguments(new)))


def have_common_arguments(old: Module, new: Module) -> bool:
    """Returns True if two programs share an argument name, or if either has no arguments."""
    before, after = ({one.label for one in arguments(module)} for module in (old, new))
    return not before or not after or not before.isdisjoint(after)


def elided_constants(module: Module) -> int:
    """Returns the number of constants whose values are elided (`{...}`)."""
    return sum(
        i.opcode == "constant" and i.literal is not None and i.literal.is_elided
        for i in module.instructions()
    )


def moved_lines(old: Module, new: Module) -> str | None:
    """Describes how the source lines of two equal programs differ; None if they do not."""
    pairs = zip(old.instructions(), new.instructions(), strict=False)
    moved = [(_place(one), _place(other)) for one, other in pairs if _place(one) != _place(other)]
    if not moved:
        return None
    was, now = moved[0]
    return f"source lines of {pluralize(len(moved), 'operation')}, first {was or 'none'} -> {now or 'none'}"


def operation_change(usual: Instruction | None, own: Instruction | None, words: tuple[str, str, str]) -> str:
    """Formats an operation that differs between two programs, with its Python line.

    `words` are the texts for an operation missing in the second program, for one missing in the first, and for a
    difference, with the placeholders `{own}` and `{usual}` for its values.
    """
    shown = usual or own
    assert shown is not None
    inside = shown.computation
    where = f" in {inside.name}" if inside is not None and not inside.is_entry else ""
    text = f"{shown.name} ({shown.opcode}){where}"
    if usual is None or own is None:
        text += ", " + (words[0] if own is None else words[1])
    else:
        theirs, mine = differing_values(usual, own)
        text += ": " + words[2].format(own=mine, usual=theirs)
    place = _place(shown)
    return f"{text}, at {place}" if place is not None else text


_WORDS = ("which the second lacks", "which the first lacks", "{usual} -> {own}")


def _place(instruction: Instruction) -> str | None:
    frame = responsible_frame(instruction)
    return f"{frame.file}:{frame.line}" if frame is not None else None


def _changes(old: Module, new: Module) -> Iterator[ProgramChange]:
    same_notation = other_notation(old, new) is None
    if same_notation:
        yield from _meshes(old, new)
    before, after = arguments(old), arguments(new)
    yield from _of_arguments(before, after)
    if _are_paired(before, after):
        yield from _fields("layouts", "layout", before, after, lambda one: one.layout)
        if same_notation:
            yield from _fields("sharding", "sharding", before, after, lambda one: one.sharding)
    gives, gave = results(new), results(old)
    if len(gave) != len(gives):
        yield ProgramChange("results", f"{pluralize(len(gave), 'result')} -> {len(gives)}")
    else:
        if [one.shape for one in before] == [one.shape for one in after]:
            yield from _shapes(gave, gives, "result")
        if same_notation:
            yield from _fields(
                "sharding", "sharding of result", gave, gives, lambda one: one.sharding, by_number=True
            )
    yield from _header(old, new)
    operations = list(_operations(old, new, () if same_notation else NOTATION))
    yield from sorted([*operations, *_opcodes(old, new)], key=lambda one: one.kind != "structure")


def _are_paired(before: Sequence[EntryArray], after: Sequence[EntryArray]) -> bool:
    return len(before) == len(after) or [one.label for one in before] == [one.label for one in after]


def _of_arguments(before: Sequence[EntryArray], after: Sequence[EntryArray]) -> Iterator[ProgramChange]:
    """Arguments that come or go; else shapes and types, and donation."""
    if not _are_paired(before, after):
        yield _counts(before, after)
    else:
        yield from _shapes(before, after, "argument")
        yield from _donation(before, after)


def _operations(old: Module, new: Module, left_out: Collection[str]) -> Iterator[ProgramChange]:
    """Operations that one program has more of than the other, wherever they stand; else the first that differs."""
    sides = [[i for i in module.instructions() if i.opcode not in _NOT_LEAVES] for module in (old, new)]
    signatures = Signatures(left_out)
    own = [[signatures.alone(i) for i in side] for side in sides]
    lacking = Counter(own[0]) - Counter(own[1]), Counter(own[1]) - Counter(own[0])
    extra = [
        [i for i, one in zip(side, keys, strict=True) if more[one]]
        for side, keys, more in zip(sides, own, lacking, strict=True)
    ]
    told = [[i for i in side if i.opcode not in FORMS_OF_VALUES] or side for side in extra]
    if told[0] and told[1] and Counter(i.opcode for i in told[0]) == Counter(i.opcode for i in told[1]):
        pair = told[0][0], next(i for i in told[1] if i.opcode == told[0][0].opcode)
        more = f", and {len(told[0]) - 1} more" if len(told[0]) > 1 else ""
        yield ProgramChange("operations", f"operation {operation_change(*pair, _WORDS)}{more}")
        return
    sentences = []
    for side, which in zip(told, ("first", "second"), strict=True):
        if side:
            counts = Counter(i.opcode for i in side)
            names = _some([f"{opcode} ({count})" for opcode, count in counts.most_common()])
            lines = list(dict.fromkeys(place for i in side if (place := _place(i)) is not None))
            where = f", at {_some(lines)}" if lines else ""
            sentences.append(f"only in the {which}: {names}{where}")
    if sentences:
        yield ProgramChange("operations", f"operations {'; '.join(sentences)}")
    first = first_difference(old, new, inside=True, left_out=left_out)
    if not any(told) and first != (None, None):
        yield ProgramChange("operations", f"first operation: {operation_change(*first, _WORDS)}")


_NOT_LEAVES = traits.GIVEN | traits.TUPLES | traits.CONTROL_FLOW
"""Opcodes whose shapes and bodies differ because of what they hold."""


def _opcodes(old: Module, new: Module) -> Iterator[ProgramChange]:
    """Numbers of operations, those first that only one program has."""
    counts = [
        Counter(i.opcode for i in module.instructions() if i.opcode not in _UNTOLD) for module in (old, new)
    ]
    rows = [(opcode, counts[0][opcode], counts[1][opcode]) for opcode in {**counts[0], **counts[1]}]
    rows = [row for row in rows if row[1] != row[2]]
    rows.sort(
        key=lambda row: (row[0] not in _TELLING, bool(row[1] and row[2]), -abs(row[1] - row[2]), row[0])
    )
    if rows:
        more = f" and {len(rows) - _OPCODES} more opcodes" if len(rows) > _OPCODES else ""
        told = ", ".join(f"{opcode} {was} -> {now}" for opcode, was, now in rows[:_OPCODES])
        kind: ChangeKind = "structure" if rows[0][0] in _TELLING else "opcodes"
        yield ProgramChange(kind, f"operation counts before optimization: {told}{more}")


_UNTOLD = traits.GIVEN | traits.TUPLES
_TELLING = (traits.CONTROL_FLOW - {"call"}) | traits.COLLECTIVE_KINDS | traits.FORWARDS_OPERAND
"""Opcodes that say most about how a program was changed: a loop that is gone, a barrier of rematerialization."""
_OPCODES = 5
"""Opcodes that are told."""


def _meshes(old: Module, new: Module) -> Iterator[ProgramChange]:
    """Meshes of which each program has one."""
    sides = [dict.fromkeys(map(_axes, _MESHES.findall(str(module)))) for module in (old, new)]
    gone, come = ([mesh for mesh in side if mesh not in other] for side, other in (sides, sides[::-1]))
    if len(gone) == len(come) == 1:
        yield ProgramChange("mesh", f"mesh: {gone[0]} -> {come[0]}")


def _axes(forms: tuple[str, str]) -> str:
    """Axes and their sizes, whichever form a release writes."""
    return re.sub(r"[\s'\"\\]", "", forms[0] or forms[1])


def _counts(before: Sequence[EntryArray], after: Sequence[EntryArray]) -> ProgramChange:
    names = [{one.label for one in side} for side in (before, after)]
    parts = [
        f"{word} {_some([one.label for one in side if one.label not in other])}"
        for word, side, other in (("without", before, names[1]), ("with", after, names[0]))
        if any(one.label not in other for one in side)
    ]
    return ProgramChange(
        "arguments", f"{pluralize(len(before), 'argument')} -> {len(after)}: {', '.join(parts)}"
    )


def _shapes(before: Sequence[EntryArray], after: Sequence[EntryArray], what: str) -> Iterator[ProgramChange]:
    """Element types and sizes, each change with all the arrays that have it."""
    types: dict[tuple[str, str], list[EntryArray]] = {}
    sizes: dict[tuple[str, str], list[EntryArray]] = {}
    for one, other in zip(before, after, strict=False):
        pair = _SHAPE.match(one.shape), _SHAPE.match(other.shape)
        if one.shape == other.shape or pair[0] is None or pair[1] is None:
            continue
        if pair[0][1] != pair[1][1]:
            types.setdefault((pair[0][1], pair[1][1]), []).append(one)
        if pair[0][2] != pair[1][2]:
            sizes.setdefault(_sizes(pair[0][2], pair[1][2]), []).append(one)
    for kind, found in (("types", types), ("sizes", sizes)):
        for (was, now), some in found.items():
            of = _of([one.label for one in some], len(before), what)
            title = "element type" if kind == "types" else "size" if "," not in was else "sizes"
            yield ProgramChange(kind, f"{title} {was} -> {now} {of}")  # type: ignore[arg-type]


def _sizes(old: str, new: str) -> tuple[str, str]:
    """The one dimension that differs, as `32`, else all: a batch is the same change in arrays of other ranks."""
    sides = old.split(","), new.split(",")
    if len(sides[0]) == len(sides[1]):
        differing = {pair for pair in zip(*sides, strict=True) if pair[0] != pair[1]}
        if len(differing) == 1:
            return differing.pop()
    return f"[{old}]", f"[{new}]"


def _donation(before: Sequence[EntryArray], after: Sequence[EntryArray]) -> Iterator[ProgramChange]:
    if len(before) == len(after) and {one.label for one in before} != {one.label for one in after}:
        # One text may lack the names of arguments, as golden files do: the number tells which is which.
        pairs = list(zip(before, after, strict=True))
        gone = [one.label for one, other in pairs if one.is_donated and not other.is_donated]
        come = [other.label for one, other in pairs if other.is_donated and not one.is_donated]
    else:
        sides = [[one.label for one in side if one.is_donated] for side in (before, after)]
        gone = [name for name in sides[0] if name not in sides[1]]
        come = [name for name in sides[1] if name not in sides[0]]
    for names, word in ((come, "donated now"), (gone, "no longer donated")):
        if names:
            yield ProgramChange("donation", f"donation: {word} {_of(names, len(before), 'argument')}")


def _fields(
    kind: ChangeKind,
    title: str,
    before: Sequence[EntryArray],
    after: Sequence[EntryArray],
    ask: Callable[[EntryArray], str],
    *,
    by_number: bool = False,
) -> Iterator[ProgramChange]:
    """A field of arrays whose ranks are the same, as the first array has it."""
    differing = [
        (one, other)
        for one, other in zip(before, after, strict=False)
        if ask(one) != ask(other) and one.shape.count(",") == other.shape.count(",")
    ]
    if differing:
        one, other = differing[0]
        name = str(one.number) if by_number else one.label
        was, now = (_short(_MESH.sub("mesh", ask(side))) or "none" for side in (one, other))
        if was == now and kind == "sharding":
            return  # of another mesh, which is said
        more = f", and of {len(differing) - 1} more" if len(differing) > 1 else ""
        yield ProgramChange(kind, f"{title} {'' if by_number else 'of '}{name}: {was} -> {now}{more}")


def _header(old: Module, new: Module) -> Iterator[ProgramChange]:
    left_out = {*_TOLD, *NOTATION}
    for name in dict.fromkeys((*old.attributes, *new.attributes)):
        was, now = (_short(attribute_text(side.attributes.get(name))) or "none" for side in (old, new))
        a, b = old.attributes.get(name), new.attributes.get(name)
        if name not in left_out and str(a) != str(b) and not only_counts_differ(a, b):
            yield ProgramChange("header", f"{name}: {was} -> {now}")


def _of(names: Sequence[str], total: int, what: str) -> str:
    if len(names) == total > 1:
        return f"in all {total} {what}s"
    return f"in {what}{'s' if len(names) > 1 else ''} {_some(names)}"


def _some(names: Sequence[str]) -> str:
    left = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {left} more" if left > 0 else "")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
