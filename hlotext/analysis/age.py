"""Age of the XLA that wrote a text, as far as the text shows it.

XLA writes no version number. The evidence is forms and words introduced by one change and removed by another, each with
its date. Words are matched only where XLA writes them, so that a name or a string of the program leaves no mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date

import attrs

from hlotext.analysis.facts import fact
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.age import XlaAge, as_age


@attrs.frozen
class Mark:
    """Evidence of the age of XLA in a text or a dump folder."""

    what: str
    since: date | None = None
    until: date | None = None
    is_weak: bool = False
    """True if the mark depends on JAX or on default options; it is ignored where it contradicts another."""


@attrs.frozen
class _Row:
    """A mark of a text, and how it is found."""

    mark: Mark
    words: tuple[str, ...]
    """One of these is in each text that has the mark: looking for them is quick."""
    form: str = ""
    """The mark itself, as a regular expression; empty if the words are all."""
    holds: Callable[[str], bool] | None = None
    """Further condition on the whole text."""
    in_parts: bool = True
    """True if the words stand in headers, shapes or attributes: not in names, operands or between them."""


_COLLECTIVES = "all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"


def _is_of_old_jax(text: str) -> bool:
    """True if every scope of the program stands below `jit(main)`, as JAX named it: not a function called so."""
    return (
        "stack_frame_id=" not in text
        and "source_end_line=" not in text
        and re.search(r'op_name="jit\([^"/]*\)/(?!jit\(main\)/)', text) is None
    )


def _has_no_tables(text: str) -> bool:
    return "stack_frame_id=" not in text and "\nStackFrames\n" not in text


_OF_COMPILING = re.compile(
    r"^HloModule [^\n]*, (?:is_scheduled=|num_partitions=|replica_count=|allow_spmd_sharding_propagation_to_)",
    re.MULTILINE,
)


def _is_compiled(text: str) -> bool:
    """True if the header has what only a compilation sets: JAX lowers to texts without, in the same form in all releases."""
    return _OF_COMPILING.search(text) is not None


_NUMBERED = re.compile(r"#\d")
_OPERAND_PATH = re.compile(r"^[^\"\n]*? = [^\"\n]*?[(, ]%?[\w.-]+#\d", re.MULTILINE)


def _has_operand_paths(text: str) -> bool:
    """True if an operand is an element of a tuple. Few texts with `#sdy` have a number behind a `#`, which is soon seen."""
    return _NUMBERED.search(text) is not None and _OPERAND_PATH.search(text) is not None


def _is_plain_and_synchronous(text: str) -> bool:
    """True if a collective with `is_sync` stands outside of the computations of asynchronous ones."""
    for match in re.finditer(rf' (?:{_COLLECTIVES})\([^\n]*"is_sync":true', text):
        head = text.rfind("\n\n", 0, match.start()) + 2
        if "async" not in text[head : text.find("\n", head)]:
            return True
    return False


_ALWAYS = (
    _Row(Mark("stack-frame tables", since=date(2025, 12, 2)), ("stack_frame_id=", "\nStackFrames\n")),
    _Row(
        Mark("source locations in metadata, without stack-frame tables", until=date(2025, 12, 1), is_weak=True),
        ("source_file=",), r'metadata=\{[^\n]*op_name="[^"\n]*jit\([^\n]*source_file="', _has_no_tables,
    ),
    _Row(Mark("scheduling_name=", since=date(2024, 7, 26)), ("scheduling_name=",), "[ {]scheduling_name="),
    _Row(
        Mark("/jit(main)/ in op_name: JAX before 0.7", until=date(2025, 7, 22), is_weak=True),
        ("/jit(main)/",), r'op_name="jit\([^"/]*\)/jit\(main\)/', _is_of_old_jax,
    ),
    _Row(
        Mark("replica_groups=mesh[...]", since=date(2026, 3, 28)), ("replica_groups=mesh[",),
        r", replica_groups=mesh\[",
    ),
    _Row(
        Mark("is_spmd_generated", since=date(2026, 6, 15)), ('is_spmd_generated="',),
        r'[{,]is_spmd_generated="true"',
    ),
    _Row(
        Mark("operands NAME#I", since=date(2026, 6, 16)), ("#",), holds=_has_operand_paths, in_parts=False,
    ),
    _Row(Mark("xla.pdl_launch=", since=date(2026, 6, 29)), ("xla.pdl_launch=",), r'[{,]"?xla\.pdl_launch"?='),
    _Row(Mark("num_tiles_per_pid", since=date(2026, 7, 23)), ('"num_tiles_per_pid":',)),
    _Row(Mark("communication_domain", since=date(2026, 8, 10)), ('"communication_domain":',)),
    _Row(
        Mark("plain collectives with is_sync", since=date(2026, 8, 12)), ('"is_sync":true',),
        holds=_is_plain_and_synchronous,
    ),
    _Row(
        Mark("is_stable= of topk", since=date(2026, 6, 26)), ("is_stable=",), r" topk\([^\n]*\)[^\"\n]*, is_stable=",
    ),
    _Row(
        Mark("has_dynamic_root=", since=date(2026, 7, 8)), ("has_dynamic_root=",),
        r" collective-broadcast(?:-start)?\([^\n]*\)[^\"\n]*, has_dynamic_root=",
    ),
    _Row(
        Mark("order=TOTAL of comparisons", since=date(2026, 6, 15)), (", order=",),
        r" compare\([^\"\n]*\), direction=\w+, order=",
    ),
    _Row(
        Mark("type=TOTALORDER of comparisons", until=date(2026, 9, 16)), (", type=TOTALORDER",),
        r" compare\([^\"\n]*\), direction=\w+, type=TOTALORDER",
    ),
    _Row(
        Mark("xla.sdy.meshes in a compilation: JAX to 0.10", until=date(2026, 9, 17), is_weak=True),
        ("xla.sdy.meshes=", "xla.sdy.sharding="), r'[{,]xla\.sdy\.(?:meshes|sharding)="', holds=_is_compiled,
    ),
    _Row(
        Mark("sharding={mesh[...]}: JAX from 0.11", since=date(2026, 6, 15)), ("sharding={mesh[",),
        r", sharding=\{mesh\[",
    ),
    _Row(Mark("dma_priority", since=date(2026, 6, 15)), ('"dma_priority":',)),
    _Row(Mark("buffering_level", since=date(2026, 6, 15)), ('"buffering_level":',)),
    _Row(Mark("output_reverse_dimensions", since=date(2026, 9, 11)), ('"output_reverse_dimensions":',)),
    _Row(Mark("output_chunk_bound", until=date(2026, 11, 4)), ('"output_chunk_bound":',)),
)  # fmt: skip
"""Marks of every text."""

_LINE = r"^  (?:ROOT )?"
_BY_DEFAULT = (
    _Row(
        Mark("short form with names after computations", until=date(2025, 2, 16), is_weak=True),
        ("\n} // ",), r"^\} // [\w.-]+$", in_parts=False,
    ),
    _Row(
        Mark("operands with shapes", until=date(2025, 3, 10), is_weak=True), (" = ",),
        rf"{_LINE}%[\w.-]+ = [a-z]\S+ (?!constant|parameter)[a-z][\w-]*\([a-z]\w*\[[\d,]*\]\S* %",
        in_parts=False,
    ),
    _Row(
        Mark("long form without operand shapes", since=date(2025, 3, 11), is_weak=True), (" = ",),
        rf"{_LINE}%[\w.-]+ = [a-z]\S+ (?!constant|parameter)[a-z][\w-]*\(%", in_parts=False,
    ),
    _Row(
        Mark("get-tuple-element written out", until=date(2026, 7, 12), is_weak=True), (" get-tuple-element(",),
        r"^  (?!ROOT )%[\w.-]+ = .* get-tuple-element\(%", in_parts=False,
    ),
)  # fmt: skip
"""Marks of the texts that XLA dumps, by default options."""

_DUMPED = re.compile(r"(?:^|[/\\])(?:\d{10,}\.)?module_\d{4,18}\.[^/\\]+$")
"""The name of a file that XLA dumped."""


@fact
def age_of(module: Module) -> XlaAge:
    """Infers the range of XLA versions that may have written a module, from its text before any edit.

    A module that was built or read from a proto is printed for this purpose, and the style of printing is not used as
    evidence. Some evidence is valid for dumped files only, which are recognized by name. See `Compilation.age` for a
    whole dump.
    """
    source = module.source
    if source is None:
        return joined(text_marks(str(module)))
    text = str(source.text)
    is_dumped = _DUMPED.search(source.name) is not None
    return joined(text_marks(text, is_dumped=is_dumped, parts=_parts_once(module, text)))


def _parts_once(module: Module, text: str) -> str:
    """A text without names and operands, in which shapes and attributes that lines share stand once; else all of it."""
    computations = module.computations
    if module.is_modified or not computations or not all(c._parts_read for c in computations):
        return text
    before, behind = text[: computations[0]._start], text[computations[-1]._end :]
    return "\n".join([before, *[part[0] for part in module._parts], behind])


def age_for(module: Module, age: XlaAge | date | str | None = None) -> XlaAge:
    """Returns `age` as an `XlaAge`, or, if None, the range of XLA versions inferred from the module text.

    Raises ValueError for a date or version that cannot be read.
    """
    return as_age(age) or age_of(module)


def text_marks(text: str, *, is_dumped: bool = False, parts: str | None = None) -> Iterator[Mark]:
    """Yields the evidence in a text, including that of its printing style if XLA dumped it with default options.

    `parts` contains all shapes, attributes and headers of the text, if known, so that less text has to be searched.
    """
    for row in (*_ALWAYS, *_BY_DEFAULT) if is_dumped else _ALWAYS:
        looked = parts if parts is not None and row.in_parts else text
        if (
            any(words in looked for words in row.words)
            and (not row.form or re.search(row.form, text, re.MULTILINE) is not None)
            and (row.holds is None or row.holds(text))
        ):
            yield row.mark


def joined(marks: Iterable[Mark]) -> XlaAge:
    """Intersects the intervals of all evidence. Weak evidence that contradicts the rest is ignored.

    If even strong evidence is contradictory, as in files of several releases, both ends of the result are open.
    """
    found = list(marks)
    strong = [mark for mark in found if not mark.is_weak]
    since, until = _days(strong)
    taken = list(strong)
    for mark in found:
        if mark.is_weak:
            low, high = _days([*taken, mark])
            if low is None or high is None or low <= high:
                taken.append(mark)
    since, until = _days(taken)
    if since is not None and until is not None and since > until:
        return XlaAge(None, None, tuple(mark.what for mark in found))  # files of several releases
    return XlaAge(since, until, tuple(mark.what for mark in found if mark in taken))


def _days(marks: Iterable[Mark]) -> tuple[date | None, date | None]:
    marks = list(marks)
    return (
        max((mark.since for mark in marks if mark.since is not None), default=None),
        min((mark.until for mark in marks if mark.until is not None), default=None),
    )
