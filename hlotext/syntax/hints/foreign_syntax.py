"""Syntax of other languages that HLO writes differently: operators, type annotations, brackets, dialects, keywords."""

from __future__ import annotations

import re
from collections.abc import Callable

from hlotext.ir.spelling import slip_of
from hlotext.ir.tables import opcodes
from hlotext.ir.tables.other_names import opcode_meant, word_elsewhere
from hlotext.ir.values.types import shape_meant
from hlotext.syntax.hints.parse_failure import Mistake, ParseFailure
from hlotext.syntax.language.boundaries import begins_line

_WORD = r"%?[A-Za-z_][\w.\-]*"
_LAST_WORD = re.compile(rf"{_WORD}\Z")
_LINE = 500
"""Characters of a line that are looked at."""


def _rest(place: ParseFailure) -> str:
    """The line from the word on."""
    return re.split(r"[\r\n]", place.text[place.start : min(place.limit, place.start + _LINE)], maxsplit=1)[0]


def _operator(place: ParseFailure) -> Mistake | None:
    """`a + b`, `-a`, or `abs(a) + b`."""
    if "OPCODE" in place.expected and "NAME" not in place.expected:
        infix = re.match(rf"({_WORD}) *([+*/]|(?<= )-(?= )) *({_WORD})(?![\w(])", _rest(place))
        if infix is not None:
            first, sign, second = infix.groups()
            form = f"{_OPERATORS[sign]}({first}, {second})"
            return _as_operation(place.start, place.start + infix.end(), form)
        if (prefix := re.match(rf"-({_WORD})", _rest(place))) is not None:
            return _as_operation(place.start, place.start + prefix.end(), f"negate({prefix[1]})")
    elif place.expected >= {"COMMA", "ROOT"} and place.previous == ")" and _SECOND.match(_rest(place)):
        message = f"HLO has no operators: `{place.word}` is the opcode {_OPERATORS[place.word]}"
        return Mistake(message, place.start, place.after, "give each operation a line of its own")
    return None


_SECOND = re.compile(rf"[+\-*/] *{_WORD}")
_OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}


def _comparison(place: ParseFailure) -> Mistake | None:
    """`direction=<`: the sign of a comparison, or a part of it, where the grammar stops."""
    for offset in (place.start, place.after):
        sign = _COMPARISON.match(place.text, offset, place.limit)
        if sign is not None and place.text.endswith("direction=", 0, offset):
            return Mistake(
                f"unexpected `{sign[0][0]}`", offset, offset + 1, f"write `{word_elsewhere(sign[0])}`"
            )
    return None


_COMPARISON = re.compile("[<>=!]=|[<>]")


def _as_operation(start: int, end: int, form: str) -> Mistake:
    return Mistake("HLO has no operators", start, end, f"did you mean `{form}`?")


def _alone(place: ParseFailure) -> Mistake | None:
    """The name of a value where an operation belongs: `ROOT out = f32[4] x`."""
    if "OPCODE" not in place.expected or "NAME" in place.expected or place.word in opcodes.OPCODES:
        return None
    is_last = not place.text[place.after : place.limit].strip()  # a text that ends in an opcode
    if is_last or re.fullmatch(rf"{_WORD}\s*", _rest(place)) is None or slip_of(place.word, opcodes.OPCODES):
        return None
    message = f"expected an opcode with its operands, found `{place.word}`"
    return Mistake(message, place.start, place.after, f"a value of another name is `copy({place.word})`")


def _dialect(place: ParseFailure) -> Mistake | None:
    """`stablehlo.dot(x, w)`."""
    if "OPCODE" not in place.expected or not place.follows(r"\s*\(") or "." not in place.word:
        return None
    name = place.word.rpartition(".")[2]
    meant = f"did you mean `{name}`?" if name in opcodes.OPCODES else opcode_meant(place.word)
    if not meant:
        return None
    return Mistake(f"opcodes have no prefix, unlike `{place.word}`", place.start, place.after, meant)


def _assignment(place: ParseFailure) -> Mistake | None:
    """`x == f32[4] ...` and `x := f32[4] ...`."""
    if place.word == "=" and place.text[place.start - 1 : place.start] == "=" and "TYPE" in place.expected:
        return Mistake("unexpected second `=`", place.start, place.after, "write one `=`")
    if place.expected - {"COMPACT_INDEX"} == {"EQUAL"} and place.word == ":" and place.follows("="):
        return Mistake("unexpected `:` before `=`", place.start, place.after, "write only `=`")
    return None


def _annotation(place: ParseFailure) -> Mistake | None:
    """`x: f32[4] = ...`, with or without a space before the colon."""
    if place.expected - {"COMPACT_INDEX"} != {"EQUAL"}:
        return None
    colon = place.start if place.word == ":" else place.behind - 1
    if place.text[colon : colon + 1] != ":":
        return None
    shape = _ANNOTATION.match(place.text, colon, min(place.limit, colon + _LINE))
    name = _LAST_WORD.search(place.text[max(0, colon - _LINE) : colon].rstrip())
    if shape is None or name is None:
        return None
    help = f"write `{name[0]} = {shape[1]} OPCODE(...)`"
    return Mistake("the shape of a result follows `=`", colon, shape.end(1), help)


_ANNOTATION = re.compile(r":\s*([a-z]\w*\[[^\]\r\n]*\](?:\{[^}\r\n]*\})?)")


def _other_brackets(place: ParseFailure) -> Mistake | None:
    """`dimensions=[1]`, `dimensions=(1,)`."""
    if place.expected != {"LBRACE"} or place.word not in ("[", "(") or not place.within:
        return None
    items = re.match(r"[\[(]\s*([\d,\s]*\d)?\s*,?\s*[\])]", _rest(place))
    if items is None:
        return None
    shown = ",".join(re.findall(r"\d+", items[1] or ""))
    message = f"in {place.within}: expected `{{`, found `{place.word}`"
    return Mistake(
        message, place.start, place.after, f"a list is written in braces: `{place.within}={{{shown}}}`"
    )


def _comma_before_brace(place: ParseFailure) -> Mistake | None:
    """`{1,}`: Python's comma behind the last element."""
    if place.word != place.closer or place.previous != "," or not place.expected <= {"INT", "LBRACE"}:
        return None
    comma = place.behind - 1
    message = f"expected an element after this comma, found `{place.word}`"
    return Mistake(message, comma, comma + 1, "remove the comma")


def _sizes(place: ParseFailure) -> Mistake | None:
    """`f32[8x4]`."""
    if "RSQB" not in place.expected:
        return None
    begin = place.text.rfind("[", place.line_start, place.start) + 1
    if place.word in ("x", "X", "*") and begin:  # with blanks around the crosses
        found = _CROSSES.match(place.text, begin, place.limit)
        if found is not None:
            shown = ",".join(re.findall(r"\d+", found[0]))
            return Mistake("sizes are separated by commas", begin, found.end(), f"did you mean `{shown}`?")
    if re.fullmatch(r"\d+(?:x\d+)+", place.word) is None:
        return None
    shown = place.word.replace("x", ",")
    return Mistake("sizes are separated by commas", place.start, place.after, f"did you mean `{shown}`?")


_CROSSES = re.compile(r"\d+(?:[ \t]*[xX*][ \t]*\d+)+")


def _hexadecimal(place: ParseFailure) -> Mistake | None:
    """`constant(0xff)`: to the grammar a zero, and a word behind it."""
    found = re.fullmatch(r"[xX]([0-9a-fA-F]{1,16})", place.word)
    if found is None or place.text[place.start - 1 : place.start] != "0":
        return None
    return Mistake("numbers are decimal", place.start - 1, place.after, f"write `{int(found[1], 16)}`")


def _padding(place: ParseFailure) -> Mistake | None:
    """`padding=((1,1),(0,0))`, as numpy and JAX write it."""
    if place.word not in ("(", "[", "{") or not place.text.endswith("padding=", 0, place.start):
        return None
    found = _PAIRS.match(place.text, place.start, place.limit)
    if found is None:
        return None
    pairs = re.findall(r"(-?\d+)[ ,]+(-?\d+)(?:[ ,]+(-?\d+))?", found[0])
    form = "x".join("_".join(filter(None, pair)) for pair in pairs)
    message = "the padding of each dimension is LOW_HIGH or LOW_HIGH_INTERIOR"
    return Mistake(message, place.start, found.end(), f"write `padding={form}`")


_PAIR = r"[(\[{][ ]*-?\d+(?:[ ]*,[ ]*-?\d+){1,2}[ ]*,?[ ]*[)\]}]"
_PAIRS = re.compile(rf"[(\[{{][ ]*{_PAIR}(?:[ ]*,[ ]*{_PAIR})*[ ]*,?[ ]*[)\]}}]")


def _called_in_braces(place: ParseFailure) -> Mistake | None:
    """`to_apply={add}`: to the grammar the first instruction of a computation."""
    if place.word != "}" or place.expected != {"EQUAL"} or not place.within or place.opened is None:
        return None
    name = place.text[place.opened + 1 : place.start].strip()
    if _LAST_WORD.fullmatch(name) is None:
        return None
    message = f"in {place.within}: a computation is named without braces"
    return Mistake(message, place.opened, place.after, f"write `{place.within}={name}`")


def _second_value(place: ParseFailure) -> Mistake | None:
    """`constant(0, 1)`."""
    if place.word != "," or place.expected != {"RPAREN"} or not place.precedes(r"constant\([^()\r\n]*"):
        return None
    help = "values of an array are a list in braces, as in `s32[2] constant({0, 1})`"
    return Mistake("a scalar constant has one value", place.start, place.after, help)


def _no_parentheses(place: ParseFailure) -> Mistake | None:
    """`parameter` and `constant` without what is in their parentheses."""
    if place.word not in _FORMS or "OPCODE" not in place.expected or place.follows(r"\s*\("):
        return None
    what, form = _FORMS[place.word]
    return Mistake(f"{place.word} needs {what} in parentheses", place.start, place.after, f"write `{form}`")


_FORMS = {
    "parameter": ("its number", "parameter(0)"),
    "constant": ("its value", "constant(0)"),
    "iota": ("nothing", "iota()"),
}


def _keyword(place: ParseFailure) -> Mistake | None:
    """`return x`, `def main(x):`, `func.func @main`: what begins a line in another language."""
    name = _LAST_WORD.search(place.text, max(0, place.behind - _LINE), place.behind)
    if name is None or not begins_line(place.text, name.start()):
        return None
    if place.expected - {"COMPACT_INDEX"} == {"EQUAL"} and name[0] in ("return", "yield", "output"):
        help = "the result of a computation is its instruction marked `ROOT`: `ROOT NAME = ...`"
        return Mistake(f"HLO has no `{name[0]}`", name.start(), name.end(), help)
    if place.expected >= {"LBRACE", "LPAREN"} and name[0] in _FUNCTIONS:
        help = "a computation starts with its name: `NAME {`, the entry with `ENTRY NAME {`"
        return Mistake(f"HLO has no `{name[0]}`", name.start(), name.end(), help)
    return None


_FUNCTIONS = frozenset(
    {"def", "func", "func.func", "define", "fn", "function", "computation", "fused_computation"}
)


def _nameless(place: ParseFailure) -> Mistake | None:
    """`ENTRY {` and `HloModule, ...`."""
    if place.expected != {"NAME"}:
        return None
    word = _LAST_WORD.search(place.text, max(0, place.behind - _LINE), place.behind)
    if word is None or word[0] not in _HEADS or place.word not in ("{", ",", "("):
        return None
    what, form = _HEADS[word[0]]
    return Mistake(f"{what} has no name", word.start(), word.end(), f"write `{form}`")


_HEADS = {"ENTRY": ("the entry computation", "ENTRY main {"), "HloModule": ("the module", "HloModule NAME")}


def _mlir_shape(place: ParseFailure) -> Mistake | None:
    """`tensor<4xf32>` where a shape belongs."""
    if "TYPE" not in place.expected or place.word not in ("tensor", "memref") or not place.follows("<"):
        return None
    written = _MLIR.match(place.text, place.start, min(place.limit, place.start + _LINE))
    if written is None or not (meant := shape_meant(written[0])):
        return None
    return Mistake("this is a shape of MLIR", place.start, written.end(), meant)


_MLIR = re.compile(r"(?:tensor|memref)<[^<>\r\n]*>")


def _mlir_operation(place: ParseFailure) -> Mistake | None:
    """`%y = stablehlo.add %x, %x : tensor<4xf32>`: an operation of MLIR, without parentheses."""
    if "OPCODE" not in place.expected or "." not in place.word:
        return None
    line = _MLIR_OPERATION.fullmatch(_rest(place).partition("\n")[0].rstrip())
    if line is None:
        return None
    name = line[1].rpartition(".")[2]
    opcode = (
        name
        if name in opcodes.OPCODES
        else (opcode_meant(line[1]).split("`")[1:2] or [name.replace("_", "-")])[0]
    )
    shapes = _MLIR.findall(line[3])
    meant = shape_meant(shapes[-1]).split("`")[1:2] if shapes else []
    form = f"{meant[0] if meant else 'SHAPE'} {opcode}({line[2].strip()})"
    end = place.start + len(line[0])
    return Mistake(
        "this is an operation of MLIR", place.start, end,
        f"write `{form}`; `hlotext convert` turns a whole module of StableHLO into HLO text",
    )  # fmt: skip


_MLIR_OPERATION = re.compile(r'"?([a-z_]\w*\.\w+)"?\s+(%[\w#]+(?:\s*,\s*%[\w#]+)*)\s*(?:,[^:]*)?:(.*)')


def _shapes_of_a_tuple(place: ParseFailure) -> Mistake | None:
    """`f32[4], f32[4] tuple(x, y)`: shapes side by side, without the parentheses of a tuple."""
    if place.word != "," or "OPCODE" not in place.expected:
        return None
    begin = place.text.rfind("=", place.line_start, place.start) + 1
    found = _SHAPES.match(place.text, begin, place.limit)
    if not begin or found is None or not found.start(1) < place.start < found.end(1):
        return None
    message = "the shape of a tuple stands in parentheses"
    return Mistake(message, found.start(1), found.end(1), f"write `({found[1]})`")


_SHAPE = r"[a-z]\w*\[[^\]\r\n]*\](?:\{[^{}\r\n]*\})?"
_SHAPES = re.compile(rf"[ \t]*({_SHAPE}(?:[ \t]*,[ \t]*{_SHAPE})+)[ \t]+[a-z]")

FOREIGN: tuple[Callable[[ParseFailure], Mistake | None], ...] = (
    _operator,
    _comparison,
    _dialect,
    _assignment,
    _annotation,
    _other_brackets,
    _comma_before_brace,
    _sizes,
    _called_in_braces,
    _second_value,
    _no_parentheses,
    _keyword,
    _nameless,
    _mlir_shape,
    _hexadecimal,
    _padding,
    _mlir_operation,
    _shapes_of_a_tuple,
    _alone,
)
