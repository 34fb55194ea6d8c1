"""Values of the rules in tokens.lark and values.lark."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from hlotext.findings.errors import TermError
from hlotext.ir.tables.other_names import word_meant
from hlotext.ir.values.aliasing import OutputOperandAlias, OutputToOperandAliasing
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.enums import (
    CollectiveMode,
    ComparisonDirection,
    ComparisonOrder,
    ComparisonType,
    ConvolutionKind,
    CustomCallApiVersion,
    CustomCallSchedule,
    FftType,
    FusionKind,
    PaddingType,
    Precision,
    PrecisionAlgorithm,
    RandomAlgorithm,
    RandomDistribution,
    ShuffleMode,
    TransposeA,
)
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sparsity import (
    BlockScalingConfig,
    DotSparsity,
    OperandBlockScaling,
    OperandSparsity,
    SparsityConfig,
    SparsityDescriptor,
)
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
    Window,
    WindowDimension,
)
from hlotext.syntax.language.words import integer, unquote
from hlotext.syntax.reading.records import ComputationReference, InlineBody, InstructionReference

Children: TypeAlias = "list[Any]"


class TokenBuilder:
    """Builds the values of the rules in tokens.lark."""

    def int_list(self, children: Children) -> tuple[int, ...]:
        return tuple(integer(token) for token in children if token is not None)

    def int_lists(self, children: Children) -> tuple[tuple[int, ...], ...]:
        return tuple(item for item in children if item is not None)

    def bool_list(self, children: Children) -> tuple[bool, ...]:
        return tuple(token == "true" for token in children if token is not None)


Word = Callable[[Any, Children], StrEnum | RawValue]


def one_of(token: Any, enumeration: type[StrEnum], what: str) -> StrEnum:
    """Returns the enum member with a token's text. Raises TermError with the allowed words and the nearest one."""
    for member in enumeration:
        if member.value == token:
            return member
    allowed = [member.value for member in enumeration]
    meant = word_meant(token, allowed)
    raise TermError(
        f"{what} must be one of {', '.join(allowed)}, not {token}" + (f"; {meant}" if meant else ""),
        token.start_pos,
    )


def _closed(enumeration: type[StrEnum], what: str) -> Word:
    """A rule for a word of a list that XLA does not extend; other words are errors."""

    def word(_: Any, children: Children) -> StrEnum:
        return one_of(children[0], enumeration, what)

    return word


def _any_case(enumeration: type[StrEnum], what: str) -> Word:
    """The same, upper or lower case."""
    members = {member.value.lower(): member for member in enumeration}

    def word(_: Any, children: Children) -> StrEnum:
        return members.get(children[0].lower()) or one_of(children[0], enumeration, what)

    return word


def _open(*enumerations: type[StrEnum], any_case: bool = True) -> Word:
    """A rule for a word of a list that grows from release to release; other words are kept as they are."""
    fold = str.lower if any_case else str
    members = {fold(member.value): member for enumeration in enumerations for member in enumeration}

    def word(_: Any, children: Children) -> StrEnum | RawValue:
        text = str(children[0])
        return members.get(fold(text)) or RawValue(text)

    return word


def _last_fields(children: Children) -> dict[str, Any]:
    """Fields by name; of two with one name XLA's reader takes the last."""
    return {field.name: field.value for field in children}


_PRECISIONS = {member.value: member for member in Precision}
_SHUFFLE_MODES = frozenset(ShuffleMode)


def number(token: str) -> float:
    """Returns the value of a NUMBER token; a NaN keeps its sign, but not its payload."""
    return float(token.partition("(")[0])


def unquote_at(token: Any) -> str:
    """Returns the text of a STRING token. Raises TermError with the offset of an invalid escape."""
    try:
        return unquote(token)
    except TermError as error:
        raise TermError(error.message, token.start_pos + error.position) from None


def _reference(token: str) -> str:
    """A NAME token without `%`, and without the colon that XLA's lexer swallows."""
    return token.removeprefix("%").removesuffix(":")


def _label_places(labels: str, named: str, token: Any) -> tuple[int, int, tuple[int, ...]]:
    """Where the two named dimensions and the spatial ones (0, 1, ...) stand in one part of dim_labels."""
    places = {label: place for place, label in enumerate(labels) if label != "?"}
    spatial = [label for label in places if label.isdigit()]
    if len(places) != sum(label != "?" for label in labels):
        raise TermError(f"a label appears twice in {labels}", token.start_pos)
    if sorted(spatial) != [str(i) for i in range(len(spatial))] or not places.keys() >= set(named):
        raise TermError(
            f"{labels} needs {named[0]}, {named[1]} and consecutive spatial dimensions from 0",
            token.start_pos,
        )
    return places[named[0]], places[named[1]], tuple(places[str(i)] for i in range(len(spatial)))


def _by_x(token: str) -> list[int]:
    return [integer(number) for number in token.split("x")]


class Field(NamedTuple):
    """A `name=value` pair inside a value."""

    name: str
    value: Any
    token: Any
    """The name's token, for its place in the text."""


def unique_fields(fields: list[Field], what: str) -> dict[str, Any]:
    """Returns the fields by name. Raises TermError for a duplicate."""
    found: dict[str, Any] = {}
    for field in fields:
        if field.name in found:
            raise TermError(f"{field.name} appears twice in this {what}", field.token.start_pos)
        found[field.name] = field.value
    return found


def name_of(token: Any) -> str:
    """Returns the token without its trailing `=`."""
    return str(token[:-1])


class ValueBuilder:
    """Builds the values of the rules in values.lark."""

    # ---- single values

    def integer(self, children: Children) -> int:
        return integer(children[0])

    def boolean(self, children: Children) -> bool:
        return bool(children[0] == "true")

    def number(self, children: Children) -> float:
        return number(children[0])

    def string(self, children: Children) -> str:
        return unquote_at(children[0])

    def slice_sizes(self, children: Children) -> tuple[int, ...]:
        sizes: tuple[int, ...] = children[0]
        return sizes

    def slice_sizes_of_each(self, children: Children) -> tuple[tuple[int, ...], ...]:
        return tuple(children)

    def bool_or_list(self, children: Children) -> tuple[bool, ...]:
        value = children[0]
        return value if isinstance(value, tuple) else (value == "true",)

    def shape_list(self, children: Children) -> tuple[Shape, ...]:
        return tuple(child for child in children if child is not None)

    # ---- references

    def computation(self, children: Children) -> ComputationReference | InlineBody:
        if isinstance(children[0], InlineBody):
            return children[0]
        return ComputationReference(_reference(children[0]), children[0].start_pos)

    def computation_list(self, children: Children) -> tuple[Any, ...]:
        return tuple(child for child in children if child is not None)

    def instruction_list(self, children: Children) -> tuple[InstructionReference, ...]:
        tokens = [child for child in children if child is not None]
        return tuple(InstructionReference(_reference(token), token.start_pos) for token in tokens)

    # ---- words

    comparison_direction = _closed(ComparisonDirection, "a comparison's direction")
    comparison_order = _closed(ComparisonOrder, "a comparison's order")
    comparison_type = _closed(ComparisonType, "a comparison's type")
    fft_type = _closed(FftType, "fft_type")
    fusion_kind = _closed(FusionKind, "a fusion's kind")
    padding_type = _closed(PaddingType, "padding_type")
    transpose_a = _closed(TransposeA, "transpose_a")
    random_distribution = _any_case(RandomDistribution, "a random distribution")
    algorithm = _open(PrecisionAlgorithm, RandomAlgorithm)
    custom_call_schedule = _open(CustomCallSchedule)
    custom_call_api_version = _open(CustomCallApiVersion)
    convolution_kind = _open(ConvolutionKind, any_case=False)

    def collective_mode(self, children: Children) -> StrEnum:
        # A shuffle's mode has the same name as a collective's.
        if children[0] in _SHUFFLE_MODES:
            return ShuffleMode(children[0])
        return one_of(children[0], CollectiveMode, "a collective's mode")

    def operand_precision(self, children: Children) -> tuple[Precision, ...] | RawValue:
        words = [str(child) for child in children if child is not None]
        members = [_PRECISIONS.get(word.lower()) for word in words]
        if None in members:
            return RawValue(f"{{{','.join(words)}}}")
        return tuple(member for member in members if member is not None)

    # ---- windows, pads, slices

    def window(self, children: Children) -> Window:
        fields = unique_fields(children[1:], "window")
        sizes = fields.pop("size", [])
        for field in children[1:]:
            if field.name != "size" and len(field.value) != len(sizes):
                raise TermError(
                    f"the window has {len(sizes)} sizes, but {field.name} has {len(field.value)} values",
                    field.token.start_pos,
                )
        ones, zeros = [1] * len(sizes), [(0, 0)] * len(sizes)
        rows = zip(
            sizes,
            fields.get("stride", ones),
            fields.get("pad", zeros),
            fields.get("rhs_dilate", ones),
            fields.get("lhs_dilate", ones),
            # XLA takes only 1 for true.
            [value == 1 for value in fields.get("rhs_reversal", [0] * len(sizes))],
            strict=True,
        )
        return Window(
            tuple(
                WindowDimension(size, stride, low, high, window_dilation, base_dilation, reversal)
                for size, stride, (low, high), window_dilation, base_dilation, reversal in rows
            )
        )

    def window_field(self, children: Children) -> Field:
        name, token = children
        if name != "pad=":
            return Field(name_of(name), _by_x(token), name)
        pads = []
        for part in token.split("x"):
            numbers = [integer(text) for text in part.split("_")]
            if len(numbers) != 2:
                raise TermError(
                    f"a window's pad must be low_high for each dimension, not {part}", token.start_pos
                )
            pads.append((numbers[0], numbers[1]))
        return Field("pad", pads, name)

    def dim_labels(self, children: Children) -> ConvolutionDimensionNumbers:
        token = children[0]
        operands, _, output = token.partition("->")
        lhs, _, rhs = operands.partition("_")
        parts = [
            _label_places(part, labels, token) for part, labels in ((lhs, "bf"), (rhs, "io"), (output, "bf"))
        ]
        counts = {len(spatial) for _, _, spatial in parts}
        if len(counts) != 1:
            raise TermError(f"{token} has different numbers of spatial dimensions", token.start_pos)
        return ConvolutionDimensionNumbers(*parts[0], *parts[1], *parts[2])

    def padding(self, children: Children) -> PaddingConfig:
        if children[0] is None:
            return PaddingConfig()
        dimensions = [[integer(text) for text in part.split("_")] for part in children[0].split("x")]
        return PaddingConfig(tuple(PaddingConfigDimension(*numbers) for numbers in dimensions))

    def slice_dimensions(self, children: Children) -> SliceDimensions:
        return SliceDimensions(tuple(child for child in children if child is not None))

    def slice_dimension(self, children: Children) -> SliceDimension:
        _, start, limit, stride = children
        return SliceDimension(integer(start), integer(limit), 1 if stride is None else integer(stride))

    # ---- sparsity

    def sparsity_config(self, children: Children) -> SparsityConfig:
        return SparsityConfig(**_last_fields(children))

    def sparsity_side(self, children: Children) -> Field:
        token, *parts = children
        fields = _last_fields(parts)
        numerator, denominator = fields.pop("sparsity", (0, 0))
        return Field(name_of(token), OperandSparsity(numerator, denominator, **fields), token)

    def sparsity_field(self, children: Children) -> Field:
        name, token = children
        numbers = _by_x(token)
        if name == "sparsity=" and len(numbers) != 2:
            raise TermError(f"sparsity= takes two numbers, kept x of, not {token}", token.start_pos)
        if name != "sparsity=" and len(numbers) != 1:
            raise TermError(f"{name} takes one number, not {token}", token.start_pos)
        return Field(name_of(name), numbers if name == "sparsity=" else numbers[0], name)

    def block_scaling_config(self, children: Children) -> BlockScalingConfig:
        return BlockScalingConfig(**_last_fields(children))

    def block_scaling_side(self, children: Children) -> Field:
        token, *parts = children
        fields = _last_fields(parts)
        return Field(name_of(token), OperandBlockScaling(**fields), token)

    def block_scaling_field(self, children: Children) -> Field:
        name, token = children
        numbers = _by_x(token)
        if name in ("strides=", "steps="):
            return Field(name_of(name), tuple(numbers), name)
        if len(numbers) != 1:
            raise TermError(f"{name} takes one number, not {token}", token.start_pos)
        return Field(name_of(name), numbers[0], name)

    def dot_sparsity(self, children: Children) -> DotSparsity:
        descriptors = []
        for part in children[0].split("_"):
            side, _, rest = part.partition(".")
            dimension, _, ratio = rest.partition("@")
            n, _, m = ratio.partition(":")
            descriptors.append(
                SparsityDescriptor("LR".index(side), integer(dimension), integer(n), integer(m))
            )
        return DotSparsity(tuple(descriptors))

    # ---- which buffers are shared

    def output_to_operand_aliasing(self, children: Children) -> OutputToOperandAliasing:
        return OutputToOperandAliasing(tuple(child for child in children if child is not None))

    def operand_alias(self, children: Children) -> OutputOperandAlias:
        return OutputOperandAlias(children[0], integer(children[1]), children[2])
