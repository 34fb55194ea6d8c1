"""Shortcuts for the values that differ on nearly every line: the same objects that the grammar would give, sooner.

Each returns None for a text that is not of the usual form; then the grammar reads it. Tests compare both on the corpus.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from hlotext.ir.aliasing import InputOutputAlias, InputOutputAliasConfig
from hlotext.ir.enums import AliasKind, ComparisonDirection, CustomCallApiVersion, FusionKind, ShardingType
from hlotext.ir.metadata import BackendConfig, FrontendAttributes, Metadata
from hlotext.ir.sharding import OpSharding, Sharding
from hlotext.ir.window import PaddingConfig, PaddingConfigDimension, SliceDimension, SliceDimensions
from hlotext.syntax import grammar, patterns, terms
from hlotext.syntax.fast_shapes import fast_computation_layout, fast_shape
from hlotext.syntax.words import unquote

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
    return re.compile(rf"(?<![a-z_])([a-z_]++)=(?:({quoted})|([0-9]{{1,9}}))(?: |$)")


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


_INT_LIST = re.compile(r"\{((?:[0-9]{1,18}(?:,[0-9]{1,18})*)?)\}")
_BOOL_LIST = re.compile(r"\{(?:true|false)(?:,(?:true|false))*\}")
_SLICE = re.compile(r"\[([0-9]{1,18}):([0-9]{1,18})(?::([0-9]{1,18}))?\]")
_PADDING = re.compile(
    r"-?[0-9]{1,9}_-?[0-9]{1,9}(?:_[0-9]{1,9})?(?:x-?[0-9]{1,9}_-?[0-9]{1,9}(?:_[0-9]{1,9})?)*"
)
_ALIAS = re.compile(r"\{([0-9,]*)\}: \(([0-9]{1,9}), \{([0-9,]*)\}, (may|must)-alias\)")
_NUMBERS_LIST = re.compile(r"(?:[0-9]{1,9}(?:,[0-9]{1,9})*)?")


def int_list(text: str) -> tuple[int, ...] | None:
    match = _INT_LIST.fullmatch(text)
    if match is None:
        return None
    return tuple(map(int, match[1].split(","))) if match[1] else ()


def boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def bool_or_list(text: str) -> tuple[bool, ...] | None:
    return tuple(word == "true" for word in text[1:-1].split(",")) if _BOOL_LIST.fullmatch(text) else None


def slice_dimensions(text: str) -> SliceDimensions | None:
    """`{[0:5], [0:8:2]}`."""
    found = _SLICE.findall(text)
    if text != f"{{{', '.join(f'[{a}:{b}:{c}]' if c else f'[{a}:{b}]' for a, b, c in found)}}}":
        return None
    return SliceDimensions(tuple(SliceDimension(int(a), int(b), int(c or 1)) for a, b, c in found))


def padding(text: str) -> PaddingConfig | None:
    """`1_2x0_1_0`."""
    if not _PADDING.fullmatch(text):
        return None
    parts = [tuple(map(int, part.split("_"))) for part in text.split("x")]
    return PaddingConfig(tuple(PaddingConfigDimension(*part) for part in parts))


def input_output_alias(text: str) -> InputOutputAliasConfig | None:
    """`{ {0}: (0, {}, may-alias), {1}: (1, {2}, must-alias) }`."""
    found = _ALIAS.findall(text)
    parts = ", ".join(
        f"{{{out}}}: ({number}, {{{index}}}, {kind}-alias)" for out, number, index, kind in found
    )
    if (
        not found
        or text != f"{{ {parts} }}"
        or not all(map(_index, (i for row in found for i in (row[0], row[2]))))
    ):
        return None
    return InputOutputAliasConfig(
        tuple(
            InputOutputAlias(_numbers(out), int(number), _numbers(index), AliasKind(f"{kind}-alias"))
            for out, number, index, kind in found
        )
    )


def _index(text: str) -> bool:
    return _NUMBERS_LIST.fullmatch(text) is not None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(","))) if text else ()


def frontend_attributes(text: str) -> FrontendAttributes | None:
    """`{a="1",b={"k":1}}`, strings without escapes."""
    pieces = _frontend_attribute().findall(text)
    if text != f"{{{','.join(piece for piece, *_ in pieces)}}}":
        return None
    return FrontendAttributes({name: string[1:-1] if string else value for _, name, string, value in pieces})


@functools.cache
def _frontend_attribute() -> re.Pattern[str]:
    """One pair. Groups: the whole, name, string, balanced braces."""
    word = r"A-Za-z0-9_.\-"
    return re.compile(rf'(?<![{word}])(([A-Za-z_][{word}]*+)=(?:("[^"\\]*+")|({patterns.braces()})))')


def sharding(text: str) -> Sharding | None:
    """`{replicated}` and its like, which need no more than a word."""
    type_ = _SIMPLE_SHARDINGS.get(text)
    return OpSharding(type_) if type_ is not None else None


_SIMPLE_SHARDINGS = {
    f"{{{type_}}}": type_ for type_ in (ShardingType.REPLICATED, ShardingType.MANUAL, ShardingType.UNREDUCED)
}


def _word(words: type[StrEnum]) -> Callable[[str], StrEnum | None]:
    """A reader of one word of a list, in the letters in which XLA prints it."""
    members: dict[str, StrEnum] = {str(member): member for member in words}
    return members.get


FAST_RULES: dict[str, Callable[[str], Any]] = {
    "backend_config": backend_config,
    "bool_or_list": bool_or_list,
    "boolean": boolean,
    "comparison_direction": _word(ComparisonDirection),
    "computation_layout": fast_computation_layout,
    "custom_call_api_version": _word(CustomCallApiVersion),
    "frontend_attributes": frontend_attributes,
    "fusion_kind": _word(FusionKind),
    "input_output_alias": input_output_alias,
    "int_list": int_list,
    "integer": integer,
    "metadata": metadata,
    "padding": padding,
    "shape": fast_shape,
    "sharding": sharding,
    "slice_sizes": int_list,
    "slice_dimensions": slice_dimensions,
    "string": string,
}
"""Shortcuts by the grammar's rule."""


def read(rule: str, text: str) -> Any:
    """The value of a text by the shortcut for its rule, else by the grammar. Raises TermError."""
    shortcut = FAST_RULES.get(rule)
    value = shortcut(text) if shortcut is not None else None
    return terms.read(rule, text) if value is None else value
