"""Reader and writer of XLA's protos: modules and profiler traces. Extra: `hlotext[proto]`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hlotext.ir import lazy_imports

if TYPE_CHECKING:
    from hlotext.proto.buffers import ProtoBuffers, read_buffers
    from hlotext.proto.errors import MissingProtobuf, ProtoError
    from hlotext.proto.files import (
        TRACE,
        Modules,
        kind_of,
        outside_of_proto,
        read_first,
        read_modules,
        with_config,
        wrapped,
    )
    from hlotext.proto.held import converted, from_object
    from hlotext.proto.json import from_json, to_json
    from hlotext.proto.reader import read_module
    from hlotext.proto.traces import DeviceTime, OpTime, Trace, TracedModule, read_trace
    from hlotext.proto.writer import write_module

_HOMES = {
    "buffers": ("ProtoBuffers", "read_buffers"),
    "errors": ("MissingProtobuf", "ProtoError"),
    "files": (
        *(
            "TRACE",
            "Modules",
            "kind_of",
            "outside_of_proto",
            "read_first",
            "read_modules",
            "with_config",
            "wrapped",
        ),
    ),
    "held": ("converted", "from_object"),
    "json": ("from_json", "to_json"),
    "reader": ("read_module",),
    "traces": ("DeviceTime", "OpTime", "Trace", "TracedModule", "read_trace"),
    "writer": ("write_module",),
}
"""Public names by file, for lazy imports."""

__getattr__ = lazy_imports.lazy_submodules(__name__, **_HOMES)

__all__ = [
    "TRACE",
    "DeviceTime",
    "MissingProtobuf",
    "Modules",
    "OpTime",
    "ProtoBuffers",
    "ProtoError",
    "Trace",
    "TracedModule",
    "converted",
    "from_json",
    "from_object",
    "kind_of",
    "outside_of_proto",
    "read_buffers",
    "read_first",
    "read_module",
    "read_modules",
    "read_trace",
    "to_json",
    "with_config",
    "wrapped",
    "write_module",
]
