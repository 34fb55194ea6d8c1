"""The grammar folder as Python sees it: one text for Lark, and the terminals' regular expressions for the fast reader."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator

from hlotext.ir.caches import lazy_regex
from hlotext.ir.tables.opcodes import SPELLINGS

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
"""Paths are texts here: importing pathlib takes milliseconds, and every start of a program would wait for it."""

_TERMINAL = lazy_regex(
    r"^(?P<name>[A-Z_]+)(?:\.\d+)?: (?:/(?P<regex>.+)/|\"(?P<literal>[^\"]+)\")$", re.MULTILINE
)
_SPELLED = lazy_regex(r"^(?P<head>[A-Z_]+(?<!HEADER)_ATTRIBUTE(?:\.\d+)?: /)(?P<names>.+)=/$", re.MULTILINE)
_RULE = lazy_regex(r"^(?P<name>[a-z_A-Z]+)(?:\.\d+)?:", re.MULTILINE)
_EXAMPLE = lazy_regex(r"^// example: ?(.*)$")


@functools.cache
def folder() -> str:
    """Where the `.lark` files lie: inside an installed package, or beside it in a source checkout."""
    return os.path.dirname(shipped("grammar/tokens.lark"))


def shipped(name: str) -> str:
    """Returns the path of a file that comes with hlotext, from the installed package or the source checkout.

    Raises FileNotFoundError if it is missing.
    """
    for place in (_PACKAGE, os.path.dirname(_PACKAGE)):
        path = os.path.join(place, *name.split("/"))
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"hlotext installation is incomplete: no {name} in or next to {_PACKAGE}")


def files() -> list[str]:
    """Returns the paths of the grammar's files by name; joined in this order they form one grammar."""
    return sorted(os.path.join(folder(), name) for name in os.listdir(folder()) if name.endswith(".lark"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def text() -> str:
    """The whole grammar as one Lark text, with the reserved words where it says `<RESERVED>`."""
    found = "\n".join(map(_read, files())).replace("<RESERVED>", "|".join(reserved()))
    for spelling, name in SPELLINGS.items():
        found = _SPELLED().sub(functools.partial(_with_spelling, spelling, name), found)
    return found


def _with_spelling(spelling: str, name: str, match: re.Match[str]) -> str:
    """The terminal of an attribute's names with one more, where it has that name and lacks the other."""
    names = match["names"].removeprefix("(?:").removesuffix(")").split("|")
    if name not in names or spelling in names:
        return match[0]
    return f"{match['head']}(?:{'|'.join((*names, spelling))})=/"


@functools.cache
def reserved() -> tuple[str, ...]:
    """The words that are no names, in the order of reserved.txt."""
    lines = _read(os.path.join(folder(), "reserved.txt")).splitlines()
    return tuple(word for line in lines if not line.startswith("#") for word in line.split())


@functools.cache
def terminals() -> dict[str, str]:
    """The regular expression of every terminal that the grammar writes on one line."""
    return {
        match["name"]: match["regex"].replace("\\/", "/") if match["regex"] else re.escape(match["literal"])
        for match in _TERMINAL().finditer(text())
    }


def examples() -> Iterator[tuple[str, str]]:
    """Yields each example line of the grammar, with the name of its rule or terminal."""
    for path in files():
        waiting: list[str] = []
        for line in _read(path).splitlines():
            if match := _EXAMPLE().match(line):
                waiting.append(match[1].replace("\\n", "\n"))
            elif match := _RULE().match(line):
                for example in waiting:
                    yield match["name"], example
                waiting = []


def names() -> list[str]:
    """Returns the names of all rules and terminals, in the order of the files."""
    return [match["name"] for match in _RULE().finditer(text())]


_INSTRUCTION = "_ATTRIBUTE"
_HEADER = "_HEADER_ATTRIBUTE"


def attribute_rule(name: str) -> str | None:
    """Returns the rule for an instruction attribute's value: `int_list` for `dimensions`; None for an unknown name."""
    return attribute_rules().get(name)


def header_attribute_rule(name: str) -> str | None:
    """Returns the rule for a header attribute's value: `integer` for `replica_count`; None for an unknown name."""
    return header_attribute_rules().get(name)


@functools.cache
def attribute_rules() -> dict[str, str]:
    """Every known instruction attribute and the rule that reads its value."""
    return _rules(is_header=False)


@functools.cache
def header_attribute_rules() -> dict[str, str]:
    """Every known header attribute and the rule that reads its value."""
    return _rules(is_header=True)


def _rules(is_header: bool) -> dict[str, str]:
    """Name -> rule, of the terminals with that suffix; each is written `name=` or `(?:name|name)=`."""
    suffix = _HEADER if is_header else _INSTRUCTION
    return {
        name: terminal.removesuffix(suffix).lower()
        for terminal, regex in terminals().items()
        if terminal.endswith(suffix) and terminal.endswith(_HEADER) == is_header
        for name in regex.removesuffix("=").removeprefix("(?:").removesuffix(")").split("|")
    }
