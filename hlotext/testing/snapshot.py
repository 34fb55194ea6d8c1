"""Snapshots: the canonical text of a module, kept in a file next to the test."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import attrs

from hlotext.ir.files import write_text
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.print_options import PrintOptions
from hlotext.ir.values.raw_value import value_text
from hlotext.syntax.printing.xla_styles import TextPrinter

FOLDER = "__hlo_snapshots__"
"""The folder of snapshots next to a test file."""
_OPTIONS = attrs.evolve(
    PrintOptions.canonical(),
    print_ids=False,
    print_channel_id=False,
    print_frontend_attributes=False,
    print_large_constants=False,
)
_HEADER = ("replica_count", "num_partitions", "input_output_alias", "buffer_donor")
"""Header attributes that are part of a program's meaning."""


def canonical_text(module: Module) -> str:
    """Returns the entry with called computations inline, without names, ids, metadata and backend configs."""
    lines = [
        f"{name}={value_text(module.attributes[name], name)}" for name in _HEADER if name in module.attributes
    ]
    body = TextPrinter(_OPTIONS).computation(module.entry, is_entry=True)
    return "\n".join([*lines, body]) + "\n"


def check_snapshot(path: Path, actual: str, *, update: bool) -> None:
    """Asserts that a file contains a text, or with `update` writes it. A missing file fails with instructions."""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, actual)
        return
    if not path.exists():
        raise AssertionError(f"no snapshot {path}; run pytest with --hlo-update-snapshots")
    expected = path.read_text("utf-8", "surrogateescape")
    if expected != actual:
        lines = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), f"{path.name}, as it was", "as it is", lineterm=""
        )
        shown = [line if len(line) <= 200 else f"{line[:200]} ..." for line in lines][:60]
        report = "\n".join(shown)
        raise AssertionError(
            f"the module differs from its snapshot (--hlo-update-snapshots accepts it):\n{report}"
        )


def file_name(test: str, name: str, number: int) -> str:
    """Returns the file name of the nth snapshot of a test."""
    stem = re.sub(r"[^\w.\-\[\]]+", "_", f"{test}.{name}" if name else test)
    return f"{stem}.txt" if number == 1 or name else f"{stem}.{number}.txt"
