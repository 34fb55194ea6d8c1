"""The program's own source with what its lines cost: `--source DIR`."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import attrs

from hlotext.analysis import SourceLocation, source_locations
from hlotext.analysis.formatting import pluralize
from hlotext.ir.tables import traits
from hlotext.view.report.parts import Missing, Section, SourceFile, SourceLine
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.costs import seconds_by

MOST_FILES, MOST_BYTES, MOST_LINES = 40, 1 << 20, 4_000
"""Files that are shown, bytes of one that is read, and lines of all of them together."""
_AROUND = 3
"""Lines that are shown before and after one that costs something."""
_LONG = 400


def section(subject: ReportInput) -> Section | Missing:
    """Returns the section on source lines with costs, in context, by file; the most expensive file first."""
    if subject.source is None:
        return Missing("source", "Source", "`--source DIR` shows the program's lines with their costs")
    costs = _costs(subject)
    by_file: dict[str, list[SourceLine]] = defaultdict(list)
    for (file, number), line in costs.items():
        by_file[file].append(attrs.evolve(line, number=number))
    order = sorted(by_file, key=lambda file: (-sum(_weight(line) for line in by_file[file]), file))
    shown: list[SourceFile] = []
    missing, left = 0, MOST_LINES
    for file in order:
        path = find(subject.source, file)
        if path is None:
            missing += 1
            continue
        if len(shown) == MOST_FILES or left <= 0:
            break
        lines = list(_with_text(path, {line.number: line for line in by_file[file]}))[:left]
        left -= len(lines)
        shown.append(SourceFile(file, lines))
    if not shown:
        return Missing(
            "source", "Source", f"none of the module's {pluralize(len(order), 'file')} is in the folder"
        )
    notes = [f"{pluralize(missing, 'file')} of the module not found in the folder."] if missing else []
    return Section(
        "source",
        "Source",
        "Cost of each program line in one run. Click a line to select its operations, or an operation to select its line.",
        sources=shown,
        notes=notes,
    )


def find(folder: str, name: str) -> str | None:
    """Returns the path in a folder that best matches a module's file name, by the longest common suffix; None if none
    does.

    File names come from the module, so nothing outside the folder is returned, not even through links.
    """
    root = os.path.realpath(folder)
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in name:
        return None
    for start in range(len(parts)):
        path = os.path.realpath(os.path.join(root, *parts[start:]))
        if os.path.commonpath([root, path]) == root and os.path.isfile(path):
            return path
    return None


def _weight(line: SourceLine) -> float:
    return line.seconds if line.seconds is not None else float(line.bytes)


def _costs(subject: ReportInput) -> Mapping[tuple[str, int], SourceLine]:
    """Figures of each line that operations are of, by file and number."""
    found: dict[tuple[str, int], SourceLine] = {}
    parts, times = subject.cost.by("line"), seconds_by(subject, "line")
    findings = Counter((one.frame.file, one.frame.line) for one in subject.findings if one.frame is not None)
    operations: Counter[tuple[str, int]] = Counter()
    known: dict[tuple[str, int], SourceLocation] = {}
    for instruction, (place, _) in source_locations(subject.module).items():
        home = instruction.computation
        if instruction.opcode not in traits.IS_FREE and home is not None and not home.is_fusion_body:
            operations[place.file, place.line] += 1
            known[place.file, place.line] = place
    for key in known:
        name = f"{key[0]}:{key[1]}"
        part = parts.get(name)
        found[key] = SourceLine(
            key[1],
            "",
            None if times is None else times.get(name, 0.0),
            0 if part is None else int(part.bytes_accessed),
            0 if part is None else float(part.flops),
            findings[key],
            operations[key],
        )
    return found


def _with_text(path: str, lines: Mapping[int, SourceLine]) -> Iterator[SourceLine]:
    """The lines of a file that cost something, and those around; a line without a number where some are left out."""
    with open(path, "rb") as file:
        texts = file.read(MOST_BYTES).decode("utf-8", "replace").split("\n")
    wanted = sorted(
        {
            near
            for number in lines
            for near in range(number - _AROUND, number + _AROUND + 1)
            if 1 <= near <= len(texts)
        }
    )
    last = 0
    for number in wanted:
        if number != last + 1:
            yield SourceLine(0, "")
        last = number
        text = texts[number - 1].rstrip("\r")[:_LONG]
        yield attrs.evolve(lines[number], text=text) if number in lines else SourceLine(number, text)
