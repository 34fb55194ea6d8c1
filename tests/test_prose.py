"""Documentation in the field's words: patterns that are avoided may only become fewer."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import re
import tomllib
import types
from collections.abc import Iterator
from typing import Any

import hlotext as hlo
from tests import prose
from tests.support import DATA

AVOIDED = re.compile(
    r"\b(anew|as far as|at once|in the next (two |three )?fields?|stands? for|(tells?|told)|of (its|their|your) own)\b"
)
"""Words that a reader of the public API stumbled over."""


def test_docstrings_that_begin_as_a_question_become_fewer() -> None:
    """A docstring names the thing or the action. `python -m tests.prose PACKAGE` prints those that do not.

    The recorded counts may only be lowered (`python -m tests.prose > tests/data/prose.toml`).
    """
    recorded = tomllib.loads((DATA / "prose.toml").read_text("utf-8"))
    counts = prose.counts()
    assert {package: count for package, count in counts.items() if count > recorded.get(package, 0)} == {}


def public() -> Iterator[tuple[str, Any]]:
    """Every class and function that a package names in `__all__`, and the public members of these classes."""
    packages = [info.name for info in pkgutil.walk_packages(hlo.__path__, "hlotext.") if info.ispkg]
    for name in ["hlotext", *(name for name in packages if not name.startswith("hlotext.cli"))]:
        package = importlib.import_module(name)
        for word in getattr(package, "__all__", ()):
            with contextlib.suppress(ImportError):  # needs an extra
                value = getattr(package, word)
                if inspect.isclass(value):
                    yield f"{name}.{word}", value
                    members = {key: member for key, member in vars(value).items() if key[0] != "_"}
                    yield from ((f"{name}.{word}.{key}", member) for key, member in members.items())
                else:
                    yield f"{name}.{word}", value


def function(value: Any) -> types.FunctionType | None:
    """The function behind a decorated one or a class method; None for everything else."""
    value = (
        inspect.unwrap(getattr(value, "__func__", value))
        if callable(value) or hasattr(value, "__func__")
        else None
    )
    return value if isinstance(value, types.FunctionType) else None


def test_public_docstrings_have_a_first_line_that_is_a_statement() -> None:
    """It is one line and ends with a full stop; of a function it begins with a verb, as `Returns` and `Parses` do."""
    wrong = set()
    for name, value in public():
        is_property = isinstance(value, property) or hasattr(value, "attrname")
        called = function(value)
        if called is None and not (is_property or inspect.isclass(value)):
            continue
        lines = (inspect.getdoc(value if called is None else called) or "").splitlines() or [""]
        if not lines[0].endswith((".", ":")) or (len(lines) > 1 and lines[1]):
            wrong.add(f"{name}: {lines[0]}")
        elif called is not None and not re.match(r"\w+s\b|Decorator\b", lines[0]):
            wrong.add(f"{name} begins without a verb: {lines[0]}")
        if found := AVOIDED.search(lines[0]):
            wrong.add(f"{name} says {found[0]}: {lines[0]}")
    assert wrong == set()
