"""Modules with one change each, made in their text, by no part of what is tested."""

from __future__ import annotations

import re
from random import Random

_LINE = re.compile(r"^  (ROOT )?(%?)([\w.\-]+) = (\(.*?\)|[a-z][^ ]*) ([a-z][a-z0-9\-]*)\(([^()]*)\)(.*)$")
_OTHERS = (
    ("direction=LT", "direction=GT"),
    ("direction=GE", "direction=LE"),
    ("direction=EQ", "direction=NE"),
    ("kind=kLoop", "kind=kInput"),
    ('custom_call_target="', 'custom_call_target="X'),
    ("iota_dimension=0", "iota_dimension=1"),
    ("is_stable=true", "is_stable=false"),
    ("dimensions={0}", "dimensions={1}"),
    ("dimensions={1}", "dimensions={0}"),
)
_NO_RESULT = ("parameter", "constant", "tuple", "get-tuple-element", "while")
_ELEMENTWISE = (
    "add",
    "multiply",
    "subtract",
    "exponential",
    "negate",
    "divide",
    "maximum",
    "convert",
    "tanh",
    "select",
)
KINDS = ("operand", "attribute", "layout", "sharding", "fusion", "copy", "collective")


def names_in(operands: str) -> list[str]:
    """The names of a list of operands."""
    return re.findall(r"%?([A-Za-z_][\w.\-]*)(?=,|$| )", re.sub(r"/\*.*?\*/", "", operands))


def _with(operands: str, old: str, new: str, count: int = 1) -> str:
    return re.sub(rf"(?<![\w.\-])%?{re.escape(old)}(?![\w.\-])", new, operands, count=count)


class Seeder:
    """Seeds one change in a text."""

    def __init__(self, text: str, random: Random) -> None:
        self.lines = text.split("\n")
        self.random = random

    def seed(self, kind: str) -> tuple[str, str, str] | None:
        """The text with a change of a kind, the name of the operation and what is to be said of it; None if none fits."""
        found, start = [], None
        for number, line in enumerate(self.lines):
            if line.endswith("{") and not line.startswith(" "):
                start = number
            elif line.startswith("}") and start is not None:
                found.append((start + 1, number))
                start = None
        self.random.shuffle(found)
        for first, end in found:
            lines = {m[3]: (n, m) for n in range(first, end) if (m := _LINE.match(self.lines[n])) is not None}
            order = list(lines.values())
            self.random.shuffle(order)
            for number, match in order:
                operands = names_in(match[6]) if match[5] not in ("parameter", "constant") else []
                if all(operand in lines for operand in operands):
                    said = getattr(self, kind)(number, match, operands, lines, first, end)
                    if said is not None:
                        return "\n".join(self.lines), said[0], said[1]
        return None

    def operand(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """Another operand of the same shape."""
        _, mark, name, shape, opcode, inside, _ = match.groups()
        if opcode == "tuple" or shape.startswith("("):
            return None
        for operand in operands:
            own = lines[operand][1]
            others = [
                other
                for other, (n, m) in lines.items()
                if n < number and other not in operands and m[4] == own[4] and m[5] != "constant"
                and (m[5], m[6], m[7].split(", metadata")[0]) != (own[5], own[6], own[7].split(", metadata")[0])
            ]  # fmt: skip
            if others:
                other = self.random.choice(others)
                changed = _with(inside, operand, mark + other)
                self.lines[number] = self.lines[number].replace(f"({inside})", f"({changed})", 1)
                return name, "changed"
        return None

    def attribute(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """Another value of an attribute."""
        tail = match[7]
        for old, new in _OTHERS:
            if old in tail:
                self.lines[number] = self.lines[number].replace(tail, tail.replace(old, new, 1))
                return match[3], "changed"
        return None

    def layout(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """Another order of dimensions in memory."""
        shape = match[4]
        if match[1] or match[5] in _NO_RESULT or "{1,0" not in shape or shape.startswith("("):
            return None
        self.lines[number] = self.lines[number].replace(shape, shape.replace("{1,0", "{0,1"), 1)
        return match[3], "changed"

    def sharding(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """A sharding where there was none."""
        if match[5] in _NO_RESULT or match[4].startswith("(") or "sharding=" in match[7]:
            return None
        line = self.lines[number]
        tail = match[7]
        self.lines[number] = f"{line[: len(line) - len(tail)]}, sharding={{replicated}}{tail}"
        return match[3], "changed"

    def fusion(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """One operation put into a fusion of its own."""
        root, mark, name, shape, opcode, inside, tail = match.groups()
        if root or opcode not in _ELEMENTWISE or "control-pred" in tail or "fused" in self.lines[first - 1]:
            return None
        shapes = [lines[operand][1][4] for operand in operands]
        given = ", ".join(f"wp{k}.zz: {s.partition('{')[0]}" for k, s in enumerate(shapes))
        body = [f"{mark}wrapped_zz ({given}) -> {shape.partition('{')[0]} {{"]
        body += [f"  {mark}wp{k}.zz = {s} parameter({k})" for k, s in enumerate(shapes)]
        read = ", ".join(f"{mark}wp{k}.zz" for k in range(len(shapes)))
        body += [f"  ROOT {mark}{name}.zz = {shape} {opcode}({read}){tail}", "}", "", ""]
        self.lines[number] = f"  {mark}{name} = {shape} fusion({inside}), kind=kLoop, calls={mark}wrapped_zz"
        self.lines[first - 1] = "\n".join(body) + self.lines[first - 1]
        return name, "added"

    def copy(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """A copy in front of one reader."""
        _, mark, name, shape, *_ = match.groups()
        readers = [
            (n, m)
            for n, m in lines.values()
            if n > number
            and name in names_in(m[6])
            and m[5] not in ("parameter", "constant", "tuple", "copy")
        ]
        if not readers or shape.startswith("(") or "token" in shape or match[5] == "copy":
            return None
        n, m = self.random.choice(readers)
        self.lines[n] = self.lines[n].replace(f"({m[6]})", f"({_with(m[6], name, mark + 'copy.zz')})", 1)
        self.lines.insert(n, f"  {mark}copy.zz = {shape} copy({mark}{name})")
        return "copy.zz", "added"

    def collective(self, number, match, operands, lines, first, end):  # type: ignore[no-untyped-def]
        """A collective that is gone."""
        root, mark, name, shape, opcode, *_ = match.groups()
        if (
            root
            or opcode not in ("all-reduce", "collective-permute")
            or len(operands) != 1
            or shape.startswith("(")
        ):
            return None
        for n, m in lines.values():
            changed = _with(m[6], name, mark + operands[0], 0)
            self.lines[n] = self.lines[n].replace(f"({m[6]})", f"({changed})", 1)
        del self.lines[number]
        return name, "removed"
