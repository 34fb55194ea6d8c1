"""Documentation in the field's words: patterns that are avoided may only become fewer."""

from __future__ import annotations

import builtins
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

EXCEPTION = re.compile(r"\b[A-Z]\w+(?:Error|Warning)\b")
"""A name of an exception, as docstrings mention it."""


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
        example = next((number for number, line in enumerate(lines) if line.startswith(">>>")), 0)
        if example and lines[example - 1]:
            wrong.add(f"{name} has no blank line before its example, so Sphinx takes it for text")
        elif called is not None and not re.match(r"\w+s\b|Decorator\b", lines[0]):
            wrong.add(f"{name} begins without a verb: {lines[0]}")
        if found := AVOIDED.search(lines[0]):
            wrong.add(f"{name} says {found[0]}: {lines[0]}")
    assert wrong == set()


def section(text: str, title: str) -> list[str] | None:
    """The names that a section of a docstring explains, such as those of parameters; None without this section."""
    found = re.search(rf"^{title}:\n((?: {{4}}.*\n?|\n)*)", text, re.MULTILINE)
    return re.findall(r"^ {4}\*{0,2}(\w+):", found[1], re.MULTILINE) if found is not None else None


def described() -> Iterator[tuple[str, types.FunctionType]]:
    """Every public function, method and property, once and by its function."""
    seen = set()
    for name, value in public():
        called = (
            value.fget if isinstance(value, property) else getattr(value, "func", None) or function(value)
        )
        if isinstance(called, types.FunctionType) and called not in seen:
            seen.add(called)
            yield name, called


def exceptions() -> set[str]:
    """Names of all exceptions: Python's and those of the packages, which have been imported."""
    every = [BaseException]
    for kind in every:
        every += kind.__subclasses__()
    return {kind.__name__ for kind in every} | set(vars(builtins))


def test_public_docstrings_agree_with_signatures() -> None:
    """A section of arguments has every parameter and no other name, and a result that may be None is said to be."""
    wrong = []
    for name, called in described():
        text, signature = inspect.getdoc(called) or "", inspect.signature(called)
        names = [one for one in signature.parameters if one not in ("self", "cls")]
        explained = section(text, "Args")
        if explained is not None and sorted(explained) != sorted(names):
            wrong.append(f"{name} explains {', '.join(explained)}, but takes {', '.join(names)}")
        result = signature.return_annotation
        if isinstance(result, str) and result.endswith("| None") and "None" not in text:
            wrong.append(f"{name} returns {result}, but does not say when it is None")
    assert wrong == []


def test_public_docstrings_name_exceptions_that_exist() -> None:
    """Those of the section `Raises`, and every word that looks like the name of one."""
    wrong = []
    texts = [(name, inspect.getdoc(called) or "") for name, called in described()]
    known = exceptions()
    for name, text in texts:
        missing = {*EXCEPTION.findall(text), *(section(text, "Raises") or ())} - known
        wrong += [f"{name} mentions {one}, which does not exist" for one in sorted(missing)]
    assert wrong == []


def test_exceptions_say_when_they_are_raised() -> None:
    """Their docstrings begin so, as those of Python's own exceptions do."""
    kinds = {
        value: name for name, value in public() if inspect.isclass(value) and issubclass(value, BaseException)
    }
    assert [
        name
        for kind, name in kinds.items()
        if not (inspect.getdoc(kind) or "").startswith(("Raised ", "Issued "))
    ] == []
