"""Computations as XLA writes them, cut by one expression for each instruction: the hot loop of reading protos.

The fields of `HloInstructionProto` come by number, and what lies between name and id, and behind operands and calls, is the
same bytes for many instructions. So these are looked up (`Heads`), ids are told by the bytes of their varints, and nothing is
taken apart that was met before; bodies that come again are not cut at all (`repeats`). On a module of 22,387 instructions
reading takes 2.6 microseconds for each, all included; protobuf's own classes take 2.0 only to give seven fields of each, and
columns of fields by numpy took 5.1 in all.

What is not of this form, or is wrong, is left to `instructions`, which reads it field by field and says what is wrong. Tests
compare the two on every proto of the corpus and on damaged ones.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.proto import wire
from hlotext.proto.body_cache import Repeated, Repeats
from hlotext.proto.calls import ONLY, REPEATING, callees
from hlotext.proto.errors import ProtoError
from hlotext.proto.instruction_templates import LONGEST, Heads, Parts

LOCAL = 0xFFFFFFFF
"""An instruction's id has the computation's above these bits (`HloInstruction::CalculateLocalId`)."""
_VARINT = "[\x80-\xff]*+[\x00-\x7f]"
_SHORTEST = "(?:[\x80-\xff]{1,8}+[\x01-\x7f]|[\x00-\x7f])"
"""A varint of 63 bits that is no longer than it needs to be, so that equal numbers are equal texts."""
_IS_SHORTEST = re.compile(_SHORTEST).fullmatch
varints: Callable[..., list[str]] = re.compile(_VARINT).findall
_ARE_NAMES = re.compile("[!-~]*+").fullmatch
_NAME, _INSTRUCTION, _SIGNATURE = 0x0A, 0x12, 0x22
"""Tags in a computation."""
_FIRST = 0x0A
"""The tag of an instruction's name."""
_ID = 35
_END = re.compile(
    rf"(?:\(({_SHORTEST}))?(?:0({_SHORTEST}))?(?:8{_VARINT})?(?:B([\x00-\x7f])([ -~]*+))?", re.DOTALL
).fullmatch
"""Behind instructions and signature: id, root, whether it is a fusion's body, and the thread with its length."""


@attrs.define(eq=False)
class Body:
    """A computation that was read, with its instructions in the order of the proto."""

    computation: Computation
    key: str
    """Its id as it was written, a varint."""
    nodes: list[Instruction]
    root: Instruction
    keys: list[str] | None
    """The ids of the nodes as they were written; None for one that has the local ids of the body that it is like."""
    upper: str = ""
    """Common suffix of the ids' varints, which begin like those of that body: the upper half."""
    calls: list[tuple[str, list[Computation]]] = attrs.field(factory=list)
    """The id of each instruction that calls, and what it calls."""
    has_predecessors: bool = False
    """True if an instruction has control predecessors."""
    like: Repeated | None = None
    """Cached facts of bodies that differ only in names and the upper halves of ids."""

    def ids(self) -> list[str]:
        """Returns the ids of the nodes, as varints."""
        if self.keys is None:
            assert self.like is not None
            self.keys = [begin + self.upper for begin in self.like.begins]
        return self.keys

    def local_ids(self) -> list[int]:
        """Returns the ids of the nodes within their computation."""
        return [number_of(key) & LOCAL for key in self.ids()]


def number_of(key: str) -> int:
    """Decodes a varint."""
    if len(key) == 2:  # what most computations have
        return ord(key[0]) & 127 | ord(key[1]) << 7
    value = 0
    for place, character in enumerate(key):
        value |= (ord(character) & 127) << 7 * place
    return value


class Bodies:
    """Fast reader of the computations of one module that have the usual form."""

    def __init__(self, data: bytes, heads: Heads, callees: dict[str, Computation]) -> None:
        self._data = data
        self._characters = data.decode("latin-1")
        """The bytes as characters of the same numbers, of which a slice is a name."""
        self._heads = heads
        self._known: dict[str, dict[str, Parts]] = {}
        self._callees = callees
        """Computations read so far, by the varint of their id."""
        self._repeats = Repeats(len(data) // 2)

    def read(self, module: Module, start: int, end: int) -> Body | None:
        """Reads the computation between two offsets; returns None if it has another form or is invalid.

        Some invalid input raises ProtoError or LookupError instead.
        """
        data, characters = self._data, self._characters
        size = data[start + 1]
        position = start + 2 + size
        title = characters[start + 2 : position]
        if data[start] != _NAME or size > 127 or not title.isascii():
            return None
        # Names, and what lies behind each.
        names: list[str] = []
        pieces: list[str] = []
        while data[position] == _INSTRUCTION:  # the end of the message is looked at behind
            size = data[position + 1]
            if size < 128:
                position += 2
            elif (high := data[position + 2]) < 128:
                size = size & 127 | high << 7
                position += 3
            else:
                size, position = wire.varint(data, position + 1, end)
                if size < 0:
                    return None
            if data[position] != _FIRST or (length := data[position + 1]) > 127:
                return None
            behind = position + 2 + length
            names.append(characters[position + 2 : behind])
            pieces.append(characters[behind : (position := position + size)])
        # The signature, which the instructions say too, and what stands behind it.
        if position < end and data[position] == _SIGNATURE:
            size, position = data[position + 1], position + 2
            if size > 127:
                size, position = wire.varint(data, position - 1, end)
                if size < 0:
                    return None
            position += size
        ending = _END(characters, position, end)
        if position > end or ending is None:
            return None
        key, root, size_of_thread, thread = ending.groups("\0")
        if not names or "" in pieces or len(set(names)) != len(names) or _ARE_NAMES("".join(names)) is None:
            return None
        computation = Computation(title, module=module)
        computation._parts_read = None
        if ending[4] is not None:
            if ord(size_of_thread) != len(thread):
                return None
            computation._execution_thread = thread or "main"
        like = self._repeats.find(pieces, root)
        if like is not None:
            nodes = like.copies(names, computation)
            return Body(computation, key, nodes, nodes[like.root], None, root[4:], like=like)
        body = self._made(computation, key, root, names, pieces)
        if body is not None:
            self._repeats.note(pieces, body)
        return body

    def _made(
        self, computation: Computation, own_key: str, root: str, names: list[str], pieces: list[str]
    ) -> Body | None:
        """The body of these instructions; None for one that has another form, or in which something is wrong."""
        known, new = self._known, object.__new__
        match = _pattern(len(root))
        callees_by_key = self._callees
        defined: dict[str, Instruction] = {}
        calls: list[tuple[str, list[Computation]]] = []
        has_predecessors = False
        # The hot loop, one turn for each instruction, so its steps stand here and not in methods.
        for name, piece in zip(names, pieces):  # noqa: B905 - as many
            found = match(piece)
            if found is None:
                return None
            before, key, one, first, second, many, called, rest = found.groups()
            told: Any = None
            predecessors = ""
            try:
                node, attributes, is_odd, takes, met, head = known[before][rest]
            except KeyError:
                cut, key, lists, rest, parts = self._other(found)
                if cut != before:
                    one = first = many = called = None
                many, predecessors, called = lists.get(36, many), lists.get(37, ""), lists.get(38, called)
                node, attributes, is_odd, takes, met, head = parts
                told = takes  # whatever was not met before is looked at once
            operands: tuple[Instruction, ...]
            if one is not None:
                operand = defined[one]
                operands = (operand,)
                if takes != 1:
                    told = id(operand._head.shape)
            elif first is not None:
                operand, other = operands = defined[first], defined[second]
                if takes != 2:
                    told = id(operand._head.shape), id(other._head.shape)
            elif many is not None:
                if many[-1] > "\x7f":
                    return None
                operands = tuple([defined[number] for number in varints(many, 1)])
                if takes != len(operands):
                    told = tuple([id(operand._head.shape) for operand in operands])
            else:
                operands = ()
                if takes:
                    told = ()
            if is_odd:
                if head.fields is not None:
                    attributes = self._heads.for_operands(head, head.fields, operands)
                opcode = node.opcode
                if called is not None and opcode not in REPEATING:
                    if called[-1] > "\x7f":
                        return None
                    callee = callees_by_key.get(called[1:])
                    only = ONLY.get(opcode)
                    if callee is not None and only is not None:  # what most call
                        calls.append((key, [callee]))
                        attributes = {**attributes, only: callee}
                    else:
                        group = [callees_by_key[number] for number in varints(called, 1)]
                        calls.append((key, group))
                        attributes = {**attributes, **callees(opcode, group, operands)}
                elif called is None:
                    # One that calls nothing is looked at although others with this head were right.
                    told = told, None
            if predecessors:
                has_predecessors = True
                earlier = tuple(dict.fromkeys([defined[number] for number in varints(predecessors, 1)]))
                attributes = {**attributes, "control-predecessors": earlier}
            # The same as `Instruction(...)`, in half of its time.
            instruction = new(Instruction)
            instruction._name = name
            instruction._head = node
            instruction._operands = operands
            instruction._attributes = attributes
            instruction._computation = computation
            instruction._state = None
            if told is not None and told not in met:
                self._heads.check(instruction, told, met)
            defined[key] = instruction
        if len(defined) != len(names):
            return None
        keys = list(defined)
        if len({key[4:] for key in keys}) > 1:  # ids are compared by their lower halves
            return None
        return Body(
            computation,
            own_key,
            list(defined.values()),
            defined[root],
            keys,
            root[4:],
            calls,
            has_predecessors,
        )

    def _other(self, found: re.Match[str]) -> tuple[str, str, dict[int, str], str, Parts]:
        """Reads an instruction that is not cached: the fields before its id, the id, lists of ids, other fields, the head."""
        before, key, rest = found.group(1, 2, 8)
        lists: dict[int, str] = {}
        if rest[:2] in _LISTS:
            lists, rest = _id_lists(rest)
        try:
            return before, key, lists, rest, self._parts(before, rest)
        except ProtoError:
            # The apparent id may be inside another field.
            whole = found.string
            data = whole.encode("latin-1")
            position = 0
            for number, _, _, behind in wire.scan(data, 0, len(data)):
                if number == _ID:
                    key = whole[position + 2 : behind]
                    if position == found.end(1) or data[position : position + 2] != b"\x98\x02":
                        raise
                    if _IS_SHORTEST(key) is None:
                        raise
                    lists, rest = _id_lists(whole[behind:])
                    before = whole[:position]
                    return before, key, lists, rest, self._parts(before, rest)
                position = behind
            raise

    def _parts(self, before: str, rest: str) -> Parts:
        known = self._known.get(before, {}).get(rest)
        if known is None:
            known = self._heads.parts(before, rest)
            if len(before) + len(rest) <= LONGEST:
                self._known.setdefault(before, {})[rest] = known
        return known


_LISTS = {"\xa2\x02": 36, "\xaa\x02": 37, "\xb2\x02": 38}
"""Operands, control predecessors and called computations by their tags."""


def _id_lists(rest: str) -> tuple[dict[int, str], str]:
    """The lists of ids at the beginning of some fields, each behind one character, and the other fields."""
    found: dict[int, str] = {}
    while (number := _LISTS.get(rest[:2])) is not None:
        length = varints(rest[2:12])[0]
        size, start = number_of(length), 2 + len(length)
        if number in found or not 0 < size <= len(rest) - start or rest[start + size - 1] > "\x7f":
            raise ProtoError("a list of numbers is truncated, or appears twice")
        found[number] = rest[start - 1 : start + size]
        rest = rest[start + size :]
    return found, rest


@functools.cache
def _pattern(width: int) -> Callable[[str], re.Match[str] | None]:
    """Cuts what lies behind the name of an instruction, where ids have that many bytes.

    Groups: what lies before the id (from the opcode on), id, the only operand, the first of two, the second, more of them
    behind their length, called computations behind theirs, what lies behind.
    """
    sizes = range(3 * width, 128, width) if width >= 5 else range(1, 128)
    many = "|".join([rf"\x{size:02x}.{{{size}}}" for size in sizes])
    key, behind, one, first, second = _SHORTEST, "", "(?!)()", "(?!)()", "()"
    if width >= 5:  # else they are told apart behind
        key = behind = rf"[\x80-\xff]{{{width - 1}}}[\x01-\x7f]"
        one = rf"\x{width:02x}(.{{{width}}})"
        first, second = rf"\x{2 * width:02x}(.{{{width}}})", f"(.{{{width}}})"
    called = "|".join([rf"\x{size:02x}.{{{size}}}" for size in range(1, 9)])
    before = rf"\x12[^\x98]*+(?:\x98(?!\x02{behind})[^\x98]*+)*+"
    return re.compile(
        rf"({before})\x98\x02({key})"
        rf"(?:\xa2\x02(?:{one}|{first}{second}|({many})))?(?:\xb2\x02({called}))?(.*+)",
        re.DOTALL,
    ).match
