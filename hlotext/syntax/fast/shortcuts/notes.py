"""Shortcuts for what is attached to an instruction as text: metadata, notes of the front end, settings of the backend."""

from __future__ import annotations

import functools
import re
from typing import Any

from hlotext.ir.values.configs import BackendConfig, FrontendAttributes
from hlotext.ir.values.metadata import Metadata
from hlotext.syntax.fast.shortcuts.plain import string
from hlotext.syntax.language import patterns
from hlotext.syntax.language.words import plain, unquote

_METADATA_FIELDS = {
    "op_type": str, "op_name": str, "source_file": str, "source_line": int, "source_end_line": int, "source_column": int,
    "source_end_column": int, "deduplicated_name": str, "scheduling_name": str, "stack_frame_id": int,
}  # fmt: skip
"""Fields of metadata in the order in which XLA prints them."""


@functools.cache
def _metadata() -> re.Pattern[str]:
    """Metadata as XLA writes it. Groups: the values of the fields above."""
    values = {str: patterns.quoted(), int: "[0-9]{1,9}"}
    fields = (rf"(?:{name}=({values[kind]})(?: |(?=\}})))?+" for name, kind in _METADATA_FIELDS.items())
    return re.compile(rf"\{{{''.join(fields)}(?<! )\}}")


_SOURCE = re.compile(r"""\{op_name="((?:[ !#-&(-\[\]-~]++|\\')++)"(?: stack_frame_id=([1-9][0-9]{0,8}))?\}""")
"""The metadata of nearly every line, which this reads in a fifth of the time. It takes only what is escaped as XLA does."""


def source_metadata(text: str) -> Metadata | None:
    """Parses `{op_name="x" stack_frame_id=3}`; None if the grammar must."""
    match = _SOURCE.fullmatch(text)
    name = None if match is None else plain(match[1])
    return Metadata.of_source(name, int(match[2] or 0)) if match is not None and name is not None else None


def metadata(text: str) -> Metadata | None:
    """Parses `{op_type="y" op_name="x" source_file="f.py" source_line=3}`; None if the grammar must."""
    match = _metadata().fullmatch(text)
    if match is None:
        return None
    values: dict[str, Any] = {}
    for name, value in zip(_METADATA_FIELDS, match.groups(), strict=True):
        if value is not None:
            values[name] = unquote(value) if _METADATA_FIELDS[name] is str else int(value)
    return Metadata(**values)


def raw_config(text: str) -> BackendConfig | None:
    """Returns a config in braces, which the caller knows to be balanced; None for other texts."""
    return BackendConfig(text) if text[0] == "{" else None


def backend_config(text: str) -> BackendConfig | None:
    """Returns a config in braces, which the caller knows to be balanced, or in quotes; None if the grammar must parse
    it.
    """
    if text[0] == "{":
        return raw_config(text)
    unquoted = string(text)
    return BackendConfig(unquoted) if unquoted is not None else None


def frontend_attributes(text: str) -> FrontendAttributes | None:
    """Parses `{a="1",b={"k":1}}`; None if the grammar must."""
    pieces = _frontend_attribute().findall(text)
    if text != f"{{{','.join(piece for piece, *_ in pieces)}}}":
        return None
    return FrontendAttributes(
        {name: unquote(string) if string else value for _, name, string, value in pieces}
    )


@functools.cache
def _frontend_attribute() -> re.Pattern[str]:
    """One pair. Groups: the whole, name, string, balanced braces."""
    word = r"A-Za-z0-9_.\-"
    return re.compile(
        rf"(?<![{word}])(({patterns.IDENTIFIER})=(?:({patterns.quoted()})|({patterns.braces()})))"
    )
