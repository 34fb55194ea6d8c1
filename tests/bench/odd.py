"""What odd lines cost: `python -m tests.bench.odd [KIND ...]`, ratios of reading a module with them to reading it without.

The module is of 26 MB: one of the corpus, again and again under other names (`--file` takes another). Of each kind one line
in it is odd, then one in a hundred of all op lines; last is the entry alone, without what it calls, in megabytes each second
against those of the whole module. Processor time of `parse` where the text is HLO, and of `parse_tolerant`, best of turns
in which the module without odd lines is read too; where one line seems to cost more than 5 %, of as many turns again.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hlotext as hlo
from tests import support

SIZE = 26_000_000
TURNS = 7
MOST = 1.05
"""What one odd line may cost."""
SEED = "cpu/resnet_train.cpu_1.after_optimizations.txt"
_NAME = re.compile(r"%[A-Za-z_][\w.\-]*")
_LINE = re.compile(r"^  (?:ROOT )?%\S+ = [^\n]*\([^\n]*%[^\n]*\)[^\n]*, metadata=[^\n]*\n", re.MULTILINE)
"""Op lines with an operand and metadata."""


def _undefined_callee(line: str) -> str:
    head, _, _ = line.partition(" = ")
    operand = _NAME.search(line, len(head))
    assert operand is not None
    return f"{head} = f32[4] call({operand[0]}), to_apply=%nowhere\n"


KINDS: dict[str, tuple[bool, Callable[[str], str]]] = {
    "wrapped before an attribute": (True, lambda line: line.replace("), ", "),\n     ", 1)),
    "wrapped behind the parenthesis": (True, lambda line: line.replace("(%", "(\n    %", 1)),
    "wrapped in metadata": (True, lambda line: line.replace("metadata={", "metadata={\n  ")),
    "comment above": (True, lambda line: f"  // a comment\n{line}"),
    "comment inside": (True, lambda line: line.replace("(%", "(/* a */ %", 1)),
    "empty line": (True, lambda line: f"\n{line}"),
    "indented": (True, lambda line: f"     {line}"),
    "unknown opcode": (True, lambda line: re.sub(r" [a-z\-]+\((?=%)", " frobnicate(", line, count=1)),
    "unknown attribute": (True, lambda line: line.replace(", metadata=", ", no_such={1,2}, metadata=")),
    "tab": (True, lambda line: line.replace("), ", "),\t", 1)),
    "carriage return": (True, lambda line: line.replace("\n", "\r\n")),
    "not ASCII in a string": (True, lambda line: line.replace('op_name="', 'op_name="größe/', 1)),
    "undefined operand": (False, lambda line: line.replace("(%", "(%nowhere.", 1)),
    "undefined callee": (False, _undefined_callee),
    "unknown element type": (False, lambda line: re.sub(r" = \(?[a-z0-9]+\[", " = q7[", line, count=1)),
    "broken shape": (False, lambda line: line.replace("[", "[[", 1)),
    "broken operands": (False, lambda line: line.replace("(%", "((%", 1)),
    "broken metadata": (False, lambda line: line.replace("metadata={", "metadata={{")),
    "cut": (False, lambda line: line[: line.index("(%") + 4] + "\n"),
    "junk": (False, lambda line: f"{line}W1120 21:31:55.123456 42 gpu_compiler.cc:1] a log line\n"),
    "prefix of a log": (False, lambda line: f"I0000 00:00:17.000000   12 dump.cc:5] {line}"),
    "name twice": (False, lambda line: line + line.replace("ROOT ", "")),
    "comma missing": (False, lambda line: line.replace("), ", ") ", 1)),
    "quote missing": (False, lambda line: line.replace('op_name="', "op_name=", 1)),
    "equals sign missing": (False, lambda line: line.replace(" = ", " ", 1)),
}
"""Name -> whether the text is HLO with it, and how a line becomes one."""


def module(path: Path, size: int) -> str:
    """A module of that size made of copies of one, its entry last."""
    text = support.read_text(path).decode()
    start = re.search(r"^(?:ENTRY )?%", text, re.MULTILINE)
    assert start is not None
    head, body = text[: start.start()], text[start.start() :].rstrip("\n") + "\n\n"
    parts = [re.sub(r",[^\n]*", "", head.split("\n", 1)[0]) + "\n\n"]
    length, number = 0, 0
    body = re.sub(r", metadata=\{[^}]*\}", lambda m: re.sub(r" ?stack_frame_id=\d+", "", m[0]), body)
    while length < size:
        part = _NAME.sub(rf"\g<0>.k{number}", body)
        length += len(part)
        parts.append(part if length >= size else part.replace("ENTRY ", ""))
        number += 1
    return "".join(parts)


def _shifted(lines: str, first: int) -> str:
    """Op lines whose parameters are counted from that number."""
    return re.sub(r" parameter\((\d+)\)", lambda m: f" parameter({int(m[1]) + first})", lines)


def entry_alone(path: Path, size: int) -> str:
    """An entry of that size made of the op lines of one, again and again, without anything that it calls."""
    text = support.read_text(path).decode()
    lines = text[text.index("\nENTRY ") + 1 :].partition("{\n")[2].partition("\n}")[0] + "\n"
    lines = re.sub(r" ?stack_frame_id=\d+", "", lines)
    count = len(re.findall(r" parameter\(\d+\)", lines))
    parts, length = ["ENTRY %e {\n"], 0
    while length < size:
        number = len(parts) - 1
        part = _NAME.sub(rf"\g<0>.k{number}", lines)
        part = _shifted(part, number * count)
        length += len(part)
        parts.append(part if length >= size else part.replace("ROOT ", ""))
    return "".join([*parts, "}\n"])


def odd(text: str, change: Callable[[str], str], each: int) -> tuple[str, int]:
    """The text with one line in so many changed, where 0 is the first alone; and how many."""
    parts, position, count = [], 0, 0
    wanted = max(text.count("\n  ") // each, 1) if each else 1
    lines = list(_LINE.finditer(text))
    for number in range(wanted):
        line = lines[number * len(lines) // wanted]
        changed = change(line[0])
        assert changed != line[0], line[0]
        parts += [text[position : line.start()], changed]
        position, count = line.end(), count + 1
    return "".join([*parts, text[position:]]), count


Reading = tuple[Callable[[str], object], str]


def seconds(readings: list[Reading], turns: int) -> list[float]:
    """Of processor time, the best of some turns, in each of which all are read."""
    best = [float("inf")] * len(readings)
    for _ in range(turns):
        for place, (read, text) in enumerate(readings):
            gc.collect()
            before = time.process_time()
            read(text)
            best[place] = min(best[place], time.process_time() - before)
    return best


def ratios(text: str, changed: str, is_right: bool, turns: int, most: float) -> list[float]:
    """What `parse` (where it can) and `parse_tolerant` take for a changed text, to what they take for the text."""
    readers: list[Callable[[str], object]] = [hlo.parse_tolerant]
    if is_right:
        readers.insert(0, hlo.parse)
    readings: list[Reading] = [(hlo.parse, text), *((read, changed) for read in readers)]
    usual, *spent = seconds(readings, turns)
    if max(spent) > most * usual:
        again = seconds(readings, turns)
        usual, *spent = map(min, zip([usual, *spent], again, strict=True))
    return [value / usual for value in spent]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.odd", description=__doc__)
    parser.add_argument("names", nargs="*", help="kinds whose names hold one of these words")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--file", type=Path, default=support.CORPUS / SEED)
    options = parser.parse_args(arguments)
    text = module(options.file, options.size)
    hlo.parse_tolerant(odd(text[:100_000], KINDS["cut"][1], 0)[0])  # loads the grammar
    usual = seconds([(hlo.parse, text)], options.turns)[0]
    print(
        f"{len(text):,} bytes, {text.count(chr(10)):,} lines, parse {usual:.2f} s, {len(text) / usual / 1e6:.0f} MB/s"
    )
    print(f"{'kind':<32}{'one: parse':>12}{'tolerant':>10}{'1 %: parse':>12}{'tolerant':>10}")
    for name, (is_right, change) in KINDS.items():
        if options.names and not any(word in name for word in options.names):
            continue
        cells = []
        for each in (0, 100):
            changed, _ = odd(text, change, each)
            found = ratios(text, changed, is_right, options.turns, MOST if not each else float("inf"))
            cells += ["-"] * (not is_right) + [f"{ratio:.2f}" for ratio in found]
        print(f"{name:<32}{cells[0]:>12}{cells[1]:>10}{cells[2]:>12}{cells[3]:>10}", flush=True)
    entry = entry_alone(options.file, options.size // 4)
    usual, spent = seconds([(hlo.parse, text), (hlo.parse_tolerant, entry)], options.turns)
    speed = len(entry) / spent / (len(text) / usual)
    print(f"the entry alone, {len(entry):,} bytes: {speed:.2f} of the usual speed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
