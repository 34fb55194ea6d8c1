"""A Python toolkit for XLA's HLO text: parse dumps, lint HLO in CI, and rewrite HLO programmatically.

>>> import hlotext as hlo
>>> add = hlo.parse_instruction("add.936 = bf16[8,128]{1,0:T(8,128)(2,1)} add(exponential.183, broadcast.3115)")
>>> add.opcode, add.shape.dimensions, [operand.name for operand in add.operands]
('add', (8, 128), ['exponential.183', 'broadcast.3115'])
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from hlotext.ir import caches as _memo
from hlotext.ir import gc_control as _collector

# Nothing that is made here is garbage, and looking for some would take a quarter of the time.
with _collector.gc_paused(collect_first=False):
    from hlotext import edit as _edit
    from hlotext import findings as _findings
    from hlotext import semantics as _semantics
    from hlotext import syntax as _syntax
    from hlotext.edit import hooks as _sockets
    from hlotext.ir import arguments as _arguments
    from hlotext.ir import lazy_imports as _doors
    from hlotext.ir.errors import EditError
    from hlotext.ir.nodes import methods as _methods
    from hlotext.ir.nodes import printing as _printing
    from hlotext.ir.nodes.computation import Computation
    from hlotext.ir.nodes.instruction import Instruction
    from hlotext.ir.nodes.module import Module
    from hlotext.ir.nodes.node_list import ModuleList as _ModuleList
    from hlotext.ir.spelling import text_or_path as _text_or_path
    from hlotext.ir.values import value as _value
    from hlotext.ir.values.literal import Literal
    from hlotext.ir.values.shape import Layout, Shape, Tile
    from hlotext.syntax.linking import linker as _linker
    from hlotext.syntax.source import limits as _limits
    from hlotext.verify import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hlotext import analysis as analysis
    from hlotext import compiler as compiler
    from hlotext import cost as cost
    from hlotext import diff as diff
    from hlotext import dumps as dumps
    from hlotext import layout as layout
    from hlotext import lint as lint
    from hlotext import matchers as matchers
    from hlotext import memory as memory
    from hlotext import proto as proto
    from hlotext import rewrite as rewrite
    from hlotext import tables as tables
    from hlotext import thunks as thunks
    from hlotext import triage as triage
    from hlotext.findings.errors import HloSyntaxError, Severity
    from hlotext.findings.finding import Diagnostic, Finding, ParseResult
    from hlotext.ir.nodes.source import Source, Span
    from hlotext.ir.values.metadata import Metadata
    from hlotext.ir.values.print_options import PrintOptions
    from hlotext.proto.errors import ProtoError
    from hlotext.syntax.read_terms import (
        parse_dim_labels,
        parse_layout,
        parse_literal,
        parse_padding,
        parse_replica_groups,
        parse_shape,
        parse_sharding,
        parse_window,
    )
    from hlotext.syntax.reread.module import reread
    from hlotext.syntax.source.inputs import InputError
    from hlotext.testing.assertions import inspect

_LATE = {
    "Diagnostic": "findings.finding",
    "Finding": "findings.finding",
    "HloSyntaxError": "findings.errors",
    "InputError": "syntax.source.inputs",
    "Metadata": "ir.values.metadata",
    "ParseResult": "findings.finding",
    "ProtoError": "proto.errors",
    "PrintOptions": "ir.values.print_options",
    "Severity": "findings.errors",
    "Source": "ir.nodes.source",
    "Span": "ir.nodes.source",
    "inspect": "testing.assertions",
    "parse_dim_labels": "syntax.read_terms",
    "parse_layout": "syntax.read_terms",
    "parse_literal": "syntax.read_terms",
    "parse_padding": "syntax.read_terms",
    "parse_replica_groups": "syntax.read_terms",
    "parse_shape": "syntax.read_terms",
    "parse_sharding": "syntax.read_terms",
    "parse_window": "syntax.read_terms",
    "reread": "syntax.reread.module",
}
"""Names that not every program uses, and the module of each: it is imported when they are first asked for.

So are the readers, with the first text; the rules that they apply come with the package, so that neither takes long.
"""

_ROOMS = (
    "analysis",
    "compiler",
    "cost",
    "diff",
    "dumps",
    "layout",
    "lint",
    "matchers",
    "memory",
    "proto",
    "rewrite",
    "tables",
    "thunks",
    "triage",
)
"""Sub-packages that are imported when they are first asked for."""

__version__ = "0.1.0"

__all__ = [
    "Computation",
    "Diagnostic",
    "EditError",
    "Finding",
    "HloSyntaxError",
    "InputError",
    "Instruction",
    "Layout",
    "Literal",
    "Metadata",
    "Module",
    "ParseResult",
    "PrintOptions",
    "ProtoError",
    "Severity",
    "Shape",
    "Source",
    "Span",
    "Tile",
    "allow_gc_pauses",
    "clear_caches",
    "infer_shape",
    "inspect",
    "load",
    "load_all",
    "parse",
    "parse_all",
    "parse_dim_labels",
    "parse_instruction",
    "parse_layout",
    "parse_literal",
    "parse_padding",
    "parse_replica_groups",
    "parse_shape",
    "parse_sharding",
    "parse_tolerant",
    "parse_window",
    "reread",
    "verify",
]


def parse(text: str | bytes, *, strict: bool = False, name: str = "<text>", only: bool = False) -> Module:
    """Parses a module, with or without a header, or a single op line. Returns the first of several modules, with a warning.

    Bytes may also be a serialized proto, and text may be the JSON of a proto (both need `hlotext[proto]`). Bytes may be
    compressed. `str(module)` reproduces the text byte for byte; bytes that are not UTF-8 become surrogates.

    Args:
        text: The text or bytes.
        strict: Raise an error for anything unknown to this release.
        name: Name of the source in messages.
        only: Raise InputError if there are several modules; the message names them.

    Raises:
        HloSyntaxError: The input is not valid HLO.
        InputError: The input is compressed and damaged, or (with `only`) holds several modules.
        MissingProtobuf: The input is a proto, and `hlotext[proto]` is not installed (an ImportError).
        TypeError: `text` is neither str nor bytes.
    """
    data, modules = _as_text_or_modules(text, name)
    if modules:
        return _one_of(modules, name, only)
    return _first(_syntax.read.as_source(data, name), strict, only)


def load(
    place: Any,
    *,
    strict: bool = False,
    lazy: bool | None = None,
    only: bool = False,
) -> Module:
    """Loads a module from a path, an open file, or `-` for standard input.

    Files may be HLO text, XLA protos (`HloModuleProto`, `HloProto` as in `.hlo.pb`, `HloModuleProtoWithConfig`),
    StableHLO (which needs jaxlib), or a profiler's trace (`.xplane.pb`) that holds one module. Formats and compression
    (.gz, .xz, .zst) are detected by content. Protos need `hlotext[proto]`. See `load_all` for files of several modules.

    Uncompressed files of 256 MB or more, as written by XLA, are loaded lazily: computations are parsed on first access.
    The result is the same, but errors inside a computation are raised on that access, and the file must not be modified
    in place while the module is in use (InputError). To replace it, write a new file and rename it.

    Args:
        place: The path, file or bytes, or an object of JAX or jaxlib (a lowered, compiled or exported function, an
            XlaComputation, an HloModule, an MLIR module).
        strict: Raise an error for anything unknown to this release.
        lazy: Whether to load lazily. None (the default) decides by file size.
        only: Raise InputError if there are several modules, instead of returning the first with a warning.

    Raises:
        InputError: The file cannot be read, or holds no module or (with `only`) several (an OSError).
        HloSyntaxError: The input is not valid HLO.
        MissingProtobuf: The input is a proto, and `hlotext[proto]` is not installed (an ImportError).
        TypeError: `place` is none of these.
    """
    if isinstance(place, str | os.PathLike) and place != "-" and (_is_large(place) if lazy is None else lazy):
        module = _syntax.lazy.lazy_module.load(os.fspath(place), strict=strict, infer=_infer_left_out)
        if module is not None:
            return module
    if not isinstance(place, str | os.PathLike | bytes) and not hasattr(place, "read"):
        return _held(place)
    data, name = _data(place)
    if _syntax.source.inputs.is_binary(data):
        from hlotext import proto  # most files are text

        return proto.read_first(data, name)
    return _first(_syntax.read.as_source(data, name), strict, only)


def load_all(
    place: str | os.PathLike[str] | IO[str] | IO[bytes], *, strict: bool = False
) -> Sequence[Module]:
    """Loads all modules of a file, in order. The modules of a profiler's trace are read on access.

    Args:
        place: A path, an open file, or `-` for standard input, of any format that `load` detects.
        strict: Raise an error for anything unknown to this release.

    Raises:
        InputError: The file cannot be read.
        HloSyntaxError: The input is not valid HLO.
        MissingProtobuf: The input is a proto, and `hlotext[proto]` is not installed (an ImportError).
    """
    data, name = _data(place)
    if _syntax.source.inputs.is_binary(data):
        from hlotext import proto

        return proto.read_modules(data, name)
    return parse_all(data, strict=strict, name=name)


def _held(value: Any) -> Module:
    """The module of an object."""
    if isinstance(value, Module):
        raise TypeError("this is a module already; module.clone() makes another")
    from hlotext import proto

    found = proto.from_object(value)
    if found is None:
        hint = importlib.import_module("hlotext.ir.misfits").module_hint(
            value, Module
        )  # only failures need it
        raise TypeError(
            f"expected a path, a file, or a JAX object with a module, not {type(value).__name__}"
            + (f"; {hint}" if hint else "")
        )
    return found


def _data(place: str | os.PathLike[str] | bytes | IO[str] | IO[bytes]) -> tuple[bytes | str, str]:
    """What is read, a program in another language as a proto, and its name."""
    inputs = _syntax.source.inputs
    if isinstance(place, str) and _text_or_path(place) == "text" and not _exists(place):
        raise inputs.InputError("this is text, not a path; use hlotext.parse(text)")
    if isinstance(place, str | os.PathLike) and os.path.isdir(place):
        raise inputs.InputError(f"{os.fspath(place)} is a folder: hlotext.dumps.open reads a dump folder")
    data, name = (
        (inputs.unpack(place, "<bytes>"), "<bytes>") if isinstance(place, bytes) else inputs.read_data(place)
    )
    if isinstance(data, bytes) and inputs.is_foreign(data):
        from hlotext import proto

        data = proto.converted(data, name)
    return data, name


def _exists(place: str) -> bool:
    return "\n" not in place and os.path.exists(place)


def _is_large(place: str | os.PathLike[str]) -> bool:
    try:
        return os.path.getsize(place) >= _limits.LEAST_LAZY
    except (OSError, ValueError):
        return False  # whoever reads it says why that is impossible


def _first(source: Source, strict: bool, only: bool) -> Module:
    modules = _syntax.read.read_modules(source, strict=strict, infer=_infer_left_out)[0]
    return _one_of(modules, source.name, only)


def _one_of(modules: Sequence[Module], name: str, only: bool) -> Module:
    """The first of several modules, with a warning that there are more; with `only` InputError."""
    if len(modules) > 1:
        if only:
            raise _several(name, modules)
        import warnings  # one module is the rule

        warnings.warn(
            f"{name} contains {len(modules)} modules, and only the first, {modules[0].name}, is returned: use "
            "parse_all or load_all for all of them",
            RuntimeWarning,
            stacklevel=_arguments.caller_level(),
        )
    return modules[0]


def parse_all(text: str | bytes, *, strict: bool = False, name: str = "<text>") -> list[Module]:
    """Parses all modules in HLO text, a proto or its JSON, in order.

    Arguments and errors are those of `parse`.
    """
    data, modules = _as_text_or_modules(text, name)
    if modules:
        return _ModuleList(modules)
    source = _syntax.read.as_source(data, name)
    return _ModuleList(_syntax.read.read_modules(source, strict=strict, infer=_infer_left_out)[0])


def _as_text_or_modules(text: str | bytes, name: str) -> tuple[str | bytes, Sequence[Module]]:
    """Text, unpacked, or else the modules of a proto or of protobuf's JSON. Raises ProtoError."""
    inputs = _syntax.source.inputs
    if isinstance(text, bytes):
        try:
            text = inputs.unpack(text, name)
        except inputs.InputError:
            return text, ()  # which reading as text reports with a place
    if not isinstance(text, str | bytes):
        return text, ()  # which reading as text refuses
    is_json = text[:1] in ("{", b"{") and inputs.is_json(text)
    if not is_json and not inputs.is_binary(text):
        return text, ()
    from hlotext import proto

    try:
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        return text, proto.read_modules(proto.converted(data, name) if is_json else data, name)
    except ImportError:  # without the extra, reading as text says what it is
        return text, ()


def _several(name: str, modules: Sequence[Module]) -> InputError:
    inputs = _syntax.source.inputs
    return inputs.InputError(inputs.several(name, [module.name for module in modules]))


def parse_tolerant(text: str | bytes, *, name: str = "<text>") -> ParseResult:
    """Parses as much of the input as possible, collecting all errors, and notes on anything unknown to this release.

    Invalid input never causes an exception: it yields diagnostics and a module of what could be read. Bytes may also be
    a proto, as for `parse`.

    Args:
        text: The text or bytes.
        name: Name of the source in messages.

    Raises:
        MissingProtobuf: The input is a proto, and `hlotext[proto]` is not installed (an ImportError).
        TypeError: `text` is neither str nor bytes.
    """
    try:
        text, modules = _as_text_or_modules(text, name)
    except _findings.errors.HloSyntaxError:
        modules = ()
    if modules:
        return _findings.finding.ParseResult(modules[0], (), tuple(modules))
    return _syntax.read.read_tolerantly(_syntax.read.as_source(text, name), _infer_left_out)


def parse_instruction(text: str, *, strict: bool = False) -> Instruction:
    """Parses one op line, as pasted from a dump, and returns its instruction.

    Operands become parameters, with their shapes if the line gives them. With `strict`, anything unknown to this release
    is an error. Raises HloSyntaxError if the text is not a valid op line or has several, and ValueError if it is a whole
    module.
    """
    module = parse(text, strict=strict)
    if not module.entry.is_sugared:
        raise ValueError("this text is a module, not one op line: use parse()")
    return module.entry.root


def infer_shape(instruction: Instruction) -> Shape:
    """Infers the shape of an instruction from its operands and attributes, without layouts.

    Parts of the shape that these do not determine are taken from the instruction's current shape.

    Raises:
        ShapeInferenceError: The operands and attributes contradict each other.
        CannotInfer: The operands and attributes do not determine the shape, and the instruction has none. Both are
            ValueErrors, defined in `hlotext.semantics.infer`.
    """
    return _semantics.infer.infer_shape(instruction)


def _infer_left_out(instruction: Instruction) -> Shape:
    """What reading asks where a text leaves a shape out."""
    return _semantics.infer.infer_left_out(instruction)


def clear_caches() -> None:
    """Frees the memory held by hlotext's caches and by unreferenced modules.

    Every cache is bounded, so this is only useful in long-lived processes that have finished parsing for a while.
    Results do not change; the next parse is slower.
    """
    import gc

    _memo.clear()
    gc.collect()


def allow_gc_pauses(is_allowed: bool) -> None:
    """Sets whether hlotext may pause Python's garbage collector while it reads or checks a module.

    Applies to the whole process. Allowed by default, since collection takes a third of the parse time and finds
    nothing. The environment variable `HLOTEXT_GC=untouched` disables it from the start, including during import.
    """
    _collector.allow(is_allowed)


def _errors_of(module: Module) -> list[tuple[str, str]]:
    """What edits ask of the verifier."""
    return [(d.code, d.message) for d in verify(module) if d.severity.value == "error"]


_sockets.install_verifier(_errors_of)


def _proto_of(module: Module, fill_elided: bool) -> bytes:
    """What `Module.to_proto` asks for."""
    from hlotext import proto

    return proto.write_module(module, fill_elided=fill_elided)


_printing.install_proto_writer(_proto_of)


def _html(value: object) -> str | None:
    """What a notebook shows of a value; what draws it is imported with the first."""

    html: Callable[[object], str | None] = importlib.import_module("hlotext.view.notebook").html
    return html(value)


_value.install_view(_html)

_methods.register(
    {
        "verify": "hlotext.verify.verify",
        "lint": "hlotext.lint.run",
        "memory": "hlotext.memory.assign",
        "cost": "hlotext.cost.analyze",
        "estimate": "hlotext.cost.estimate",
        "communications": "hlotext.analysis.communications",
        "thunks": "hlotext.thunks.predict",
        "compare": "hlotext.diff.compare",
        "inspect": "hlotext.testing.assertions.inspect",
    }
)

_doors.make_door(sys.modules[__name__], {}, _ROOMS)
_doors.answer_for_imports()
_arguments.answer_for(sys.modules[__name__], [name for name in __all__ if name not in _LATE])

del _edit, _linker, _methods, _printing, _sockets, _value


def __dir__() -> list[str]:
    return sorted(
        {*__all__, *_ROOMS, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"}
    )


if not TYPE_CHECKING:  # whoever checks types is told of names that are none

    def __getattr__(name: str) -> Any:
        """What is imported when it is first asked for."""
        import importlib.util

        if name in _ROOMS:
            return importlib.import_module(f"hlotext.{name}")
        if name not in _LATE:
            is_package = name.isidentifier() and importlib.util.find_spec(f"hlotext.{name}") is not None
            use = f"import it explicitly: import hlotext.{name}" if is_package else ""
            raise _doors.no_such_name("hlotext", name, use)
        home = importlib.import_module(f"hlotext.{_LATE[name]}")
        _arguments.answer_for(home, [name])
        found = globals()[name] = getattr(home, name)
        return found
