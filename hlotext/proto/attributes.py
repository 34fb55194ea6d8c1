"""The attributes of op lines to and from the fields of `HloInstructionProto`: one table, a row for each attribute.

Field numbers are those of `hlo.proto`; what an opcode makes of its fields is `HloInstruction::CreateFromProto`'s, and what it
writes the `ToProto` of its class.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hlotext.ir.tables import traits
from hlotext.ir.values import enums
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.window import (
    Window,
)
from hlotext.proto import shardings
from hlotext.proto.fields import Fields
from hlotext.proto.literals import encoded, field, write_literal
from hlotext.proto.metadata import string_field
from hlotext.proto.pool import raw

if TYPE_CHECKING:
    pass


from hlotext.proto import values
from hlotext.proto.codec import Read, Tools, Write, number_of, packed, varint, word


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


def _write_channel(value: int, t: Tools) -> bytes:
    """Numbers that are not above 0 are read as none."""
    return varint(26, value) if value > 0 else b""


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
    "slice": (values.slice_dimensions, values.write_slice),
    "padding": (values.padding, values.write_padding),
    "fft_length": _list(32),
    "fft_type": _word(31, enums.FftType),
    "direction": _spelt(63, enums.ComparisonDirection),
    "order": _spelt(102, enums.ComparisonOrder),
    "type": _spelt(72, enums.ComparisonType),
    "distribution": _word(23, enums.RandomDistribution),
    "lower": _part(values.option(59, "TriangularSolveOptions", "lower")),
    "left_side": _part(values.option(59, "TriangularSolveOptions", "left_side")),
    "unit_diagonal": _part(values.option(59, "TriangularSolveOptions", "unit_diagonal")),
    "transpose_a": _part(
        lambda f, t: word(enums.TransposeA, values.option(59, "TriangularSolveOptions", "transpose_a")(f, t))
    ),
    "num_carries": _number(95),
    "is_reverse": _flag(94),
    "is_associative": (values.tri_state, lambda value, t: varint(96, 1 if value else 2)),
    **{
        name: _part(values.dims(33, "GatherDimensionNumbers", name))
        for name in (
            "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
            "start_indices_batching_dims", "index_vector_dim",
        )
    },
    **{
        name: _part(values.dims(48, "ScatterDimensionNumbers", name))
        for name in (
            "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "input_batching_dims",
            "scatter_indices_batching_dims",
        )
    },
    "slice_sizes": _list(34),
    "indices_are_sorted": _flag(67),
    "unique_indices": _flag(69),
    **{
        name: _part(values.dims(30, "DotDimensionNumbers", f"{name[:-1]}ensions", 90))
        for name in ("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims")
    },
    "lhs_ragged_dims": _part(values.dims(90, "RaggedDotDimensionNumbers", "lhs_ragged_dimensions")),
    "rhs_group_dims": _part(values.dims(90, "RaggedDotDimensionNumbers", "rhs_group_dimensions")),
    "operand_precision": _part(values.precisions),
    "algorithm": _part(values.precision_algorithm),
    "window": (values.window, values.write_window),
    "dim_labels": (values.labels, values.write_labels),
    "feature_group_count": (lambda f, t: max(1, f.number(50, 1)), _number(50)[1]),
    "batch_group_count": (lambda f, t: max(1, f.number(58, 1)), _number(58)[1]),
    "convolution_kind": _word(97, enums.ConvolutionKind),
    "sparsity_config": (values.sparsity, values.write_sparsity),
    "block_scaling_config": (values.block_scaling, values.write_block_scaling),
    "channel_id": (lambda f, t: f.number(26) if f.number(26) > 0 else None, _write_channel),
    "replica_groups": (values.groups, values.write_groups),
    "use_global_device_ids": _flag(71),
    "constrain_layout": _flag(56),
    "has_dynamic_root": _flag(100),
    "source_target_pairs": (values.pairs, values.write_pairs),
    "is_host_transfer": _flag(47),
    "cross_program_prefetch_index": (values.prefetch, lambda value, t: encoded(80 << 3) + encoded(value)),
    "is_cross_program_prefetch": (lambda f, t: None, _flag(73)[1]),
    "async_execution_thread": (
        lambda f, t: f.text(79) or "main", lambda value, t: string_field(79, "" if value == "main" else value)
    ),
    "kind": _spelt(11, enums.FusionKind),
    "output_to_operand_aliasing": (values.aliasing, values.write_aliasing),
    "custom_call_target": (lambda f, t: f.text(28), _string(28)[1]),
    "custom_call_has_side_effect": _flag(65),
    "api_version": _word(77, enums.CustomCallApiVersion),
    "schedule": _word(76, enums.CustomCallSchedule),
    "padding_type": _word(75, enums.PaddingType),
    "operand_layout_constraints": (values.constraints, values.write_constraints),
    "literal": (values.literal, lambda value, t: field(8, write_literal(value, t.shape_bytes, t.classes, t.fill))),
    "infeed_config": (lambda f, t: _config(f.last(27)), lambda value, t: field(27, _bytes(value))),
    "outfeed_config": (lambda f, t: _config(f.last(22)), lambda value, t: field(22, _bytes(value))),
    "outfeed_shape": (
        lambda f, t: t.shapes.shape(f.raw(29) or b""), lambda value, t: field(29, t.shape_bytes.shape(value))
    ),
    "parameter_replication": (values.replication, values.write_replication),
    "domain": (
        values.domain,
        lambda value, t: field(54, shardings.write_sharding(value.exit, t.classes))
        + field(55, shardings.write_sharding(value.entry, t.classes)),
    ),
    "is_composite": _flag(89),
}  # fmt: skip
"""Reader and writer of each attribute; None for one that shares a message with others."""


def _channel(f: Fields, t: Tools) -> int | None:
    """`all_reduce_id` is the deprecated name of an all-reduce's channel."""
    found = f.number(45) if f.number(45) > 0 else f.number(26)
    return found if found > 0 else None


SPECIAL: dict[tuple[str, str], tuple[Read, Write | None]] = {
    ("cholesky", "lower"): _part(values.option(62, "CholeskyOptions", "lower")),
    ("scatter", "index_vector_dim"): _part(values.dims(48, "ScatterDimensionNumbers", "index_vector_dim")),
    ("rng-bit-generator", "algorithm"): _word(70, enums.RandomAlgorithm),
    ("collective-permute", "slice_sizes"): (lambda f, t: None, lambda value, t: packed(20, _flat(value))),
    ("collective-permute-start", "slice_sizes"): (
        lambda f, t: None,
        lambda value, t: packed(20, _flat(value)),
    ),
    **{
        (opcode, "channel_id"): (_channel, _write_channel)
        for opcode in sorted(traits.REDUCES_ACROSS_DEVICES - {"collective-reduce"})
    },
    ("map", "dimensions"): (lambda f, t: f.numbers(14) or None, _list(14)[1]),
    ("all-to-all", "dimensions"): (lambda f, t: f.numbers(14) or None, _list(14)[1]),
    ("topk", "is_stable"): _flag(60),
    ("shuffle", "mode"): (values.shuffle_mode, lambda value, t: b""),
    ("shuffle", "shifts"): (values.shifts, values.write_shifts),
    ("reduce-window", "window"): (lambda f, t: values.window(f, t) or Window(), values.write_window),
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
    numbers = [number_of(word) for word in given.get("operand_precision", ())]
    if any(numbers):
        m.operand_precision.extend(numbers)
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
