"""Texts and protos that can be read and mean something odd: what is swapped between lines of sound modules.

`python -m tests.fuzz.meaning --count 100000` runs them through the library, with `--commands` through every command in this
process. Whatever raises another error than is documented, or does not come to its end, is a finding. A case is made of its
number alone, so `--only NUMBER` makes it again.
"""

from __future__ import annotations

import argparse
import collections
import functools
import random
import re
import shlex
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import hlotext as hlo
from hlotext import analysis, cost, lint, memory, thunks
from hlotext.cli import main as command
from hlotext.ir.errors import EditError
from hlotext.proto import MissingProtobuf
from hlotext.proto.literals import encoded, field
from hlotext.semantics.infer.errors import CannotInfer, ShapeInferenceError
from tests import support
from tests.endless import Endless, bounded

LONGEST = 12_000
"""Bytes of a seed."""
ENDLESS = 60
"""Seconds of processor time after which the command line gives a case up."""
REPORT_EVERY = 50_000

_LINE = re.compile(
    r"(?P<head>\n\s+(?:ROOT )?%?[\w.\-]+ = )(?P<shape>\([^\n]*?\)|[a-z0-9]+\[[^\]]*\](?:\{[^}\n]*\})?) "
    r"(?P<opcode>[a-z][a-z0-9\-]*)\((?P<operands>[^()\n]*)\)(?P<tail>[^\n]*)"
)
_ATTRIBUTE = re.compile(r", [\w\-]+=(?:\{(?:[^{}\n]|\{[^{}\n]*\})*\}|\"[^\"\n]*\"|[^,\n{}\"]+)")
_CALLEE = re.compile(
    r"(?:(?<=to_apply=)|(?<= calls=)|(?<= body=)|(?<=condition=)|(?<=computation=))%?[\w.\-]+"
)
_NUMBER = re.compile(r"(?<=[\[{,=])\d+(?=[\]},])")
_ODD = ("0", "1", "2", "3", "7", "-1", "64", "4096", "2147483648", "9223372036854775807")


@functools.cache
def seeds() -> tuple[str, ...]:
    """Sound texts, in a fixed order."""
    folders = (support.DATA / "ok", support.DATA / "verify" / "ok", support.DATA / "lint")
    paths = [path for folder in folders for path in sorted(folder.iterdir()) if path.is_file()]
    paths += [
        path for path in support.corpus_files() if path.suffix == ".txt" and path.stat().st_size < LONGEST
    ]
    found = []
    for path in paths:
        text = support.read_text(path).decode("utf-8", "surrogateescape")
        if len(text) < LONGEST and _LINE.search(text) and _is_sound(text):
            found.append(text)
    return tuple(found)


def _is_sound(text: str) -> bool:
    return all(one.severity is not hlo.Severity.ERROR for one in hlo.parse_tolerant(text).diagnostics)


@functools.cache
def pool() -> dict[str, list[str]]:
    """Parts of all lines, by kind."""
    lines = [match for text in seeds() for match in _LINE.finditer(text)]
    found = {
        "shape": [match["shape"] for match in lines],
        "opcode": [match["opcode"] for match in lines],
        "operands": [match["operands"] for match in lines],
        "tail": [match["tail"] for match in lines],
        "attribute": [one for match in lines for one in _ATTRIBUTE.findall(match["tail"])],
    }
    return {kind: sorted(set(words)) for kind, words in found.items()}


def case(number: int) -> str:
    """A text in which parts of lines have changed places, with one another or with other texts'."""
    chance = random.Random(number)
    text = chance.choice(seeds())
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = chance.choice(_CHANGES)(text, chance)
    return text


def _replaced(text: str, match: re.Match[str], new: str, part: str | int = 0) -> str:
    """The text with other words in place of those that matched, or of one group of them."""
    return f"{text[: match.start(part)]}{new}{text[match.end(part) :]}"


def _swap_part(text: str, chance: random.Random) -> str:
    kind = chance.choice(("shape", "shape", "opcode", "operands", "tail"))
    lines = list(_LINE.finditer(text))
    if not lines:
        return text
    line = chance.choice(lines)
    other = chance.choice(lines)[kind] if chance.random() < 0.5 else chance.choice(pool()[kind])
    return _replaced(text, line, other, kind)


def _swap_attribute(text: str, chance: random.Random) -> str:
    lines = list(_LINE.finditer(text))
    if not lines:
        return text
    line = chance.choice(lines)
    tail, there = line["tail"], list(_ATTRIBUTE.finditer(line["tail"]))
    new = chance.choice(pool()["attribute"])
    if there and chance.random() < 0.6:
        old = chance.choice(there)
        if chance.random() < 0.6:  # another value of the same attribute
            name = old[0].partition("=")[0]
            same = [one for one in pool()["attribute"] if one.startswith(f"{name}=")]
            new = chance.choice(same or [new])
        elif chance.random() < 0.3:
            new = ""
        tail = _replaced(tail, old, new)
    else:
        tail += new
    return _replaced(text, line, tail, "tail")


def _swap_callee(text: str, chance: random.Random) -> str:
    found = list(_CALLEE.finditer(text))
    if len(found) < 2:
        return _swap_part(text, chance)
    one, other = chance.choice(found), chance.choice(found)
    return _replaced(text, one, other[0])


def _change_number(text: str, chance: random.Random) -> str:
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    one = chance.choice(found)
    new = chance.choice(_ODD) if chance.random() < 0.6 else chance.choice(found)[0]
    return _replaced(text, one, new)


_CHANGES: tuple[Callable[[str, random.Random], str], ...] = (
    _swap_part, _swap_part, _swap_attribute, _swap_attribute, _swap_callee, _change_number, _change_number,
)  # fmt: skip


# ---- protos


@functools.cache
def proto_seeds() -> tuple[bytes, ...]:
    """Sound modules' protos."""
    found = []
    for text in seeds():
        try:
            found.append(hlo.parse(text).to_proto(fill_elided=True))
        except hlo.ProtoError:
            continue
    return tuple(found)


def proto_case(number: int) -> bytes:
    """A proto with one field, at any depth, changed."""
    chance = random.Random(number)
    data = chance.choice(proto_seeds())
    for _ in range(chance.choice((1, 1, 2))):
        data = _changed(data, chance, 0)
    return data


def _changed(data: bytes, chance: random.Random, depth: int) -> bytes:
    """The message with one field changed, or one of the messages in it."""
    parts = _fields(data)
    if not parts:
        return chance.randbytes(chance.randrange(1, 6)) if chance.random() < 0.5 else data[: len(data) // 2]
    place = chance.randrange(len(parts))
    number, kind, value = parts[place]
    if kind == 2 and depth < 6 and chance.random() < 0.75 and _fields(value):
        return _joined(parts, place, [(number, kind, _changed(value, chance, depth + 1))])
    other = chance.choice(parts)
    new: list[tuple[int, int, Any]] = chance.choice((
        [], [parts[place], parts[place]], [(number, *other[1:])], [other, parts[place]],
        [(number, 0, chance.choice((0, 1, 2, 3, 9, 127, 1 << 31, (1 << 63) - 1, (1 << 64) - 1)))],
        [(number, 2, chance.randbytes(chance.randrange(6)))], [(number + chance.choice((-1, 1)) or 1, kind, value)],
    ))  # fmt: skip
    return _joined(parts, place, new)


def _joined(parts: list[tuple[int, int, Any]], place: int, new: list[tuple[int, int, Any]]) -> bytes:
    return b"".join(map(_written, (*parts[:place], *new, *parts[place + 1 :])))


def _written(part: tuple[int, int, Any]) -> bytes:
    number, kind, value = part
    if kind == 0:
        return encoded(number << 3) + encoded(value)
    return field(number, value) if kind == 2 else encoded(number << 3 | kind) + bytes(value)


def _fields(data: bytes) -> list[tuple[int, int, Any]]:
    from hlotext.proto import wire

    try:
        return [
            (number, kind, a & (1 << 64) - 1 if kind == 0 else data[a:b])
            for number, kind, a, b in wire.scan(data, 0, len(data))
        ]
    except hlo.ProtoError:
        return []


# ---- what is done with them


def use(module: hlo.Module) -> None:
    """All that the library says of a module; errors that are documented, or of what is not installed, are fine."""
    for found in (hlo.verify(module), lint.run(module)):
        for finding in found:
            assert finding.code != "X900", finding.help
    for act in _ACTS:
        try:
            act(module)
        except (hlo.HloSyntaxError, memory.MemoryModelError, thunks.ThunkError, EditError, MissingProtobuf):
            continue


def _infer(module: hlo.Module) -> None:
    for instruction in module.instructions():
        try:
            hlo.infer_shape(instruction)
        except (ShapeInferenceError, CannotInfer):
            continue


def _proto(module: hlo.Module) -> None:
    again = hlo.proto.read_module(module.to_proto(fill_elided=True))
    again.to_proto()


def _shards(module: hlo.Module) -> None:
    analysis.argument_shards(module)
    analysis.result_shards(module)


_ACTS: tuple[Callable[[hlo.Module], object], ...] = (
    str, hlo.Module.to_text, _infer, _proto, _shards, cost.analyze, cost.estimate, analysis.summarize,
    lambda module: list(analysis.communications(module)), lambda module: memory.assign(module, "cpu"),
    lambda module: memory.assign(module, "tpu"), lambda module: memory.assign(module, "gpu"),
    lambda module: thunks.predict(module, platform="gpu"), lambda module: thunks.predict(module, platform="cpu"),
    hlo.reread, lambda module: hlo.diff.compare(module, module).changes,
)  # fmt: skip


def check(number: int) -> bool:
    """One case through the library; gives whether it was HLO. Every fourth is a proto. Raises what is a finding."""
    if number % 4 == 3:
        try:
            module = hlo.proto.read_module(proto_case(number))
        except (hlo.ProtoError, MissingProtobuf):
            return False
        use(module)
        return True
    result = hlo.parse_tolerant(case(number))
    if any(one.severity is hlo.Severity.ERROR for one in result.diagnostics):
        return False
    for one in result.modules:
        use(one)
    return True


LINES = (
    "show FILE", "show FILE --arguments", "show FILE --format json", "show FILE -i NAME", "grep _ FILE",
    "grep '$S fusion(...)' FILE --format json", "memory FILE", "memory FILE --platform tpu --by scope --format json",
    "memory FILE --platform gpu --timeline", "cost FILE", "cost FILE --by scope --format json", "cost FILE --as-xla",
    "time FILE --chip v5e", "time FILE --chip H100 --format json", "comm FILE", "comm FILE --format json", "shard FILE",
    "thunks FILE --platform gpu", "thunks FILE --platform cpu --format json", "graph FILE -o -",
    "graph FILE -i NAME --format svg -o -", "report FILE -o - --chip v5e", "check FILE", "verify FILE --format sarif",
    "verify FILE", "lint FILE --format json", "lint FILE", "diff FILE SEED", "diff SEED FILE --format json", "fmt FILE",
    "fmt FILE --reread", "fmt FILE --style canonical", "rewrite FILE --passes dce,cse,algsimp",
    "extract FILE -i NAME", "convert FILE -o -", "convert FILE -o OUT.pb", "explain SEED FILE --pass fusion",
    "explain FILE FILE --pass copy-insertion", "table FILE -o OUT --anew --append -j 1", "sql 'SQL' FILE --format csv -j 1",
)  # fmt: skip
"""Command lines of every command that reads modules."""
_COLUMNS = (
    "*", "count(*)", "list(i.name)", "i.bytes", "sum(i.bytes)", "i.dims", "i.operands", "{'a': i.dims}",
    "i.shape || i.opcode", "[i.bytes, 1]", "max(i.dims)", "i.written_bytes / 0", "now()", "i.runs * 1e300", "'=' || i.name",
    "null", "i.is_root",
)  # fmt: skip


def sql(chance: random.Random) -> str:
    """A query whose columns are drawn."""
    columns = ", ".join(chance.choice(_COLUMNS) for _ in range(chance.randrange(1, 4)))
    tail = chance.choice(("", " group by all", " limit 3", " order by all", " where i.bytes > 10"))
    return f"select {columns} from instructions i{tail}"


def invoke(line: str, folder: Path, text: str, seed: str, query: str) -> Result:
    """Runs a line of `LINES` on a text."""
    match = _LINE.search(text)
    name = "x" if match is None else match["head"].split(" = ")[0].split()[-1]
    (folder / "case.hlo").write_text(text, "utf-8", "surrogateescape")
    (folder / "seed.hlo").write_text(seed, "utf-8", "surrogateescape")
    places = {
        "FILE": str(folder / "case.hlo"), "SEED": str(folder / "seed.hlo"), "OUT": str(folder / "out"),
        "OUT.pb": str(folder / "out.pb"), "NAME": name, "SQL": query,
    }  # fmt: skip
    return CliRunner().invoke(command, [places.get(word, word) for word in shlex.split(line)])


_FAILED_CHECK = re.compile(r"(?<![\w+/])X900(?![\w+/=])")
"""The code of a check that raised, not four letters of a page's data."""


def run_command(number: int, folder: Path, line: str | None = None) -> str:
    """One case through one command; gives what is wrong."""
    chance = random.Random(number)
    line = line or LINES[number % len(LINES)]
    result = invoke(line, folder, case(number), chance.choice(seeds()), sql(chance))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return "".join(traceback.format_exception(result.exception))
    if "internal error" in result.output or _FAILED_CHECK.search(result.output):
        return result.output[-1500:]
    return "" if result.exit_code in (0, 1, 2) else f"exit status {result.exit_code}"


# ---- the command


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--commands", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so long")
    given = parser.parse_args()
    numbers = [given.only] if given.only is not None else range(given.start, given.start + given.count)
    found: collections.Counter[str] = collections.Counter()
    done = fine = 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            if time.monotonic() - began > given.seconds:
                break
            wrong = ""
            try:
                with bounded(ENDLESS):
                    if given.commands:
                        wrong = run_command(number, Path(folder))
                    else:
                        fine += check(number)
            except Endless:
                wrong = "Endless"
            except Exception as error:
                wrong = "".join(traceback.format_exception(error))
            done += 1
            if done % REPORT_EVERY == 0:  # a long run that is ended early has said something
                print(f"{done:,} cases so far, {found.total()} findings", flush=True)
            if wrong:
                kind = " ".join(wrong.strip().splitlines()[-1].split())[:120]
                found[kind] += 1
                if found[kind] <= 2:
                    print(
                        f"case {number}: {LINES[number % len(LINES)] if given.commands else ''}\n{wrong[-1200:]}\n",
                        flush=True,
                    )
    print(f"{done:,} cases, {fine:,} of them HLO, {found.total()} findings of {len(found)} kinds")
    for kind, count in found.most_common():
        print(f"  {count:,} x {kind}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
