"""Modules of jaxlib's protos and protos of modules, by way of text; and the modules of jitted functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hlotext import parse
from hlotext.findings.errors import Severity
from hlotext.ir.nodes.module import Module
from hlotext.verify import verify


class NotExecutable(ValueError):  # noqa: N818 - says what the module is
    """A module that jaxlib cannot be given."""


def module_of_proto(proto: bytes) -> Module:
    """The module of a serialized `HloModuleProto`, constants in full."""
    from jaxlib import _hlo

    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    return parse(_hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options))


def proto_of_module(module: Module, like: bytes = b"") -> bytes:
    """The serialized `HloModuleProto` of a module. Raises NotExecutable for what `verify` refuses.

    Text says nothing of some fields (cross-program prefetches, parameters' and results' shardings after partitioning, the
    device assignment ...): they are taken from `like`, the proto that the module was made of.
    """
    from jaxlib import _hlo

    _check(module)
    new: bytes = _hlo.hlo_module_from_text(text_for_jaxlib(module)).as_serialized_hlo_module_proto()
    given = {number for number, _ in proto_fields(new)}
    return new + b"".join(raw for number, raw in proto_fields(like) if number in _NOT_IN_TEXT - given)


def from_jax(jitted: Any, *args: Any, stage: str = "before", **kwargs: Any) -> Module:
    """The module of a jitted function for these arguments, before or after XLA's optimizations.

    >>> import jax
    >>> from_jax(jax.jit(lambda x: x + 1), 1.0).entry.root.opcode  # doctest: +SKIP
    'add'
    """
    lowered = jitted.lower(*args, **kwargs)
    if stage == "before":
        return module_of_proto(lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto())
    if stage == "after":
        (module,) = lowered.compile().runtime_executable().hlo_modules()
        return module_of_proto(module.as_serialized_hlo_module_proto())
    raise ValueError(f"stage is before or after, not {stage}")


# ---- text as jaxlib reads it right

_NEGATIVE_ZERO = re.compile(r"(?<![\w.+-])-0(?![\w.])")
_VALUES = re.compile(
    r"""
      "(?:[^"\\]|\\.)*"                                          # quoted text says nothing of values
    | (?:  \b(?:bf16|f[0-9]\w*|c64|c128)\[[^\]]*\](?:\{[^}]*\})?  # the shape in front of a value
         | \)                                                   # or that of a tuple
      )
      \s+ (?:constant\()? (?P<values>[-+0-9.,{}()\s/*=aefinx]+)
    """,
    re.VERBOSE,
)


def text_for_jaxlib(module: Module) -> str:
    """A module's text with every negative zero among floats as `-0.0`.

    jaxlib prints it as `-0` and reads that as the whole number 0, which has no sign (`HloParserImpl::ParseDenseLiteral`
    takes a token without point or exponent for an integer).
    """
    text = str(module)
    if _NEGATIVE_ZERO.search(text) is None:
        return text

    def exact(match: re.Match[str]) -> str:
        values = match["values"]
        if values is None or "-0" not in values:
            return match[0]
        return match[0][: -len(values)] + _NEGATIVE_ZERO.sub("-0.0", values)

    return _VALUES.sub(exact, text)


# ---- fields of a proto

_NOT_IN_TEXT = frozenset({10, 11, 12, 13, 14, 15, 16})
"""Fields of HloModuleProto that HLO text leaves out (hlo.proto): cross_program_prefetches, is_dynamic,
spmd_output_sharding, profile_info, spmd_parameters_shardings, device_assignment, use_auto_spmd_partitioning."""

_NO_DONATION = {8: b"\x42\x00", 18: b"\x92\x01\x00"}
"""The fields of HloModuleProto that say which buffers may be used again, input_output_alias and buffer_donor, when empty."""


def proto_fields(proto: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and bytes, tag included, of each field of a serialized message."""
    position = 0
    while position < len(proto):
        start = position
        tag, position = _varint(proto, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(proto, position)
        elif kind == 2:
            size, position = _varint(proto, position)
            position += size
        else:
            position += {1: 8, 5: 4}[kind]
        yield tag >> 3, proto[start:position]


def donates(proto: bytes) -> bool:
    """Whether a serialized `HloModuleProto` lets the program use arguments' buffers again."""
    return any(raw != _NO_DONATION.get(number, raw) for number, raw in proto_fields(proto))


def _varint(proto: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = proto[position]
        value |= (byte & 127) << shift
        position += 1
        shift += 7
        if byte < 128:
            return value, position


def _check(module: Module) -> None:
    errors = [d for d in verify(module) if d.severity is Severity.ERROR]
    if errors:
        raise NotExecutable(f"{module.name}: {errors[0].code}: {errors[0].message}")
