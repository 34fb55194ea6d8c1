"""Values of attributes to and from the messages that hold them: windows, convolutions, paddings, groups, options and so on.

Each function reads from the fields of an instruction (None if there is nothing), or gives the fields of a value. Numbers
are those of `hlo.proto`; what is read is what `HloInstruction::CreateFromProto` makes of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hlotext.ir.values import enums
from hlotext.ir.values.aliasing import OutputOperandAlias, OutputToOperandAliasing
from hlotext.ir.values.convolution import ConvolutionDimensionNumbers
from hlotext.ir.values.sharding import Domain
from hlotext.ir.values.sparsity import (
    BlockScalingConfig,
    OperandBlockScaling,
    OperandSparsity,
    SparsityConfig,
)
from hlotext.ir.values.window import (
    PaddingConfig,
    PaddingConfigDimension,
    SliceDimension,
    SliceDimensions,
    Window,
    WindowDimension,
)
from hlotext.proto import shardings
from hlotext.proto.errors import ProtoError
from hlotext.proto.fields import Fields
from hlotext.proto.literals import field, read_literal
from hlotext.proto.pool import Classes, raw
from hlotext.proto.shapes import decoded
from hlotext.syntax.source import limits

if TYPE_CHECKING:
    from hlotext.ir.values.shape import Shape


from hlotext.proto.codec import Read, Tools, varint, word


def window(f: Fields, t: Tools) -> Any:
    found = f.raw(15)
    return None if found is None else read_window(found, t.classes)


def read_window(found: bytes, classes: Classes) -> Window:
    """Parses a serialized `Window`. Raises ProtoError if it is invalid."""
    names = [field.name for field in WindowDimension.__attrs_attrs__]
    parts = [decoded(classes, "WindowDimension", one) for one in decoded(classes, "Window", found).dimensions]
    return Window(tuple([WindowDimension(**{n: getattr(part, n) for n in names}) for part in parts]))


def write_window(window: Window, t: Tools) -> bytes:
    names = [field.name for field in WindowDimension.__attrs_attrs__]
    parts = [raw(t.classes.WindowDimension(**{n: getattr(d, n) for n in names})) for d in window.dimensions]
    return field(15, raw(t.classes.Window(dimensions=parts)))


def labels(f: Fields, t: Tools) -> Any:
    message = f.raw(16)
    if message is None:
        return None
    m = decoded(t.classes, "ConvolutionDimensionNumbers", message)
    values = {a.name: getattr(m, a.name) for a in ConvolutionDimensionNumbers.__attrs_attrs__}
    fields: dict[str, Any] = {
        n: value if isinstance(value, int) else tuple(value) for n, value in values.items()
    }
    found = ConvolutionDimensionNumbers(**fields)
    odd = next((n for n in found.numbers if not 0 <= n < limits.MAX_DIMENSIONS), None)
    if odd is not None:  # the text has a letter for each dimension up to the last
        raise ProtoError(f"a convolution has no dimension {odd}")
    return found


def write_labels(value: Any, t: Tools) -> bytes:
    fields = {a.name: getattr(value, a.name) for a in ConvolutionDimensionNumbers.__attrs_attrs__}
    return field(16, raw(t.classes.ConvolutionDimensionNumbers(**fields)))


def padding(f: Fields, t: Tools) -> Any:
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


def write_padding(value: PaddingConfig, t: Tools) -> bytes:
    names = [field.name for field in PaddingConfigDimension.__attrs_attrs__]
    parts = [
        raw(t.classes.PaddingConfigDimension(**{n: getattr(d, n) for n in names})) for d in value.dimensions
    ]
    return field(21, raw(t.classes.PaddingConfig(dimensions=parts)))


def slice_dimensions(f: Fields, t: Tools) -> SliceDimensions:
    parts = [decoded(t.classes, "SliceDimensions", one) for one in f.raws(17)]
    return SliceDimensions(tuple([SliceDimension(p.start, p.limit, p.stride) for p in parts]))


def write_slice(value: SliceDimensions, t: Tools) -> bytes:
    return b"".join(
        [
            field(17, raw(t.classes.SliceDimensions(start=d.start, limit=d.limit, stride=d.stride)))
            for d in value.dimensions
        ]
    )


def aliasing(f: Fields, t: Tools) -> Any:
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


def write_aliasing(value: OutputToOperandAliasing, t: Tools) -> bytes:
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


def groups(f: Fields, t: Tools) -> Any:
    """Returns the groups of a collective, from the deprecated list if there is no other (`DeviceListFromProto`)."""
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


def write_groups(value: Any, t: Tools) -> bytes:
    if value == ():
        return field(87, b"")
    return field(*shardings.write_replica_groups(value, t.classes))


def pairs(f: Fields, t: Tools) -> tuple[tuple[int, int], ...]:
    parts = [decoded(t.classes, "SourceTarget", one) for one in f.raws(52)]
    return tuple([(part.source, part.target) for part in parts])


def write_pairs(value: Any, t: Tools) -> bytes:
    return b"".join([field(52, raw(t.classes.SourceTarget(source=a, target=b))) for a, b in value])


def sparsity(f: Fields, t: Tools) -> Any:
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
        sides.append(OperandSparsity(p.num_non_zero, p.block_size, p.dimension, p.stride, p.idx or None))
    return SparsityConfig(*sides)


def write_sparsity(value: SparsityConfig, t: Tools) -> bytes:
    m = t.classes.SparsityConfig()
    for name in ("lhs", "rhs"):
        side = getattr(value, name)
        if side is not None:
            made = t.classes.TensorSparsityConfig(
                num_non_zero=side.numerator,
                block_size=side.denominator,
                dimension=side.dimension,
                stride=side.stride,
                idx=side.idx or 0,
            )
            setattr(m, name, raw(made))
    return field(98, raw(m))


def block_scaling(f: Fields, t: Tools) -> Any:
    found = f.raw(101)
    if not found:
        return None
    m = decoded(t.classes, "BlockScalingConfig", found)
    sides: list[OperandBlockScaling | None] = []
    for side in ("lhs", "rhs"):
        if not m.HasField(side):
            sides.append(None)
            continue
        p = decoded(t.classes, "TensorBlockScalingConfig", getattr(m, side))
        zero = p.zero_idx if p.HasField("zero_idx") else None
        sides.append(OperandBlockScaling(p.scale_idx, zero, tuple(p.strides), tuple(p.steps)))
    return BlockScalingConfig(*sides)


def write_block_scaling(value: BlockScalingConfig, t: Tools) -> bytes:
    m = t.classes.BlockScalingConfig()
    for name in ("lhs", "rhs"):
        side = getattr(value, name)
        if side is not None:
            made = t.classes.TensorBlockScalingConfig(
                scale_idx=side.scale_idx, strides=side.strides, steps=side.steps
            )
            if side.zero_idx is not None:
                made.zero_idx = side.zero_idx
            setattr(m, name, raw(made))
    return field(101, raw(m))


def _rotation(f: Fields, t: Tools) -> Any:
    found = f.raw(103)
    m = decoded(t.classes, "ShuffleMode", found) if found else None
    return decoded(t.classes, "RotateShuffle", m.rotate) if m is not None and m.HasField("rotate") else None


def shuffle_mode(f: Fields, t: Tools) -> Any:
    return None if _rotation(f, t) is None else enums.ShuffleMode.ROTATE


def shifts(f: Fields, t: Tools) -> Any:
    rotation = _rotation(f, t)
    return None if rotation is None else tuple(rotation.shifts)


def write_shifts(value: Any, t: Tools) -> bytes:
    return field(103, raw(t.classes.ShuffleMode(rotate=raw(t.classes.RotateShuffle(shifts=value)))))


def precisions(f: Fields, t: Tools) -> Any:
    found = f.raw(51)
    if found is None:
        return None
    values = decoded(t.classes, "PrecisionConfig", found).operand_precision
    return tuple([word(enums.Precision, number) for number in values])


def precision_algorithm(f: Fields, t: Tools) -> Any:
    found = f.raw(51)
    if found is None:
        return None
    return word(enums.PrecisionAlgorithm, decoded(t.classes, "PrecisionConfig", found).algorithm)


def dims(number: int, message: str, name: str, inner: int | None = None) -> Read:
    """Returns a reader of a list of dimensions in a submessage, which may be nested in another one."""

    def read(f: Fields, t: Tools) -> Any:
        found = f.raw(number)
        if found is None and inner is not None and (outer := f.raw(inner)) is not None:
            found = decoded(t.classes, "RaggedDotDimensionNumbers", outer).dot_dimension_numbers
        if found is None:
            return None
        value = getattr(decoded(t.classes, message, found), name)
        return value if isinstance(value, int) else tuple(value)

    return read


def option(number: int, message: str, name: str) -> Read:
    def read(f: Fields, t: Tools) -> Any:
        return getattr(decoded(t.classes, message, f.raw(number) or b""), name)

    return read


def domain(f: Fields, t: Tools) -> Any:
    exit, entry = f.raw(54), f.raw(55)  # `domain_entry_sharding` is the operand's side
    if entry is None or exit is None:
        raise ProtoError("a domain has no sharding on one side")
    return Domain(
        "sharding", shardings.read_sharding(entry, t.classes), shardings.read_sharding(exit, t.classes)
    )


def constraints(f: Fields, t: Tools) -> Any:
    return tuple([t.shapes.shape(one) for one in f.raws(57)]) if f.flag(56) else None


def write_constraints(value: tuple[Shape, ...], t: Tools) -> bytes:
    return varint(56, 1) + b"".join([field(57, t.shape_bytes.shape(shape)) for shape in value])


def literal(f: Fields, t: Tools) -> Any:
    found = f.raw(8)
    if found is None:
        return None
    shape = decoded(t.classes, "LiteralProto", found)
    return read_literal(found, t.shapes.shape(shape.shape), t.shapes)


def replication(f: Fields, t: Tools) -> Any:
    found = f.raw(61)
    if not found:
        return None
    return tuple(decoded(t.classes, "ParameterReplication", found).replicated_at_leaf_buffers) or None


def tri_state(f: Fields, t: Tools) -> bool:
    return f.number(96) == 1


def write_replication(value: Any, t: Tools) -> bytes:
    values = value if isinstance(value, tuple) else (value,)
    return field(61, raw(t.classes.ParameterReplication(replicated_at_leaf_buffers=values)))


def prefetch(f: Fields, t: Tools) -> int | None:
    return f.number(80) if 80 in f else 0 if f.flag(73) else None
