"""Line records of XLA's memory files, before they are matched with the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from hlotext.memory.files.value_names import SHORT, Short, index_of, short_of
from hlotext.memory.subshapes import ShapeIndex
from hlotext.memory.values import Range

_ALLOCATION = re.compile(r"allocation (?P<number>\d{1,18}): size (?P<size>\d{1,18})(?P<flags>(?:, .*)?):")
_FLAG = re.compile(
    r", (?:color (?P<color>-?\d{1,18})|page (?P<page>-?\d{1,18})"
    r"|parameter (?P<parameter>\d{1,18}), shape \|(?P<shape>[^|]*)\| at ShapeIndex (?P<index>\{[\d,]*\})"
    r"|output shape is \|(?P<output>[^|]*)\||(?P<word>[^,:|]+))(?=,|$)"
)
_SLICE = re.compile(
    rf" value: {SHORT} \(size=(?P<size>\d{{1,18}}),offset=(?P<offset>\d{{1,18}})\): (?P<shape>.*)"
)
_VALUE = re.compile(SHORT)
_POSITION = re.compile(r"  (?P<name>\S+?)(?: (?P<index>\{[\d,]*\}))?")
_USE = re.compile(r"  (?P<name>\S+), operand (?P<number>\d{1,9})(?: (?P<index>\{[\d,]*\}))?")
_FROM = " from instruction: "
_NEXT = re.compile(rf"(?P<line>.*[^ ]){SHORT}")
"""Before 2025 no line end stood behind the instruction of a value: the next value began there."""
_MOMENT = re.compile(r"    (?P<time>\d{1,18}):(?P<name>.*)")
_RANGE = re.compile(r"    (?P<name>.*)(?P<index>\{[\d,]*\}):(?P<first>-?\d{1,18})-(?P<last>-?\d{1,18})")
_PEAK = re.compile(r"  Live ranges at (?P<time>\d{1,18}) \(peak\):")


@attrs.define
class AllocationRecord:
    number: int
    bytes: int
    memory_space: int
    parameter: int | None
    parameter_index: ShapeIndex
    is_output: bool
    flags: tuple[str, ...]
    page: int | None
    slices: list[tuple[Short, int, int, str]] = attrs.field(factory=list)
    """Value, offset, bytes, shape with layout."""


@attrs.define
class ValueRecord:
    short: Short
    positions: list[tuple[str, ShapeIndex]] = attrs.field(factory=list)
    uses: list[tuple[str, int, ShapeIndex]] = attrs.field(factory=list)
    line: str = ""
    """Its instruction printed alone."""


@attrs.define
class RangeRecords:
    schedule: list[str] = attrs.field(factory=list)
    ranges: list[tuple[str, ShapeIndex, Range]] = attrs.field(factory=list)
    peak_time: int | None = None


@attrs.define
class Notes:
    """Notes on lines that were not understood and are skipped."""

    found: list[str] = attrs.field(factory=list)
    unread: list[str] = attrs.field(factory=list)
    """Files that were not read whole."""
    _seen: set[str] = attrs.field(factory=set)

    def unknown(self, file: str, line: str) -> None:
        """Records an unrecognized line. Only the first of each file is reported."""
        if file not in self._seen:
            self._seen.add(file)
            self.unread.append(file)
            self.found.append(f"the {file} file has an unrecognized line: {line[:80]!r}")


VALUES_HEAD = "Total bytes used: "
RANGES_HEAD = "HloLiveRange (max "
"""Headings of values and live ranges in the one file that held allocations, values and live ranges until 2026-04-03."""


def parted(text: str) -> tuple[str, str, str]:
    """Splits one file with allocations, values and live ranges into the texts of the three files of newer releases.

    Missing parts are empty.
    """
    allocations, found, rest = _cut(text, VALUES_HEAD)
    if not found:
        allocations, found, rest = _cut(text, RANGES_HEAD)
        return allocations, "", found + rest
    values, head, ranges = _cut(rest, RANGES_HEAD)
    return allocations, found + values, head + ranges


def _cut(text: str, head: str) -> tuple[str, str, str]:
    """The text before a line that begins so, that beginning, and what follows."""
    place = 0 if text.startswith(head) else text.find(f"\n{head}") + 1
    if not place and not text.startswith(head):
        return text, "", ""
    return text[:place], head, text[place + len(head) :]


def read_allocations(text: str, notes: Notes) -> list[AllocationRecord]:
    """Parses the output of `BufferAssignment::ToString`."""
    found: list[AllocationRecord] = []
    for line in _lines(text):
        if line.startswith(" value: "):
            match = _SLICE.fullmatch(line)
            if match is not None and found:
                row = (short_of(match), int(match["offset"]), int(match["size"]), match["shape"])
                found[-1].slices.append(row)
                continue
        elif (record := _allocation(line)) is not None:
            found.append(record)
            continue
        if line and line != "BufferAssignment:":
            notes.unknown("buffer assignment", line)
    return found


def _allocation(line: str) -> AllocationRecord | None:
    """The head of an allocation; None for a line that is none. Words of later releases are kept, wherever they stand."""
    match = _ALLOCATION.fullmatch(line)
    if match is None:
        return None
    known: dict[str, str] = {}
    words: list[str] = []
    place, flags = 0, match["flags"]
    while place < len(flags):
        flag = _FLAG.match(flags, place)
        if flag is None:
            return None
        place = flag.end()
        if flag["word"] is not None:
            words.append(flag["word"])
        known |= {name: text for name, text in flag.groupdict().items() if text is not None}
    return AllocationRecord(
        int(match["number"]),
        int(match["size"]),
        int(known.get("color", 0)),
        int(known["parameter"]) if "parameter" in known else None,
        index_of(known.get("index")),
        "output" in known,
        tuple(words),
        int(known["page"]) if "page" in known else None,
    )


def read_values(text: str, notes: Notes) -> list[ValueRecord]:
    """Parses the output of `BufferAssignment::ValuesToString`."""
    found: list[ValueRecord] = []
    part = ""
    for line in _lines(text):
        if line.startswith("<"):
            match = _VALUE.fullmatch(line)
            if match is not None:
                found.append(ValueRecord(short_of(match)))
                part = ""
                continue
        elif line in (" positions:", " uses:"):
            part = line
            continue
        elif line.startswith(_FROM) and found:
            following = _NEXT.fullmatch(line) if line.endswith(">") else None
            found[-1].line = (line if following is None else following["line"]).removeprefix(_FROM)
            if following is not None:
                found.append(ValueRecord(short_of(following)))
                part = ""
            continue
        elif line.startswith("  ") and found and part:
            if line == "  (none)":
                continue
            if part == " uses:" and (match := _USE.fullmatch(line)) is not None:
                found[-1].uses.append((match["name"], int(match["number"]), index_of(match["index"])))
                continue
            if part == " positions:" and (match := _POSITION.fullmatch(line)) is not None:
                found[-1].positions.append((match["name"], index_of(match["index"])))
                continue
        if line and not line.startswith(("Total bytes used: ", "Used values:")):
            notes.unknown("values", line)
    return found


def read_ranges(text: str, notes: Notes) -> RangeRecords:
    """Parses the output of `HloLiveRange::ToString`, except for the peak breakdown, which follows from the rest."""
    found = RangeRecords()
    part = ""
    for line in _lines(text):
        if line in ("  InstructionSequence:", "  BufferLiveRange:"):
            part = line
        elif (match := _PEAK.fullmatch(line)) is not None:
            found.peak_time = int(match["time"])
            break
        elif part == "  InstructionSequence:" and (match := _MOMENT.fullmatch(line)) is not None:
            found.schedule.append(match["name"])
        elif part == "  BufferLiveRange:" and (match := _RANGE.fullmatch(line)) is not None:
            span = int(match["first"]), int(match["last"])
            found.ranges.append((match["name"], index_of(match["index"]), span))
        elif line and not line.startswith("HloLiveRange (max "):
            notes.unknown("live range", line)
    if found.schedule and found.peak_time is None:
        notes.unread.append("live range")
        notes.found.append("the live range file is truncated")
    return found


def _lines(text: str) -> Iterator[str]:
    return iter(text.split("\n"))
