"""Detects the proto in a file by its content, and reads the modules in it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

from hlotext.ir.nodes.expected import expect_module
from hlotext.ir.nodes.module import Module
from hlotext.proto import wire
from hlotext.proto.codec import packed, varint
from hlotext.proto.errors import ProtoError
from hlotext.proto.literals import MAX_SIZE, field
from hlotext.proto.reader import CONFIG_FLAGS, CONFIG_NUMBERS, read_config, read_module
from hlotext.proto.traces import module_spans

MODULE, PROTO, WITH_CONFIG, TRACE = "HloModuleProto", "HloProto", "HloModuleProtoWithConfig", "XSpace"


class Span(NamedTuple):
    """Position of a module in a file."""

    name: str
    """Its name in the file; empty if only the module has one."""
    start: int
    end: int


def kind_of(data: bytes, name: str = "") -> str:
    """Returns the message type of serialized bytes.

    This is `HloModuleProto`, `HloProto`, `HloModuleProtoWithConfig`, or `XSpace` for a profiler's trace. Only the first
    fields are inspected. Raises ProtoError, whose message names the file `name`, for anything else.
    """
    fields: dict[int, int] = {}
    first: tuple[int, int] | None = None
    try:
        for count, (number, kind, start, end) in enumerate(wire.scan(data, 0, len(data), name)):
            fields.setdefault(number, kind)
            if number == 1 and kind == wire.BYTES and first is None:
                first = start, end
            if count > _MANY:
                break
    except ProtoError as error:
        if _looks_like_trace(data):
            why = f"a damaged profiler trace (XSpace): {error.bare_message}"
            raise ProtoError(why, error.path, error.offset, name) from None
        if (whole := _whole_size(data)) is not None:
            why = f"a truncated HLO proto: {len(data):,} of at least {whole:,} bytes"
            raise ProtoError(why, name=name) from None
        if not fields:
            raise ProtoError("neither HLO text nor an XLA proto", name=name) from None
        raise ProtoError(error.bare_message, error.path, error.offset, name) from None
    if 6 in fields and fields[6] == wire.VARINT:
        return MODULE
    inner = _first_fields(data, *first) if first is not None else {}
    if inner.get(1) == wire.BYTES or inner.get(6) == wire.VARINT:
        if set(fields) <= {1, 2} and 2 in fields:
            return WITH_CONFIG
        return PROTO
    if inner.get(1) == wire.VARINT or (
        inner and set(inner) <= {1, 2, 3, 4, 5, 6} and 3 not in fields.keys() - {1, 2, 3, 4}
    ):
        return TRACE
    if 3 in fields:
        return MODULE
    raise ProtoError("neither HLO text nor a proto containing HLO", name=name)


def _whole_size(data: bytes) -> int | None:
    """Bytes that a proto of HLO has at least of which the end is missing; None for anything else.

    It begins with its module, and that with its name, which is text.
    """
    try:
        if data[:1] != _FIRST_FIELD:
            return None
        size, start = wire.varint(data, 1, len(data))
        if data[start : start + 1] != _FIRST_FIELD or start + size <= len(data):
            return None
        length, begin = wire.varint(data, start + 1, len(data))
    except ProtoError:
        return None
    name = data[begin : begin + length]
    return start + size if len(name) == length and name.isascii() and name.decode().isprintable() else None


_FIRST_FIELD = b"\x0a"
"""The tag of a first field that holds a text or a message."""


def _looks_like_trace(data: bytes) -> bool:
    """True if unreadable bytes begin like an `XSpace`: with a plane, and near its start the plane's name."""
    return data[:1] == _FIRST_FIELD and any(name in data[:64] for name in (b"/host:", b"/device:"))


_MANY = 100_000


def _first_fields(data: bytes, start: int, end: int) -> dict[int, int]:
    """The fields of a message by number, with their wire types, as far as they can be read."""
    found: dict[int, int] = {}
    try:
        for number, kind, _, _ in wire.scan(data, start, end):
            found.setdefault(number, kind)
            if len(found) > 8:
                break
    except ProtoError:
        return {}
    return found


class Modules(Sequence[Module]):
    """The modules of a file, each parsed on first access."""

    def __init__(self, spans: list[Span], read: Callable[[Span], Module]) -> None:
        self._spans = spans
        self._read = read
        self._known: dict[int, Module] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the modules, without parsing them."""
        return tuple(span.name for span in self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    @overload
    def __getitem__(self, number: int) -> Module: ...

    @overload
    def __getitem__(self, number: slice) -> list[Module]: ...

    def __getitem__(self, number: int | slice) -> Module | list[Module]:
        """Returns a module, parsed on first access. Raises ProtoError if it is damaged."""
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} modules")
        if number not in self._known:
            self._known[number] = self._read(self._spans[number])
        return self._known[number]

    def __iter__(self) -> Iterator[Module]:
        return (self[number] for number in range(len(self)))


def read_modules(data: bytes | str, name: str = "") -> Modules:
    """Reads the modules of a file of any message type that `kind_of` detects.

    Each is parsed on first access, which raises ProtoError if it is invalid and MissingProtobuf without the extra
    `proto`. Raises ProtoError, whose message names the file `name`, if the message type or the framing is invalid.
    """
    if isinstance(data, str):
        raise ProtoError("a proto was opened as text; open it in binary mode", name=name)
    if len(data) >= MAX_SIZE:
        raise ProtoError(f"a proto must be smaller than 2 GiB, but this has {len(data):,} bytes", name=name)
    kind = kind_of(data, name)
    if kind == TRACE:
        spans = [Span(*found) for found in module_spans(data, name)]
    elif kind == MODULE:
        spans = [Span("", 0, len(data))]
    else:
        first = next(
            (a, b) for n, k, a, b in wire.scan(data, 0, len(data), name) if n == 1 and k == wire.BYTES
        )
        spans = [Span("", *first)]

    return Modules(spans, functools.partial(_module_at, data, name, kind))


def _module_at(data: bytes, name: str, kind: str, span: Span) -> Module:
    module = read_module(data, name, span.start, span.end)
    if kind == WITH_CONFIG:
        read_config(module, data, name)
    return module


def read_first(data: bytes | str, name: str = "") -> Module:
    """Reads the only module of a file.

    Raises ProtoError if the file cannot be read or is a trace with several modules, and MissingProtobuf without the
    extra `proto`.
    """
    modules = read_modules(data, name)
    if len(modules) == 1:
        return modules[0]
    if not modules:
        raise ProtoError("this trace contains no modules", name=name)
    shown = ", ".join(modules.names[:10])
    raise ProtoError(f"this trace contains {len(modules)} modules; load_all reads them ({shown})", name=name)


def wrapped(module: bytes) -> bytes:
    """Wraps a serialized `HloModuleProto` in an `HloProto`."""
    return field(1, module)


def with_config(proto: bytes, module: Module) -> bytes:
    """Serializes an `HloModuleProtoWithConfig` from a module and its `HloModuleProto`.

    Adds the attributes listed by `outside_of_proto`. Other parts of a config, such as compiler flags, are not set.
    Raises ProtoError if the proto is invalid.
    """
    given = module._attributes
    layout = next(
        (proto[a:b] for n, k, a, b in wire.scan(proto, 0, len(proto)) if n == 4 and k == wire.BYTES), b""
    )
    pieces = [
        field(1, layout),
        *(varint(number, int(given.get(name, 1))) for number, name in CONFIG_NUMBERS.items()),
        varint(17, int(bool(given.get("alias_passthrough_params")))),
        *(
            packed(number, tuple(map(int, given[name])))
            for number, name in CONFIG_FLAGS.items()
            if name in given
        ),
    ]
    return field(1, proto) + field(2, b"".join(pieces))


def outside_of_proto(module: Module) -> tuple[str, ...]:
    """Returns the header attributes without a field in `HloModuleProto`, which XLA stores in the module's config."""
    expect_module(module)
    names = (*CONFIG_NUMBERS.values(), "alias_passthrough_params", *CONFIG_FLAGS.values())
    return tuple([name for name in names if name in module._attributes])
