"""Private words: paths, users, hosts, names of the program; which settings may be shown, and what is left in a text."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator, Mapping

import attrs

import hlotext as hlo
from hlotext.dumps.stages import stages
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.tables.targets import is_public_target
from hlotext.rewrite.passes import PASSES

_PATH = re.compile(r"(?:[A-Za-z]:)?[\\/](?:[\w.@+~-]+[\\/])+[\w.@+~-]*")
_PLAIN_VALUE = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|[A-Z][A-Z0-9_]*")
"""A number, a truth value, or an enumerator."""
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OWN_WORDS = re.compile(
    r"-?[0-9.]*|true|false|xla_late|xla_early|host|device|arg|default|composite|target\.[0-9]+|axis_[0-9]+"
)
_LEAST = 4
"""Letters of a name that is looked for: shorter ones stand in any text."""
_NOBODY = frozenset({"root", "home", "user", "users", "nobody", "ubuntu", "runner"})
"""Names of users and of their directories that identify nobody, and stand in any path."""


@attrs.frozen
class Leak:
    """Private information (a name or path) found in text meant for publication."""

    word: str
    kind: str
    line: int


def machine_words() -> dict[str, str]:
    """Returns words that identify this machine and its user, each with its kind."""
    found: dict[str, str] = {}
    home = os.path.expanduser("~")
    if len(home) >= _LEAST:
        found[home] = "home directory"
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    for name in (user, os.path.basename(home)):
        if len(name) >= _LEAST and name not in _NOBODY:
            found[name] = "user name"
    host = socket.gethostname()
    for name in (host, host.partition(".")[0]):
        if len(name) >= _LEAST and name != "localhost":
            found[name] = "host name"
    return found


def module_words(module: hlo.Module) -> dict[str, str]:
    """Returns words of a module that identify its program: its name, and the source files in its metadata."""
    found = {}
    if len(module.name) >= _LEAST and module.name not in OPCODES and module.name != "module":
        found[module.name] = "name of the module"
    for instruction in module.instructions():
        metadata = instruction.metadata
        if metadata is not None and len(metadata.source_file) >= _LEAST:
            found[metadata.source_file] = "source file"
    return found


def leaks(text: str, words: Mapping[str, str]) -> Iterator[Leak]:
    """Yields each occurrence of a private word, or of an absolute path with two or more components, line by line.

    `words` maps each private word to its kind, such as `user name`.
    """
    listed = sorted(words, key=len, reverse=True)
    known = (
        re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in listed)) if listed else None
    )
    for number, line in enumerate(text.splitlines(), 1):
        if known is not None:
            for match in known.finditer(line):
                yield Leak(match[0], words[match[0]], number)
        for match in _PATH.finditer(line):
            if not match[0].startswith(_OUR_PATHS) and match[0] not in words:
                yield Leak(match[0], "path", number)


def texts(module: hlo.Module) -> Iterator[str]:
    """Yields the distinct quoted texts of a module, except those of compilers and of `Anonymize`."""
    found = (match[1].replace('\\"', '"') for match in _QUOTED.finditer(str(module)))
    for text in dict.fromkeys(found):
        if not (_OWN_WORDS.fullmatch(text) or is_public_target(text) or text.startswith("#sdy")):
            yield text


_OUR_PATHS = ("/bin/sh", "/dev/null", "/module.txt", "/usr/bin/env")


def shown_settings(settings: Mapping[str, tuple[str, bool]]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Returns the settings whose values identify no location or person, and the names of the others."""
    shown: dict[str, str] = {}
    withheld: list[str] = []
    for name, (value, is_text) in sorted(settings.items()):
        is_plain = _is_pass if is_text else _is_plain
        if re.fullmatch(r"\w+", name) and all(map(is_plain, value.split(","))):
            shown[name] = value
        elif re.fullmatch(r"\w+", name):
            withheld.append(name)
    return shown, tuple(withheld)


def _is_plain(value: str) -> bool:
    return _PLAIN_VALUE.fullmatch(value) is not None or _is_pass(value)


def _is_pass(value: str) -> bool:
    return bool(value) and (value in PASSES or stages.of("", value) is not None)
