"""Shortcuts for the values that differ on nearly every line: the same objects that the grammar would give, sooner.

Each returns None for a text that is not of the usual form; then the grammar reads it. Tests compare both on the corpus.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from hlotext.ir.metadata import BackendConfig, Metadata
from hlotext.syntax import grammar
from hlotext.syntax.builders.tokens import unquote

_STRINGS = frozenset(
    {"op_type", "op_name", "source_file", "deduplicated_name", "scheduling_name", "metadata_payload"}
)
_NUMBERS = frozenset(
    {"source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id"}
)
_SHORT = re.compile(r"-?[0-9]{1,9}")


@functools.cache
def _field() -> re.Pattern[str]:
    """One field of metadata. Groups: name, quoted value, number; a blank between fields."""
    quoted = grammar.terminals()["STRING"].split("|", 1)[0]
    return re.compile(rf"([a-z_]+)=(?:({quoted})|([0-9]{{1,9}}))(?: |$)")


def metadata(text: str) -> Metadata | None:
    """`{op_name="x" stack_frame_id=3}`."""
    inner = text[1:-1]
    values: dict[str, Any] = {}
    length = -1
    for name, quoted, number in _field().findall(inner):
        length += len(name) + len(quoted) + len(number) + 2
        if name in values:
            return None
        if quoted and name in _STRINGS:
            values[name] = quoted[1:-1] if "\\" not in quoted else unquote(quoted)
        elif number and name in _NUMBERS:
            values[name] = int(number)
        else:
            return None
    return Metadata(**values) if length == len(inner) else None


def integer(text: str) -> int | None:
    return int(text) if _SHORT.fullmatch(text) else None


def string(text: str) -> str | None:
    return text[1:-1] if text[0] == '"' and "\\" not in text else None


def backend_config(text: str) -> BackendConfig | None:
    """A config in braces, which the caller has already found to balance."""
    return BackendConfig(text) if text[0] == "{" else None


FAST_RULES: dict[str, Callable[[str], Any]] = {
    "metadata": metadata,
    "integer": integer,
    "string": string,
    "backend_config": backend_config,
}
"""Shortcuts by the grammar's rule."""
