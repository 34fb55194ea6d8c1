"""Operations that a report names, with their neighbours: what the page shows when one is clicked.

Operations are known by their names; a name that several instructions of a module have leads nowhere. What is embedded is
bounded: `MOST_NAMED` operations that tables and charts name, in their order, and operands and users of these until there are
`MOST`. Of the rest the graph page has all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import hlotext as hlo
from hlotext.analysis import arrays_of, scopes, shown_bytes, source_locations, total_of
from hlotext.analysis.entries import program_name
from hlotext.findings import escape
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.memory import MemoryModelError, usage
from hlotext.memory.usage import line_text
from hlotext.view.graph.origins import origins
from hlotext.view.layout_picture import LayoutPicture
from hlotext.view.page.packing import packed
from hlotext.view.report.parts import Section
from hlotext.view.report.report_input import ReportInput
from hlotext.view.report.sections.measured import joined

MOST_NAMED, MOST = 2_500, 5_000
"""Operations that are embedded because a table or chart names them, and all that are."""
_NEAR = 12
"""Operands and users that are listed of one operation."""
_TEXT = 2_400
"""Characters of an op line, or of the body of a fusion."""
_PICTURE, _MOST_PICTURES = 8, 300
"""Rows and columns of a picture of a layout, and how many pictures there are."""
_LIVES = 6
"""Values of one operation whose lives are told."""


def named_in(sections: Iterable[Section]) -> Iterator[str]:
    """Yields the names of operations in tables, then in charts, in order, without the index of a tuple element."""
    sections = list(sections)
    for section in sections:
        for table in (*section.leading, *section.tables):
            wanted = [n for n, column in enumerate(table.columns) if column.kind == "operation"]
            for row in table.rows:
                yield from (name_of(str(row[n])) for n in wanted if row[n])
    for section in sections:
        for chart in section.charts:
            words = chart.data.get("words", ())
            if chart.kind != "icicle":
                yield from (name_of(words[number]) for number in chart.data["name"])


def name_of(label: str) -> str:
    """Returns the name of the operation that a label denotes: `fusion.3` for `fusion.3{0} ...`."""
    return label.partition(" ")[0].partition("{")[0].removeprefix("%")


class Operations:
    """The operations of one side of a report that its page can show in detail."""

    def __init__(self, subject: ReportInput, sections: Sequence[Section]) -> None:
        self.subject = subject
        self._unique = _unique(subject.module)
        chosen: dict[hlo.Instruction, None] = {}
        for name in named_in(sections):
            found = self._unique.get(name)
            if found is not None and len(chosen) < MOST_NAMED:
                chosen[found] = None
        self.named = len(chosen)
        for one in list(chosen):
            for other in (*one.operands[:_NEAR], *_users(one)[:_NEAR]):
                if len(chosen) < MOST and self._unique.get(other.name) is other:
                    chosen[other] = None
        self.chosen = list(chosen)
        self._number = {one: n for n, one in enumerate(self.chosen)}

    def has(self, label: str) -> bool:
        """True if the page can show the operation that a table's label denotes."""
        found = self._unique.get(name_of(label))
        return found is not None and found in self._number

    def shown(self, label: str) -> str:
        """Returns a label in which a parameter has its name in the program: `p[0]['w']` in place of `param.2`."""
        name = name_of(label)
        found = self._unique.get(name)
        own = program_name(found) if found is not None else ""
        return own + label.removeprefix("%").removeprefix(name) if own else label

    def packed(self) -> str:
        """Returns all details as compressed data for the page. Raises HloSyntaxError or InputError if a dump's text
        cannot be read.
        """
        pictures = _Pictures()
        costs, times, lives = self._costs(), self._times(), self._lives()
        found_by, told, timed = self._findings(), self._story(), self._measured()
        carried = {one: found.text for one, found in self.subject.carried.items()}
        named, lines = scopes(self.subject.module), source_locations(self.subject.module)
        rows = []
        for n, one in enumerate(self.chosen):
            home, place, total = one.computation, lines.get(one), total_of(one.shape)
            row: dict[str, Any] = {
                "name": escape.line(one.name),
                "opcode": one.opcode,
                "in": escape.line(home.name) if home is not None else "",
                "shape": _cut(str(one.shape), 400) if one.shape is not None else "?",
                "bytes": shown_bytes(one),
                "held": total.allocated_bytes,
                "padding": total.allocated_bytes - total.unpadded_bytes,
                "text": _cut(escape.one_line(str(one)), _TEXT),
                "scope": escape.line(str(named.of(one))),
                "op_name": escape.line(one.metadata.op_name) if one.metadata is not None else "",
                "operands": self._near(one.operands),
                "users": self._near(_users(one)),
            }
            own = program_name(one)
            if own:
                row["shown"] = escape.line(own)
            if place is not None:
                row["line"] = escape.line(f"{place[0].file}:{place[0].line}")
                row["short_line"] = escape.line(line_text(place[0]))
            if home is not None and home.root is one:
                row["root"] = 1
            if n < self.named and one.called_computations:
                row["bodies"] = [
                    [escape.line(body.name), _cut(escape.lines(str(body)), _TEXT)]
                    for body in one.called_computations[:3]
                ]
            if one in self.subject.carried:
                row["sent"] = self.subject.carried[one].sized
            if one.opcode in traits.IS_FREE:
                row["free"] = 1
            facts = (("cost", costs), ("time", times), ("life", lives), ("why", told), ("carries", carried))
            for key, values in facts:
                if one in values:
                    row[key] = values[one]
            if one in timed:
                row["measured"] = timed[one]
            if one in found_by:
                row["findings"] = found_by[one]
            picture = pictures.number(one.shape)
            if picture is not None:
                row["picture"] = picture
            rows.append(row)
        return packed({"named": self.named, "rows": rows, "pictures": pictures.drawn})

    # ---- facts by operation

    def _near(self, others: Sequence[hlo.Instruction]) -> list[Any]:
        """Numbers of those that are embedded, names of the others; last how many more there are."""
        shown: list[Any] = [
            escape.line(one.name) if (number := self._number.get(one)) is None else number
            for one in others[:_NEAR]
        ]
        return [*shown, {"more": len(others) - _NEAR}] if len(others) > _NEAR else shown

    def _costs(self) -> dict[hlo.Instruction, tuple[float, float]]:
        """Flops and bytes of all runs; of a fusion with what is inside it."""
        found: dict[hlo.Instruction, list[float]] = defaultdict(lambda: [0.0, 0.0])
        callers = {
            body: one for one in self.chosen if one.opcode == "fusion" for body in one.called_computations
        }
        for share in self.subject.cost.shares():
            home = share.instruction.computation
            for one in (share.instruction, callers.get(home) if home is not None else None):
                if one is not None and one in self._number:
                    found[one][0] += float(share.cost.flops)
                    found[one][1] += float(share.cost.bytes_accessed)
        return {one: (flops, moved) for one, (flops, moved) in found.items()}

    def _times(self) -> dict[hlo.Instruction, dict[str, Any]]:
        estimate = self.subject.estimate
        if estimate is None:
            return {}
        found: dict[hlo.Instruction, dict[str, Any]] = {}
        for row in estimate.instructions:
            if row.instruction in self._number:
                found[row.instruction] = {
                    "seconds": row.seconds,
                    "runs": row.runs,
                    "bound": row.bound.value,
                    "share": row.seconds / estimate.seconds if estimate.seconds else None,
                }
        for transfer in estimate.transfers:
            if transfer.start in self._number:
                found[transfer.start] = {"seconds": transfer.seconds, "exposed": transfer.exposed}
        return found

    def _measured(self) -> dict[hlo.Instruction, dict[str, Any]]:
        traced = self.subject.traced
        if traced is None:
            return {}
        return {
            row.instruction: {"seconds": row.seconds, "kernels": row.time.count, "ratio": row.ratio}
            for row in joined(self.subject, traced)[0]
            if row.instruction in self._number
        }

    def _lives(self) -> dict[hlo.Instruction, list[Any]]:
        """Memory of the values that an operation writes: index, space, bytes, offset, first, last, kind.

        The offset is None if the compiler's place is not in the text.
        """
        try:
            memory = self.subject.memory
        except MemoryModelError:
            return {}
        schedule = [one if isinstance(one, str) else one.name for one in memory.schedule]
        found: dict[hlo.Instruction, list[Any]] = defaultdict(list)
        for allocation in memory.allocations:
            space = usage.space_name(memory, allocation.memory_space)
            for value, offset, size in allocation.slices:
                # By name: of memory that XLA's files tell the instructions are those of a module of its own.
                one = self._unique.get(value.instruction.name) if value.instruction is not None else None
                span = value.live_range
                if one is None or one not in self._number or len(found[one]) >= _LIVES:
                    continue
                ends = [
                    escape.line(schedule[at]) if span is not None and 0 <= at < len(schedule) else ""
                    for at in (span or ())
                ]
                index = "{" + ",".join(map(str, value.index)) + "}" if value.index else ""
                kind = "temporary" if allocation.is_temporary else _kind(allocation)
                told = None if allocation.is_estimated else offset
                found[one].append([index, space, size, told, span, ends, kind])
        return {one: rows for one, rows in found.items() if rows}

    def _findings(self) -> dict[hlo.Instruction, list[tuple[str, str, str]]]:
        found: dict[hlo.Instruction, list[tuple[str, str, str]]] = defaultdict(list)
        for one in self.subject.findings:
            if one.instruction is not None and one.instruction in self._number:
                text = one.message + (f"; {one.help}" if one.help else "")
                found[one.instruction].append((one.severity.value, one.code, escape.lines(text)))
        return found

    def _story(self) -> dict[hlo.Instruction, Any]:
        """Passes that made or changed it, where a folder shows them, and reasons of collectives."""
        is_whole = self.subject.compilation is not None
        own = self.chosen[: self.named]
        return dict(
            origins(
                self.subject.module,
                self.subject.own_compilation,
                self.subject.mesh,
                is_whole=is_whole,
                among=own,
            )
        )


def _kind(allocation: Any) -> str:
    return "argument" if allocation.is_parameter else "constant" if allocation.is_constant else "result"


def _users(one: hlo.Instruction) -> tuple[hlo.Instruction, ...]:
    return tuple(dict.fromkeys(one.users))


def _unique(module: hlo.Module) -> dict[str, hlo.Instruction]:
    """Instructions by name, without the names that several have."""
    found: dict[str, hlo.Instruction] = {}
    twice = set()
    for one in module.instructions():
        if found.setdefault(one._name, one) is not one:
            twice.add(one._name)
    for name in twice:
        del found[name]
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


class _Pictures:
    """Layouts of arrays as pictures, each drawn once."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        self._numbers: dict[Shape, int | None] = {}

    def number(self, shape: Shape | None) -> int | None:
        """The number of the picture of a shape, of a tuple that of its first array; None if there is none."""
        array = (
            next((one for _, one in arrays_of(shape)[:1] if one.rank), None) if shape is not None else None
        )
        if array is None:
            return None
        if array not in self._numbers:
            self._numbers[array] = self._draw(array)
        return self._numbers[array]

    def _draw(self, array: Shape) -> int | None:
        if len(self.drawn) >= _MOST_PICTURES:
            return None
        try:
            self.drawn.append(LayoutPicture(array, _PICTURE, _PICTURE).svg())
        except ValueError:
            return None
        return len(self.drawn) - 1
