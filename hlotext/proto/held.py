"""Conversion of other forms of a program to HLO: objects of JAX and jaxlib, StableHLO, serialized modules.

One table for Python and commands. Nothing of JAX is imported: an object is told by its methods, bytes by their
beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from hlotext.ir.nodes.module import Module
from hlotext.proto import pool
from hlotext.proto.errors import MissingProtobuf, ProtoError
from hlotext.proto.json import from_json
from hlotext.proto.reader import read_module
from hlotext.syntax.source.inputs import MLIR_BYTECODE, InputError, is_json, is_mlir_text

_WITHOUT_JAXLIB = (
    "{name} is {what}, which jaxlib turns into HLO: "
    "pip install 'hlotext[jax]', or write in JAX lowered.as_text('hlo')"
)


@attrs.frozen
class Held:
    """A kind of object or data that contains a program but is not HLO text."""

    what: str
    """For people."""
    is_data: Callable[[bytes], bool] | None = None
    """True if a file's bytes have this form."""
    is_object: Callable[[Any], bool] | None = None
    """True if an object has this form."""
    proto: Callable[[Any], bytes] | None = None
    """Its serialized HloModuleProto; ImportError without jaxlib."""
    help: str = ""
    """Where there is none: the call that gives HLO."""
    has_own_lines: bool = False
    """True if places without a file are lines of the data itself."""


def _computation(mlir: bytes | str) -> bytes:
    from jaxlib import _jax

    found: bytes = _jax.mlir.mlir_module_to_xla_computation(
        mlir, use_tuple_args=False, return_tuple=False
    ).as_serialized_hlo_module_proto()
    return found


def _of_compiled(value: Any) -> bytes:
    (module,) = (value if hasattr(value, "hlo_modules") else value.runtime_executable()).hlo_modules()
    found: bytes = module.as_serialized_hlo_module_proto()
    return found


def _is_pickled(data: bytes) -> bool:
    return data[:1] == b"\x80" and data[1:2] in (b"\x03", b"\x04", b"\x05")


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: all(hasattr(value, name) for name in names)


STABLEHLO = "StableHLO"
KINDS = (
    Held(
        "a module in protobuf JSON",
        is_data=is_json,
        proto=lambda data: from_json(data.decode("utf-8", "replace")),
    ),
    Held(
        "a lowered module",
        is_object=_has("compiler_ir", "compile", "as_text"),
        proto=lambda value: value.compiler_ir(dialect="hlo").as_serialized_hlo_module_proto(),
    ),
    Held("a compiled program", is_object=_has("runtime_executable"), proto=_of_compiled),
    Held("a loaded executable", is_object=_has("hlo_modules"), proto=_of_compiled),
    Held(
        "a jaxlib XlaComputation or HloModule",
        is_object=_has("as_serialized_hlo_module_proto"),
        proto=lambda value: value.as_serialized_hlo_module_proto(),
    ),
    Held(
        "an exported function",
        is_object=_has("mlir_module_serialized"),
        proto=lambda value: _computation(value.mlir_module_serialized),
    ),
    Held(
        "an MLIR module",
        is_object=lambda value: hasattr(value, "operation") and hasattr(value, "body"),
        proto=lambda value: _computation(value.operation.get_asm(enable_debug_info=True)),
    ),
    Held("a traced function", is_object=_has("jaxpr", "lower"), help="call .lower() and pass the result"),
    Held(
        "a jitted function",
        is_object=_has("lower", "trace"),
        help="call .lower(...) with its arguments and pass the result",
    ),
    Held("a jaxpr", is_object=_has("jaxpr", "consts"), help="use jax.jit(f).lower(...) to get HLO"),
    Held("MLIR bytecode", is_data=lambda data: data.startswith(MLIR_BYTECODE), proto=_computation),
    Held(
        "a pickled executable",
        is_data=lambda data: _is_pickled(data) and b"xecutable" in data,
        help="call compiled.as_text() in the process that created it",
    ),
    Held(
        "a pickled object",
        is_data=lambda data: _is_pickled(data),
        help="unpickle it in Python; hlotext.load takes what JAX lowered or compiled",
    ),
    Held(
        STABLEHLO,
        is_data=is_mlir_text,
        proto=lambda data: _computation(data.decode()),
        has_own_lines=True,
    ),
)
"""Every kind, the first that fits counts."""


def from_object(value: Any) -> Module | None:
    """Converts an object of JAX or jaxlib to a module; returns None for unsupported objects.

    Raises InputError if the object holds no HLO, with the reason or the call that returns HLO, and ProtoError if its HLO
    cannot be read.
    """
    for kind in KINDS:
        if kind.is_object is not None and kind.is_object(value):
            return read_module(_proto(kind, value, f"this {type(value).__name__}"))
    return None


def converted(data: bytes, name: str) -> bytes:
    """Converts StableHLO or another supported kind of program to a serialized HloModuleProto.

    Other data is returned as is. Raises InputError, whose message names the file `name`, if the conversion fails.
    """
    for kind in KINDS:
        if kind.is_data is not None and kind.is_data(data):
            made = _proto(kind, data, name)
            return _with_lines_of(made, name) if kind.has_own_lines else made
    return data


_NO_FILE = "-"
"""MLIR's name of a text that it reads from memory."""


def _with_lines_of(made: bytes, name: str) -> bytes:
    """The module with places in the text of that name, where MLIR knew no file."""
    module = pool.full().HloModuleProto.FromString(made)
    files = module.stack_frame_index.file_names
    for place, file in enumerate(files):
        if file == _NO_FILE:
            files[place] = name
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.metadata.source_file == _NO_FILE:
                instruction.metadata.source_file = name
    raw: bytes = module.SerializeToString()
    return raw


def _proto(kind: Held, value: Any, name: str) -> bytes:
    if kind.proto is None:
        raise InputError(f"{name} is {kind.what}: {kind.help}")
    try:
        return kind.proto(value)
    except (MissingProtobuf, ProtoError):
        raise
    except ImportError:
        raise InputError(_WITHOUT_JAXLIB.format(name=name, what=kind.what)) from None
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(f"{name} is {kind.what} that jaxlib does not turn into HLO: {reason}") from None
