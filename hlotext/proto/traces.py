"""Profiler traces (`XSpace`): which modules they hold, how often those ran and how long, and what each operation took.

The profiler keeps the `HloProto` of each module that ran in a plane of its own, as a statistic of an event's metadata
(`/host:metadata`, "Hlo Proto"). Every other place where one could lie is looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator

from hlotext.proto import wire
from hlotext.proto.errors import ProtoError
from hlotext.proto.metadata import text

MAX_MODULES = 100_000
"""Modules of one trace."""


def module_spans(data: bytes, name: str = "") -> list[tuple[str, int, int]]:
    """The modules of a serialized `XSpace`: name, start and end of the `HloModuleProto`. Raises ProtoError."""
    found: list[tuple[str, int, int]] = []
    for event, start, end in _metadata_stats(data, name):
        span = next(
            ((a, b) for n, k, a, b in wire.scan(data, start, end, name) if n == 1 and k == wire.BYTES), None
        )
        if span is not None:
            found.append((event, *span))
        if len(found) > MAX_MODULES:
            raise ProtoError(f"a trace with more than {MAX_MODULES:,} modules", name=name)
    return found


def _metadata_stats(data: bytes, name: str) -> Iterator[tuple[str, int, int]]:
    """Bytes among the statistics of events' metadata, as far as they may be an `HloProto`, with the event's name."""
    for number, kind, plane_start, plane_end in wire.scan(data, 0, len(data), name):
        if number != 1 or kind != wire.BYTES:
            continue
        for field, field_kind, entry_start, entry_end in wire.scan(data, plane_start, plane_end, name):
            if field != 4 or field_kind != wire.BYTES:
                continue
            for part, part_kind, a, b in wire.scan(data, entry_start, entry_end, name):
                if part == 2 and part_kind == wire.BYTES:
                    yield from _stats(data, a, b, name)


def _stats(data: bytes, start: int, end: int, name: str) -> Iterator[tuple[str, int, int]]:
    title = ""
    for number, kind, a, b in wire.scan(data, start, end, name):
        if number == 2 and kind == wire.BYTES:
            title = text(data[a:b])
        elif number == 5 and kind == wire.BYTES:
            for part, part_kind, value, value_end in wire.scan(data, a, b, name):
                if part == 6 and part_kind == wire.BYTES and _is_proto(data, value, value_end):
                    yield title, value, value_end


def _is_proto(data: bytes, start: int, end: int) -> bool:
    """Whether these bytes are an `HloProto`: a module in its first field."""
    try:
        fields = [(n, k, a, b) for n, k, a, b in wire.scan(data, start, end)]
        if not fields or fields[0][:2] != (1, wire.BYTES):
            return False
        inner = {n: k for n, k, _, _ in wire.scan(data, fields[0][2], fields[0][3])}
    except ProtoError:
        return False
    return inner.get(1) == wire.BYTES and inner.get(3) == wire.BYTES
