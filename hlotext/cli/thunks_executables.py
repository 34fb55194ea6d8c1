"""`hlotext thunks --executable`: what the executable of a compilation consists of."""

from __future__ import annotations

import os
from typing import Any

import attrs

import hlotext as hlo
from hlotext import analysis, compiler, dumps
from hlotext.cli.common import Unreadable, write_json
from hlotext.cli.output import Column, Table, output


def show(paths: tuple[str, ...], limit: int, output_format: str) -> None:
    """The executables of dump folders, as text or JSON."""
    try:
        found = [compiler.executable(one) for path in paths for one in dumps.open(path).compilations]
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    if output_format == "json":
        write_json({"executables": list(map(_as_json, found))})
        return
    report = output()
    for one in found:
        report.heading(f"{one.name} ({one.platform or 'unknown platform'})")
        rows = [
            [
                part.name,
                f"{part.count:,}" if part.count is not None else "",
                analysis.byte_text(part.bytes) if part.bytes is not None else "",
                part.detail if not part.missing else f"unknown: {part.missing}",
            ]
            for part in one.parts
        ]
        columns = [
            Column("part", "cyan"),
            Column("number", is_number=True),
            Column("size", is_number=True),
            Column(""),
        ]
        report.table(Table("What the executable consists of", columns, rows))
        kernels = sorted(one.kernels, key=lambda kernel: (-len(kernel.launches), kernel.name))
        cells = [
            [
                kernel.name,
                str(len(kernel.launches)),
                analysis.byte_text(kernel.bytes),
                os.path.basename(kernel.file),
            ]
            for kernel in kernels[: limit or None]
        ]
        columns = [
            Column("kernel", "cyan"),
            Column("thunks", is_number=True),
            Column("size", is_number=True),
            Column("file"),
        ]
        report.table(
            Table("Kernels, the most often launched first", columns, cells, len(kernels) - len(cells))
        )


def _as_json(one: compiler.Executable) -> dict[str, Any]:
    return {
        "module": one.name,
        "platform": one.platform,
        "parts": [attrs.asdict(part) for part in one.parts],
        "kernels": [
            {
                "name": kernel.name,
                "file": kernel.file,
                "bytes": kernel.bytes,
                "launched_by": [thunk.number for thunk in kernel.launches],
            }
            for kernel in one.kernels
        ],
    }
