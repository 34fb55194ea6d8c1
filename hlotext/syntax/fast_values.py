"""Shortcuts for the values that differ on nearly every line: the same objects that the grammar would give, sooner.

Each returns None for a text that is not of the usual form; then the grammar reads it. Tests compare both on the corpus.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from hlotext.ir.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
    OutputOperandAlias,
    OutputToOperandAliasing,
)
from hlotext.ir.convolution import ConvolutionDimensionNumbers
from hlotext.ir.enums import (
    AliasKind,
    ComparisonDirection,
    CustomCallApiVersion,
    FftType,
    FusionKind,
    Precision,
    PrecisionAlgorithm,
    RandomAlgorithm,
    RandomDistribution,
)
from hlotext.ir.metadata import BackendConfig, FrontendAttributes, Metadata
from hlotext.ir.shape import Shape
from hlotext.ir.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
    Window,
    WindowDimension,
)
from hlotext.syntax import patterns, terms
from hlotext.syntax.errors import TermError
from hlotext.syntax.fast_devices import exact, numbers, replica_groups, sharding, source_target_pairs
from hlotext.syntax.fast_shapes import fast_computation_layout, fast_shape
from hlotext.syntax.words import integer as integer_of
from hlotext.syntax.words import unquote

_METADATA_FIELDS = {
    "op_type": str, "op_name": str, "source_file": str, "source_line": int, "source_end_line": int, "source_column": int,
    "source_end_column": int, "deduplicated_name": str, "scheduling_name": str, "stack_frame_id": int,
}  # fmt: skip
"""Fields of metadata in the order in which XLA prints them."""
_SHORT = re.compile(r"-?[0-9]{1,9}")


@functools.cache
def _metadata() -> re.Pattern[str]:
    """Metadata as XLA writes it. Groups: the values of the fields above."""
    values = {str: patterns.quoted(), int: "[0-9]{1,9}"}
    fields = (rf"(?:{name}=({values[kind]})(?: |(?=\}})))?+" for name, kind in _METADATA_FIELDS.items())
    return re.compile(rf"\{{{''.join(fields)}(?<! )\}}")


_SOURCE = re.compile(r'\{op_name="([^"\\]*+)"(?: stack_frame_id=([0-9]{1,9}))?\}')
"""The metadata of nearly every line, which this reads in half the time."""


def metadata(text: str) -> Metadata | None:
    """`{op_name="x" stack_frame_id=3}`."""
    if (match := _SOURCE.fullmatch(text)) is not None:
        name, frame = match.groups("0")
        return Metadata(op_name=name, stack_frame_id=int(frame))
    match = _metadata().fullmatch(text)
    if match is None:
        return None
    values: dict[str, Any] = {}
    for name, value in zip(_METADATA_FIELDS, match.groups(), strict=True):
        if value is not None:
            values[name] = unquote(value) if _METADATA_FIELDS[name] is str else int(value)
    return Metadata(**values)


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
_INDEX = r"\{((?:[0-9]{1,9}(?:,[0-9]{1,9})*)?)\}"
_ALIAS = re.compile(rf"({_INDEX}: \(([0-9]{{1,9}}), {_INDEX}, (may-alias|must-alias)\))")


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
    pieces = _ALIAS.findall(text)
    if text != f"{{ {', '.join([piece for piece, *_ in pieces])} }}":
        return None
    return InputOutputAliasConfig(
        tuple(
            InputOutputAlias(numbers(out), int(number), numbers(index), _ALIAS_KINDS[kind])
            for _, out, number, index, kind in pieces
        )
    )


_ALIAS_KINDS = {str(kind): kind for kind in AliasKind}


def frontend_attributes(text: str) -> FrontendAttributes | None:
    """`{a="1",b={"k":1}}`."""
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
        rf"(?<![{word}])(([A-Za-z_][{word}]*+)=(?:({patterns.quoted()})|({patterns.braces()})))"
    )


@exact
def window(text: str) -> Window | None:
    """`{size=3x3 stride=2x1 pad=1_1x0_0}`."""
    fields = dict(field.split("=") for field in text[1:-1].split(" "))
    sizes = _by_x(fields["size"])
    ones = (1,) * len(sizes)
    pads = [_ends(pad) for pad in fields["pad"].split("x")] if "pad" in fields else [(0, 0)] * len(sizes)
    strides, windows, bases = (
        _by_x(fields[name]) if name in fields else ones for name in ("stride", "rhs_dilate", "lhs_dilate")
    )
    reversals = _by_x(fields["rhs_reversal"]) if "rhs_reversal" in fields else (0,) * len(sizes)
    rows = zip(sizes, strides, pads, windows, bases, reversals, strict=True)
    return Window(
        tuple(
            WindowDimension(size, stride, low, high, window, base, bool(reversal))
            for size, stride, (low, high), window, base, reversal in rows
        )
    )


def _by_x(text: str) -> tuple[int, ...]:
    return tuple(map(integer_of, text.split("x")))


def _ends(text: str) -> tuple[int, int]:
    low, high = text.split("_")
    return integer_of(low), integer_of(high)


@exact
def dim_labels(text: str) -> ConvolutionDimensionNumbers | None:
    """`b01f_01io->b01f`, without dimensions that have no label."""
    lhs, rhs, output = text.replace("->", "_").split("_")
    if not len(lhs) == len(rhs) == len(output):
        return None
    parts: list[Any] = []
    for labels, batch, feature in ((lhs, "b", "f"), (rhs, "i", "o"), (output, "b", "f")):
        spatial = [labels.index(str(number)) for number in range(len(labels) - 2)]
        parts += [labels.index(batch), labels.index(feature), tuple(spatial)]
    return ConvolutionDimensionNumbers(*parts)


def shape_list(text: str) -> tuple[Shape, ...] | None:
    """`{f32[6,6]{0,1}, s32[]}`."""
    shapes = fast_shape(f"({text[1:-1]})")
    return shapes.tuple_shapes if shapes is not None else None


_OPERAND_ALIAS = re.compile(r"\{([0-9,]*+)\}: \(([0-9]++), \{([0-9,]*+)\}\)")


@exact
def output_to_operand_aliasing(text: str) -> OutputToOperandAliasing | None:
    """`{{0}: (0, {}), {1}: (2, {0})}`."""
    found = _OPERAND_ALIAS.findall(text)
    return OutputToOperandAliasing(
        tuple(
            OutputOperandAlias(numbers(out), integer_of(number), numbers(index))
            for out, number, index in found
        )
    )


_DONOR = re.compile(r"\(([0-9]++), \{([0-9,]*+)\}\)")


@exact
def buffer_donor(text: str) -> BufferDonorConfig | None:
    """`{ (0, {}), (1, {0}) }`."""
    found = _DONOR.findall(text)
    return BufferDonorConfig(
        tuple(BufferDonor(integer_of(number), numbers(index)) for number, index in found)
    )


def operand_precision(text: str) -> tuple[Precision, ...] | None:
    """`{highest,default}`."""
    words = [_PRECISIONS.get(word) for word in text[1:-1].split(",")]
    found = tuple(word for word in words if word is not None)
    return found if len(found) == len(words) else None


_PRECISIONS = {str(member): member for member in Precision}


def _word(*lists: type[StrEnum]) -> Callable[[str], StrEnum | None]:
    """A reader of one word of some lists, in the letters in which XLA prints it."""
    members: dict[str, StrEnum] = {str(member): member for words in lists for member in words}
    return members.get


FAST_RULES: dict[str, Callable[[str], Any]] = {
    "algorithm": _word(PrecisionAlgorithm, RandomAlgorithm),
    "backend_config": backend_config,
    "bool_or_list": bool_or_list,
    "boolean": boolean,
    "comparison_direction": _word(ComparisonDirection),
    "buffer_donor": buffer_donor,
    "computation_layout": fast_computation_layout,
    "custom_call_api_version": _word(CustomCallApiVersion),
    "dim_labels": dim_labels,
    "fft_type": _word(FftType),
    "frontend_attributes": frontend_attributes,
    "fusion_kind": _word(FusionKind),
    "input_output_alias": input_output_alias,
    "int_list": int_list,
    "integer": integer,
    "metadata": metadata,
    "operand_precision": operand_precision,
    "output_to_operand_aliasing": output_to_operand_aliasing,
    "padding": padding,
    "random_distribution": _word(RandomDistribution),
    "replica_groups": replica_groups,
    "shape": fast_shape,
    "shape_list": shape_list,
    "sharding": sharding,
    "slice_sizes": int_list,
    "slice_dimensions": slice_dimensions,
    "source_target_pairs": source_target_pairs,
    "string": string,
    "window": window,
}
"""Shortcuts by the grammar's rule."""


def read(rule: str, text: str) -> Any:
    """The value of a text by the shortcut for its rule, else by the grammar. Raises TermError."""
    shortcut = FAST_RULES.get(rule)
    if shortcut is not None:
        try:
            value = shortcut(text)
        except TermError:  # the grammar says where
            value = None
        if value is not None:
            return value
    return terms.read(rule, text)
