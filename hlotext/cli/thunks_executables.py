"""`hlotext thunks --executable`: what the executable of a compilation consists of."""

from __future__ import annotations

import os
from typing import Any

import attrs

import hlotext as hlo
from hlotext import compiler, dumps
from hlotext.cli.common import Unreadable, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import output


def show(paths: tuple[str, ...], limit: int, output_format: str) -> None:
    """Prints the executables of dump folders, as text or JSON."""
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
        report.table(_PARTS.table("Parts of the executable", one.parts))
        kernels = sorted(one.kernels, key=lambda kernel: (-len(kernel.launches), kernel.name))
        report.table(_KERNELS.table("Kernels, most launches first", kernels, limit))


_PARTS: Listing[compiler.ExecutablePart] = Listing(
    "thunks.parts",
    lambda one: (one.name, one.count, one.bytes, f"unknown: {one.missing}" if one.missing else one.detail),
)
_KERNELS: Listing[compiler.Kernel] = Listing(
    "thunks.kernels", lambda one: (one.name, len(one.launches), one.bytes, os.path.basename(one.file))
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
