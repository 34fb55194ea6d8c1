"""Sentence patterns that documentation avoids, counted by package (`tests/data/prose.toml`).

A docstring names the thing with a noun or the action with a verb. `python -m tests.prose PACKAGE` prints what is left.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGINNING = re.compile(r"(What|Which|Who|Whose|Whether|How)\b")
"""Words with which a docstring of a function, a class, a module or a value does not begin."""


def docstrings(path: Path) -> Iterator[tuple[int, str, str]]:
    """Every docstring of a file: its line, what it describes, and its text."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for number, item in enumerate(body):
            if not (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                continue
            before = body[number - 1] if number else node
            if isinstance(before, ast.FunctionDef | ast.ClassDef):
                about = f"{type(before).__name__[:5]} {before.name}"
                if isinstance(before, ast.FunctionDef) and before.returns is not None:
                    about += f" -> {ast.unparse(before.returns)}"
            else:
                about = (
                    ast.unparse(before).splitlines()[0][:90]
                    if not isinstance(before, ast.Module)
                    else "module"
                )
            yield item.lineno, about, item.value.value


def questions(package: str) -> Iterator[tuple[Path, int, str, str]]:
    """Docstrings of a package that begin as a question."""
    for path in sorted((ROOT / "hlotext" / package).rglob("*.py")):
        for line, about, text in docstrings(path):
            if BEGINNING.match(text):
                yield path, line, about, text


def counts() -> Counter[str]:
    """Docstrings that begin as a question, by package."""
    packages = sorted(
        path.name for path in (ROOT / "hlotext").iterdir() if path.is_dir() and path.name[0] != "_"
    )
    return Counter({package: sum(1 for _ in questions(package)) for package in packages})


def main() -> None:
    """Prints the docstrings of packages, or the counts of all."""
    for package in sys.argv[1:]:
        for path, line, about, text in questions(package):
            print(f"{path.relative_to(ROOT / 'hlotext')}:{line} [{about}] {text}")
    if not sys.argv[1:]:
        for package, count in sorted(counts().items()):
            print(f"{package} = {count}")


if __name__ == "__main__":
    main()
