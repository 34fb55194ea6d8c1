"""Common mistakes, recognized where the parse fails, with messages that help more than a list of expected tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from hlotext.ir.spelling import did_you_mean
from hlotext.ir.tables import opcodes
from hlotext.ir.values.types import ELEMENT_TYPES
from hlotext.syntax.hints.expectation import expected_words
from hlotext.syntax.hints.foreign_syntax import FOREIGN
from hlotext.syntax.hints.hints import form_of, hint, outside_computation
from hlotext.syntax.hints.parse_failure import Mistake, ParseFailure
from hlotext.syntax.language import grammar
from hlotext.syntax.language.boundaries import begins_line
from hlotext.syntax.language.grammar import attribute_rule, attribute_rules, header_attribute_rule

_NO_TOKEN = re.compile(r"[^\t\r\n !-~]|[;|$@&!`^~\\<]", re.ASCII)
"""Characters that no token holds: those that are no ASCII, control characters, and signs without a meaning."""
_KEYWORDS = frozenset(word for word in grammar.reserved() if word not in ELEMENT_TYPES)
_SEPARATED_BY_BLANKS = {
    "window": "the fields of a window",
    "sharding": "the parts of a sharding",
    "sparsity_config": "the fields of a sparsity",
}


def describe(place: ParseFailure) -> Mistake:
    """Describes the mistake at a position where parsing failed."""
    for recognise in _MISTAKES:
        finding = recognise(place)
        if finding is not None:
            return finding
    where = f"in {place.within}: " if place.within else ""
    message = f"{where}expected {expected_words(place.expected)}"
    is_closer = bool(place.closer) and f"`{place.closer}`" in message
    opened = place.opened if (is_closer or place.is_line_end) and place.is_unclosed else None
    if place.is_line_end and not place.expected & _BEGINNINGS:
        help = f"is a `{place.closer}` missing here?" if is_closer and opened is not None else hint(place)
        return Mistake(f"{message}, but the line ends here", place.behind, place.behind, help, opened=opened)
    shown = place.word if place.word.isprintable() else place.word.encode("unicode_escape").decode("ascii")
    return Mistake(f"{message}, found `{shown[:60]}`", place.start, place.after, hint(place), opened=opened)


_BEGINNINGS = frozenset({"ROOT", "ENTRY", "HLO_MODULE", "SECTION_NAME"})
"""Terminals that begin a line: where they are expected, the line before it may be complete."""


# ---- mistakes with words of their own


def _log_line(place: ParseFailure) -> Mistake | None:
    """A line of a log between the lines of the text, as XLA and its friends write them."""
    start = place.line_start
    match = _LOG_LINE.match(place.text, start)
    if match is None:
        return None
    return Mistake("this is a log line", start, match.end(), "remove it")


_LOG_LINE = re.compile(
    r"[IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}[^\r\n]*|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[^\r\n]*"
)
"""Beginnings of log lines: those of glog and Abseil, and those of most others."""


def _open_comment(place: ParseFailure) -> Mistake | None:
    if (
        not place.text.startswith("/*", place.start)
        or place.text.find("*/", place.start + 2, place.limit) >= 0
    ):
        return None
    return Mistake("unterminated comment", place.start, place.start + 2, "it ends with `*/`")


def _open_string(place: ParseFailure) -> Mistake | None:
    quote = place.word
    if quote not in ("'", '"') or re.compile(grammar.terminals()["STRING"]).match(
        place.text, place.start, place.limit
    ):
        return None
    is_cut = "\n" not in place.text[place.start :].rstrip()
    help = "the text ends inside it" if is_cut else f"it ends with {quote}"
    return Mistake("unterminated string", place.start, place.start + 1, help)


def _string_over_lines(place: ParseFailure) -> Mistake | None:
    """A string whose end is that of its line's: it ends where the next one begins."""
    quote = place.previous
    if quote not in ("'", '"'):
        return None
    end = place.behind - 1
    opening = place.text.rfind(quote, max(0, end - _FAR), end)
    if opening < 0 or not _LINE_END.search(place.text, opening, end):
        return None
    message = "this string continues past the end of the line"
    return Mistake(message, opening, opening + 1, f"is a {quote} missing on this line?")


def _string_ends_late(place: ParseFailure) -> Mistake | None:
    """A string that ends where the next one begins: `"dot source_file="model.py"`."""
    quote = place.previous
    if quote not in ("'", '"'):
        return None
    end = place.behind - 1
    opening = place.text.rfind(quote, max(0, end - _FAR), end)
    if opening < 0 or (field := _NEXT_FIELD.search(place.text, opening + 1, end)) is None:
        return None
    help = f"is a {quote} missing before `{field[1]}`?"
    return Mistake("unterminated string", opening, opening + 1, help)


_NEXT_FIELD = re.compile(r"[ \t,}]*[ \t,]([A-Za-z_]+=)\Z")
"""The end of a string that holds the name of the next field."""
_FAR = 5_000
"""Characters within which the beginning of a string is looked for."""
_LINE_END = re.compile(r"[\r\n]")


def _merge_conflict(place: ParseFailure) -> Mistake | None:
    match = _CONFLICT.match(place.text, place.line_start)
    if match is None:
        return None
    return Mistake(
        "this is a conflict marker of a merge", place.line_start, match.end(), "resolve the conflict"
    )


_CONFLICT = re.compile(r"(?:<{7}|>{7}|={7}|\|{7})[^\r\n]*")


def _stray_brace(place: ParseFailure) -> Mistake | None:
    if place.word != "}" or "ENTRY" not in place.expected or "RBRACE" in place.expected:
        return None
    return Mistake("unmatched closing brace", place.start, place.after, "remove it")


def _stray_closer(place: ParseFailure) -> Mistake | None:
    """A closing bracket behind a complete op line."""
    if place.word not in (")", "]") or not place.expected >= {"ROOT", "RBRACE"} or place.is_line_end:
        return None
    return Mistake(f"unmatched `{place.word}`", place.start, place.after, "remove it")


def _called_name(place: ParseFailure) -> Mistake | None:
    """Parentheses behind the name of a computation, as behind a function's: `to_apply=sum()`."""
    if place.word != "(" or not place.expected >= {"ROOT", "RBRACE"} or place.precedes(r"[ \t]"):
        return None
    name = _LAST_WORD.search(place.text, max(0, place.behind - 200), place.behind)
    if name is None or place.text[name.start() - 1] != "=":
        return None
    return Mistake("unexpected `(` after a name", place.start, place.after, f"write only `{name[0]}`")


def _attribute_inside(place: ParseFailure) -> Mistake | None:
    """An attribute behind a comma, inside of brackets that were not closed before it."""
    if (
        place.previous != ","
        or place.opened is None
        or not place.follows("=")
        or not place.word[:1].isalpha()
    ):
        return None
    if "ATTRIBUTE_NAME" in place.expected or place.text[place.opened] == "[":
        return None
    if attribute_rule(place.word) is None and header_attribute_rule(place.word) is None:
        return None
    comma = place.behind - 1
    where = f"in {place.within}: " if place.within else ""
    message = f"{where}expected `{place.closer}` before the attribute {place.word}"
    help = f"is a `{place.closer}` missing before this comma?"
    return Mistake(message, comma, comma + 1, help, opened=place.opened)


def _attribute_without_comma(place: ParseFailure) -> Mistake | None:
    """An attribute behind a complete op line or header, with no comma before it."""
    if place.is_line_end or not place.follows("=") or not place.expected & {"ROOT", "ENTRY"}:
        return None
    if attribute_rule(place.word) is None and header_attribute_rule(place.word) is None:
        return None
    return Mistake(
        f"expected `,` before the attribute {place.word}",
        place.behind,
        place.behind,
        "is a comma missing here?",
    )


def _no_token(place: ParseFailure) -> Mistake | None:
    """A character that means nothing anywhere, at the place or glued to the word there."""
    for offset in (place.start, place.after):
        if offset < place.limit and _NO_TOKEN.match(place.text, offset):
            what, help = _character(place.text[offset])
            return Mistake(f"unexpected {what}", offset, offset + 1, help)
    return None


def _character(character: str) -> tuple[str, str]:
    """Name of a character that no token contains, and help about it."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"byte 0x{code - 0xDC00:02x}, which is not UTF-8", _ONLY_ASCII
    if code > 127 and (plain := unicodedata.normalize("NFKC", character)) != character and plain.isascii():
        return f"character U+{code:04X}", f"write `{plain}`" if plain.strip() else "write a plain space"
    if character in _QUOTES:
        return f"`{character}` (U+{code:04X})", 'write a plain quotation mark: `"`'
    if code > 127:
        is_visible = character.isprintable() and not character.isspace()
        return f"`{character}` (U+{code:04X})" if is_visible else f"character U+{code:04X}", _ONLY_ASCII
    if not code:
        return "NUL byte", ""
    if character == ";":
        return "`;`", "attributes and list items are separated by commas, instructions by line breaks only"
    if code > 32:
        return f"`{character}`", "names consist of letters, digits, `_`, `.` and `-`"
    return f"character U+{code:04X}", ""


_QUOTES = "\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"
_ONLY_ASCII = "only ASCII is allowed outside strings and comments"


def _reserved(place: ParseFailure) -> Mistake | None:
    """A reserved word as a name."""
    word = place.word
    is_name = "NAME" in place.expected and not place.expected & {"TYPE", "OPCODE"}
    if not (is_name or (place.expected >= {"NAME"} and place.follows(r"\s*="))) and not (
        place.text[place.start - 1 : place.start] in (" ", "\t") and place.before.endswith("ROOT")
    ):
        return None
    if word in ELEMENT_TYPES and ELEMENT_TYPES[word].number:
        message = f"`{word}` is an element type and cannot be used as a name"
        return Mistake(message, place.start, place.after, f"rename it, for example to `{word}_`", "X116")
    if word in _KEYWORDS and (word not in _STRUCTURE or place.follows(r"\s*=")):
        message = f"`{word}` is a reserved word"
        return Mistake(
            message, place.start, place.after, f"to use it as a name, add a percent sign: `%{word}`", "X116"
        )
    return None


_STRUCTURE = frozenset(
    {"ENTRY", "ROOT", "HloModule", "FileNames", "FunctionNames", "FileLocations", "StackFrames"}
)


def _digit_first(place: ParseFailure) -> Mistake | None:
    word = place.word
    if "NAME" not in place.expected or not word[:1].isdigit() or not place.follows(r"\s*="):
        return None
    message = "a name starts with a letter or an underscore"
    return Mistake(message, place.start, place.after, f"rename it, for example to `_{word}`")


def _nothing_before_equals(place: ParseFailure) -> Mistake | None:
    if place.word != "=" or "NAME" not in place.expected or not begins_line(place.text, place.start):
        return None
    return Mistake("missing name before `=`", place.start, place.after)


def _module_without_name(place: ParseFailure) -> Mistake | None:
    """`HloModule` before an attribute or the end of its line; there the next line's first word was read as the name."""
    head = _NAMELESS.search(place.text, max(0, place.behind - 200), place.behind)
    if head is None or not (
        (not head[1] and place.expected == {"NAME"} and (place.is_line_end or place.follows("=")))
        or ("\n" in (head[1] or "") and "ENTRY" in place.expected)
    ):
        return None
    start = head.start()
    return Mistake("the module has no name", start, start + len("HloModule"), "write `HloModule NAME`")


_NAMELESS = re.compile(r"HloModule(?:(\s+)[\w.%-]+)?\Z")


def _percent_alone(place: ParseFailure) -> Mistake | None:
    if place.word != "%":
        return None
    return Mistake("expected a name right after `%`", place.start, place.after)


def _glued_equals(place: ParseFailure) -> Mistake | None:
    """`x=f32[]`: to XLA's lexer this is the attribute `x=`."""
    if "NAME" not in place.expected or not place.follows("=") or not place.word[:1].isalpha():
        return None
    if place.precedes(r",[ \t]*") or place.precedes(r"[)}\w\"][ \t]+"):
        return None
    message = f"`{place.word}=` is parsed as an attribute, not as an instruction name"
    return Mistake(message, place.start, place.after + 1, f"put a space before `=`: `{place.word} = ...`")


def _blank_before_equals(place: ParseFailure) -> Mistake | None:
    """`metadata ={...}`: an attribute's name and its `=` are one token."""
    if not any(name.endswith("ATTRIBUTE") or name == "ATTRIBUTE_NAME" for name in place.expected):
        return None
    if not place.follows(r"[ \t]+=") or place.precedes(r"(?:^|\n)[ \t]*"):
        return None
    message = f"unexpected space between `{place.word}` and `=`"
    return Mistake(message, place.start, place.after, f"write `{place.word}=`")


def _no_value(place: ParseFailure) -> Mistake | None:
    """An attribute without `=`, or with nothing behind it."""
    if place.within and place.previous == "=":
        start = place.behind - len(place.within) - 1
        if (
            place.text.startswith(f"{place.within}=", start)
            and "\n" in place.text[place.behind : place.start]
        ):
            return Mistake(f"`{place.within}=` has no value", start, place.behind, form_of(place.within))
    if "ATTRIBUTE_NAME" in place.expected and place.word in attribute_rules() and place.previous == ",":
        return Mistake(f"`{place.word}` has no value", place.start, place.after, form_of(place.word))
    return None


def _comma_at_end(place: ParseFailure) -> Mistake | None:
    """A comma behind the last attribute of a line."""
    is_attribute = "ATTRIBUTE_NAME" in place.expected and "NAME" not in place.expected
    if not is_attribute or place.previous != "," or "\n" not in place.text[place.behind : place.start]:
        return None
    return Mistake(
        "expected an attribute after this comma", place.behind - 1, place.behind, "remove the comma"
    )


def _equals_missing(place: ParseFailure) -> Mistake | None:
    """A name that no `=` follows: a stray word, or a computation inside one that was not closed."""
    if place.expected - {"COMPACT_INDEX"} != {"EQUAL"}:
        return None
    name = _LAST_WORD.search(place.text, max(0, place.behind - 200), place.behind)
    if name is None:
        return None
    if place.word in ("(", "{"):
        message = "this computation starts before the previous one is closed"
        return Mistake(message, name.start(), name.end(), "is a `}` missing above?")
    if place.word == ":":
        return Mistake("unexpected space before the colon", place.start, place.after, "write only `=`")
    if "\n" in place.text[place.behind : place.start]:
        return Mistake(f"expected `=` after `{name[0]}`", name.start(), name.end())
    meant = did_you_mean(name[0], ("ROOT",))
    if begins_line(place.text, name.start()) and meant:
        return Mistake(f"expected `=` after `{name[0]}`", name.start(), name.end(), meant)
    is_first = begins_line(place.text, name.start()) or place.text[: name.start()].endswith("ROOT ")
    if is_first and (place.word in ELEMENT_TYPES or place.word in opcodes.OPCODES):
        message = f"expected `=` after `{name[0]}`, found `{place.word}`"
        return Mistake(message, place.start, place.after, f"is a `=` missing before `{place.word}`?")
    if is_first and place.follows(r"\s*="):
        spelled = f"{name[0]}_{place.word}"
        return Mistake("a name is one word", name.start(), place.after, f"did you mean `{spelled}`?")
    return None


def _entry_misspelled(place: ParseFailure) -> Mistake | None:
    """A word before a computation's name that is nearly `ENTRY`."""
    if not place.expected >= {"LPAREN", "LBRACE"} or place.word[:1] not in ("%", *_LETTERS):
        return None
    word = _LAST_WORD.search(place.text, max(0, place.behind - 200), place.behind)
    meant = did_you_mean(word[0], ("ENTRY",)) if word is not None else ""
    if word is None or not meant or not begins_line(place.text, word.start()):
        return None
    message = f"expected `(` or `{{` after the computation's name {word[0]}"
    return Mistake(message, word.start(), word.end(), meant)


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"


_LAST_WORD = re.compile(r"%?[A-Za-z0-9_.\-]+\Z")


def _entry_inside(place: ParseFailure) -> Mistake | None:
    if place.word != "ENTRY" or "RBRACE" not in place.expected:
        return None
    header = place.text.rfind("HloModule", 0, place.start)
    if (
        place.opened is not None
        and 0 <= header < place.opened
        and "\n" not in place.text[header : place.opened]
    ):
        help = "is a `}` missing at the end of the header line?"
        return Mistake("the header ends inside braces", place.behind, place.behind, help, opened=place.opened)
    message = "this computation starts before the previous one is closed"
    return Mistake(message, place.start, place.after, "is a `}` missing above?")


def _instruction_outside(place: ParseFailure) -> Mistake | None:
    """`%x = ...` where a computation's brace or signature is expected."""
    if place.word != "=" or "LBRACE" not in place.expected or place.within:
        return None
    name = _LAST_WORD.search(place.text, max(0, place.behind - 200), place.behind)
    start = place.start if name is None else name.start()
    message = "instruction outside any computation"
    return Mistake(message, start, place.after, outside_computation(place.text, start))


def _colon_apart(place: ParseFailure) -> Mistake | None:
    if place.word != ":" or "TYPE" not in place.expected or place.within:
        return None
    return Mistake("unexpected space between a parameter's name and its colon", place.start, place.after)


def _percent_in_signature(place: ParseFailure) -> Mistake | None:
    if "SIGNATURE_NAME" not in place.expected or not place.word.startswith("%"):
        return None
    message = "parameters take no percent sign in a signature"
    return Mistake(message, place.start, place.after, f"write `{place.word[1:]}`")


def _result_missing(place: ParseFailure) -> Mistake | None:
    if place.expected != {"ARROW"} or place.word != "{":
        return None
    help = "write `-> ` and the shape of the root, or omit the whole signature"
    return Mistake("the signature has no result shape", place.start, place.after, help)


def _empty_layout(place: ParseFailure) -> Mistake | None:
    if not re.compile(r"\{\s*\}").match(place.text, place.start) or not place.precedes(r"\][ \t]*"):
        return None
    end = place.text.find("}", place.start) + 1
    return Mistake("a layout cannot be empty", place.start, end, "remove the braces")


def _comma_in_blanks(place: ParseFailure) -> Mistake | None:
    what = _SEPARATED_BY_BLANKS.get(place.within)
    if what is None or place.word != "," or "RBRACE" not in place.expected:
        return None
    return Mistake(f"{what} are separated by spaces", place.start, place.after, "remove the comma")


_ROUND_SIZES = re.compile(r"\(([\d, ]+)\)")


def _type_without_brackets(place: ParseFailure) -> Mistake | None:
    if "TYPE" not in place.expected or place.word not in ELEMENT_TYPES or place.follows(r"\s*\["):
        return None
    if sizes := _ROUND_SIZES.match(place.text, place.after, place.limit):
        help = f"did you mean `{place.word}[{sizes[1]}]`?"
        return Mistake("the sizes of a shape stand in brackets", place.start, place.after, help)
    message = f"a shape needs brackets, even for a scalar: `{place.word}[]`"
    return Mistake(message, place.start, place.after)


def _shape_in_parentheses(place: ParseFailure) -> Mistake | None:
    """`f32(4,8)`: to the grammar an opcode with numbers as operands."""
    found = _SIZES.search(place.text, max(0, place.start - 20), place.limit)
    if found is None or not found.start() < place.start <= found.end():
        return None
    message = "the sizes of a shape go in brackets"
    return Mistake(message, found.start(), found.end(), f"did you mean `{found[1]}[{found[2]}]`?")


_SIZES = re.compile(
    rf"(?<![\w.\-])({'|'.join(sorted(ELEMENT_TYPES, key=len, reverse=True))})\(([0-9]+(?:[ \t]*,[ \t]*[0-9]+)*)\)"
)


def _upper_case_type(place: ParseFailure) -> Mistake | None:
    word = place.word
    if "TYPE" not in place.expected or word == word.lower() or word.lower() not in ELEMENT_TYPES:
        return None
    message = f"element types are lowercase: `{word.lower()}`"
    return Mistake(message, place.start, place.after)


def _opcode_without_parentheses(place: ParseFailure) -> Mistake | None:
    if "OPCODE" not in place.expected or place.word not in opcodes.OPCODES or place.follows(r"\s*\("):
        return None
    message = f"the operands of {place.word} go in parentheses: `{place.word}(...)`"
    return Mistake(message, place.start, place.after)


def _no_operand(place: ParseFailure) -> Mistake | None:
    """A number, or the dots that XLA prints for operands left out, in place of an operand."""
    if not place.expected >= {"NAME", "OPCODE", "TYPE"} or not place.precedes(r"[(,][ \t]*"):
        return None
    opcode = _UNKNOWN_OPCODE.search(place.text, max(0, place.start - 60), place.start)
    if opcode is not None and (meant := did_you_mean(opcode[1], ("constant", "parameter"))):
        return Mistake(f"opcode {opcode[1]} is unknown", opcode.start(1), opcode.end(1), meant)
    if place.word == "...":
        message = "operands were omitted when this text was printed, so it cannot be parsed"
        return Mistake(message, place.start, place.after)
    if _NUMBER.fullmatch(place.word):
        message = "expected an instruction as operand, not a number"
        if found := _NUMBERED_ELEMENT.search(place.text, max(0, place.start - 500), place.start):
            help = f"write `{found[1]}({found[2]}), {_NUMBERS_OF[found[1]]}={place.word}`"
            return Mistake(message, place.start, place.after, help)
        return Mistake(
            message, place.start, place.after, "define a `constant` with that value and use its name"
        )
    return None


_NUMBERS_OF = {"get-tuple-element": "index", "iota": "iota_dimension"}
"""Opcodes with an attribute that other languages give as an operand."""
_NUMBERED_ELEMENT = re.compile(r"\b(get-tuple-element|iota)\(([^()\r\n]*?)[ \t]*,?[ \t]*\Z")
_UNKNOWN_OPCODE = re.compile(r"(?<![\w.\-])([a-z][a-z\-]*)[ \t]*\([ \t]*\Z")
_NUMBER = re.compile(r"[+\-]?[0-9.][0-9A-Za-z.+\-]*")

_MISTAKES: tuple[Callable[[ParseFailure], Mistake | None], ...] = (
    _log_line,
    _open_comment,
    _open_string,
    _string_over_lines,
    _string_ends_late,
    _merge_conflict,
    _stray_brace,
    _stray_closer,
    _called_name,
    _attribute_inside,
    _attribute_without_comma,
    *FOREIGN,
    _no_token,
    _entry_inside,
    _reserved,
    _digit_first,
    _nothing_before_equals,
    _module_without_name,
    _percent_alone,
    _glued_equals,
    _blank_before_equals,
    _no_value,
    _comma_at_end,
    _equals_missing,
    _entry_misspelled,
    _instruction_outside,
    _colon_apart,
    _percent_in_signature,
    _result_missing,
    _empty_layout,
    _comma_in_blanks,
    _type_without_brackets,
    _upper_case_type,
    _opcode_without_parentheses,
    _shape_in_parentheses,
    _no_operand,
)
