"""What lint says of many modules, and which findings a change adds or takes away.

    python -m tests.lint_corpus FOLDER... > before.txt
    python -m tests.lint_corpus FOLDER... --against before.txt

Each finding is a line: the file, severity, code, kind of waste, instruction and message, without times and shares, which
change with the model of the chip. Without a folder the modules of `corpus/` are looked at. Files above `--most` bytes are
left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from hlotext import lint
from hlotext.findings.errors import Severity
from hlotext.syntax.source.inputs import InputError, read_source
from tests import support

MOST = 100_000
_ENDINGS = (".txt", ".hlo", ".txt.xz", ".txt.gz")


def files(folders: list[Path], most: int) -> Iterator[Path]:
    """The texts below folders, in the order of their names."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name.endswith(_ENDINGS) and path.stat().st_size < most:
                yield path


def rows(folders: list[Path], most: int) -> tuple[list[str], int, int]:
    """A line for each finding; how many modules were looked at; how many of the lines are warnings."""
    found, modules, warnings = [], 0, 0
    for path in files(folders, most):
        try:
            source = read_source(path)
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if not source.text.lstrip().startswith("HloModule") or len(source.text) >= most:
            continue
        linted = lint.lint_source(source)
        modules += linted.modules
        for one in linted.findings:
            warnings += one.severity is Severity.WARNING
            found.append(
                f"{path.name}\t{one.severity.value}\t{one.code}\t{one.waste}\t{one.name}\t{one.message}"
            )
    return found, modules, warnings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, default=[support.CORPUS])
    parser.add_argument("--against", type=Path, help="what another state of the rules printed")
    parser.add_argument("--most", type=int, default=MOST, help="bytes of a text")
    given = parser.parse_args(arguments)
    found, modules, warnings = rows(given.folders, given.most)
    print(f"{modules} modules, {warnings} warnings, {len(found) - warnings} others", file=sys.stderr)
    if given.against is None:
        print(*found, sep="\n")
        return 0
    before = set(given.against.read_text("utf-8").splitlines())
    for line in sorted(set(found) - before):
        print(f"+ {line}")
    for line in sorted(before - set(found)):
        print(f"- {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
