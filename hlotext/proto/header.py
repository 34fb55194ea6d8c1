"""Converts a module's header and tables to and from the fields of `HloModuleProto`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
)
from hlotext.ir.values.configs import BackendConfig
from hlotext.ir.values.enums import AliasKind, DebugLogMode
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.ir.values.module_attributes import (
    DebugAttribute,
    DebugAttributes,
    DebugEntry,
    RecoveryEntry,
    RecoveryTable,
)
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.shape import ComputationLayout
from hlotext.proto.codec import Tools, number_of, word
from hlotext.proto.common import read_array, read_frontend, write_array, write_frontend
from hlotext.proto.errors import ProtoError
from hlotext.proto.literals import field
from hlotext.proto.pool import raw as raw_bytes
from hlotext.proto.shapes import decoded

_SHAPE, _ALIAS, _FRAMES, _DONOR, _FRONTEND, _RECOVERY, _DEBUG, _CONFIG = 4, 8, 17, 18, 19, 20, 24, 25
MESSAGES = frozenset({1, 4, 7, 8, 17, 18, 19, 20, 22, 24, 25})
"""Fields of `HloModuleProto` that are read here or elsewhere, and are bytes."""


def read(module: Module, fields: dict[int, list[Any]], tools: Tools, is_scheduled: bool) -> None:
    """Reads the header attributes into a module. Raises ProtoError if they are invalid."""
    attributes: dict[str, Any] = {}
    if is_scheduled:
        attributes["is_scheduled"] = True
    for number, name, reader in _READERS:
        if number not in fields:
            continue
        values = fields[number] if number == _DEBUG else [b"".join(fields[number])]
        try:
            value = reader(values, tools)
        except ProtoError as error:
            raise ProtoError(error.bare_message, name) from None
        if value is not None:
            attributes[name] = value
    module._attributes = attributes
    if _FRAMES in fields:
        try:
            module._stack_frames = read_frames(b"".join(fields[_FRAMES]), tools)
        except ProtoError as error:
            raise ProtoError(error.bare_message, "stack_frame_index") from None


def _config(values: list[bytes], tools: Tools) -> BackendConfig | None:
    text = values[0].decode("utf-8", "surrogateescape")
    return BackendConfig(text) if text else None


def _aliases(values: list[bytes], tools: Tools) -> InputOutputAliasConfig | None:
    entries = []
    for raw in decoded(tools.classes, "HloInputOutputAliasProto", values[0]).entries:
        m = decoded(tools.classes, "AliasEntryProto", raw)
        if m.kind not in (1, 2):
            raise ProtoError("an alias has no kind")
        kind = AliasKind.MUST if m.kind == 2 else AliasKind.MAY
        entries.append(
            InputOutputAlias(
                tuple(m.output_shape_index), m.parameter_number, tuple(m.parameter_shape_index), kind
            )
        )
    return InputOutputAliasConfig(tuple(entries)).canonical() if entries else None


def _donors(values: list[bytes], tools: Tools) -> BufferDonorConfig | None:
    entries = []
    for raw in decoded(tools.classes, "HloBufferDonorProto", values[0]).entries:
        m = decoded(tools.classes, "BufferDonorEntryProto", raw)
        entries.append(BufferDonor(m.parameter_number, tuple(m.parameter_shape_index)))
    return BufferDonorConfig(tuple(entries)).canonical() if entries else None


def _debug(values: list[bytes], tools: Tools) -> DebugAttributes | None:
    entries = []
    for raw in values:
        m = decoded(tools.classes, "DebugAttributeTableEntryProto", raw)
        found = []
        for one in m.debug_attributes:
            part = decoded(tools.classes, "DebugAttributesProto", one)
            mode = word(DebugLogMode, part.log_mode) if part.log_mode else None
            if mode is not None and not isinstance(mode, DebugLogMode):
                mode = None  # as XLA reads it
            found.append(DebugAttribute(mode, part.callback_id, part.partitioned, part.op_id))
        if found:
            entries.append(DebugEntry(read_array(m.original_array, tools), tuple(found)))
    return DebugAttributes(tuple(entries)) if entries else None


def _recovery(values: list[bytes], tools: Tools) -> RecoveryTable | None:
    entries = []
    for raw in decoded(tools.classes, "OriginalValueRecoveryTableProto", values[0]).entries:
        m = decoded(tools.classes, "RecoveryEntry", raw)
        inner = tools.inner_module_text(m.recovery_module) if m.HasField("recovery_module") else None
        old, new = read_array(m.old_original_array, tools), read_array(m.new_original_array, tools)
        entries.append(RecoveryEntry(old, new, inner))
    return RecoveryTable(tuple(entries)) if entries else None


_Reader = Callable[[list[bytes], Tools], Any]
_READERS: tuple[tuple[int, str, _Reader], ...] = (
    (_ALIAS, "input_output_alias", _aliases),
    (_DONOR, "buffer_donor", _donors),
    (_SHAPE, ENTRY_LAYOUT, lambda values, tools: tools.shapes.program_shape(values[0])),
    (_FRONTEND, "frontend_attributes", lambda values, tools: read_frontend(values[0], tools)),
    (_RECOVERY, "origin_recovery_table", _recovery),
    (_DEBUG, "debug_attributes", _debug),
    (_CONFIG, "backend_config", _config),
)


def read_frames(raw: bytes, tools: Tools) -> StackFrameIndex:
    """Parses a `StackFrameIndexProto`. Raises ProtoError if it is invalid."""
    m = decoded(tools.classes, "StackFrameIndexProto", raw)
    locations = []
    for one in m.file_locations:
        p = decoded(tools.classes, "FileLocation", one)
        locations.append(
            FileLocation(p.file_name_id, p.function_name_id, p.line, p.end_line, p.column, p.end_column)
        )
    frames = []
    for one in m.stack_frames:
        p = decoded(tools.classes, "StackFrame", one)
        frames.append(FrameRow(p.file_location_id, p.parent_frame_id))
    return StackFrameIndex(tuple(m.file_names), tuple(m.function_names), tuple(locations), tuple(frames))


_HANDLED = frozenset({1, 2, 3, 4, 6, 7, 8, 17, 18, 19, 20, 22, 24})
"""Fields of `HloModuleProto` that a module has a place for, or that others stand for."""


def is_carried(number: int) -> bool:
    """Returns True if a field of `HloModuleProto` has no attribute, so that its bytes are kept."""
    return number not in _HANDLED


# ---- to protos


def write(module: Module, tools: Tools) -> list[bytes]:
    """Serializes the fields of header and tables. Raises ProtoError if an attribute cannot be represented."""
    given = dict(module._attributes)
    layout = given.get(ENTRY_LAYOUT)
    if layout is None:
        entry = module.entry
        shapes = [p.shape.with_default_layout() for p in entry.parameters if p.shape is not None]
        if entry.shape is None:
            raise ProtoError("the shape of the entry is unknown")
        layout = ComputationLayout(tuple(shapes), entry.shape.with_default_layout())
    _refuse_raw(given)
    names = [(f"p{number}", shape) for number, shape in enumerate(layout.parameter_shapes)]
    pieces = [field(_SHAPE, tools.exact_shape_bytes.program_shape(names, layout.result_shape))]
    # Empty ones too, as XLA writes them.
    aliases = given.get("input_output_alias", InputOutputAliasConfig())
    pieces.append(field(_ALIAS, _write_aliases(aliases, tools)))
    if not module.stack_frames.is_empty:
        pieces.append(field(_FRAMES, _write_frames(module.stack_frames, tools)))
    pieces.append(field(_DONOR, _write_donors(given.get("buffer_donor", BufferDonorConfig()), tools)))
    pieces.append(field(_FRONTEND, write_frontend(given.get("frontend_attributes", {}), tools)))
    if (recovery := given.get("origin_recovery_table")) is not None:
        pieces.append(field(_RECOVERY, _write_recovery(recovery, tools)))
    if (debug := given.get("debug_attributes")) is not None:
        pieces += [field(_DEBUG, one) for one in _write_debug(debug, tools)]
    if (config := given.get("backend_config")) is not None and config.text:
        pieces.append(field(_CONFIG, config.text.encode("utf-8", "surrogateescape")))
    return pieces


def _refuse_raw(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if isinstance(value, RawValue):
            raise ProtoError(f"the header's {name}={value} is unknown to this release")


def _write_aliases(value: InputOutputAliasConfig, tools: Tools) -> bytes:
    m = tools.classes.HloInputOutputAliasProto()
    for one in value.canonical().entries:
        made = tools.classes.AliasEntryProto(
            output_shape_index=one.output_index,
            parameter_number=one.parameter_number,
            parameter_shape_index=one.parameter_index,
            kind=2 if one.kind is AliasKind.MUST else 1,
        )
        m.entries.append(raw_bytes(made))
    return raw_bytes(m)


def _write_donors(value: BufferDonorConfig, tools: Tools) -> bytes:
    m = tools.classes.HloBufferDonorProto()
    for one in value.canonical().entries:
        made = tools.classes.BufferDonorEntryProto(
            parameter_number=one.param_number, parameter_shape_index=one.param_index
        )
        m.entries.append(raw_bytes(made))
    return raw_bytes(m)


def _write_frames(index: StackFrameIndex, tools: Tools) -> bytes:
    if index.other_tables:
        raise ProtoError("tables unknown to this release cannot be written to a proto")
    classes = tools.classes
    try:
        m = classes.StackFrameIndexProto(file_names=index.file_names, function_names=index.function_names)
    except (ValueError, UnicodeError):
        raise ProtoError("a name in the stack-frame tables is not UTF-8") from None
    names = [one.name for one in FileLocation.__attrs_attrs__]
    try:
        for place in index.file_locations:
            m.file_locations.append(raw_bytes(classes.FileLocation(**{n: getattr(place, n) for n in names})))
        for frame in index.stack_frames:
            made = classes.StackFrame(
                file_location_id=frame.file_location_id, parent_frame_id=frame.parent_frame_id
            )
            m.stack_frames.append(raw_bytes(made))
    except ValueError:
        raise ProtoError("a number in the stack-frame tables has more than 32 bits") from None
    return raw_bytes(m)


def _write_debug(value: DebugAttributes, tools: Tools) -> list[bytes]:
    found = []
    for entry in value.entries:
        m = tools.classes.DebugAttributeTableEntryProto(
            original_array=write_array(entry.original_array, tools)
        )
        for one in entry.attributes:
            made = tools.classes.DebugAttributesProto(
                log_mode=0 if one.log_mode is None else number_of(one.log_mode),
                callback_id=one.callback_id,
                op_id=one.op_id,
                partitioned=one.partitioned,
            )
            m.debug_attributes.append(raw_bytes(made))
        found.append(raw_bytes(m))
    return found


def _write_recovery(value: RecoveryTable, tools: Tools) -> bytes:
    """Modules inside of a module are text here, which a reader above turns into nodes and their proto."""
    m = tools.classes.OriginalValueRecoveryTableProto()
    for entry in value.entries:
        made = tools.classes.RecoveryEntry(
            old_original_array=write_array(entry.old_original_array, tools),
            new_original_array=write_array(entry.new_original_array, tools),
        )
        if entry.recovery_module is not None:
            made.recovery_module = tools.inner_module_bytes(entry.recovery_module)
        m.entries.append(raw_bytes(made))
    return raw_bytes(m)
