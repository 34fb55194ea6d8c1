"""The parser's tables: made from the grammar when the package is built, so that starting costs no table construction.

The build of the wheel, and of an editable install, writes `tables.json` beside this file. A checkout without that file, or
whose grammar has changed since, makes the tables in memory, which takes about a tenth of a second.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hlotext.ir.files import write_text

if TYPE_CHECKING:
    import lark

_OPTIONS: dict[str, Any] = {"parser": "lalr", "lexer": "contextual", "maybe_placeholders": True}
_FILE = Path(__file__).with_name("tables.json")
_PAIRS = "pairs"
"""Key under which a dict with numbers as keys is written as pairs; JSON would make them strings."""


def parser(grammar: str, starts: Sequence[str], **callbacks: Any) -> lark.Lark:
    """Returns the LALR parser of a grammar, from the generated tables if they match."""
    import lark

    written = _written()
    if written is not None and written["key"] == key(grammar, starts):
        # As Lark's own cache does, with tables that came with the package instead of a pickle.
        found: lark.Lark = lark.Lark.__new__(lark.Lark)._load(written["tables"], **callbacks)
        return found
    return lark.Lark(grammar, start=list(starts), **_OPTIONS, **callbacks)


def _written() -> Any:
    """The content of the tables' file; None if there is none that can be read."""
    try:
        return json.loads(_FILE.read_bytes(), object_hook=lambda d: dict(d[_PAIRS]) if _PAIRS in d else d)
    except (OSError, ValueError):
        return None


def key(grammar: str, starts: Sequence[str]) -> str:
    """Returns a digest of the grammar, its start rules and Lark's version, for which tables are valid."""
    import hashlib  # takes milliseconds, and most texts need no table

    import lark

    return hashlib.sha256("\0".join([lark.__version__, *starts, grammar]).encode()).hexdigest()


def source(grammar: str, starts: Sequence[str]) -> str:
    """Returns the text of `tables.json`."""
    import lark

    found = lark.Lark(grammar, start=list(starts), **_OPTIONS)
    data, memo = found.memo_serialize([lark.lexer.TerminalDef, lark.grammar.Rule])
    tables = _with_pairs({"data": data, "memo": memo})
    return json.dumps({"key": key(grammar, starts), "tables": tables}, separators=(",", ":"))


def _with_pairs(value: Any) -> Any:
    if isinstance(value, dict):
        if any(isinstance(key, int) for key in value):
            return {_PAIRS: [[key, _with_pairs(item)] for key, item in value.items()]}
        return {key: _with_pairs(item) for key, item in value.items()}
    return [_with_pairs(item) for item in value] if isinstance(value, list | tuple) else value


def write(grammar: str, starts: Sequence[str]) -> Path:
    """Writes `tables.json` and returns its path."""
    write_text(_FILE, source(grammar, starts))
    return _FILE
