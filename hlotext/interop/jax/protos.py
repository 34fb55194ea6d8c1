"""Converts between modules and jaxlib's protos, without text in between; and jitted functions to modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hlotext.execution.errors import NotExecutable
from hlotext.findings.errors import HloSyntaxError, Severity
from hlotext.ir.nodes.module import Module
from hlotext.proto import read_module, wire
from hlotext.verify import verify


def module_of_proto(proto: bytes) -> Module:
    """Reads a module from a serialized `HloModuleProto`.

    Raises ProtoError if the proto is invalid, and MissingProtobuf without the extra `proto`.
    """
    return read_module(proto)


def proto_of_module(module: Module, like: bytes = b"") -> bytes:
    """Serializes a module to an `HloModuleProto`. Raises NotExecutable if `verify` rejects the module.

    Some fields have no place in a module (cross-program prefetches, shardings of parameters and results after
    partitioning, the device assignment, etc.). A module that was read from a proto keeps these fields; otherwise they
    are copied from the serialized proto `like`.
    """
    _check(module)
    try:
        new = module.to_proto()
    except HloSyntaxError as error:
        raise NotExecutable(f"{module.name}: {error}") from None
    given = {number for number, _ in proto_fields(new)}
    return new + b"".join(raw for number, raw in proto_fields(like) if number in _NOT_IN_TEXT - given)


def from_jax(jitted: Any, *args: Any, stage: str = "before", **kwargs: Any) -> Module:
    """Lowers a jitted function and returns its module before or after XLA's optimizations.

    Args:
        jitted: The function, from `jax.jit`.
        *args: Its arguments, or a `jax.ShapeDtypeStruct` in place of each array.
        stage: `before`, or `after`, which compiles the function.
        **kwargs: Its keyword arguments.

    Raises:
        ValueError: The stage is unknown.

    >>> import jax
    >>> from_jax(jax.jit(lambda x: x + 1), 1.0).entry.root.opcode  # doctest: +SKIP
    'add'
    """
    if not callable(getattr(jitted, "lower", None)):
        use = "; use jax.jit(it)" if callable(jitted) else ""
        raise TypeError(f"from_jax() takes a jitted function, not {type(jitted).__name__}{use}")
    lowered = jitted.lower(*args, **kwargs)
    if stage == "before":
        return module_of_proto(lowered.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto())
    if stage == "after":
        (module,) = lowered.compile().runtime_executable().hlo_modules()
        return module_of_proto(module.as_serialized_hlo_module_proto())
    raise ValueError(f"stage must be before or after, not {stage}")


# ---- fields of a proto

_NOT_IN_TEXT = frozenset({10, 11, 12, 13, 14, 15, 16})
"""Fields of HloModuleProto that HLO text leaves out (hlo.proto): cross_program_prefetches, is_dynamic,
spmd_output_sharding, profile_info, spmd_parameters_shardings, device_assignment, use_auto_spmd_partitioning."""

_NO_DONATION = {8: b"\x42\x00", 18: b"\x92\x01\x00"}
"""The fields of HloModuleProto that say which buffers may be used again, input_output_alias and buffer_donor, when empty."""


def proto_fields(proto: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the bytes, including the tag, of each field of a serialized message. Raises ProtoError."""
    start = 0
    for number, _, _, end in wire.scan(proto, 0, len(proto)):
        yield number, proto[start:end]
        start = end


def donates(proto: bytes) -> bool:
    """True if a serialized `HloModuleProto` donates or aliases an argument's buffer."""
    return any(raw != _NO_DONATION.get(number, raw) for number, raw in proto_fields(proto))


def _check(module: Module) -> None:
    errors = [d for d in verify(module) if d.severity is Severity.ERROR]
    if errors:
        raise NotExecutable(f"{module.name}: {errors[0].code}: {errors[0].message}")
