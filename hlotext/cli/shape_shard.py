"""Shards for `hlotext shape`: of an array, and of a module's arguments."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import attrs
import click

import hlotext as hlo
from hlotext import analysis
from hlotext.analysis import Shard, byte_text
from hlotext.analysis.shards import padding_fraction_of
from hlotext.cli.chip_options import told
from hlotext.cli.common import Inputs, Unreadable, write_json, write_picture
from hlotext.cli.listing import Listing, Row, Shown
from hlotext.cli.output import Output, echo, output
from hlotext.ir.values.named_sharding import with_mesh
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import OpSharding, Sharding
from hlotext.ir.values.tile_assignment import IotaTileAssignment
from hlotext.syntax import read_terms
from hlotext.view.sharding_picture import sharding_svg


@attrs.frozen
class Wanted:
    """Questions that the command line asks about a sharded array."""

    device: int | None = None
    element: str | None = None
    num_devices: int | None = None
    svg: str | None = None


def show_array(shape_text: str, sharding: str, wanted: Wanted, limit: int, output_format: str) -> None:
    """Shows the shards of an array. Raises Unreadable, UsageError."""
    try:
        shape = read_terms.read_shape(shape_text)
    except hlo.HloSyntaxError as error:
        raise Unreadable(_said(shape_text, error)) from None
    try:
        parsed = hlo.parse_sharding(sharding)
    except hlo.HloSyntaxError as error:
        raise Unreadable(_said(sharding, error)) from None
    if wanted.svg is not None:
        write_picture(wanted.svg, told(lambda: _picture(shape, parsed, wanted.num_devices)))
        return
    found = told(lambda: _Found(shape, parsed, wanted.num_devices))
    if wanted.device is not None and found.parts and wanted.device not in found.parts:
        raise click.UsageError(
            f"no device {wanted.device}; devices are {min(found.parts)} to {max(found.parts)}"
        )
    index = _index(wanted.element) if wanted.element is not None else None
    holders = None
    if index is not None:
        try:
            holders = told(lambda: parsed.devices_of(shape, index, wanted.num_devices))
        except IndexError as error:
            raise click.UsageError(str(error)) from None
    if output_format == "json":
        write_json(_json(found, wanted.device, index, holders))
        return
    _show(output(), found, wanted.device, index, holders, limit)


def _said(text: str, error: hlo.HloSyntaxError) -> str:
    """The error in a shape or sharding of the command line, which it names."""
    found = error.diagnostic
    return f"{text}: {found.message} (column {found.column})" + (f"; {found.help}" if found.help else "")


class _Found:
    """The answers about one array. Raises ValueError if the sharding is none of the shape."""

    def __init__(self, shape: Shape, sharding: Sharding, num_devices: int | None) -> None:
        self.shape, self.sharding = shape, sharding
        self.shard_shape = sharding.shard_shape(shape)
        self.parts: dict[int, tuple[slice, ...]] = {}
        self.problem: str | None = None
        try:
            parts = sharding.device_indices(shape, num_devices)
            self.parts = {number: parts[number] for number in sorted(parts)}
        except ValueError as error:
            self.problem = str(error)
        self.padding_fraction = padding_fraction_of(shape, sharding) if shape.is_array else None
        self.replication = sharding.replication

    @property
    def forms(self) -> dict[str, str]:
        """The sharding in other words, each that differs from what was written."""
        found: dict[str, str] = {}
        plain = self.sharding.without_mesh().canonical()
        found["without mesh"] = str(plain)
        if isinstance(plain, OpSharding):
            tiles = plain.tile_assignment
            if isinstance(tiles, IotaTileAssignment) and tiles.num_devices <= 1024:
                listed = OpSharding(
                    plain.type,
                    None,
                    tiles.device_list(),
                    plain.replicate_on_last_tile_dim,
                    plain.last_tile_dims,
                )
                found["listed"] = str(listed)
            with contextlib.suppress(ValueError):
                found["with mesh"] = str(with_mesh(plain))
        return {name: text for name, text in found.items() if text != str(self.sharding)}


def _index(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() and len(part) < 19 for part in parts):
        raise click.UsageError("--element takes comma-separated indices")
    return tuple(int(part) for part in parts)


def _show(
    report: Output,
    found: _Found,
    device: int | None,
    index: tuple[int, ...] | None,
    holders: tuple[int, ...] | None,
    limit: int,
) -> None:
    whole, part = (analysis.total_of(shape).allocated_bytes for shape in (found.shape, found.shard_shape))
    facts = [
        ("array", f"{found.shape}, {byte_text(whole)}"),
        ("sharding", str(found.sharding)),
        ("one device", f"{found.shard_shape}, {byte_text(part)}"),
    ]
    if found.parts:
        facts.append(("devices", f"{len(found.parts):,}"))
    if found.replication is not None:
        facts.append(("each part on", f"{found.replication:,} device{'s' if found.replication != 1 else ''}"))
    if found.padding_fraction:
        facts.append(
            (
                "wasted",
                f"{100 * found.padding_fraction:.3g}% of allocated bytes, because dimensions do not divide evenly",
            )
        )
    if found.problem is not None:
        facts.append(("parts", found.problem))
    if device is not None:
        held = found.parts.get(device)
        facts.append((f"device {device}", "nothing" if held is None else _slices(held)))
    if index is not None and holders is not None:
        text = ", ".join(map(str, holders[:32])) + (", ..." if len(holders) > 32 else "")
        facts.append((f"[{', '.join(map(str, index))}] on", f"device {text}" if holders else "no device"))
    facts += [(name, text) for name, text in found.forms.items()]
    report.facts(facts)
    if device is not None or index is not None or not found.parts:
        return
    picture = _terminal_picture(found, report.width)
    if picture:
        echo("")
        for line in picture:
            echo(line)
        return
    parts: Listing[tuple[int, tuple[slice, ...]]] = Listing(
        "shard.parts", lambda part: (part[0], _slices(part[1]))
    )
    report.table(parts.table("Parts", list(found.parts.items()), limit))


def _slices(held: tuple[slice, ...]) -> str:
    return f"[{', '.join(f'{one.start}:{one.stop}' for one in held)}]"


def _grid(found: _Found) -> list[list[str]] | None:
    """The devices of each part of an array of one or two cut dimensions, row by row; None for others and for many parts."""
    cut = [
        n
        for n, size in enumerate(found.shape.dimensions)
        if any(p[n] != slice(0, size) for p in found.parts.values())
    ]
    if len(cut) > 2:
        return None
    starts = [sorted({held[n].start for held in found.parts.values()}) for n in cut]
    while len(starts) < 2:
        starts.insert(0, [0])
        cut.insert(0, -1)
    if len(starts[0]) > 16 or len(starts[1]) > 16:
        return None
    cells: dict[tuple[int, int], list[int]] = {}
    for number, held in found.parts.items():
        row, column = (held[n].start if n >= 0 else 0 for n in cut)
        cells.setdefault((row, column), []).append(number)
    return [[_devices(cells.get((row, column), [])) for column in starts[1]] for row in starts[0]]


def _devices(numbers: list[int]) -> str:
    """Device numbers, runs of them with a dash."""
    parts = []
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        group = [number for _, number in run]
        parts.append(str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}")
    return ",".join(parts[:4]) + (",..." if len(parts) > 4 else "")


def _terminal_picture(found: _Found, report_width: int | None) -> list[str]:
    """The grid of parts with the devices that hold each, as boxes; empty if it would be too wide."""
    grid = _grid(found)
    if grid is None or not grid or (len(grid) == 1 and len(grid[0]) == 1):
        return []
    width = max(len(cell) for row in grid for cell in row) + 2
    if (width + 1) * len(grid[0]) + 1 > (report_width or 100):
        return []
    line = "+" + "+".join("-" * width for _ in grid[0]) + "+"
    lines = [line]
    for row in grid:
        lines.append("|" + "|".join(cell.center(width) for cell in row) + "|")
        lines.append(line)
    return lines


def _picture(shape: Shape, sharding: Sharding, num_devices: int | None) -> str:
    return sharding_svg(shape, sharding, num_devices)


def _json(
    found: _Found, device: int | None, index: tuple[int, ...] | None, holders: tuple[int, ...] | None
) -> dict[str, Any]:
    return {
        "shape": str(found.shape),
        "sharding": str(found.sharding),
        "shard_shape": str(found.shard_shape),
        "bytes": analysis.total_of(found.shape).allocated_bytes,
        "device_bytes": analysis.total_of(found.shard_shape).allocated_bytes,
        "replication": found.replication,
        "waste": found.padding_fraction,
        "problem": found.problem,
        "forms": found.forms,
        "parts": {
            str(number): [[one.start, one.stop] for one in held]
            for number, held in found.parts.items()
            if device in (None, number)
        },
        "element": None if index is None else {"index": list(index), "devices": list(holders or ())},
    }


# ---- modules


def show_modules(place: str, limit: int, output_format: str) -> None:
    """Shows the shards of the arguments, results and largest values of modules."""
    inputs = Inputs([place])
    documents = []
    report = output()
    for name, result in inputs:
        for module in result.modules:
            tables = {
                "arguments": analysis.argument_shards(module),
                "results": analysis.result_shards(module),
                "largest": analysis.largest_shards(module, limit or 1 << 30),
            }
            if output_format == "json":
                rows = {title: _SHARDS.json(found) for title, found in tables.items()}
                partitioned = analysis.is_partitioned(module)
                documents.append({"file": name, "module": module.name, "is_partitioned": partitioned, **rows})
                continue
            report.heading(f"{name}: {module.name}")
            _show_module(report, module, tables, limit)
    if output_format == "json":
        write_json({"modules": documents})
    inputs.finish()


def _show_module(
    report: Output, module: hlo.Module, tables: dict[str, tuple[Shard, ...]], limit: int
) -> None:
    arguments = tables["arguments"]
    facts = [("arguments on a device", byte_text(sum(one.device_bytes or 0 for one in arguments)))]
    if analysis.is_partitioned(module):
        facts.append(("shapes", "per device (the module is partitioned)"))
    else:
        facts.insert(0, ("arguments", byte_text(sum(one.global_bytes or 0 for one in arguments))))
    report.facts(facts)
    titles = {"arguments": "Arguments", "results": "Results", "largest": "Largest values with a sharding"}
    for key, found in tables.items():
        report.table(_SHARDS.table(titles[key], found, limit))


def _label(one: Shard) -> str:
    """The argument's name in the program, else that of the instruction; with the place in a tuple."""
    metadata = one.instruction.metadata
    name = one.instruction.name
    if one.instruction.opcode == "parameter" and metadata is not None and metadata.op_name:
        name = metadata.op_name
    return name + "".join(f"[{number}]" for number in one.index)


def _shard(one: Shard) -> Row:
    return (
        one.instruction.name,
        _label(one),
        list(one.index),
        Shown(None if one.sharding is None else str(one.sharding), one.problem or str(one.sharding or "")),
        None if one.shape is None else str(one.shape),
        Shown(str(one.shard_shape), one.shard_shape.text_without_layout()),
        one.global_bytes if one.shape is None else Shown(one.global_bytes, byte_text(one.global_bytes)),
        one.device_bytes,
        one.replication,
        one.padding_fraction,
        one.problem,
    )


_SHARDS = Listing("shard.arrays", _shard)
