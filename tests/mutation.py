"""Op lines of the corpus, each in a small module of its own, and ways to damage them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

import attrs

import hlotext as hlo
from hlotext.ir.nodes.async_ops import ROLES
from hlotext.ir.nodes.computation import post_order
from hlotext.ir.nodes.instruction import Form
from tests import support


@attrs.frozen
class Line:
    """One op line with the text that it needs around it."""

    before: str
    text: str
    after: str

    def module(self, text: str | None = None) -> str:
        """The small module, with another text in place of the line."""
        return f"{self.before}{self.text if text is None else text}{self.after}"


@functools.cache
def lines() -> tuple[Line, ...]:
    """Op lines of the corpus: one for each opcode with each set of attributes and kind of shapes."""
    found: dict[object, Line] = {}
    for path in support.corpus_files():
        module = hlo.parse(support.read_text(path))
        for instruction in module.instructions():
            if instruction.form is not Form.LINE:
                continue
            shape = instruction.shape
            text = str(instruction)
            key = (
                instruction.opcode,
                tuple(instruction.attributes),
                min(len(instruction.operands), 6),
                shape is not None and (shape.is_tuple, shape.element_type, shape.rank > 1),
                "{" in text,
                "%" in text,
            )
            if key not in found and len(text) < 3000:
                found[key] = in_context(instruction)
    return tuple(found.values())


def in_context(instruction: hlo.Instruction) -> Line:
    """An op line with all that it needs: callees before it, operands as parameters."""
    needed = _needed(instruction)
    callees = post_order(
        c for i in (*needed, instruction) if i is instruction or _is_kept(i) for c in i.called_computations
    )
    bodies = [str(callee) for callee in callees if not callee.is_inline and not callee.is_sugared]
    lines = [f"  {operand}\n" if _is_kept(operand) else "" for operand in needed]
    number = 0
    for i, operand in enumerate(needed):
        if not _is_kept(operand):
            lines[i] = f"  %{operand.name} = {operand.shape} parameter({number})\n"
            number += 1
    text = re.sub(r" parameter\(\d+\)", f" parameter({number})", str(instruction))
    before = "\n\n".join(["HloModule m", *bodies, f"ENTRY %context {{\n{''.join(lines)}  "])
    root = "" if instruction.is_root else "ROOT "
    return Line(before, text, f"\n  {root}%after = () tuple()\n}}\n")


def _needed(instruction: hlo.Instruction) -> tuple[hlo.Instruction, ...]:
    """What an instruction names, each once, first what that names."""
    seen: dict[hlo.Instruction, None] = {}
    for operand in (*instruction.operands, *instruction.control_predecessors):
        if _is_kept(operand):
            seen |= dict.fromkeys(_needed(operand))
        seen[operand] = None
    return tuple(seen)


def _is_kept(operand: hlo.Instruction) -> bool:
    """Whether an operand must be what it is: half of something asynchronous."""
    return operand.opcode in ROLES and operand.form is Form.LINE


# ---- damage

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|%?[A-Za-z_][\w.\-]*=?|-?\d+(?:\.\d+)?|[ \t]+|->|<=|\.\.\.|.', re.DOTALL
)
_ATTRIBUTE = re.compile(r", (?=[a-z][\w\-]*=)")

_NUMBERS = (
    "0", "1", "-1", "7", "00", "1e3", "x", "",
    "18446744073709551615", "18446744073709551616", "-9223372036854775809",
)  # fmt: skip
_BLANKS = (" ", "  ", "\t", "\n", "\r\n", "\r", "/*c*/", " // c\n", "\x0b", "\xa0", "\0")
_WORDS = (
    "f32", "pred", "ROOT", "ENTRY", "true", "inf", "nan", "%x", "x", "x=", "x:", "add", "constant",
    "parameter", "tuple", "dimensions={0}", "metadata={}", "s32[]", "(", ")", "{", "}", "[", "]", ",", "=",
    ":", '"', "'", "#0", "*", "?", "kLoop", "{...}", "HloModule", "}\n", "é", "\\", "backend_config={",
    ", to_apply=%nothing", "custom-call-start",
)  # fmt: skip


def _delete(tokens: list[str], i: int, _: int) -> list[str]:
    return tokens[:i] + tokens[i + 1 :]


def _duplicate(tokens: list[str], i: int, j: int) -> list[str]:
    return tokens[:i] + tokens[i : i + 1 + j % 3] + tokens[i:]


def _swap(tokens: list[str], i: int, j: int) -> list[str]:
    places = [k for k in range(len(tokens)) if tokens[k].strip()]
    if len(places) < 2:
        return tokens
    a, b = places[i % len(places)], places[(i + 1 + j % 4) % len(places)]
    swapped = list(tokens)
    swapped[a], swapped[b] = swapped[b], swapped[a]
    return swapped


def _number(tokens: list[str], i: int, j: int) -> list[str]:
    places = [k for k in range(len(tokens)) if tokens[k].lstrip("-")[:1].isdigit()]
    if not places:
        return tokens
    place = places[i % len(places)]
    return [*tokens[:place], _NUMBERS[j % len(_NUMBERS)], *tokens[place + 1 :]]


def _blank(tokens: list[str], i: int, j: int) -> list[str]:
    return [*tokens[:i], _BLANKS[j % len(_BLANKS)], *tokens[i:]]


def _no_blank(tokens: list[str], i: int, _: int) -> list[str]:
    places = [k for k in range(len(tokens)) if tokens[k].isspace()]
    return _delete(tokens, places[i % len(places)], 0) if places else tokens


def _word(tokens: list[str], i: int, j: int) -> list[str]:
    return [*tokens[:i], _WORDS[j % len(_WORDS)], *tokens[i + j % 2 :]]


def _character(tokens: list[str], i: int, j: int) -> list[str]:
    token = tokens[i]
    place = j % len(token)
    return [*tokens[:i], token[:place] + token[place + 1 :], *tokens[i + 1 :]]


def _cut(tokens: list[str], i: int, _: int) -> list[str]:
    return tokens[:i]


def _attributes(tokens: list[str], i: int, j: int) -> list[str]:
    """Attributes in another order, or one of them twice."""
    head, *pieces = _ATTRIBUTE.split("".join(tokens))
    if not pieces:
        return tokens
    place = i % len(pieces)
    piece = pieces[place]
    if j % 4:
        del pieces[place]
    pieces.insert(j % (len(pieces) + 1), piece)
    return [", ".join([head, *pieces])]


def _foreign(tokens: list[str], i: int, j: int) -> list[str]:
    """An attribute of another line."""
    donors = lines()
    pieces = _ATTRIBUTE.split(donors[(i * 7 + j) % len(donors)].text)[1:]
    return [*tokens, f", {pieces[j % len(pieces)]}"] if pieces else tokens


DAMAGES: dict[str, Callable[[list[str], int, int], list[str]]] = {
    "delete a token": _delete,
    "duplicate tokens": _duplicate,
    "swap tokens": _swap,
    "change a number": _number,
    "insert blanks": _blank,
    "delete a blank": _no_blank,
    "put a word": _word,
    "delete a character": _character,
    "cut": _cut,
    "move an attribute": _attributes,
    "take an attribute of another line": _foreign,
}
"""What can be done to a line's tokens at two places (numbers that are taken modulo what there is)."""


def damaged(text: str, damages: list[tuple[str, int, int]]) -> str:
    """The line with these damages, one after the other."""
    for kind, i, j in damages:
        tokens = _TOKEN.findall(text)
        if not tokens:
            return text
        text = "".join(DAMAGES[kind](tokens, i % len(tokens), j))
    return text


# ---- damage to whole lines

_JUNK = (
    "I0000 log line", "}", "{", "", "  ", "ENTRY %x {", "%f (p: f32[]) -> f32[] {", "HloModule second",
    "  ROOT %r = f32[] parameter(0)", "FileNames", '1 "a.py"', "/* open", "// c", '"', "StackFrames", "word", "7",
    "  %x = f32[] negate(%y), to_apply={", '}, execution_thread="t"', "  garbage here = ", "ENTRY",
)  # fmt: skip


def _remove_line(found: list[str], i: int, _: int) -> None:
    del found[i]


def _copy_line(found: list[str], i: int, j: int) -> None:
    found.insert(j % len(found), found[i])


def _swap_lines(found: list[str], i: int, j: int) -> None:
    j %= len(found)
    found[i], found[j] = found[j], found[i]


def _insert_junk(found: list[str], i: int, j: int) -> None:
    found.insert(i, _JUNK[j % len(_JUNK)])


def _cut_line(found: list[str], i: int, j: int) -> None:
    found[i] = found[i][: j % (len(found[i]) + 1)]


def _cut_text(found: list[str], i: int, j: int) -> None:
    del found[i + 1 :]
    _cut_line(found, i, j)


def _join_lines(found: list[str], i: int, j: int) -> None:
    found[i : i + 2] = [(" ", "", ", ")[j % 3].join(found[i : i + 2])]


LINE_DAMAGES: dict[str, Callable[[list[str], int, int], None]] = {
    "remove a line": _remove_line,
    "copy a line": _copy_line,
    "swap lines": _swap_lines,
    "insert junk": _insert_junk,
    "cut a line": _cut_line,
    "cut the text": _cut_text,
    "join lines": _join_lines,
}
"""What can be done to a text's lines, in place, at two places (numbers taken modulo what there is)."""


def with_damaged_lines(text: str, damages: list[tuple[str, int, int]]) -> str:
    """The text with these damages, one after the other."""
    found = text.split("\n")
    for kind, i, j in damages:
        if found:
            LINE_DAMAGES[kind](found, i % len(found), j)
    return "\n".join(found)


@functools.cache
def small_texts() -> tuple[str, ...]:
    """The smaller files of the corpus and of tests/data/ok."""
    paths = [*support.corpus_files(), *sorted((support.DATA / "ok").glob("*.hlo"))]
    texts = [support.read_text(path).decode("utf-8", "surrogateescape") for path in paths]
    return tuple(text for text in texts if len(text) < 5000)
