"""One text of a compilation as names, operands and callees: enough to pair its operations with those of the text before.

Lines are read, not modules. Lines and computations with the same text as in the state before are not parsed again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import hlotext as hlo
from hlotext.ir.caches import weighted_cache
from hlotext.syntax.language import patterns

if TYPE_CHECKING:
    from hlotext.dumps.identity.local_ids import LocalIds


class Op:
    """An operation parsed from its line. States with the same line share one object."""

    __slots__ = (
        "attributes",
        "base",
        "callees",
        "elements",
        "frame",
        "inner",
        "is_root",
        "name",
        "number",
        "op_name",
        "opcode",
        "operands",
        "plain",
        "shape",
        "tail",
    )

    def __init__(self, line: re.Match[str]) -> None:
        root, name, head, operands, inner, tail = line.groups()
        self.name: str = name
        self.is_root = root is not None
        shape, _, opcode = head.rpartition(" ")
        self.opcode: str = opcode
        self.shape: str = shape
        """As it is written."""
        self.plain: str = _plain(shape)
        """Without layouts."""
        self.base: str = base_opcode(opcode)
        self.elements: tuple[tuple[str, str, int], ...] = ()
        """Of operands that are written `TUPLE#K` the elements: name, tuple and index."""
        self.operands: tuple[str, ...] = ()
        text = f"%{operands}" if operands is not None else inner
        if "#" in text:
            self.operands, self.elements = _with_elements(text)
        elif "%" in text:
            self.operands = tuple(_NAME.findall(text))
        self.op_name: str = ""
        self.frame: str = ""
        if "metadata=" in tail and (metadata := _metadata().search(tail)) is not None:
            tail = tail[: metadata.start()] + tail[metadata.end() :]
            if (found := _OP_NAME.search(metadata[0])) is not None:
                self.op_name = found[1]
            if (found := _FRAME.search(metadata[0])) is not None:
                self.frame = found[0]
        self.tail: str = tail
        """The attributes as they are written, without metadata."""
        self.inner: str = inner or "" if operands is None else ""
        """Text in the parentheses that is not operand names: a constant's value, a parameter's number."""
        self.callees: tuple[str, ...] = ()
        if "=%" in tail or "={%" in tail:
            tail, self.callees = _callees(tail)
        self.attributes: str = _attributes(tail) if tail else ""
        """Semantic attributes: without metadata, callees, backend configuration, sharding and channel."""
        if not self.operands and operands is None:
            self.attributes = f"({inner}){self.attributes}"
        self.number = -1
        """Of a parameter its number, of an element of a tuple its index."""
        if self.opcode == "parameter" and inner and inner.isdigit():
            self.number = int(inner)
        elif self.opcode == "get-tuple-element" and (found := _INDEX.search(tail)) is not None:
            self.number = int(found[1])

    @classmethod
    def element(cls, name: str, of: Op, index: int) -> Op:
        """Creates the tuple element that compact text writes as `TUPLE#K`, without a line of its own."""
        line = _op_line().match(
            f"\n  %{name} = {_element_shape(of.shape, index)} get-tuple-element(%{of.name}), index={index}"
        )
        assert line is not None
        return cls(line)

    def __repr__(self) -> str:
        return f"<Op {self.name} = {self.opcode}>"


NOT_COUNTED = -1


class Part:
    """A computation."""

    __slots__ = ("bytes", "callers", "is_entry", "name", "ops", "parameters", "root", "users")

    def __init__(self, name: str, ops: list[Op], *, is_entry: bool) -> None:
        self.name = name
        self.ops = ops
        self.is_entry = is_entry
        self.root = next((op for op in ops if op.is_root), ops[-1] if ops else None)
        self.parameters = {op.number: op for op in ops if op.opcode == "parameter"}
        self.callers = [op for op in ops if op.callees]
        """The operations in it that call others."""
        self.users: dict[str, list[tuple[Op, int]]] | None = None
        self.bytes: int | None = NOT_COUNTED
        """Bytes of all results, None if one is unknown; counted where they are asked for."""

    def users_of(self, name: str) -> list[tuple[Op, int]]:
        """Returns the users of an operation of this computation, with operand numbers."""
        if self.users is None:
            self.users = {}
            for op in self.ops:
                for slot, operand in enumerate(op.operands):
                    self.users.setdefault(operand, []).append((op, slot))
        return self.users.get(name, [])


class State:
    """The operations of one step of a compilation, parsed from its text without creating a module."""

    def __init__(
        self, text: str, before: State | None = None, ids: Callable[[], LocalIds | None] = lambda: None
    ) -> None:
        """Of a text, sharing what it has in common with the one `before`; `ids` reads the ids beside it."""
        self.text = text
        self._ids = ids
        known = before.chunks if before is not None else {}
        lines = before.lines if before is not None else {}
        self.chunks: dict[str, Part] = {}
        """Computations by text."""
        self.lines: dict[str, Op] = {}
        """Operations by line of text."""
        self.parts: dict[str, Part] = {}
        self.ops: dict[str, Op] = {}
        self.home: dict[str, Part] = {}
        self.entry: Part | None = None
        self.head = ""
        for index, chunk in enumerate(text.split(_END)):
            header = _HEADER.search(chunk)
            if header is None:
                continue
            if not index:
                self.head, chunk = chunk[: header.start()], chunk[header.start() :]
            part = known.get(chunk)
            if part is None:
                own: dict[str, Op] = {}
                for line, op in _read(chunk, lines, header.end() - (header.start() if not index else 0)):
                    self.lines[line] = op
                    for name, of, number in op.elements:
                        if name not in own and of in own:
                            key = f"{own[of].shape} {of}#{number}"
                            self.lines[key] = own[name] = lines.get(key) or Op.element(name, own[of], number)
                    own[op.name] = op
                part = Part(header[2], list(own.values()), is_entry=header[1] is not None)
            self.chunks[chunk] = part
            self.parts[part.name] = part
            if part.is_entry:
                self.entry = part
            for op in part.ops:
                self.ops[op.name] = op
                self.home[op.name] = part
        if self.entry is None and self.parts:
            self.entry = next(reversed(self.parts.values()))
        if before is not None:
            self.lines = before.lines | self.lines if len(before.lines) < 4 * len(self.ops) else self.lines
        self._callers: dict[str, list[Op]] | None = None
        self._frames: dict[str, str] | None = None

    @functools.cached_property
    def local_ids(self) -> LocalIds | None:
        """Instruction ids, or None if no file has them."""
        return self._ids()

    def opcode(self, name: str) -> str | None:
        """Returns the opcode of an operation, or None if there is no operation with this name."""
        found = self.ops.get(name)
        return None if found is None else found.opcode

    def callers(self, part: str) -> list[Op]:
        """Returns the operations that call the computation named `part`; empty if there are none."""
        if self._callers is None:
            self._callers = {}
            for owner in self.parts.values():
                for op in owner.callers:
                    for callee in op.callees:
                        self._callers.setdefault(callee, []).append(op)
        return self._callers.get(part, [])

    def base(self, op: Op) -> str:
        """Returns the opcode without asynchronous suffix; for an async wrapper, that of the wrapped operation."""
        if op.base == "async":
            callee = self.parts.get(op.callees[0]) if op.callees else None
            if callee is not None and callee.root is not None:
                return callee.root.base
            start = self.ops.get(op.operands[0]) if op.operands else None
            return self.base(start) if start is not None and start is not op else op.base
        return op.base

    def location(self, op: Op) -> str:
        """Returns the source line of an operation; empty if absent."""
        frame = op.frame
        if not frame.startswith("stack_frame_id="):
            return frame
        if self._frames is None:
            self._frames = _frames(self.head)
        return self._frames.get(frame[15:], frame)


_END = "\n}"
"""Where a computation ends."""
_NAME = re.compile(r"%([A-Za-z_][\w.\-]*)", re.ASCII)
_OPERAND = re.compile(r"%([A-Za-z_][\w.\-]*)((?:#\d+)*)", re.ASCII)
_COMMENT = re.compile(r"/\*[^*]*\*/")
_HEADER = re.compile(r"(?:\A|(?<=\n))(ENTRY )?%?([A-Za-z_][\w.\-]*) [^\n]*\{(?=\n|\Z)", re.ASCII)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r'stack_frame_id=\d+|source_file="[^"]*"(?: source_line=\d+)?|source_line=\d+')
_INDEX = re.compile(r"index=(\d+)")
_CALLEE = re.compile(r", ([a-z_]+)=(?:%([A-Za-z_][\w.\-]*)|\{(%[^{}]*)\})", re.ASCII)
_LEFT_OUT = re.compile(
    r", (?:sharding|frontend_attributes|channel_id|backend_config|statistics|origin|cost|is_scheduled|original_value"
    r"|control-predecessors|is_spmd_generated)="
)
_LAYOUT = re.compile(r"\{[^{}]*\}|/\*[^*]*\*/ ?")


@functools.cache
def _op_line() -> re.Pattern[str]:
    return patterns.op_line("\n  ", "%", bounded=True)


@functools.cache
def _metadata() -> re.Pattern[str]:
    return re.compile(rf", metadata={patterns.braces()}")


@weighted_cache(1 << 12)
def _plain(shape: str) -> str:
    return _LAYOUT.sub("", shape)


def _with_elements(text: str) -> tuple[tuple[str, ...], tuple[tuple[str, str, int], ...]]:
    """Operands some of which are written `TUPLE#K`, named as XLA names them: `TUPLE_K`."""
    names, elements = [], []
    for match in _OPERAND.finditer(text):
        name = match[1]
        for number in match[2].split("#")[1:]:
            elements.append((f"{name}_{number}", name, int(number)))
            name = f"{name}_{number}"
        names.append(name)
    return tuple(names), tuple(elements)


@weighted_cache(1 << 12)
def _element_shape(shape: str, index: int) -> str:
    """The shape of an element of a tuple; `token[]` for one that is not there."""
    depth, at, number = 0, 1, 0
    for place, character in enumerate(shape):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if (character == "," and depth == 1) or not depth:
            if number == index:
                return _COMMENT.sub("", shape[at:place]).strip()
            at, number = place + 1, number + 1
    return "token[]"


@weighted_cache(1 << 10)
def base_opcode(opcode: str) -> str:
    """An opcode without what makes it asynchronous."""
    return opcode.removesuffix("-start").removesuffix("-done").removesuffix("-update")


def _read(chunk: str, known: dict[str, Op], start: int) -> Iterator[tuple[str, Op]]:
    """The lines of a computation and what they say."""
    pattern = _op_line()
    lines = chunk[start:].split("\n")
    for line in lines:
        if not line:
            continue
        op = known.get(line)
        if op is None:
            match = pattern.match(f"\n{line}")
            if match is None:
                break
            op = Op(match)
        yield line, op
    else:
        return
    done = chunk.find(line, start) - 1
    for match in pattern.finditer(chunk, max(done, 0)):
        yield match[0], Op(match)


def _callees(tail: str) -> tuple[str, tuple[str, ...]]:
    """A tail without the names of callees, and those names."""
    names: list[str] = []

    def taken(match: re.Match[str]) -> str:
        if match[1] == "control":  # control-predecessors: no callee
            return match[0]
        names.extend([match[2]] if match[2] else _NAME.findall(match[3]))
        return ""

    return _CALLEE.sub(taken, tail), tuple(names)


def _attributes(tail: str) -> str:
    """Semantic attributes of an operation, besides its opcode."""
    if _LEFT_OUT.search(tail) is None:
        return tail
    kept, at = [], 0
    for match in _LEFT_OUT.finditer(tail):
        if match.start() < at:
            continue
        kept.append(tail[at : match.start()])
        at = _end(tail, match.end())
    kept.append(tail[at:])
    return "".join(kept)


def _end(tail: str, at: int) -> int:
    """Where the value that begins at a place ends."""
    depth, quoted, index = 0, False, at
    while index < len(tail):
        character = tail[index]
        if quoted:
            if character == "\\":
                index += 1
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and not depth:
            return index
        index += 1
    return index


def _frames(head: str) -> dict[str, str]:
    """The line of each stack frame, as the tables before the computations tell."""
    tables: dict[str, list[str]] = {}
    for block in head.split("\n\n"):
        lines = block.strip().split("\n")
        tables[lines[0]] = lines[1:]
    files = dict(row.split(" ", 1) for row in tables.get("FileNames", ()) if " " in row)
    places = {}
    for row in tables.get("FileLocations", ()):
        number, _, rest = row.partition(" ")
        found = re.search(r"file_name_id=(\d+).*? line=(\d+).*? column=(\d+)", rest)
        if found is not None:
            places[number] = f"{files.get(found[1], found[1])}:{found[2]}:{found[3]}"
    frames = {}
    for row in tables.get("StackFrames", ()):
        number, _, rest = row.partition(" ")
        found = re.search(r"file_location_id=(\d+)", rest)
        if found is not None:
            frames[number] = places.get(found[1], rest)
    return frames


_SUFFIX = re.compile(r"(?:\.(?:\d+|clone|remat|remat_uncompressed|sunk|unrolled))+$")


@weighted_cache(1 << 14)
def stem(name: str) -> str:
    """A name without the numbers and marks that make it unique: `add.42.clone.1` is one of `add`."""
    return _SUFFIX.sub("", name)


def has_usual_form(text: str) -> bool:
    """Returns True if text is in the form of XLA's dumps: names with `%`, and one operation per line."""
    return "\n  %" in text or "\n  ROOT %" in text


def usual_form(text: str) -> str:
    """Converts HLO text to the form of XLA's dumps, unless it has this form already.

    Raises HloSyntaxError for invalid HLO, and InputError for several modules.
    """
    return text if has_usual_form(text) else hlo.parse(text, only=True).to_text()
