"""How inferred shapes agree with printed ones: `python -m tests.bench.inference [FILE OR FOLDER ...]`.

Without arguments the corpus. A line for each opcode that occurs: how many instructions, for how many of them the inferred
shape is the printed one, and what differs in the others (`Agreement`). Texts that are no HLO, such as the other files of a
dump folder, are passed over. The exit status is 1 where a shape differs in more than XLA allows.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import hlotext as hlo
from hlotext.semantics import infer
from tests import support

OPEN = "not inferred"
"""The operands do not determine the result: parameters and custom calls."""
REFUSED = "refused"
"""Operands and attributes do not fit together."""
COLUMNS = {
    infer.Agreement.EQUAL.name: "equal",
    infer.Agreement.FLOAT_PRECISION.name: "float precision",
    infer.Agreement.DYNAMIC.name: "dynamic",
    OPEN: OPEN,
    infer.Agreement.NONE.name: "another shape",
    REFUSED: REFUSED,
}
WRONG = (infer.Agreement.NONE.name, REFUSED)


def outcome(instruction: hlo.Instruction) -> str:
    """A key of `COLUMNS`."""
    try:
        inferred = infer.infer_shape(instruction)
    except infer.CannotInfer:
        return OPEN
    except infer.ShapeInferenceError:
        return REFUSED
    assert instruction.shape is not None
    return infer.agreement(instruction.opcode, instruction.shape, inferred).name


def modules(paths: Iterable[Path]) -> Iterator[hlo.Module]:
    """Every module in files and folders."""
    for path in paths:
        files = sorted(path.rglob("*.txt*")) if path.is_dir() else [path]
        for file in files:
            try:
                yield hlo.load(file)
            except hlo.HloSyntaxError:
                if not path.is_dir():
                    raise


def main(paths: list[Path]) -> int:
    found: dict[str, Counter[str]] = {}
    read = 0
    for module in modules(paths):
        read += 1
        for instruction in module.instructions():
            found.setdefault(instruction.opcode, Counter())[outcome(instruction)] += 1
    print(f"{'opcode':24}{'instructions':>14}" + "".join(f"{title:>17}" for title in COLUMNS.values()))
    total: Counter[str] = Counter()
    for opcode, counts in sorted(found.items(), key=lambda item: -item[1].total()):
        total += counts
        _print(opcode, counts)
    _print("all", total)
    print(f"{read} modules, {len(found)} opcodes")
    return 1 if any(total[name] for name in WRONG) else 0


def _print(name: str, counts: Counter[str]) -> None:
    numbers = (f"{counts[column] or '':>17}" for column in COLUMNS)
    print(f"{name:24}{counts.total():14}" + "".join(numbers))


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]] or support.corpus_files()))
