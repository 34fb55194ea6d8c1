"""Protos in text format, read without their schemas: what XLA writes as .textproto, .pbtxt and, for TPUs, .txt.

Protobuf's own text parser reads nothing without compiled schemas, which are not public for libtpu and change every month for
XLA; the format itself is small (https://protobuf.dev/reference/protobuf/textformat-spec/). So this reads all of it, and
tells values by their form alone: numbers, texts, words (enumerators, `true`), and messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union

from hlotext.ir import sending

Value: TypeAlias = Union[str, int, float, bool, "TextMessage"]
_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*+(?:
    (?P<word>[A-Za-z_][\w.\-]*) | (?P<number>-?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fF]?)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*') | (?P<mark>[{}<>\[\]:;,-]) | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_EXTENSION = re.compile(r"\[[^\]\n]*\]")
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CLOSING = {"{": "}", "<": ">"}
_WORDS: dict[str, bool | float] = {"true": True, "false": False, "inf": float("inf"), "nan": float("nan")}


class TextProtoError(sending.Whole, ValueError):
    """Raised for invalid text-format input. The message gives the line; `.message` is the part parsed before the error."""

    def __init__(self, problem: str, line: int, message: TextMessage) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.message = message


class TextMessage(Mapping[str, tuple[Value, ...]]):
    """A parsed message. Every field is a tuple of values, since only the schema says which are repeated."""

    __slots__ = ("_fields",)

    def __init__(self) -> None:
        self._fields: dict[str, list[Value]] = {}

    def add(self, name: str, value: Value) -> None:
        """Adds a value to a field."""
        self._fields.setdefault(name, []).append(value)

    def __getitem__(self, name: str) -> tuple[Value, ...]:
        return tuple(self._fields[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"<Message of {', '.join(self._fields) or 'no fields'}>"

    def messages(self, name: str) -> tuple[TextMessage, ...]:
        """Returns all submessages of a field."""
        return tuple(value for value in self._fields.get(name, ()) if isinstance(value, TextMessage))

    def message(self, name: str) -> TextMessage:
        """Returns the last submessage of a field, or an empty message if there is none, as in protobuf."""
        found = self.messages(name)
        return found[-1] if found else TextMessage()

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns all strings and identifiers (enum values) of a field."""
        return tuple(value for value in self._fields.get(name, ()) if isinstance(value, str))

    def text(self, name: str) -> str | None:
        """Returns the last string or identifier of a field, or None if there is none."""
        found = self.texts(name)
        return found[-1] if found else None

    def number(self, name: str) -> int | float | None:
        """Returns the last number of a field, or None if there is none."""
        found = [
            v for v in self._fields.get(name, ()) if isinstance(v, int | float) and not isinstance(v, bool)
        ]
        return found[-1] if found else None

    def integer(self, name: str) -> int | None:
        """Returns the last number of a field, or None if there is none or it is not an integer."""
        found = self.number(name)
        return found if isinstance(found, int) else None

    def flag(self, name: str) -> bool | None:
        """Returns the last boolean of a field, or None if there is none."""
        found = [value for value in self._fields.get(name, ()) if isinstance(value, bool)]
        return found[-1] if found else None


def parse(text: str) -> TextMessage:
    """Parses a message in text format.

    Raises TextProtoError, with the part parsed before the error, if the text is invalid.
    """
    return _Reading(text).message()


class _Reading:
    """Reads one text. Messages and lists that are open stand on a stack, so that nesting costs no recursion."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.top = TextMessage()
        self.open: list[tuple[TextMessage, str, str]] = [(self.top, "", "")]
        """The message that is filled, what closes it or its list, and of a list the field's name."""
        self.kind = self.token = ""
        self.place = self.end = 0
        self.next()

    def next(self) -> None:
        """Goes to the next token."""
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            raise self.error(f"{self.text[self.end : self.end + 20].split()[0]!r} does not start a field")
        self.kind = str(match.lastgroup)
        self.token, self.place, self.end = match[self.kind], match.start(self.kind), match.end()

    def message(self) -> TextMessage:
        """Reads everything."""
        while True:
            message, closing, list_name = self.open[-1]
            if self.kind == "end":
                if closing:
                    raise self.error(f"{closing} is missing at the end")
                return self.top
            if self.token in (";", ",") and self.kind == "mark":
                self.next()
            elif self.token == closing and self.kind == "mark":
                self.open.pop()
                self.next()
            elif list_name:
                self.value(message, list_name, in_list=True)
            else:
                name = self.name()
                if self.token == ":" and self.kind == "mark":
                    self.next()
                self.value(message, name, in_list=False)

    def name(self) -> str:
        """Reads the name of a field: a word, the number of one that the writer did not know, or an extension's in
        brackets."""
        name = self.token
        if self.kind == "mark" and (match := _EXTENSION.match(self.text, self.place)) is not None:
            name, self.end = match[0], match.end()
        elif self.kind not in ("word", "number"):
            raise self.error(f"a field's name is missing before {name[:20]!r}")
        self.next()
        return name

    def value(self, into: TextMessage, name: str, *, in_list: bool) -> None:
        """Reads a plain value, or opens a message or a list."""
        kind, token = self.kind, self.token
        if kind == "mark" and token in _CLOSING:
            inner = TextMessage()
            into.add(name, inner)
            self.open.append((inner, _CLOSING[token], ""))
            self.next()
        elif kind == "mark" and token == "[" and not in_list:
            self.open.append((into, "]", name))
            self.next()
        elif kind == "text":
            parts = []
            while self.kind == "text":
                parts.append(unescape(self.token[1:-1]))
                self.next()
            into.add(name, "".join(parts))
        elif kind == "number":
            into.add(name, _number(token))
            self.next()
        else:
            self.word(into, name)

    def word(self, into: TextMessage, name: str) -> None:
        """Reads an enumerator, `true`, `-inf` and the like."""
        sign = 1
        if self.kind == "mark" and self.token == "-":
            sign = -1
            self.next()
        if self.kind != "word":
            raise self.error(f"the value of {name[:40]} is missing")
        value = _WORDS.get(self.token.lower(), self.token)
        into.add(name, -value if sign < 0 and isinstance(value, float) else value)
        self.next()

    def error(self, problem: str) -> TextProtoError:
        """The error at the token that was read last."""
        return TextProtoError(problem, self.text.count("\n", 0, self.place) + 1, self.top)


def _number(token: str) -> int | float:
    token = token.replace(" ", "")
    if "x" in token.lower():
        return int(token[:4300], 16)
    plain = token.rstrip("fF")
    try:
        return int(plain) if plain.lstrip("-").isdigit() and len(plain) < 4000 else float(plain)
    except ValueError:
        return float("nan")


def unescape(text: str) -> str:
    """Replaces the escapes of a text; octal and hexadecimal ones are bytes of UTF-8."""
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        octal, hexadecimal, short, long, plain = match.groups()
        if octal:
            return chr(int(octal, 8) & 255)
        if hexadecimal:
            return chr(int(hexadecimal, 16))
        if short or long:
            number = int(short or long, 16)
            return chr(number) if number < 0x110000 else "\N{REPLACEMENT CHARACTER}"
        return _PLAIN.get(plain, plain)

    found = _ESCAPE.sub(one, text)
    if re.search(r"\\[0-7xX]", text) and all(ord(c) < 256 for c in found):
        return found.encode("latin-1").decode("utf-8", "surrogateescape")
    return found
