"""`hlotext convert`: a module from one kind of file into another."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

import hlotext as hlo
from hlotext.cli.common import Unreadable, say, write_file
from hlotext.cli.convert_trace import trace_data
from hlotext.cli.output import emit
from hlotext.cli.show_trace import NO_MODULES
from hlotext.findings.errors import brief
from hlotext.ir.spelling import did_you_mean
from hlotext.syntax.source.inputs import is_binary, is_foreign, is_json, read_data

_TEXT, _PROTO, _JSON, _TRACE = "text", "proto", "json", "trace-events"
_PARQUET = "parquet"
"""A kind of tables, which another command writes."""
_ENDINGS = {".txt": _TEXT, ".hlo": _TEXT, ".pb": _PROTO, ".json": _JSON}


class _Target(click.Choice[str]):
    """The kinds of files; of tables the command says which one writes them."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value == _PARQUET else super().convert(value, param, ctx)


@click.command()
@click.argument("file", metavar="IN")
@click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    help="Output file, of one of these kinds; - writes text to standard output.",
)
@click.option("--fill-elided", is_flag=True, help="Write zeros for elided constants of IN.")
@click.option(
    "--message",
    type=click.Choice(["HloModuleProto", "HloProto", "HloModuleProtoWithConfig"]),
    help=(
        "Message in a .hlo.pb or .hlo.json; XLA's tools read the first two, JAX the first.  [default: the first, or the "
        "last if the header has attributes that only the last can hold, such as num_partitions or "
        "allow_spmd_sharding_propagation_to_output]"
    ),
)
@click.option("--module", "name", metavar="NAME", help="Module to use, if there are several.")
@click.option(
    "--to",
    "target",
    type=_Target([_TEXT, _PROTO, _JSON, _TRACE]),
    help="Kind of OUT, if its name does not show it; trace-events for the estimated schedule.",
)
@click.option("--chip", metavar="NAME|FILE.toml", help="For trace-events: chip of the estimated times.")
@click.option(
    "--trace",
    metavar="XPLANE.pb",
    help="For trace-events: profiler trace whose measured times are shown next to the estimates.",
)
def command(
    file: str,
    output: str,
    fill_elided: bool,
    message: str | None,
    name: str | None,
    target: str | None,
    chip: str | None,
    trace: str | None,
) -> None:
    """Convert the module of IN, text or any proto that contains one.

    \b
    OUT.txt       HLO text as XLA writes it, constants in full
    OUT.hlo.pb    a serialized proto
    OUT.hlo.json  that proto in protobuf's own JSON

    With --to trace-events OUT is the estimated schedule as JSON trace events, gzipped, for Perfetto, chrome://tracing
    and other viewers: a lane for the core and for each link and copy engine, live bytes of each memory space, arrows
    from starts to dones, and measured times next to them.

    Ids are renumbered if IN is text; other fields are kept from proto to proto.

    \b
    Examples:
      hlotext convert module_0001.jit_step.hlo.pb -o step.txt
      hlotext convert step.txt -o step.hlo.pb
      hlotext convert trace.xplane.pb --module jit_step -o step.txt
      hlotext convert step.txt --to trace-events --chip v5e -o step.trace.json.gz

    Exit status: 0 success, 2 usage error, unreadable input, or elided constants in IN.
    """
    ending = os.path.splitext(output)[1]
    named = _ENDINGS.get(ending)
    if target == _PARQUET or (target is None and ending == f".{_PARQUET}"):
        raise click.UsageError(
            f"convert writes modules; for tables as Parquet: hlotext table {file} -o DATASET"
        )
    if target is not None and target != _TRACE and named is not None and named != target:
        raise click.UsageError(f"--to {target} contradicts the name {output}")
    if os.path.isdir(output):
        raise click.UsageError(f"{output} is a folder; -o needs a file")
    kind = target or (_TEXT if output == "-" else named)
    if kind is None:
        raise click.UsageError(f"{output} must end in one of {', '.join(_ENDINGS)}")
    if kind != _TRACE and (chip or trace):
        raise click.UsageError("--chip and --trace are for --to trace-events")
    note = ""
    try:
        module = _module(file, name)
        if kind == _TEXT:
            text = module.to_text(hlo.PrintOptions(print_large_constants=True))
            if output == "-":
                emit(text)
                return
            data = text.encode("utf-8", "surrogateescape")
        elif kind == _TRACE:
            data = trace_data(module, file, chip, trace)
        else:
            data = module.to_proto(fill_elided=fill_elided)
            outside = hlo.proto.outside_of_proto(module)
            if message is None:
                message = "HloModuleProtoWithConfig" if outside else "HloModuleProto"
                if outside:
                    note = (
                        f"{output}: written as {message}, which keeps {', '.join(outside)}; jaxlib's XlaComputation"
                        " reads HloModuleProto (--message HloModuleProto)"
                    )
            if message == "HloModuleProtoWithConfig":
                data = hlo.proto.with_config(data, module)
            elif outside:
                say(f"{file}: {message} cannot represent {', '.join(outside)}: dropped")
            if message == "HloProto":
                data = hlo.proto.wrapped(data)
            if kind == _JSON:
                data = hlo.proto.to_json(data, message).encode()
    except hlo.HloSyntaxError as error:
        raise Unreadable(brief(error), str(error)) from None
    except (hlo.InputError, ImportError) as error:
        raise Unreadable(
            f"{file}: {error}" if isinstance(error, hlo.ProtoError) and not error.file_name else str(error)
        ) from None
    write_file(output, data)
    if note:
        say(note)


def _module(file: str, name: str | None) -> hlo.Module:
    """The module to be converted. Raises Unreadable, and what reading raises."""
    data, label = read_data(file)
    if isinstance(data, bytes) and is_foreign(data) and not is_json(data):
        data = hlo.proto.converted(data, label)
    found: Sequence[hlo.Module]
    if is_binary(data):
        found = modules = hlo.proto.read_modules(data, label)
        names = list(modules.names) if len(modules) > 1 else [module.name for module in found]
    elif file.endswith(".json") or is_json(data):
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        try:
            found = hlo.proto.read_modules(hlo.proto.from_json(text), label)
        except hlo.ProtoError as error:
            raise Unreadable(str(error) if error.file_name else f"{label}: {error}") from None
        names = [module.name for module in found]
    else:
        found = hlo.parse_all(data, name=label)
        names = [module.name for module in found]
    if name is not None:
        chosen = [number for number, known in enumerate(names) if known == name]
        if not chosen:  # a trace numbers its programs
            chosen = [number for number, known in enumerate(names) if known.rpartition("(")[0] == name]
        if len(chosen) > 1 and names[chosen[0]] != name:
            listed = ", ".join(names[number] for number in chosen[:10])
            raise Unreadable(f"{label} has several modules {name}; choose one of {listed}")
        if not chosen:
            meant = did_you_mean(name, names) or f"its modules are {', '.join(names[:10])}"
            raise Unreadable(f"{label} has no module {name}; {meant}")
        return found[chosen[0]]
    if not found:
        raise Unreadable(f"{label}: {NO_MODULES}" if is_binary(data) else f"{label} contains no module")
    if len(found) != 1:
        raise Unreadable(
            f"{label} holds {len(found)} modules; choose one with --module: {', '.join(names[:10])}"
        )
    return found[0]
