"""Texts that are of one module: what `compiled.as_text()` gave, kept beside the folder that the compiler dumped."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterable

from hlotext.dumps.compilation import Compilation
from hlotext.dumps.files import module_name
from hlotext.dumps.folder import open
from hlotext.dumps.texts import ModuleFile, is_dumped
from hlotext.syntax.source.inputs import InputError

_LINE = re.compile(
    r"^(?: *+(?:ROOT )?+%?+(?P<name>[^ =\n]++) = (?P<rest>.*)|(?:ENTRY )?+%?+(?P<home>[^ ({\n]++) .*\{)$",
    re.MULTILINE,
)
"""An operation, or the beginning of a computation."""
_OPCODE = re.compile(r" ([a-z][a-z0-9-]*+)\(")
_OPERAND = re.compile(r"%([^ ,(){}#]++)((?:#\d++)*+)")
_ASYNC_BODY = "async_computation"
"""Begins the names of computations that texts written with `async-start` have and those with `copy-start` lack."""
_NOTES = re.compile(r", (?:metadata|backend_config|frontend_attributes|control-predecessors)=.*")
"""Attributes that depend on when a text was written; XLA writes them last."""
_PARTS = ("-start", "-update", "-done")
_NAMED = (".txt", ".hlo")
_MOST_FOLDERS = 64
_BEGINNING = 10_000
"""Characters in which the name of a module stands."""


def copies(texts: Iterable[ModuleFile]) -> dict[ModuleFile, ModuleFile]:
    """Maps files not written by XLA to dumped files of the same module: with equal operations of equal names.

    Only files whose modules have equal names are read completely.
    """
    loose: dict[str, list[ModuleFile]] = defaultdict(list)
    dumped: dict[str, list[ModuleFile]] = defaultdict(list)
    known = list(texts)
    if len({one.compilation is None for one in known}) < 2:
        return {}
    for one in known:
        if one.path.endswith(_NAMED) and (name := _name(one)) is not None:
            (loose if one.compilation is None else dumped)[name].append(one)
    found = {}
    for name, mine in loose.items():
        outlines = {outline(_text(one)): one for one in dumped.get(name, ())}
        for one in mine if outlines else ():
            same = outlines.get(outline(_text(one)))
            if same is not None:
                found[one] = same
    return found


def dumped_beside(path: str) -> Compilation | None:
    """Returns the compilation whose final HLO is in a file not written by XLA, if dumped to its folder or one in it;
    else None.
    """
    home = os.path.dirname(path) or "."
    try:
        mine = ModuleFile(path).source().text
        folders = [
            home,
            *itertools.islice((one.path for one in os.scandir(home) if one.is_dir()), _MOST_FOLDERS),
        ]
        dumped = [one for one in folders if any(map(is_dumped, os.listdir(one)))]
    except (InputError, OSError):
        return None
    name, own = module_name(mine[:_BEGINNING]), None
    for folder in dumped:
        for compilation in open(folder).compilations:
            last = compilation.last
            if last is None or name != module_name(_text(ModuleFile(last.path, last.file))[:_BEGINNING]):
                continue
            own = own or outline(mine)
            if outline(_text(ModuleFile(last.path, last.file))) == own:
                return compilation
    return None


def outline(text: str) -> bytes:
    """Returns a digest of the operations in a text, with names, shapes and operands, in any order.

    Elements of tuples and asynchronous operations, which XLA prints in two ways, are left out.
    """
    lines: list[tuple[str, str]] = []
    elements: set[str] = set()
    is_skipped = False
    for match in _LINE.finditer(text):
        if match["home"] is not None:
            is_skipped = match["home"].startswith(_ASYNC_BODY)
            continue
        rest = match["rest"]
        found = _OPCODE.search(rest)
        opcode = found[1] if found is not None else ""
        if opcode == "get-tuple-element":
            elements.add(match["name"])
        elif not is_skipped and not opcode.endswith(_PARTS):
            lines.append((match["name"], _NOTES.sub("", rest)))

    def operand(match: re.Match[str]) -> str:
        return "#" if match[2] or match[1] in elements else match[1]

    lines = sorted((name, _OPERAND.sub(operand, rest)) for name, rest in lines)
    text = "\n".join(f"{name} = {rest}" for name, rest in lines)
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).digest()


def _name(one: ModuleFile) -> str | None:
    return module_name(_text(one)[:_BEGINNING])


def _text(one: ModuleFile) -> str:
    try:
        return one.source().text
    except InputError:
        return ""
