"""What is left of real modules when one line is damaged or the end is missing: `python -m tests.fuzz.damage --count 1000`.

Damaged lines cost themselves: of the other op lines nearly all are read as if nothing had happened. Cut texts keep every
computation that is complete.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

import hlotext as hlo
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.values.raw_value import value_text
from tests import mutation, support
from tests.fuzz import mutate

LONGEST = 200_000
"""Bytes of a file that is damaged."""


@attrs.frozen
class Loss:
    """How much of the other instructions was read unchanged after one line was damaged."""

    path: Path
    line: int
    """The damaged line, from 1."""
    kind: str
    before: str
    after: str
    others: int
    """Op lines besides the damaged one."""
    unchanged: int

    @property
    def share(self) -> float:
        return self.unchanged / self.others if self.others else 1.0


@functools.cache
def _files() -> tuple[tuple[Path, str], ...]:
    found = ((path, support.read_text(path)) for path in support.corpus_files())
    return tuple((path, data.decode()) for path, data in found if len(data) <= LONGEST)


def losses(count: int, seed: int) -> Iterator[Loss]:
    """Damages one line of a real module, so many times; always the same ones for the same seed."""
    r = random.Random(seed)
    for _ in range(count):
        path, text = r.choice(_files())
        lines = text.splitlines(keepends=True)
        number = r.randrange(len(lines))
        before = lines[number]
        kind, after = _damaged(r, before)
        start = sum(map(len, lines[:number]))
        old_end, new_end = start + len(before), start + len(after)
        damaged = text[:start] + after + text[old_end:]
        old = {
            place: facts
            for place, facts in _instructions([hlo.parse(text)]).items()
            if not start <= place < old_end
        }
        new = _instructions(hlo.parse_tolerant(damaged).modules)
        moved = {place if place < start else place - old_end + new_end: facts for place, facts in old.items()}
        unchanged = sum(new.get(place) == facts for place, facts in moved.items())
        yield Loss(path, number + 1, kind, before, after, len(old), unchanged)


def _damaged(r: random.Random, line: str) -> tuple[str, str]:
    """A line with one thing wrong."""
    end = line[len(line.rstrip("\r\n")) :]
    content = line[: len(line) - len(end)]
    kind = r.choice(("delete", "junk", "cut", "bytes", "token", "token", "token"))
    if kind == "delete":
        return kind, ""
    if kind == "junk":
        return kind, r.choice(mutate.JUNK).decode("utf-8", "surrogateescape") + end
    if kind == "cut":
        return kind, content[: r.randrange(len(content) + 1)] + end
    if kind == "bytes":
        damage = r.choice((mutate.change_byte, mutate.insert_byte, mutate.delete_bytes))
        data = damage(r, content.encode("utf-8", "surrogateescape"), ())
        return damage.__name__, data.decode("utf-8", "surrogateescape") + end
    kind = r.choice(sorted(mutation.DAMAGES))
    return kind, mutation.damaged(content, [(kind, r.randrange(400), r.randrange(400))]) + end


Facts = tuple[object, ...]


def _instructions(modules: Iterable[hlo.Module]) -> dict[int, Facts]:
    """What every op line says, by the offset where it begins; without those that could not be read."""
    return {
        instruction.span.start: _facts(instruction)
        for module in modules
        for instruction in module.instructions()
        if instruction.span is not None and not isinstance(instruction, BadInstruction)
    }


def _facts(instruction: hlo.Instruction) -> Facts:
    """What an op line says and where it belongs, other instructions and computations by name."""
    return (
        instruction.computation.name if instruction.computation is not None else "",
        instruction.name,
        instruction.opcode,
        str(instruction.shape),
        tuple(operand.name for operand in instruction.operands),
        tuple(sorted((name, _text(value, name)) for name, value in instruction.attributes.items())),
        str(instruction.literal),
    )


def _text(value: object, name: str) -> str:
    if isinstance(value, hlo.Computation):
        return f"%{value.name}"
    if isinstance(value, hlo.Instruction):
        return value.name
    if isinstance(value, tuple) and value and isinstance(value[0], hlo.Computation | hlo.Instruction):
        return f"{{{', '.join(_text(item, name) for item in value)}}}"
    return value_text(value, name)


def missing_after_cut(count: int, seed: int) -> Iterator[tuple[Path, int, list[str]]]:
    """Cuts real modules at any byte: the file, the place, and which complete computations before it are lost or differ."""
    r = random.Random(seed)
    for _ in range(count):
        path, text = r.choice(_files())
        cut = r.randrange(len(text) + 1)
        whole = _computations(hlo.parse(text))
        left = _computations(hlo.parse_tolerant(text[:cut]).module)
        expected = {name: facts for name, (end, facts) in whole.items() if end <= cut}
        lost = [name for name, facts in expected.items() if name not in left or left[name][1] != facts]
        yield path, cut, lost


def _computations(module: hlo.Module) -> dict[str, tuple[int, Facts]]:
    """Where every computation ends, and what it says."""
    return {
        computation.name: (
            computation.span.end,
            (computation.root.name, *map(_facts, computation)) if len(computation) else (),
        )
        for computation in module.computations
        if computation.span is not None and not computation.is_inline
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.damage", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    found = list(losses(options.count, options.seed))
    others, unchanged = sum(loss.others for loss in found), sum(loss.unchanged for loss in found)
    bad = [loss for loss in found if loss.share < 0.95]
    for loss in bad:
        print(f"{loss.path.name}:{loss.line}: {loss.kind}: {loss.unchanged} of {loss.others} unchanged")
        print(f"    before: {loss.before.rstrip()[:150]}\n    after:  {loss.after.rstrip()[:150]}")
    print(
        f"{len(found):,} damaged lines: {unchanged:,} of {others:,} other op lines unchanged ({unchanged / others:.3%}),"
    )
    print(f"{len(bad)} texts keep less than 95 % of theirs")
    cuts = list(missing_after_cut(options.count, options.seed))
    lost = [(path, cut, names) for path, cut, names in cuts if names]
    for path, cut, names in lost:
        print(f"{path.name} cut at {cut}: lost {', '.join(names)}")
    print(f"{len(cuts):,} cut texts: {len(lost)} lose a complete computation")
    return 1 if lost or unchanged < 0.95 * others else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
