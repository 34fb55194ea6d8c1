"""Reasons why TOML does not parse, and what to write instead: the parser knows only where it stopped."""

from __future__ import annotations

import re
from typing import Any

_PLACE = re.compile(r" \(at line (\d+), column \d+\)")
_WORD = re.compile(r"[A-Za-z_][\w.\-/*]*")
_BARE = re.compile(rf"\s*([\w.\-]+)\s*=\s*({_WORD.pattern})\s*(?:#.*)?")
_LIST = re.compile(r"\s*([\w.\-]+)\s*=\s*\[([\w.\-, \t*/]*)\]?\s*(?:#.*)?")
_COLON = re.compile(r"\s*([\w.\-]+)\s*:\s*(\S.*)")
_PYTHON = {"True": "true", "False": "false", "yes": "true", "no": "false", "on": "true", "off": "false"}
"""Truth values of Python and YAML."""


class TomlError(ValueError):
    """Raised for text that is not TOML, with its place, and the line to write where that is clear."""


def loads(text: str) -> dict[str, Any]:
    """Parses TOML. Raises TomlError."""
    import tomllib  # takes milliseconds, and most commands read no settings

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        lines = text.splitlines()
        number = int(place[1]) if place is not None else 0
        use = _use(lines[number - 1]) if 0 < number <= len(lines) else ""
        raise TomlError(f"{error}; write `{use}`" if use else str(error)) from None


def _use(line: str) -> str:
    """The line as TOML has it; empty if that is not clear."""
    if (found := _BARE.fullmatch(line)) is not None:
        return f"{found[1]} = {_value(found[2])}"
    if (found := _LIST.fullmatch(line)) is not None:
        items = [_value(one.strip()) for one in found[2].split(",") if one.strip()]
        return f"{found[1]} = [{', '.join(items)}]"
    if (found := _COLON.fullmatch(line)) is not None:
        value = found[2]
        return f"{found[1]} = {value if not _is_word(value) else _value(value)}"
    is_open_table = line.lstrip().startswith("[") and "=" not in line and not line.rstrip().endswith("]")
    return f"{line.strip()}]" if is_open_table else ""


def _is_word(value: str) -> bool:
    return _WORD.fullmatch(value) is not None


def _value(word: str) -> str:
    return _PYTHON.get(word) or (f'"{word}"' if _is_word(word) and word not in ("true", "false") else word)
