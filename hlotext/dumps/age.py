"""Age of the XLA that wrote a folder, by marks in all its files. Those of texts are in `hlotext.analysis.age`."""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import TYPE_CHECKING

from hlotext.analysis.age import Mark, joined, text_marks
from hlotext.dumps.files import DumpFile
from hlotext.ir.tables.xla_changes import ASYNC_RESULTS_BEGIN_LATE, STARTS_NUMBERED_FIRST
from hlotext.ir.values.age import XlaAge
from hlotext.memory.files.records import Notes, read_ranges, read_values
from hlotext.syntax.source.inputs import InputError

if TYPE_CHECKING:
    from hlotext.dumps.compilation import Compilation

_NOT_BY_DEFAULT = re.compile(
    r"xla_dump_(?:hlo_as_long_text|compact_gte|large_constants|hlo_metadata|disable_metadata)$"
)
"""Options that change how dumped texts are printed: with them the form of a text tells nothing."""

_KINDS = {
    "memory-usage": Mark("a memory-usage report", since=date(2024, 10, 4)),
    "buffer-values": Mark("a separate values file", since=date(2026, 4, 3)),
    "live-range": Mark("a separate live-range file", since=date(2026, 4, 3)),
    "thunk-metadata": Mark("thunk_metadata.txt", since=date(2025, 10, 9)),
    "hlo-config": Mark("before_config_assignment.txt", since=date(2026, 6, 29)),
}
"""Files that came one day, by kind."""

_SHARDY = {
    "03.after_minimal_partitioner_with_global_shapes.mlir": Mark(
        "Shardy's after_minimal_partitioner_with_global_shapes", until=date(2026, 10, 19)
    ),
    "03.after_partitioner_passes.mlir": Mark("Shardy's after_partitioner_passes", since=date(2026, 8, 23)),
}
_KERNELS = Mark("kernels without xla_dump_emitter_re", until=date(2026, 8, 4))

_BUILDS = (
    (711, date(2025, 1, 15)),
    (778, date(2025, 7, 15)),
    (851, date(2026, 1, 15)),
    (934, date(2026, 6, 14)),
    (979, date(2026, 9, 10)),
    (1000, date(2026, 10, 15)),
    (1014, date(2026, 11, 5)),
)
"""When libtpu's build numbers were reached, in millions. A release is built from code of that day or older."""
_BUILDS_A_DAY = 16 / 30
_TOLERANCE = timedelta(30)
_BUILD = re.compile(r"\.cl_(\d{9,10})\.")


def age_of_compilation(compilation: Compilation) -> XlaAge:
    """Returns the interval of dates of the XLA version that wrote a compilation's files."""
    return joined(_marks(compilation))


def other_release(one: Compilation, other: Compilation) -> tuple[str, str] | None:
    """Returns descriptions of the compiler releases of two compilations if they are known to differ, otherwise None.

    Compares libtpu's build numbers, or else ages without a common day.
    """
    builds = _build(one.files), _build(other.files)
    if builds[0] is not None and builds[1] is not None:
        return None if builds[0] == builds[1] else (f"libtpu build {builds[0]}", f"libtpu build {builds[1]}")
    ages = one.age, other.age
    for older, newer in (ages, ages[::-1]):
        if older.until is not None and newer.since is not None and older.until < newer.since:
            return str(ages[0]), str(ages[1])
    return None


def _build(files: tuple[DumpFile, ...]) -> str | None:
    """libtpu's build number."""
    matches = (_BUILD.search(posixpath.basename(file.name.path)) for file in files)
    return next((match[1] for match in matches if match is not None), None)


def _marks(compilation: Compilation) -> Iterator[Mark]:
    options = compilation.options
    named = options.debug if options is not None else {}
    is_by_default = not any(map(_NOT_BY_DEFAULT.match, named))
    text = _text(next(iter(compilation.files_of("hlo-final", "hlo-before")), None))
    yield from text_marks(text, is_dumped=is_by_default)
    for file in compilation.files_of("hlo-codegen"):
        yield from (mark for mark in text_marks(_text(file)) if "buffering" in mark.what)
    seen = {file.kind for file in compilation.files}
    yield from (mark for kind, mark in _KINDS.items() if kind in seen)
    names = {posixpath.basename(file.name.path) for file in compilation.files_of("shardy")}
    yield from (mark for name, mark in _SHARDY.items() if name in names)
    if "xla_dump_emitter_re" not in named and seen & {"ptx", "llvm-no-opt", "llvm-with-opt"}:
        yield _KERNELS
    for file in compilation.files_of("buffer-assignment"):
        yield from _of_assignment(_text(file))
    for file in compilation.files_of("live-range"):
        yield from _of_peak(_text(file))
    pairs = zip(compilation.files_of("buffer-values"), compilation.files_of("live-range"), strict=False)
    for values, ranges in pairs:
        yield from _of_async_results(_text(values), _text(ranges))
    for file in compilation.files_of("thunk-sequence"):
        yield from _of_thunks(_text(file))
    yield from _of_builds(compilation.files)


def _of_assignment(text: str) -> Iterator[Mark]:
    heads = re.findall(r"^allocation \d+: size .*:$", text, re.MULTILINE)
    if any(re.match(r"allocation \d+: size \d+(?:, color -?\d+)?, page -?\d+", head) for head in heads):
        yield Mark("a page for each allocation", since=date(2026, 8, 10))
    elif heads:
        yield Mark("no page on any allocation", until=date(2026, 8, 9))
    if re.search(r"^HloLiveRange \(max ", text, re.MULTILINE):
        yield Mark("one file for allocations, values and live ranges", until=date(2026, 4, 2))
        yield from _of_peak(text)


def _of_peak(text: str) -> Iterator[Mark]:
    """The marks of what lives at the peak, at the end of the live ranges."""
    match = re.search(
        r"^  Live ranges at \d+ \(peak\):\n    \S+: \d+ bytes(?P<sum> \(cumulative: )?", text, re.MULTILINE
    )
    if match is None:
        return
    if match["sum"] is None:
        yield Mark("no totals at the peak", until=date(2025, 5, 15))
        return
    yield Mark("totals at the peak", since=date(2025, 5, 16))
    if "\n  Stack trace breakdown for peak usage" in text[match.end() :]:
        yield Mark("stacks at the peak", since=date(2025, 7, 23))
    else:
        yield Mark("no stacks at the peak", until=date(2025, 7, 22))


def _of_async_results(values: str, ranges: str) -> Iterator[Mark]:
    """Since when the result of an asynchronous body lives: since its own moment, or since that of its async-start."""
    notes = Notes()
    records = read_values(values, notes)
    lives = read_ranges(ranges, notes)
    times = {name: time for time, name in enumerate(lives.schedule)}
    first = {(name, index): start for name, index, (start, _) in lives.ranges}
    passed_on = {r.short.name for r in records if re.search(r" (?:copy-start|send)\(", r.line)}
    for record in records:
        own, start = times.get(record.short.name), first.get(record.short.key)
        if own is None or start is None or record.short.is_phi or " parameter(" in record.line:
            continue
        for name, index in record.positions[1:]:
            begun = times.get(name)
            if (
                index[:1] == (1,)
                and name not in passed_on
                and begun is not None
                and own < begun
                and "start" in name
            ):
                if start == begun:
                    yield Mark(
                        "results of async bodies become live at their start", since=ASYNC_RESULTS_BEGIN_LATE
                    )
                    return
                if start == own:
                    yield Mark(
                        "results of async bodies become live before their start",
                        until=ASYNC_RESULTS_BEGIN_LATE - timedelta(1),
                    )
                    return


def _of_thunks(text: str) -> Iterator[Mark]:
    """The marks of GPU's list of thunks."""
    if not re.search(r"^ *(?:\d{3,}: )?k[A-Z]\w*", text, re.MULTILINE):
        return
    if re.search(r"^ *\d{3,}: k[A-Z]", text, re.MULTILINE):
        yield Mark("thunk numbers", since=date(2025, 9, 23))
    else:
        yield Mark("no thunk numbers", until=date(2025, 9, 22))
    if ", profile_annotation = " in text:
        yield Mark("thunk annotations", since=date(2026, 2, 19))
    if re.search(r"^ *\d{3,}: k\w+ +\[(?:prev=|source)", text, re.MULTILINE):
        yield Mark("neighbours of thunks", since=date(2026, 3, 9))
    if re.search(r"^ *(?:\d{3,}: )?k(?!AsyncStart|HostExecuteStart)\w+Start\s", text, re.MULTILINE):
        yield Mark("kXStart thunks", until=date(2026, 3, 27))
    start = re.search(r"^ *(\d{3,}): kAsyncStart\b.*\n +(\d{3,}): k", text, re.MULTILINE)
    if start is not None and int(start[1]) < int(start[2]):
        yield Mark("kAsyncStart numbered before its contents", since=STARTS_NUMBERED_FIRST)
    elif start is not None:
        yield Mark("kAsyncStart numbered after its contents", until=STARTS_NUMBERED_FIRST - timedelta(1))
    if re.search(r"^ *(?:\d{3,}: )?kKernel\b.*, launch dimensions = ", text, re.MULTILINE):
        yield Mark("kKernel with launch dimensions", until=date(2026, 3, 27))


def _of_builds(files: tuple[DumpFile, ...]) -> Iterator[Mark]:
    build = _build(files)
    if build is not None:
        yield Mark(f"cl_{build}", until=_built(int(build) / 1e6) + _TOLERANCE)


def _built(millions: float) -> date:
    """The day at which libtpu's build numbers reached so many millions."""
    (low, first), *_ = _BUILDS
    if millions <= low:
        return first
    for (low, first), (high, second) in itertools.pairwise(_BUILDS):
        if millions <= high:
            return first + (second - first) * ((millions - low) / (high - low))
    high, last = _BUILDS[-1]
    return last + timedelta((millions - high) / _BUILDS_A_DAY)


def _text(file: DumpFile | None) -> str:
    """The text of a file; nothing for one that cannot be read: what it would tell is open."""
    if file is None:
        return ""
    try:
        return file.text()
    except InputError:
        return ""
