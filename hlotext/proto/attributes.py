"""The attributes of op lines to and from the fields of `HloInstructionProto`: one table, a row for each attribute.

Field numbers are those of `hlo.proto`; what an opcode makes of its fields is `HloInstruction::CreateFromProto`'s, and what it
writes the `ToProto` of its class.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from hlotext.ir.values import enums
from hlotext.ir.values.aliasing import OutputOperandAlias, OutputToOperandAliasing
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.sharding import Domain
from hlotext.ir.values.sparsity import OperandSparsity, SparsityConfig
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
    Window,
    WindowDimension,
)
from hlotext.proto import pool, shardings
from hlotext.proto.errors import ProtoError
from hlotext.proto.fields import Fields
from hlotext.proto.literals import encoded, field, read_literal, write_literal
from hlotext.proto.metadata import string_field
from hlotext.proto.pool import Classes, raw
from hlotext.proto.shapes import ShapeReader, ShapeWriter, decoded

if TYPE_CHECKING:
    from hlotext.ir.values.shape import Shape


class Tools:
    """What values need to be read or written."""

    def __init__(self, fill: bool = False) -> None:
        self.classes: Classes = pool.shallow()
        self.shapes = ShapeReader(self.classes)
        self.shape_bytes = ShapeWriter(self.classes)
        self.exact_shape_bytes = ShapeWriter(self.classes, is_filled=False)
        """Shapes without a layout stay so, as in the entry's signature where the compiler is to choose."""
        self.groups: dict[tuple[int, bytes], Any] = {}
        """Replica groups by their bytes: many collectives differ in nothing but their channel."""
        self.fill = fill
        """Whether elided literals are written as zeros."""
        self.inner_module_text: Callable[[bytes], str] = _no_module
        """A module inside of another's header as text, as XLA prints it between quotes; who reads and writes sets it."""
        self.inner_module_bytes: Callable[[str], bytes] = _no_module
        """The proto of such a text."""


def _no_module(_: Any) -> Any:
    raise ProtoError("a module holds modules that nothing reads or writes here")


Read: TypeAlias = Callable[[Fields, Tools], Any]
"""Gives the value, or None where there is none."""
Write: TypeAlias = Callable[[Any, Tools], bytes]
"""Gives the fields of a value."""

_WORDS: dict[type, tuple[str, Callable[[str], str]]] = {
    enums.CustomCallApiVersion: ("CustomCallApiVersion", str),
    enums.CustomCallSchedule: ("CustomCallSchedule", str),
    enums.FftType: ("FftType", str),
    enums.PaddingType: ("PaddingType", str),
    enums.TransposeA: ("Transpose", str),
    enums.ConvolutionKind: ("ConvolutionKind", lambda word: f"CONVOLUTION_KIND_{word.upper()}"),
    enums.Precision: ("Precision", str.upper),
    enums.PrecisionAlgorithm: ("Algorithm", lambda word: f"ALG_{word.upper()}"),
    enums.RandomAlgorithm: ("RandomAlgorithm", str.upper),
    enums.RandomDistribution: ("RandomDistribution", str.upper),
    enums.ResultAccuracyMode: ("ResultAccuracyMode", str.upper),
    enums.DebugLogMode: ("DebugLogModeProto", str.upper),
}
"""For each enumeration the schema's, and how a word of the text is spelt there."""
_MEMBERS = {
    kind: {pool.enum_numbers(name).get(spelling(str(member)), -1): member for member in kind}  # type: ignore[attr-defined]
    for kind, (name, spelling) in _WORDS.items()
}


def word(kind: type, number: int) -> Any:
    """The member of that number; a number that this release does not know is kept as it is."""
    return _MEMBERS[kind].get(number) or RawValue(str(number))


def number_of(value: Any) -> int:
    """The number of a member. Raises ProtoError for a word that has none."""
    if isinstance(value, RawValue):
        if value.text.isdigit():
            return int(value.text)
        raise ProtoError(f"no proto holds the value {value}")
    name, spelling = _WORDS[type(value)]
    return pool.enum_numbers(name)[spelling(str(value))]


# ---- what the values are made of


def varint(number: int, value: int) -> bytes:
    """A number as a field; nothing for 0, as proto3 writes it."""
    return encoded(number << 3) + encoded(value) if value else b""


def packed(number: int, values: tuple[int, ...]) -> bytes:
    """A list of numbers as a field; nothing for an empty one."""
    return field(number, b"".join(map(encoded, values))) if values else b""


def _window(f: Fields, t: Tools) -> Any:
    found = f.raw(15)
    return None if found is None else read_window(found, t.classes)


def read_window(found: bytes, classes: Classes) -> Window:
    """The window of a serialized `Window`."""
    names = [field.name for field in WindowDimension.__attrs_attrs__]
    parts = [decoded(classes, "WindowDimension", one) for one in decoded(classes, "Window", found).dimensions]
    return Window(tuple([WindowDimension(**{n: getattr(part, n) for n in names}) for part in parts]))


def _write_window(window: Window, t: Tools) -> bytes:
    names = [field.name for field in WindowDimension.__attrs_attrs__]
    parts = [raw(t.classes.WindowDimension(**{n: getattr(d, n) for n in names})) for d in window.dimensions]
    return field(15, raw(t.classes.Window(dimensions=parts)))


def _labels(f: Fields, t: Tools) -> Any:
    found = f.raw(16)
    if found is None:
        return None
    m = decoded(t.classes, "ConvolutionDimensionNumbers", found)
    values = {a.name: getattr(m, a.name) for a in ConvolutionDimensionNumbers.__attrs_attrs__}
    fields: dict[str, Any] = {
        n: value if isinstance(value, int) else tuple(value) for n, value in values.items()
    }
    return ConvolutionDimensionNumbers(**fields)


def _write_labels(value: Any, t: Tools) -> bytes:
    fields = {a.name: getattr(value, a.name) for a in ConvolutionDimensionNumbers.__attrs_attrs__}
    return field(16, raw(t.classes.ConvolutionDimensionNumbers(**fields)))


def _padding(f: Fields, t: Tools) -> Any:
    found = f.raw(21)
    if found is None:
        return None
    parts = [
        decoded(t.classes, "PaddingConfigDimension", one)
        for one in decoded(t.classes, "PaddingConfig", found).dimensions
    ]
    return PaddingConfig(
        tuple(
            [
                PaddingConfigDimension(p.edge_padding_low, p.edge_padding_high, p.interior_padding)
                for p in parts
            ]
        )
    )


def _write_padding(value: PaddingConfig, t: Tools) -> bytes:
    names = [field.name for field in PaddingConfigDimension.__attrs_attrs__]
    parts = [
        raw(t.classes.PaddingConfigDimension(**{n: getattr(d, n) for n in names})) for d in value.dimensions
    ]
    return field(21, raw(t.classes.PaddingConfig(dimensions=parts)))


def _slice(f: Fields, t: Tools) -> SliceDimensions:
    parts = [decoded(t.classes, "SliceDimensions", one) for one in f.raws(17)]
    return SliceDimensions(tuple([SliceDimension(p.start, p.limit, p.stride) for p in parts]))


def _write_slice(value: SliceDimensions, t: Tools) -> bytes:
    return b"".join(
        [
            field(17, raw(t.classes.SliceDimensions(start=d.start, limit=d.limit, stride=d.stride)))
            for d in value.dimensions
        ]
    )


def _aliasing(f: Fields, t: Tools) -> Any:
    parts = [decoded(t.classes, "OutputOperandAliasing", one) for one in f.raws(74)]
    if not parts:
        return None
    return OutputToOperandAliasing(
        tuple(
            [
                OutputOperandAlias(tuple(p.output_shape_index), p.operand_index, tuple(p.operand_shape_index))
                for p in parts
            ]
        )
    )


def _write_aliasing(value: OutputToOperandAliasing, t: Tools) -> bytes:
    return b"".join(
        [
            field(
                74,
                raw(
                    t.classes.OutputOperandAliasing(
                        output_shape_index=alias.output_shape_index,
                        operand_index=alias.operand_index,
                        operand_shape_index=alias.operand_shape_index,
                    )
                ),
            )
            for alias in value.aliases
        ]
    )


def _groups(f: Fields, t: Tools) -> Any:
    """The groups of a collective; the deprecated list where there is no other (`DeviceListFromProto`)."""
    for number, read in (
        (92, shardings.read_iota_groups),
        (93, shardings.read_mesh_groups),
        (87, shardings.read_group_list),
    ):
        raw = f.raw(number) if number in f or number == 87 else None
        if raw is None and (number != 87 or 49 in f):
            continue
        key = number, raw or b""
        known = t.groups.get(key)
        if known is None:
            known = t.groups[key] = read(raw or b"", t.classes)
        return known
    return shardings.read_groups(f.raws(49), t.classes)


def _write_groups(value: Any, t: Tools) -> bytes:
    if value == ():
        return field(87, b"")
    return field(*shardings.write_replica_groups(value, t.classes))


def _pairs(f: Fields, t: Tools) -> tuple[tuple[int, int], ...]:
    parts = [decoded(t.classes, "SourceTarget", one) for one in f.raws(52)]
    return tuple([(part.source, part.target) for part in parts])


def _write_pairs(value: Any, t: Tools) -> bytes:
    return b"".join([field(52, raw(t.classes.SourceTarget(source=a, target=b))) for a, b in value])


def _sparsity(f: Fields, t: Tools) -> Any:
    found = f.raw(98)
    if not found:
        return None
    m = decoded(t.classes, "SparsityConfig", found)
    sides: list[OperandSparsity | None] = []
    for side in ("lhs", "rhs"):
        if not m.HasField(side):
            sides.append(None)
            continue
        p = decoded(t.classes, "TensorSparsityConfig", getattr(m, side))
        sides.append(OperandSparsity(p.num_non_zero, p.block_size, p.dimension, p.stride))
    return SparsityConfig(*sides)


def _write_sparsity(value: SparsityConfig, t: Tools) -> bytes:
    m = t.classes.SparsityConfig()
    for name in ("lhs", "rhs"):
        side = getattr(value, name)
        if side is not None:
            made = t.classes.TensorSparsityConfig(
                num_non_zero=side.numerator,
                block_size=side.denominator,
                dimension=side.dimension,
                stride=side.stride,
            )
            setattr(m, name, raw(made))
    return field(98, raw(m))


def _precisions(f: Fields, t: Tools) -> Any:
    found = f.raw(51)
    if found is None:
        return None
    values = decoded(t.classes, "PrecisionConfig", found).operand_precision
    return tuple([word(enums.Precision, number) for number in values])


def _precision_algorithm(f: Fields, t: Tools) -> Any:
    found = f.raw(51)
    if found is None:
        return None
    return word(enums.PrecisionAlgorithm, decoded(t.classes, "PrecisionConfig", found).algorithm)


def _dims(number: int, message: str, name: str, inner: int | None = None) -> Read:
    """A list of dimensions inside of a message of its own, or of one inside of that."""

    def read(f: Fields, t: Tools) -> Any:
        found = f.raw(number)
        if found is None and inner is not None and (outer := f.raw(inner)) is not None:
            found = decoded(t.classes, "RaggedDotDimensionNumbers", outer).dot_dimension_numbers
        if found is None:
            return None
        value = getattr(decoded(t.classes, message, found), name)
        return value if isinstance(value, int) else tuple(value)

    return read


def _option(number: int, message: str, name: str) -> Read:
    def read(f: Fields, t: Tools) -> Any:
        return getattr(decoded(t.classes, message, f.raw(number) or b""), name)

    return read


def _domain(f: Fields, t: Tools) -> Any:
    exit, entry = f.raw(54), f.raw(55)  # `domain_entry_sharding` is the operand's side
    if entry is None or exit is None:
        raise ProtoError("a domain has no sharding on one side")
    return Domain(
        "sharding", shardings.read_sharding(entry, t.classes), shardings.read_sharding(exit, t.classes)
    )


def _constraints(f: Fields, t: Tools) -> Any:
    return tuple([t.shapes.shape(one) for one in f.raws(57)]) if f.flag(56) else None


def _write_constraints(value: tuple[Shape, ...], t: Tools) -> bytes:
    return varint(56, 1) + b"".join([field(57, t.shape_bytes.shape(shape)) for shape in value])


def _literal(f: Fields, t: Tools) -> Any:
    found = f.raw(8)
    if found is None:
        return None
    shape = decoded(t.classes, "LiteralProto", found)
    return read_literal(found, t.shapes.shape(shape.shape), t.shapes)


def _replication(f: Fields, t: Tools) -> Any:
    found = f.raw(61)
    if not found:
        return None
    return tuple(decoded(t.classes, "ParameterReplication", found).replicated_at_leaf_buffers) or None


def _tri_state(f: Fields, t: Tools) -> bool:
    return f.number(96) == 1


def _write_replication(value: Any, t: Tools) -> bytes:
    values = value if isinstance(value, tuple) else (value,)
    return field(61, raw(t.classes.ParameterReplication(replicated_at_leaf_buffers=values)))


def _prefetch(f: Fields, t: Tools) -> int | None:
    return f.number(80) if 80 in f else 0 if f.flag(73) else None


# ---- rows


def _number(number: int, default: int = 0) -> tuple[Read, Write]:
    return lambda f, t: f.number(number, default), lambda value, t: varint(number, int(value))


def _flag(number: int) -> tuple[Read, Write]:
    return lambda f, t: f.flag(number), lambda value, t: varint(number, int(value))


def _list(number: int) -> tuple[Read, Write]:
    return lambda f, t: f.numbers(number), lambda value, t: packed(number, value)


def _first(number: int) -> tuple[Read, Write]:
    def read(f: Fields, t: Tools) -> Any:
        values = f.numbers(number)
        return values[0] if values else None

    return read, lambda value, t: packed(number, (value,))


def _word(number: int, kind: type) -> tuple[Read, Write]:
    return lambda f, t: word(kind, f.number(number)), lambda value, t: varint(number, number_of(value))


def _spelt(number: int, kind: Any) -> tuple[Read, Write]:
    """A word that the proto holds as text."""

    def read(f: Fields, t: Tools) -> Any:
        found = f.text(number)
        if not found:
            return None
        return kind(found) if found in kind.__members__.values() else RawValue(found)

    return read, lambda value, t: string_field(number, str(value))


def _string(number: int) -> tuple[Read, Write]:
    return lambda f, t: f.text(number) or None, lambda value, t: string_field(number, value)


def _part(read: Read) -> tuple[Read, None]:
    """An attribute that shares a message with others; `_SHARED` writes them."""
    return read, None


ATTRIBUTES: dict[str, tuple[Read, Write | None]] = {
    "dimensions": _list(14),
    "index": _number(13),
    "inferred_dimension": _first(14),
    "iota_dimension": _first(14),
    "delta": _number(66),
    "feature_index": _number(25),
    "epsilon": (lambda f, t: f.single(24), lambda value, t: b"\xc5\x01" + struct.pack("<f", value)),
    "exponent_bits": _number(18),
    "mantissa_bits": _number(19),
    "k": _number(81),
    "largest": _flag(85),
    "is_stable": _flag(60),
    "dynamic_slice_sizes": _list(20),
    "slice": (_slice, _write_slice),
    "padding": (_padding, _write_padding),
    "fft_length": _list(32),
    "fft_type": _word(31, enums.FftType),
    "direction": _spelt(63, enums.ComparisonDirection),
    "type": _spelt(72, enums.ComparisonType),
    "distribution": _word(23, enums.RandomDistribution),
    "lower": _part(_option(59, "TriangularSolveOptions", "lower")),
    "left_side": _part(_option(59, "TriangularSolveOptions", "left_side")),
    "unit_diagonal": _part(_option(59, "TriangularSolveOptions", "unit_diagonal")),
    "transpose_a": _part(
        lambda f, t: word(enums.TransposeA, _option(59, "TriangularSolveOptions", "transpose_a")(f, t))
    ),
    "num_carries": _number(95),
    "is_reverse": _flag(94),
    "is_associative": (_tri_state, lambda value, t: varint(96, 1 if value else 2)),
    **{
        name: _part(_dims(33, "GatherDimensionNumbers", name))
        for name in (
            "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
            "start_indices_batching_dims", "index_vector_dim",
        )
    },
    **{
        name: _part(_dims(48, "ScatterDimensionNumbers", name))
        for name in (
            "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
            "scatter_indices_batching_dims",
        )
    },
    "slice_sizes": _list(34),
    "indices_are_sorted": _flag(67),
    "unique_indices": _flag(69),
    **{
        name: _part(_dims(30, "DotDimensionNumbers", f"{name[:-1]}ensions", 90))
        for name in ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
    },
    "lhs_ragged_dims": _part(_dims(90, "RaggedDotDimensionNumbers", "lhs_ragged_dimensions")),
    "rhs_group_dims": _part(_dims(90, "RaggedDotDimensionNumbers", "rhs_group_dimensions")),
    "operand_precision": _part(_precisions),
    "algorithm": _part(_precision_algorithm),
    "window": (_window, _write_window),
    "dim_labels": (_labels, _write_labels),
    "feature_group_count": (lambda f, t: max(1, f.number(50, 1)), _number(50)[1]),
    "batch_group_count": (lambda f, t: max(1, f.number(58, 1)), _number(58)[1]),
    "convolution_kind": _word(97, enums.ConvolutionKind),
    "conv_kind": (lambda f, t: None, _word(97, enums.ConvolutionKind)[1]),
    "sparsity_config": (_sparsity, _write_sparsity),
    "channel_id": (lambda f, t: f.number(26) if f.number(26) > 0 else None, _number(26)[1]),
    "replica_groups": (_groups, _write_groups),
    "use_global_device_ids": _flag(71),
    "constrain_layout": _flag(56),
    "has_dynamic_root": (lambda f, t: f.flag(100) or None, _flag(100)[1]),
    "source_target_pairs": (_pairs, _write_pairs),
    "is_host_transfer": _flag(47),
    "cross_program_prefetch_index": (_prefetch, lambda value, t: encoded(80 << 3) + encoded(value)),
    "is_cross_program_prefetch": (lambda f, t: None, _flag(73)[1]),
    "async_execution_thread": (
        lambda f, t: f.text(79) or "main", lambda value, t: string_field(79, "" if value == "main" else value)
    ),
    "kind": _spelt(11, enums.FusionKind),
    "output_to_operand_aliasing": (_aliasing, _write_aliasing),
    "custom_call_target": (lambda f, t: f.text(28), _string(28)[1]),
    "custom_call_has_side_effect": _flag(65),
    "api_version": _word(77, enums.CustomCallApiVersion),
    "schedule": _word(76, enums.CustomCallSchedule),
    "padding_type": _word(75, enums.PaddingType),
    "operand_layout_constraints": (_constraints, _write_constraints),
    "literal": (_literal, lambda value, t: field(8, write_literal(value, t.shape_bytes, t.classes, t.fill))),
    "infeed_config": (lambda f, t: _config(f.last(27)), lambda value, t: field(27, _bytes(value))),
    "outfeed_config": (lambda f, t: _config(f.last(22)), lambda value, t: field(22, _bytes(value))),
    "outfeed_shape": (
        lambda f, t: t.shapes.shape(f.raw(29) or b""), lambda value, t: field(29, t.shape_bytes.shape(value))
    ),
    "parameter_replication": (_replication, _write_replication),
    "domain": (
        _domain,
        lambda value, t: field(54, shardings.write_sharding(value.exit, t.classes))
        + field(55, shardings.write_sharding(value.entry, t.classes)),
    ),
    "is_composite": _flag(89),
}  # fmt: skip
"""How each attribute is read and written; None for one that shares a message with others."""


def _channel(f: Fields, t: Tools) -> int | None:
    """`all_reduce_id` is the deprecated name of an all-reduce's channel."""
    found = f.number(45) if f.number(45) > 0 else f.number(26)
    return found if found > 0 else None


SPECIAL: dict[tuple[str, str], tuple[Read, Write | None]] = {
    ("cholesky", "lower"): _part(_option(62, "CholeskyOptions", "lower")),
    ("scatter", "index_vector_dim"): _part(_dims(48, "ScatterDimensionNumbers", "index_vector_dim")),
    ("rng-bit-generator", "algorithm"): _word(70, enums.RandomAlgorithm),
    ("collective-permute", "slice_sizes"): (lambda f, t: None, lambda value, t: packed(20, _flat(value))),
    ("collective-permute-start", "slice_sizes"): (
        lambda f, t: None,
        lambda value, t: packed(20, _flat(value)),
    ),
    **{
        (opcode, "channel_id"): (_channel, _number(26)[1])
        for opcode in ("all-reduce", "all-reduce-start", "reduce-scatter")
    },
    ("map", "dimensions"): (lambda f, t: f.numbers(14) or None, _list(14)[1]),
    ("all-to-all", "dimensions"): (lambda f, t: f.numbers(14) or None, _list(14)[1]),
    ("topk", "is_stable"): (lambda f, t: None, _flag(60)[1]),
    ("reduce-window", "window"): (lambda f, t: _window(f, t) or Window(), _write_window),
    ("ragged-all-to-all", "dimensions"): (lambda f, t: None, lambda value, t: b""),
}
"""Attributes that one opcode keeps in its own way, by opcode and name."""


def _flat(value: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple([n for item in value for n in (item if isinstance(item, tuple) else (item,))])


def _config(found: bytes) -> str | None:
    return found.decode("utf-8", "surrogateescape") or None


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


# ---- messages that several attributes make up


def _message(
    number: int, name: str, **names: str
) -> tuple[frozenset[str], Callable[[Mapping[str, Any], Tools], bytes]]:
    """A message of lists and numbers: its fields, with the attribute that each is."""

    def write(given: Mapping[str, Any], t: Tools) -> bytes:
        values = {field_name: given[name] for field_name, name in names.items() if name in given}
        return field(number, raw(getattr(t.classes, name)(**values)))

    return frozenset(names.values()), write


def _write_precision(given: Mapping[str, Any], t: Tools) -> bytes:
    m = t.classes.PrecisionConfig()
    m.operand_precision.extend(map(number_of, given.get("operand_precision", ())))
    if "algorithm" in given:
        m.algorithm = number_of(given["algorithm"])
    return field(51, raw(m))


def _write_ragged(given: Mapping[str, Any], t: Tools) -> bytes:
    inner = t.classes.DotDimensionNumbers(
        **{f"{name[:-1]}ensions": given.get(name, ()) for name in _DOT_DIMS}
    )
    m = t.classes.RaggedDotDimensionNumbers(
        dot_dimension_numbers=raw(inner),
        lhs_ragged_dimensions=given.get("lhs_ragged_dims", ()),
        rhs_group_dimensions=given.get("rhs_group_dims", ()),
    )
    return field(90, raw(m))


def _write_triangular(given: Mapping[str, Any], t: Tools) -> bytes:
    m = t.classes.TriangularSolveOptions(
        **{name: given.get(name, False) for name in ("left_side", "lower", "unit_diagonal")}
    )
    if "transpose_a" in given:
        m.transpose_a = number_of(given["transpose_a"])
    return field(59, raw(m))


_DOT_DIMS = ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
_GATHER = (
    "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims", "start_indices_batching_dims",
    "index_vector_dim",
)  # fmt: skip
_SCATTER = (
    "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
    "scatter_indices_batching_dims", "index_vector_dim",
)  # fmt: skip

SHARED: dict[str, list[tuple[frozenset[str], Callable[[Mapping[str, Any], Tools], bytes]]]] = {
    "gather": [_message(33, "GatherDimensionNumbers", **{name: name for name in _GATHER})],
    "scatter": [_message(48, "ScatterDimensionNumbers", **{name: name for name in _SCATTER})],
    "cholesky": [_message(62, "CholeskyOptions", lower="lower")],
    "triangular-solve": [(frozenset(), _write_triangular)],
    "ragged-dot": [(frozenset(), _write_ragged), (frozenset(), _write_precision)],
    **{
        opcode: [
            _message(30, "DotDimensionNumbers", **{f"{name[:-1]}ensions": name for name in _DOT_DIMS}),
            (frozenset(), _write_precision),
        ]
        for opcode in ("dot", "scaled-dot")
    },
    "convolution": [(frozenset(), _write_precision)],
    "custom-call": [(frozenset(), _write_precision)],
}
"""For each opcode with such messages: which attributes they hold, and what writes them."""
