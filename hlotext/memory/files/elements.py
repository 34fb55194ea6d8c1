"""Matches names in XLA's files with tuple elements that the text writes as `BASE#I` without a name.

XLA's memory files name every get-tuple-element; a text in the compact form does not. Two sources give the
correspondence: where a file prints an instruction, its operands are named at the places where the text says `BASE#I`; and a
name holds exactly the values that the element of its tuple holds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hlotext.ir.nodes.instruction import Form, Instruction
from hlotext.memory.files.records import ValueRecord
from hlotext.memory.subshapes import ShapeIndex

_CALL = re.compile(r"^%?\S+ = (?P<rest>.*)$")
_OPERAND = re.compile(r"(?:[^\s,()]+ )?%(?P<name>[^\s,()]+)")
_MOST_TRIED = 64
"""Tuples that are tried for one name, from the last that is scheduled before it."""

_Key = tuple[str, ShapeIndex, bool]


def is_unwritten(instruction: Instruction) -> bool:
    """Returns True if the text contains an instruction only as `BASE#I`."""
    return instruction.form is Form.COMPACT


def elements(
    instructions: Mapping[str, Instruction], values: Sequence[ValueRecord], schedule: Sequence[str]
) -> dict[str, Instruction]:
    """Returns the get-tuple-element in the module for each name in XLA's files that the module text omits.

    Args:
        instructions: Instructions of the text, by name.
        values: Records of the values in XLA's file.
        schedule: Names in the order of time.

    Returns:
        The matches found. Elements that nothing in the text uses are not among them.
    """
    return _Elements(instructions, values, schedule).found


class _Elements:
    def __init__(
        self, instructions: Mapping[str, Instruction], values: Sequence[ValueRecord], schedule: Sequence[str]
    ) -> None:
        self._instructions = instructions
        self._values = values
        self._times = {name: time for time, name in enumerate(schedule)}
        self.found: dict[str, Instruction] = {}
        self._rows: dict[str, dict[ShapeIndex, frozenset[_Key]]] = {}
        self._split: dict[str, dict[int, dict[ShapeIndex, frozenset[_Key]]]] = {}
        self._elements: dict[Instruction, dict[int, Instruction]] = {}
        self._from_lines()
        self._from_values()

    # ---- operands of printed instructions

    def _from_lines(self) -> None:
        for record in self._values:
            user = self._instructions.get(record.short.name)
            if user is None or not any(map(is_unwritten, user.operands)):
                continue
            names = _operand_names(record.line, user.opcode)
            if len(names) == len(user.operands):
                for name, operand in zip(names, user.operands, strict=True):
                    self._note(name, operand)

    def _note(self, name: str, instruction: Instruction) -> None:
        if is_unwritten(instruction) and name not in self._instructions and name not in self.found:
            self.found[name] = instruction

    # ---- values at places

    def _from_values(self) -> None:
        """The rest, in the order of time: the tuple of a tuple's element is an element told before."""
        held = self._held()
        missing = [name for name in held if name not in self._instructions and name not in self.found]
        if not missing:
            return
        # A tuple may hold more than its elements; which of its parts hold what is asked for one element at a time.
        tuples = self._tuples()
        for name in sorted(missing, key=lambda name: self._times.get(name, len(self._times))):
            found = self._told_by_values(name, held[name], tuples)
            if found is not None:
                self._note(name, found)

    def _held(self) -> dict[str, dict[ShapeIndex, frozenset[_Key]]]:
        """The values at each part of each name."""
        rows: dict[str, dict[ShapeIndex, set[_Key]]] = defaultdict(lambda: defaultdict(set))
        for record in self._values:
            key = (*record.short.key, record.short.is_phi)
            for name, index in record.positions:
                rows[name][index].add(key)
        self._rows = {
            name: {index: frozenset(keys) for index, keys in parts.items()} for name, parts in rows.items()
        }
        return self._rows

    def _tuples(self) -> dict[frozenset[_Key], list[tuple[int, str, int]]]:
        """Elements of tuples by the values that they hold: (time, name of the tuple, number), in the order of time."""
        found: dict[frozenset[_Key], list[tuple[int, str, int]]] = defaultdict(list)
        for name, parts in self._rows.items():
            time = self._times.get(name, -1)
            for index, keys in parts.items():
                if len(index) == 1:
                    found[keys].append((time, name, index[0]))
        for rows in found.values():
            rows.sort()
        return found

    def _told_by_values(
        self,
        name: str,
        parts: Mapping[ShapeIndex, frozenset[_Key]],
        tuples: Mapping[frozenset[_Key], list[tuple[int, str, int]]],
    ) -> Instruction | None:
        if () not in parts:
            return None
        rows = tuples.get(parts[()], [])
        end = bisect_left(rows, (self._times.get(name, len(self._times)),))
        for _, base, number in reversed(rows[max(0, end - _MOST_TRIED) : end]):
            source = self._instructions.get(base) or self.found.get(base)
            if source is None or self._elements_held(base).get(number) != parts:
                continue
            element = self._written(source).get(number)
            if element is not None:
                return element
        return None

    def _elements_held(self, base: str) -> dict[int, dict[ShapeIndex, frozenset[_Key]]]:
        """The values at each part of each element of a tuple."""
        if base not in self._split:
            rows: dict[int, dict[ShapeIndex, frozenset[_Key]]] = defaultdict(dict)
            for index, keys in self._rows[base].items():
                if index:
                    rows[index[0]][index[1:]] = keys
            self._split[base] = rows
        return self._split[base]

    def _written(self, source: Instruction) -> dict[int, Instruction]:
        """The elements that the text writes `SOURCE#I`, by I."""
        if source not in self._elements:
            self._elements[source] = {
                user.attributes["index"]: user
                for user in source.users
                if is_unwritten(user) and user.opcode == "get-tuple-element"
            }
        return self._elements[source]


def _operand_names(line: str, opcode: str) -> list[str]:
    """The operands' names on a printed line; nothing where they cannot be told."""
    match = _CALL.match(line)
    if match is None:
        return []
    # The result's shape may be a tuple with layouts, both with parentheses: the opcode is what ends it.
    start = match["rest"].find(f" {opcode}(")
    if start < 0:
        return []
    rest = match["rest"][start + len(opcode) + 2 :]
    end = _closing(rest)
    return [found["name"] for found in _OPERAND.finditer(rest[:end])]


def _closing(text: str) -> int:
    """The offset of the parenthesis that ends the operands."""
    depth = 0
    for match in re.finditer(r"[()]", text):
        if match[0] == "(":
            depth += 1
        elif depth == 0:
            return match.start()
        else:
            depth -= 1
    return len(text)
