"""Corruptions of the text itself: a number, a word, a name, an attribute, a shape or a whole line is another one.

What they change is not chosen for the verifier: whether the text is still a right module only XLA can say.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

import attrs

from hlotext.ir.tables.opcodes import OPCODES

TextKind = Callable[[Sequence[str], random.Random], "Change | None"]
TEXT_KINDS: dict[str, TextKind] = {}
"""Every kind by its name."""


@attrs.frozen
class Change:
    """One line replaced by any number of lines."""

    number: int
    """From 0."""
    new: tuple[str, ...]

    def apply(self, lines: Sequence[str]) -> str:
        return "\n".join([*lines[: self.number], *self.new, *lines[self.number + 1 :]])


def _kind(function: TextKind) -> TextKind:
    TEXT_KINDS[function.__name__] = function
    return function


_OP = re.compile(r"^\s+(?:ROOT )?%?[^ =]+ = ")
_METADATA = re.compile(r", (?:metadata|backend_config|frontend_attributes|original_value)=.*$")
_NUMBER = re.compile(r"(?<![\w.%\"-])-?\d+(?![\w.\"])")
_ATTRIBUTE = re.compile(
    r", ([a-z][\w-]*)=((?:\{(?:[^{}]|\{[^{}]*\})*\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([^)]*\))?|[^,{}\s]+))"
)
_SHAPE = re.compile(r"(?<![\w%])(?:pred|token|bf16|[sufc]\d+|f8\w+)\[[^\]]*\](?:\{[^{}]*\})?")
_NAME = re.compile(r"(?<=[(,{ ])%[\w.\-]+")
_OPCODE = re.compile(r"(?<=[\]})] )([a-z][a-z0-9-]*)(?=\()")


def _ops(lines: Sequence[str]) -> list[int]:
    return [n for n, line in enumerate(lines) if _OP.match(line)]


def _head(line: str) -> int:
    """Where what is not to be changed begins: names of source files are no business of the verifier."""
    found = _METADATA.search(line)
    return found.start() if found else len(line)


def _replaced(line: str, found: re.Match[str], new: str) -> str:
    return line[: found.start()] + new + line[found.end() :]


def _one(
    lines: Sequence[str], chance: random.Random, expression: re.Pattern[str]
) -> tuple[int, re.Match[str]] | None:
    """A place in an op line, behind its name, where an expression is found."""
    for _ in range(30):
        number = chance.choice(_ops(lines) or [0])
        line = lines[number]
        start = found.end() if (found := _OP.match(line)) else 0
        places = list(expression.finditer(line, start, _head(line)))
        if places:
            return number, chance.choice(places)
    return None


@_kind
def number(lines: Sequence[str], chance: random.Random) -> Change | None:
    """A number: of a dimension, a size, a channel, a device, a literal ..."""
    place = _one(lines, chance, _NUMBER)
    if place is None:
        return None
    at, found = place
    value = int(found[0])
    new = chance.choice([value + 1, value - 1, value * 2, -value, 0, 1, 2, 17, value + 1000])
    return Change(at, (_replaced(lines[at], found, str(new)),))


@_kind
def attribute_gone(lines: Sequence[str], chance: random.Random) -> Change | None:
    place = _one(lines, chance, _ATTRIBUTE)
    return None if place is None else Change(place[0], (_replaced(lines[place[0]], place[1], ""),))


@_kind
def attribute_moved(lines: Sequence[str], chance: random.Random) -> Change | None:
    """An attribute of another line, added or in the place of the one of that name."""
    source, target = _one(lines, chance, _ATTRIBUTE), _one(lines, chance, _SHAPE)
    if source is None or target is None:
        return None
    at, line = target[0], lines[target[0]]
    own = next((m for m in _ATTRIBUTE.finditer(line, 0, _head(line)) if m[1] == source[1][1]), None)
    if own is not None:
        return Change(at, (_replaced(line, own, source[1][0]),))
    return Change(at, (line[: _head(line)] + source[1][0] + line[_head(line) :],))


@_kind
def same_attribute(lines: Sequence[str], chance: random.Random) -> Change | None:
    """The value that another line gives an attribute of this name."""
    target = _one(lines, chance, _ATTRIBUTE)
    if target is None:
        return None
    at, found = target
    others = {
        m[0]
        for n in _ops(lines)
        for m in _ATTRIBUTE.finditer(lines[n], 0, _head(lines[n]))
        if m[1] == found[1] and m[0] != found[0]
    }
    if not others:
        return None
    return Change(at, (_replaced(lines[at], found, chance.choice(sorted(others))),))


@_kind
def another_name(lines: Sequence[str], chance: random.Random) -> Change | None:
    """An operand, or a computation, by the name of another."""
    target = _one(lines, chance, _NAME)
    names = sorted(
        {m[0] for n in _ops(lines) for m in re.finditer(r"%[\w.\-]+", lines[n][: _head(lines[n])])}
    )
    if target is None or not names:
        return None
    return Change(target[0], (_replaced(lines[target[0]], target[1], chance.choice(names)),))


@_kind
def another_shape(lines: Sequence[str], chance: random.Random) -> Change | None:
    target, source = _one(lines, chance, _SHAPE), _one(lines, chance, _SHAPE)
    if target is None or source is None or target[1][0] == source[1][0]:
        return None
    return Change(target[0], (_replaced(lines[target[0]], target[1], source[1][0]),))


@_kind
def another_type(lines: Sequence[str], chance: random.Random) -> Change | None:
    target = _one(lines, chance, re.compile(r"(?<![\w%])(?:pred|bf16|[sufc]\d+)(?=\[)"))
    if target is None:
        return None
    new = chance.choice(
        ["pred", "s32", "u32", "f32", "bf16", "f16", "f64", "c64", "s8", "u8", "s4", "f8e4m3fn"]
    )
    return None if new == target[1][0] else Change(target[0], (_replaced(lines[target[0]], target[1], new),))


@_kind
def another_opcode(lines: Sequence[str], chance: random.Random) -> Change | None:
    target = _one(lines, chance, _OPCODE)
    if target is None:
        return None
    own = OPCODES.get(target[1][0])
    family = [name for name, row in OPCODES.items() if own is not None and row.family is own.family]
    names = family if family and chance.random() < 0.7 else list(OPCODES)
    return Change(target[0], (_replaced(lines[target[0]], target[1], chance.choice(names)),))


@_kind
def line_gone(lines: Sequence[str], chance: random.Random) -> Change | None:
    return Change(chance.choice(_ops(lines)), ()) if _ops(lines) else None


@_kind
def line_twice(lines: Sequence[str], chance: random.Random) -> Change | None:
    """An instruction a second time, under a name of its own: two dones, two roots, two parameters."""
    at = chance.choice(_ops(lines) or [0])
    line = lines[at]
    found = re.match(r"^(\s+(?:ROOT )?%?[^ =]+)( = .*)$", line)
    return Change(at, (line, f"{found[1]}.again{found[2]}")) if found else None


@_kind
def root_moved(lines: Sequence[str], chance: random.Random) -> Change | None:
    """The root becomes the instruction before it."""
    roots = [n for n in _ops(lines) if lines[n].lstrip().startswith("ROOT ") and n - 1 in _ops(lines)]
    if not roots:
        return None
    at = chance.choice(roots)
    before = re.sub(r"^(\s+)", r"\1ROOT ", lines[at - 1])
    return Change(at - 1, (before, lines[at].replace("ROOT ", "", 1) + "\x00"))


@_kind
def operands_turned(lines: Sequence[str], chance: random.Random) -> Change | None:
    """The operands in another order."""
    target = _one(lines, chance, re.compile(r"(?<=[a-z0-9]\()%[\w.\-]+(?:, %[\w.\-]+)+(?=\))"))
    if target is None:
        return None
    names = target[1][0].split(", ")
    chance.shuffle(names)
    new = ", ".join(names)
    return None if new == target[1][0] else Change(target[0], (_replaced(lines[target[0]], target[1], new),))


@_kind
def operand_gone(lines: Sequence[str], chance: random.Random) -> Change | None:
    target = _one(lines, chance, re.compile(r"(?<=[a-z0-9]\()%[\w.\-]+(?:, %[\w.\-]+)*(?=\))"))
    if target is None:
        return None
    names = target[1][0].split(", ")
    if chance.random() < 0.5:
        names.pop(chance.randrange(len(names)))
    else:
        names.insert(chance.randrange(len(names)), chance.choice(names))
    return Change(target[0], (_replaced(lines[target[0]], target[1], ", ".join(names)),))


@_kind
def header(lines: Sequence[str], chance: random.Random) -> Change | None:
    """A number in the module's header."""
    found = list(re.finditer(r"(?<=num_partitions=)\d+", lines[0]))
    if not found:
        return None
    which = chance.choice(found)
    return Change(0, (_replaced(lines[0], which, str(chance.choice([1, 2, 3, int(which[0]) + 1, 64]))),))


@_kind
def word(lines: Sequence[str], chance: random.Random) -> Change | None:
    """A word that is the value of an attribute: a direction, a kind, an algorithm, true and false."""
    target = _one(lines, chance, re.compile(r"(?<==)[A-Za-z_]\w*(?=[,}\s]|$)"))
    if target is None:
        return None
    pool = ["true", "false", "LT", "EQ", "TOTALORDER", "FLOAT", "SIGNED", "kLoop", "IFFT", "RFFT", "LOWER", "b01f_01io->b01f",
            "rng_uniform", "rng_normal", "rng_default", "NO_TRANSPOSE", "API_VERSION_STATUS_RETURNING"]  # fmt: skip
    pool += [
        m[0]
        for n in _ops(lines)[:200]
        for m in re.finditer(r"(?<==)[A-Za-z_]\w*(?=[,}\s]|$)", lines[n][: _head(lines[n])])
    ]
    return Change(target[0], (_replaced(lines[target[0]], target[1], chance.choice(pool)),))


@_kind
def dims_turned(lines: Sequence[str], chance: random.Random) -> Change | None:
    """Two numbers of one list change places."""
    target = _one(lines, chance, re.compile(r"(?<=[\[{])-?\d+(?:,-?\d+)+(?=[\]}:])"))
    if target is None:
        return None
    numbers = target[1][0].split(",")
    chance.shuffle(numbers)
    new = ",".join(numbers)
    return None if new == target[1][0] else Change(target[0], (_replaced(lines[target[0]], target[1], new),))


@_kind
def in_the_middle(lines: Sequence[str], chance: random.Random) -> Change | None:
    """A character that is not there, or one too many."""
    at = chance.choice(_ops(lines) or [0])
    line = lines[at]
    end = max(3, _head(line))
    place = chance.randrange(2, end)
    new = chance.choice(["", "", chance.choice('{}()[],=%0123-x"')])
    return Change(at, (line[:place] + new + line[place + 1 :],))


def corrupt_text(text: str, name: str, chance: random.Random) -> tuple[int, str] | None:
    """The line (from 1) and the text after one corruption of that kind; None where the text has nothing of the sort."""
    lines = text.split("\n")
    change = TEXT_KINDS[name](lines, chance)
    if change is None:
        return None
    if change.new and change.new[-1].endswith("\x00"):  # two lines were replaced
        change = Change(change.number, (*change.new[:-1], change.new[-1][:-1]))
        lines = [*lines[: change.number + 1], *lines[change.number + 2 :]]
    new = change.apply(lines)
    return None if new == text else (change.number + 1, new)
