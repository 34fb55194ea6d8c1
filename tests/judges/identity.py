"""Judges which pass brought each collective, fusion, copy and loop, without hlotext's own links between texts.

    python -m tests.judges.identity FOLDER... [--list] [--undecided]

Each FOLDER is what `tests.judges.compiling` made of one program, or holds several. Two witnesses tell the truth:

- The tagged compilation gives each operation of the program a name of its own, which compilers hand on. If all
  instructions of one base opcode and one tag come in one step, and none is lost behind it, that step brought them. A
  fusion is one before if it holds the same; if it holds parts of others that are gone, it was brought where these were,
  or where it took them in.
- The compiler's log names what it replaced, cloned, and put in front of an operand. A name that no record leads further
  back, while nothing of its kind with its tag or its operands' was there before, was created there.

Where neither decides, nothing is judged (`--undecided` lists these); where both do and differ, that is counted as a conflict.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import attrs

from hlotext import dumps
from hlotext.ir.tables import opcodes
from hlotext.syntax.source.inputs import InputError

_LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][a-z0-9-]*)\((.*)$", re.M)
_HEAD = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$", re.M)
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_TAG = re.compile(r"(t\d+t/(?:(?!t\d+t/)[^:])*)$")
_INDEX = re.compile(r"\bindex=(\d+)")
_DEFINED = re.compile(r"%([\w.\-]+)")
_CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
_TRANSFORMED = re.compile(
    r"transformed %?([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][a-z0-9-]*)\(.*? to %?([\w.\-]+) = "
)
_PUT_IN = re.compile(r"Replacing operand \d+ of \S+ with ([\w.\-]+), was ([\w.\-]+)")
_CLONED = re.compile(
    r"CloneWithNewOperands:\s*\n?\s*%?([\w.\-]+) = (?:\(.*?\)|\S+) ([a-z][a-z0-9-]*)\([^\n]*\n[^\n]*new operands:"
    r"((?:\n[^\n]*\]     %?[\w.\-]+)*)"
)
_OPERANDS = re.compile(r"%([\w.\-]+)")
JUDGED = {*opcodes.COLLECTIVES, "fusion", "copy", "while"}


def base(opcode: str) -> str:
    """An opcode without what asynchronous forms add."""
    for end in ("-start", "-done", "-update"):
        opcode = opcode.removesuffix(end)
    return opcode


@attrs.frozen
class Op:
    """One line of a text."""

    name: str
    opcode: str
    tag: str
    operands: tuple[str, ...]
    calls: str
    home: str
    number: str = ""
    """Of a parameter, and of an element of a tuple."""
    merged: frozenset[str] = frozenset()
    """The tags of those that it was put together from, as its name lists them."""

    @property
    def own_tag(self) -> str:
        """Its tag, unless that is a call's: what a call runs may have none, and stands behind that of the call."""
        return self.tag if self.tag.count("/") < 2 else ""

    @property
    def is_combined(self) -> bool:
        """True of a collective that does the work of several."""
        return base(self.opcode) in opcodes.COLLECTIVES and (len(self.operands) > 1 or bool(self.merged))

    @property
    def tags(self) -> frozenset[str]:
        """The tags that it bears."""
        return self.merged or (frozenset({self.tag}) if self.tag else frozenset())


def _tags(rest: str) -> list[str]:
    """The tags in an op_name: several where it is `HEAD/(ONE:OTHER)/TAIL`, as what was put together from several bears."""
    named = _OP_NAME.search(rest)
    pieces = named[1].split(":") if named else []
    return [
        tag[1].rstrip(")") if len(pieces) > 1 else tag[1] for piece in pieces if (tag := _TAG.search(piece))
    ]


def read(text: str) -> dict[str, Op]:
    """The operations of a text by name; what an asynchronous start wraps stands for itself nowhere else."""
    found: dict[str, Op] = {}
    home = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            head = _HEAD.match(line)
            home = head[1] if head else home
            continue
        row = _LINE.match(line)
        if row is None:
            continue
        name, opcode, rest = row.groups()
        tags, calls = _tags(rest), _CALLS.search(rest)
        operands = tuple(_OPERANDS.findall(rest.partition("), ")[0]))
        merged = frozenset(tags) if len(tags) > 1 else frozenset()
        tag, called = ":".join(tags), calls[1] if calls else ""
        found[name] = Op(name, opcode, tag, operands, called, home, merged=merged)
        if opcode == "parameter":
            found[name] = attrs.evolve(found[name], number=rest.partition(")")[0])
        elif opcode == "get-tuple-element" and (index := _INDEX.search(rest)) is not None:
            found[name] = attrs.evolve(found[name], number=index[1])
    wraps = {op.calls: op for op in found.values() if op.opcode == "async-start" and op.calls}
    for name, op in list(found.items()):
        if op.home in wraps:
            if base(op.opcode) in JUDGED:
                start = wraps[op.home]
                found[start.name] = attrs.evolve(start, opcode=f"{base(op.opcode)}-start")
            del found[name]
    return found


@attrs.frozen
class Log:
    """The compiler's log of replacements."""

    replaced: dict[str, list[tuple[str, str]]]
    """Name and opcode that each new name replaced."""
    cloned: dict[tuple[str, tuple[str, ...]], list[str]]
    """Base opcode and operands of clones, and what was cloned."""
    put_in: dict[str, str]
    """Names that were put in front of an operand, and that operand."""


def log_of(path: Path) -> Log:
    """Reads a log."""
    text = path.read_text(errors="replace") if path.exists() else ""
    found = Log(defaultdict(list), defaultdict(list), {})
    for old, opcode, new in _TRANSFORMED.findall(text):
        found.replaced[new].append((old, opcode))
    for old, opcode, operands in _CLONED.findall(text):
        found.cloned[base(opcode), tuple(re.findall(r"%([\w.\-]+)$", operands, re.M))].append(old)
    found.put_in.update(_PUT_IN.findall(text))
    return found


class Witness:
    """The tagged texts of one compilation, and what tells where operations came from."""

    def __init__(self, texts: list[dict[str, Op]], log: Log) -> None:
        self.texts, self.log = texts, log
        self._counts: list[Counter[tuple[str, str]]] = []
        self._bodies: list[dict[str, Counter[tuple[str, str]]]] = []
        self._callers: list[dict[str, Op]] = []
        for n, text in enumerate(texts):
            if n and text is texts[n - 1]:
                self._counts.append(self._counts[-1])
                self._bodies.append(self._bodies[-1])
                self._callers.append(self._callers[-1])
                continue
            self._counts.append(Counter((base(op.opcode), op.tag) for op in _begun(text)))
            bodies: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
            for op in text.values():
                bodies[op.home][op.opcode, op.tag] += 1
            self._bodies.append(bodies)
            self._callers.append({op.calls: op for op in text.values() if op.calls})
        self._fusions: dict[tuple[int, str], frozenset[int] | None] = {}

    def truth(self, name: str) -> tuple[frozenset[int] | None, frozenset[int] | None]:
        """The steps that may have brought an operation, by tags and by the log; None where one does not tell."""
        op = self.texts[-1][name]
        if op.opcode == "fusion":
            return self._of_fusion(name, len(self.texts) - 1), None
        if op.is_combined:
            return self._of_combined(name, len(self.texts) - 1), None
        return self._by_tag(op), self._by_log(name)

    def is_fused(self, op: Op) -> bool:
        """Whether an operation of the last text is inside a fusion."""
        caller = self._callers[-1].get(op.home)
        return caller is not None and caller.opcode == "fusion"

    def _first(self, name: str, at: int) -> int:
        while at and name in self.texts[at - 1]:
            at -= 1
        return at

    # ---- tags

    def _by_tag(self, op: Op, end: int | None = None) -> frozenset[int] | None:
        """By the texts up to one, the last if none is given."""
        if not op.own_tag:
            return None
        key = base(op.opcode), op.tag
        counts = [count[key] for count in self._counts[: None if end is None else end + 1]]
        at = next((n for n in range(len(counts)) if counts[n]), 0)
        if any(counts[n] != counts[at] for n in range(at, len(counts))):
            return None
        if op.opcode == "while":  # one that is built anew to carry something else is there from then on
            return frozenset({at}) | self._built_anew(op)
        return frozenset({at})

    def is_of_program(self, op: Op) -> bool:
        """Whether the program has an operation with its opcode and tag."""
        return self._counts[0][base(op.opcode), op.tag] > 0

    def _built_anew(self, op: Op) -> frozenset[int]:
        """The steps in which an operation of a tag has a new name."""
        names = [
            {one.name for one in text.values() if (one.opcode, one.tag) == (op.opcode, op.tag)}
            for text in self.texts
        ]
        return frozenset(n for n in range(1, len(names)) if names[n] - names[n - 1])

    def _of_fusion(self, name: str, at: int) -> frozenset[int] | None:
        """By what it holds: one that holds the same is the same; one that holds parts of others took them in."""
        at = self._first(name, at)
        if (at, name) in self._fusions:
            return self._fusions[at, name]
        self._fusions[at, name] = None
        if not at:
            return frozenset({0})
        before, after = self.texts[at - 1], self.texts[at]
        mine = self._bodies[at][after[name].calls]
        if self._is_put_in(after[name], before):
            self._fusions[at, name] = frozenset({at})
            return self._fusions[at, name]
        own = {tag for _, tag in mine if tag}
        tags = own or self._read(after[name], at)
        if not tags:
            return None
        others = [op for op in before.values() if op.opcode == "fusion"]
        equal = [
            op
            for op in others
            if self._bodies[at - 1][op.calls] == mine
            and (own or tags & self._read(op, at - 1) or _stem(op.calls) == _stem(after[name].calls))
        ]
        if equal:
            found = [self._of_fusion(op.name, at - 1) for op in equal]
            result = frozenset().union(*(one for one in found if one)) if all(found) else None
        else:
            result = frozenset({at})
            for op in others:
                if op.name in after:
                    continue
                if tags & ({tag for _, tag in self._bodies[at - 1][op.calls]} or self._read(op, at - 1)):
                    result |= self._of_fusion(op.name, at - 1) or frozenset()
        self._fusions[at, name] = result
        return result

    def _of_combined(self, name: str, at: int) -> frozenset[int] | None:
        """Where it was put together, or where those that were put together had come from."""
        at = self._first(name, at)
        if not at:
            return frozenset({0})
        op, after = self.texts[at][name], self.texts[at]
        read = self._read(op, at) | op.tags
        before = [
            one
            for one in _begun(self.texts[at - 1])
            if base(one.opcode) == base(op.opcode) and one.name not in after
            if read & (self._read(one, at - 1) | one.tags)
        ]
        found = frozenset() if len(before) == 1 else frozenset({at})
        for one in before:
            first = self._of_combined(one.name, at - 1) if one.is_combined else self._by_tag(one, at - 1)
            if first is None:
                return None
            found |= first
        return found

    # ---- the log

    def _by_log(self, name: str) -> frozenset[int] | None:
        at = len(self.texts) - 1
        for _ in range(len(self.texts)):
            at = self._first(name, at)
            if not at:
                return frozenset({0})
            before = self._before(self.texts[at][name], at)
            if before is None:
                return None
            if not before:
                return frozenset({at})
            name, at = before, at - 1
        return None

    def _before(self, op: Op, at: int) -> str | None:
        """Operation in the step before its name appeared: "" if it was created, None if unknown."""
        kind, new, old = base(op.opcode), self.texts[at], self.texts[at - 1]
        found = {was for was, opcode in self.log.replaced.get(op.name, ()) if base(opcode) == kind}
        found |= set(self.log.cloned.get((kind, op.operands), ()))
        if found:
            was = found.pop()
            return was if not found and was in old else None
        if self._is_put_in(op, old):
            return ""
        read = self._read(op, at)
        rivals = (
            one
            for one in old.values()
            if base(one.opcode) == kind and (one.name not in new or one.home != op.home)
        )
        alike = kind != "copy" and not op.own_tag  # without a tag nothing tells whether it was moved here
        return None if any(alike or read & self._read(one, at - 1) for one in rivals) else ""

    def _is_put_in(self, op: Op, old: dict[str, Op]) -> bool:
        """Whether the log says that it was put in front of something of another kind."""
        was = self.log.put_in.get(op.name)
        return was is not None and (was not in old or base(old[was].opcode) != base(op.opcode))

    def _read(self, op: Op, at: int) -> set[str]:
        """Its own tag, and its operands by name and by tag: what replaces an operation, or is its clone, reads the same."""
        found = {op.tag}
        text = self.texts[at]
        for name in op.operands:
            read = text.get(name)
            if (
                read is not None
                and read.opcode == "parameter"
                and (caller := self._callers[at].get(read.home))
            ):
                number = int(read.number or 0)
                name = caller.operands[number] if number < len(caller.operands) else name
                read = text.get(name)
            elif read is not None and read.opcode == "get-tuple-element":
                whole, number = text.get(read.operands[0]), int(read.number or 0)
                if whole is not None and whole.opcode == "tuple" and number < len(whole.operands):
                    name = whole.operands[number]
                    read = text.get(name)
            found |= {name, read.tag if read is not None else ""}
        return found - {""}


def _stem(computation: str) -> str:
    """The name of a computation without what clones add."""
    return re.sub(r"(\.clone(\.\d+)?)+$", "", computation)


def _begun(text: dict[str, Op]) -> Iterator[Op]:
    return (op for op in text.values() if not op.opcode.endswith(("-done", "-update")))


@attrs.frozen
class Verdict:
    where: str
    truth: frozenset[int] | None
    is_conflict: bool
    told: int
    confidence: str
    kind: str
    steps: tuple[str, ...]
    is_denied: bool = False
    """True for a loop of the program that is said to be a pass's, and the other way round."""

    @property
    def is_right(self) -> bool:
        return self.truth is not None and self.told in self.truth and not self.is_denied


def _opened(folder: Path) -> dumps.Compilation:
    found = next((one for one in dumps.open(folder).compilations if one.after is not None), None)
    if found is None:
        raise ValueError("there is no final HLO")
    return found


def _named_as(plain: str, tagged: str) -> str:
    """The tagged text with the names of the plain one: some operations are named after their op_name.

    Raises ValueError where their operations differ.
    """
    mine, other = ([(row[1], row[2]) for row in _LINE.finditer(text)] for text in (plain, tagged))
    if [opcode for _, opcode in mine] != [opcode for _, opcode in other]:
        raise ValueError("the tagged compilation has other operations")
    new = {was: name for (name, _), (was, _) in zip(mine, other, strict=True) if was != name}
    return _DEFINED.sub(lambda m: f"%{new.get(m[1], m[1])}", tagged) if new else tagged


def verdicts(folder: Path) -> Iterator[Verdict]:
    """The judgement of each collective, fusion, copy and loop of one program.

    Raises ValueError where its two compilations differ.
    """
    plain, tagged = _opened(folder / "plain"), _opened(folder / "tagged")
    assert plain.last is not None
    assert tagged.last is not None
    steps, others = plain.steps[: plain.last.index + 1], tagged.steps[: tagged.last.index + 1]
    if [one.name for one in steps] != [one.name for one in others]:
        raise ValueError("the tagged compilation has other steps")
    texts: list[dict[str, Op]] = []
    before = "", ""
    for step, marked in zip(steps, others, strict=True):
        both = step.file.text(), marked.file.text()
        texts.append(texts[-1] if texts and both == before else read(_named_as(*both)))
        before = both
    witness = Witness(texts, log_of(folder / "plain.log"))
    names = tuple(f"{n} {step.name}" for n, step in enumerate(steps))
    for op in texts[-1].values():
        if base(op.opcode) not in JUDGED or op.opcode.endswith(("-done", "-update")):
            continue
        if op.opcode == "copy" and witness.is_fused(op):
            continue
        one, other = witness.truth(op.name)
        is_conflict = one is not None and other is not None and not one & other
        truth = None if is_conflict else (one or frozenset()) | (other or frozenset()) or None
        cause = plain.why(op.name)
        told = cause.step.index if cause.step is not None else -1
        where = f"{folder.name}: {op.name}"
        if is_conflict:
            where += f" (tag {sorted(one or ())}, log {sorted(other or ())})"
        is_told = op.opcode == "while" and bool(op.own_tag)
        is_denied = is_told and witness.is_of_program(op) != (cause.cause == "program")
        if is_denied:
            where += f" (cause {cause.cause})"
        yield Verdict(where, truth, is_conflict, told, cause.confidence, base(op.opcode), names, is_denied)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judges.identity")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--undecided", action="store_true")
    asked = parser.parse_args(argv)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in sorted(p.parent for one in asked.folders for p in one.rglob("about.json")):
        target = folder.name.split(".")[0]
        release = json.loads((folder / "about.json").read_text())["jax"]
        try:
            found = list(verdicts(folder))
        except (ValueError, InputError) as error:
            print(f"{folder.name}: {error}", flush=True)
            continue
        for one in found:
            kind = one.kind if one.kind in ("fusion", "copy", "while") else "collective"
            for row in (rows[f"{target} {release}"], rows[kind], rows["~all"]):
                row["of"] += 1
                row["decided"] += one.truth is not None
                row["conflict"] += one.is_conflict
                row["right"] += one.is_right
                row["high"] += one.truth is not None and one.confidence == "high"
                row["high right"] += one.is_right and one.confidence == "high"
            if one.is_conflict and asked.undecided:
                print(f"conflict {one.where}: {one.confidence}: {one.steps[one.told]}")
            elif one.truth is None and asked.undecided:
                print(f"undecided {one.where}: {one.confidence}: {one.steps[one.told]}")
            elif one.truth is not None and not one.is_right and asked.list:
                true = " or ".join(one.steps[n] for n in sorted(one.truth))
                print(f"wrong {one.where}: {one.confidence}: {one.steps[one.told]}; true: {true}")
    columns = ("of", "decided", "conflict", "right", "high", "high right")
    print(" " * 14 + "".join(f"{name:>11}" for name in columns))
    for row_name, row in sorted(rows.items()):
        print(f"{row_name.strip('~'):14}" + "".join(f"{row[name]:11}" for name in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
