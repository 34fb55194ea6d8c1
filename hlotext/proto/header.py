"""What a module's header and tables say, to and from the fields of `HloModuleProto`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.module import ENTRY_LAYOUT, Module
from hlotext.ir.values.aliasing import (
    BufferDonor,
    BufferDonorConfig,
    InputOutputAlias,
    InputOutputAliasConfig,
)
from hlotext.ir.values.enums import AliasKind
from hlotext.ir.values.frames import FileLocation, FrameRow, StackFrameIndex
from hlotext.ir.values.module_attributes import (
    DebugAttribute,
    DebugAttributes,
    DebugEntry,
)
from hlotext.ir.values.enums import DebugLogMode
from hlotext.proto.attributes import Tools, read_array, read_frontend, word
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import text
from hlotext.proto.shapes import decoded
from hlotext.proto.wire import Buffer

_SHAPE, _ALIAS, _FRAMES, _DONOR, _FRONTEND, _RECOVERY, _DEBUG = 4, 8, 17, 18, 19, 20, 24
MESSAGES = frozenset({1, 4, 7, 8, 17, 18, 19, 20, 22, 24})
"""Fields of `HloModuleProto` that are read here or elsewhere, and are bytes."""


def read(
    module: Module, fields: dict[int, list[Any]], tools: Tools, buffer: Buffer, is_scheduled: bool
) -> None:
    """Fills in the header's attributes. Raises ProtoError."""
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
            raise buffer.error(error.message, path=name) from None
        if value is not None:
            attributes[name] = value
    module._attributes = attributes


def _aliases(values: list[bytes], tools: Tools) -> InputOutputAliasConfig | None:
    entries = []
    for raw in decoded(tools.classes, "HloInputOutputAliasProto", values[0]).entries:
        m = decoded(tools.classes, "AliasEntryProto", raw)
        if m.kind not in (1, 2):
            raise ProtoError("an alias is of no kind")
        kind = AliasKind.MUST if m.kind == 2 else AliasKind.MAY
        entries.append(
            InputOutputAlias(tuple(m.output_shape_index), m.parameter_number, tuple(m.parameter_shape_index), kind)
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


_Reader = Callable[[list[bytes], Tools], Any]
_READERS: tuple[tuple[int, str, _Reader], ...] = (
    (_ALIAS, "input_output_alias", _aliases),
    (_DONOR, "buffer_donor", _donors),
    (_SHAPE, ENTRY_LAYOUT, lambda values, tools: tools.shapes.program_shape(values[0])),
    (_FRONTEND, "frontend_attributes", lambda values, tools: read_frontend(values[0], tools)),
    (_DEBUG, "debug_attributes", _debug),
)


def read_frames(raw: bytes, tools: Tools) -> StackFrameIndex:
    """The tables of a serialized `StackFrameIndexProto`. Raises ProtoError."""
    m = decoded(tools.classes, "StackFrameIndexProto", raw)
    locations = []
    for one in m.file_locations:
        p = decoded(tools.classes, "FileLocation", one)
        locations.append(FileLocation(p.file_name_id, p.function_name_id, p.line, p.end_line, p.column, p.end_column))
    frames = []
    for one in m.stack_frames:
        p = decoded(tools.classes, "StackFrame", one)
        frames.append(FrameRow(p.file_location_id, p.parent_frame_id))
    return StackFrameIndex(tuple(m.file_names), tuple(m.function_names), tuple(locations), tuple(frames))


def renumber_frames(
    module: Module, fields: dict[int, list[Any]], tools: Tools, computations: Sequence[Computation]
) -> None:
    """Fills in the tables of stack frames."""
    if _FRAMES not in fields:
        return
    try:
        module._stack_frames = read_frames(b"".join(fields[_FRAMES]), tools)
    except ProtoError as error:
        raise ProtoError(error.message, "stack_frame_index") from None


_ = attrs, text
