"""What people get wrong most, recognised where the grammar stumbles, with words that help more than what it expected."""

from __future__ import annotations

import re
from collections.abc import Callable

import attrs

from hlotext.ir import opcodes
from hlotext.ir.types import ELEMENT_TYPES
from hlotext.syntax import grammar
from hlotext.syntax.expectation import expected_words


@attrs.frozen
class Stumble:
    """A place that the grammar cannot read."""

    text: str
    start: int
    """Offset of the first thing that cannot stand there."""
    limit: int
    """Where the piece of text ends that was read."""
    expected: frozenset[str]
    """Terminals that could."""
    within: str = ""
    """The attribute in whose value it is; empty outside."""

    @property
    def word(self) -> str:
        """The word or the single character there."""
        match = _WORD.match(self.text, self.start, self.limit)
        return match[0] if match is not None else self.text[self.start : self.start + 1]

    @property
    def after(self) -> int:
        """The offset behind the word."""
        return self.start + len(self.word)

    def follows(self, pattern: str) -> bool:
        """Whether something stands right behind the word."""
        return re.compile(pattern).match(self.text, self.after, self.limit) is not None

    def precedes(self, pattern: str) -> bool:
        """Whether something stands right before the word, on the same line."""
        line = max(self.text.rfind("\n", 0, self.start), self.start - 200) + 1
        return re.search(rf"(?:{pattern})\Z", self.text[line : self.start]) is not None


@attrs.frozen
class Finding:
    """What is wrong, in words. Offsets are the source's; an empty help says nothing."""

    message: str
    start: int
    end: int
    help: str = ""
    code: str = "X101"


_WORD = re.compile(r"[%\-]?[A-Za-z0-9_.][A-Za-z0-9_.\-]*|->|<=|\.\.\.", re.ASCII)
_NO_TOKEN = re.compile(r"[^\t\r\n !-~]|[;|$@&!`^~\\<]", re.ASCII)
"""Characters that no token holds: those that are no ASCII, control characters, and signs without a meaning."""
_KEYWORDS = frozenset(
    re.search(r"\(\?:(true[^)]*?shard_like)", grammar.terminals()["NAME"]).group(1).split("|")  # type: ignore[union-attr]
)
_SEPARATED_BY_BLANKS = {
    "window": "the fields of a window",
    "sharding": "the parts of a sharding",
    "sparsity_config": "the fields of a sparsity",
}


def describe(place: Stumble) -> Finding:
    """What to say about a place that cannot be read."""
    for recognise in _MISTAKES:
        finding = recognise(place)
        if finding is not None:
            return finding
    shown = place.word if place.word.isprintable() else place.word.encode("unicode_escape").decode("ascii")
    where = f"in {place.within}: " if place.within else ""
    message = f"{where}expected {expected_words(place.expected)}, found `{shown[:60]}`"
    return Finding(message, place.start, place.after, _help(place))


# ---- mistakes with words of their own


def _open_comment(place: Stumble) -> Finding | None:
    if (
        not place.text.startswith("/*", place.start)
        or place.text.find("*/", place.start + 2, place.limit) >= 0
    ):
        return None
    return Finding("this comment is not closed", place.start, place.start + 2, "it ends with `*/`")


def _open_string(place: Stumble) -> Finding | None:
    quote = place.word
    if quote not in ("'", '"') or re.compile(grammar.terminals()["STRING"]).match(place.text, place.start):
        return None
    return Finding("this string is not closed", place.start, place.start + 1, f"it ends with {quote}")


def _no_token(place: Stumble) -> Finding | None:
    """A character that means nothing anywhere, at the place or glued to the word there."""
    for offset in (place.start, place.after):
        if offset < place.limit and _NO_TOKEN.match(place.text, offset):
            character = place.text[offset]
            code = ord(character)
            if 0xDC80 <= code <= 0xDCFF:
                what = f"the byte 0x{code - 0xDC00:02x}, which is no UTF-8, "
            elif character.isprintable() and code != 0xA0:
                what = f"`{character}` (U+{code:04X}) " if code > 127 else f"`{character}` "
            else:
                what = f"the character U+{code:04X} "
            help = "outside strings and comments there is only ASCII" if code > 127 else ""
            return Finding(f"{what}cannot stand here", offset, offset + 1, help)
    return None


def _reserved(place: Stumble) -> Finding | None:
    """A reserved word as a name."""
    word = place.word
    if "NAME" not in place.expected and not place.precedes(r"ROOT[ \t]+"):
        return None
    if word in ELEMENT_TYPES and place.follows(r"\s*=") and ELEMENT_TYPES[word].number:
        message = f"`{word}` is an element type, so nothing can be named like that"
        return Finding(message, place.start, place.after, f"rename it, for example to `{word}_`", "X116")
    if word in _KEYWORDS and place.follows(r"\s*[=,){]"):
        message = f"`{word}` is a reserved word"
        return Finding(
            message, place.start, place.after, f"as a name it needs a percent sign: `%{word}`", "X116"
        )
    return None


def _glued_equals(place: Stumble) -> Finding | None:
    """`x=f32[]`: to XLA's lexer this is the attribute `x=`."""
    if "NAME" not in place.expected or not place.follows("=") or not place.word[0].isalpha():
        return None
    if place.precedes(r",[ \t]*") or place.precedes(r"[)}\w\"][ \t]+"):
        return None
    message = f"`{place.word}=` reads as an attribute, not as the name of an instruction"
    return Finding(message, place.start, place.after + 1, f"put a blank before `=`: `{place.word} = ...`")


def _blank_before_equals(place: Stumble) -> Finding | None:
    """`metadata ={...}`: an attribute's name and its `=` are one token."""
    if not any(name.endswith("ATTRIBUTE") or name == "ATTRIBUTE_NAME" for name in place.expected):
        return None
    if not place.follows(r"[ \t]+="):
        return None
    message = f"a blank stands between `{place.word}` and its `=`"
    return Finding(message, place.start, place.after, f"write `{place.word}=`")


def _empty_layout(place: Stumble) -> Finding | None:
    if not re.compile(r"\{\s*\}").match(place.text, place.start) or not place.precedes(r"\][ \t]*"):
        return None
    end = place.text.find("}", place.start) + 1
    return Finding("a layout cannot be empty", place.start, end, "leave the braces out")


def _comma_in_blanks(place: Stumble) -> Finding | None:
    what = _SEPARATED_BY_BLANKS.get(place.within)
    if what is None or place.word != "," or "RBRACE" not in place.expected:
        return None
    return Finding(f"{what} are separated by blanks", place.start, place.after, "leave the comma out")


def _type_without_brackets(place: Stumble) -> Finding | None:
    if "TYPE" not in place.expected or place.word not in ELEMENT_TYPES or place.follows(r"\s*\["):
        return None
    message = f"a shape has brackets, also that of a scalar: `{place.word}[]`"
    return Finding(message, place.start, place.after)


def _upper_case_type(place: Stumble) -> Finding | None:
    word = place.word
    if "TYPE" not in place.expected or word == word.lower() or word.lower() not in ELEMENT_TYPES:
        return None
    message = f"element types are written in lower case: `{word.lower()}`"
    return Finding(message, place.start, place.after)


def _opcode_without_parentheses(place: Stumble) -> Finding | None:
    if "OPCODE" not in place.expected or place.word not in opcodes.OPCODES or place.follows(r"\s*\("):
        return None
    message = f"the operands of {place.word} stand in parentheses: `{place.word}(...)`"
    return Finding(message, place.start, place.after)


_MISTAKES: tuple[Callable[[Stumble], Finding | None], ...] = (
    _open_comment,
    _open_string,
    _no_token,
    _reserved,
    _glued_equals,
    _blank_before_equals,
    _empty_layout,
    _comma_in_blanks,
    _type_without_brackets,
    _upper_case_type,
    _opcode_without_parentheses,
)


# ---- help for what is merely not expected


def _help(place: Stumble) -> str:
    """What may be the matter; empty when there is no guess."""
    word, expected = place.word, place.expected
    if "BOOL" in expected and word.lower() in ("true", "false", "0", "1"):
        return f"write `{'true' if word.lower() in ('true', '1') else 'false'}`"
    if "STRING" in expected and (word[:1].isalnum() or word[:1] in "-_."):
        return f'put it in quotes: `"{word}"`'
    if expected <= {"LBRACE", "RBRACE"} and _INTEGER.fullmatch(word):
        return f"a list stands in braces: `{{{word}}}`"
    if "INT" in expected and re.fullmatch(r"\+?[0-9.][0-9.eE+\-]*", word):
        return "only whole numbers can stand here"
    if word == "+" and place.follows(r"[0-9.]"):
        return "numbers have no plus sign"
    is_start = word[:1].isalnum() or word[:1] in "%_{\"'"
    if "COMMA" in expected and is_start and place.precedes(r"[\w)}\]\"'][ \t]*"):
        return f"is a comma missing before `{word}`?"
    return ""


_INTEGER = re.compile(r"-?[0-9]+")


# ---- the end of the text

# What is not closed ends with the text, so that it is not looked for again from each of its characters.
_BRACKET = re.compile(
    r"""\"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+(?:"|\\?\Z)|'[^'\\]*+(?:\\[\s\S][^'\\]*+)*+(?:'|\\?\Z)"""
    r"""|/\*[\s\S]*?(?:\*/|\Z)|//[^\r\n]*+|[(){}\[\]]"""
)
_CLOSING = {")": "(", "}": "{", "]": "["}


def unclosed(text: str, start: int, end: int) -> int | None:
    """The bracket that is most likely the one that was not closed; None when all are.

    A brace on a line of its own closes what another line's last character opened. Where it closes something in the middle of
    a line instead, that is the culprit.
    """
    stack: list[int] = []
    for match in _BRACKET.finditer(text, start, end):
        bracket = match[0]
        if bracket in "({[":
            stack.append(match.start())
        elif bracket in _CLOSING and stack:
            opening = stack.pop()
            is_alone = _starts_line(text, match.start())
            is_last = text[opening + 1 : opening + 2] in ("\r", "\n")
            if text[opening] != _CLOSING[bracket] or (is_alone and not is_last):
                return opening
    return stack[-1] if stack else None


def _starts_line(text: str, position: int) -> bool:
    """Whether only blanks stand before an offset on its line."""
    while position and text[position - 1] in " \t":
        position -= 1
    return not position or text[position - 1] in "\r\n"
