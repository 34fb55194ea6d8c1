"""What every test needs: where the real dumps and the test cases lie, and how to read them."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext.edit import dirty_lines
from hlotext.edit.journal import Journal

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "corpus"
"""Modules written by XLA (and handmade ones), described in corpus/manifest.json."""
INVALID = CORPUS / "invalid"
"""Files that hold no well-formed module."""
DATA = Path(__file__).resolve().parent / "data"
"""Test cases that are files."""
ON_GPU = 'fingerprint_before_lhs="0"'
"""The frontend attribute by which a module of a few lines is one for GPU."""

SAY_ALL: dict[str, Any] = dict.fromkeys(
    ("warn", "note", "warn_peak", "note_peak", "scarce_memory", "floor_seconds", "floor_bytes"), 0
)
"""Settings of lint with which nothing is too small to be said: the modules of tests are."""

VALID_FOLDERS = ("cpu", "gpu", "handmade", "tpu")

_UNPACK: dict[str, Callable[[bytes], bytes]] = {".xz": lzma.decompress, ".gz": gzip.decompress}


def in_stages(values: Sequence[Any], *, slow: int = 0, nightly: int) -> list[Any]:
    """Values of a parameter, whose tests are slow from index `slow` on, and only for the nightly job from `nightly` on."""
    marks = [
        (pytest.mark.slow,) * (n >= slow) + (pytest.mark.nightly,) * (n >= nightly)
        for n in range(len(values))
    ]
    return [pytest.param(value, marks=mark) for value, mark in zip(values, marks, strict=True)]


def spread(values: Sequence[Any], ways: int) -> list[Any]:
    """The same values in another order: each part of 1/`ways` of them holds some of every region."""
    return [value for start in range(ways) for value in values[start::ways]]


def corpus_files(folders: Sequence[str] = VALID_FOLDERS) -> list[Path]:
    """The files of the corpus that hold a module, in a fixed order: one folder after the other, by name."""
    return [path for folder in folders for path in sorted((CORPUS / folder).iterdir())]


def read_text(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .xz or .gz."""
    unpack = _UNPACK.get(path.suffix)
    data = path.read_bytes()
    return data if unpack is None else unpack(data)


def corpus_id(path: Path) -> str:
    """How pytest names a file of the corpus: `tpu/mlp_train.v5e_2x2x1.after_optimizations`."""
    return f"{path.parent.name}/{path.name.removesuffix('.xz').removesuffix('.txt')}"


def check_golden(path: Path, actual: str, *, update: bool) -> None:
    """Asserts that a file holds exactly `actual`, byte for byte; with `update` it is written instead."""
    data = actual.encode("utf-8", "surrogateescape")
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert path.exists(), f"{path} does not exist; run pytest with --update-goldens"
    # Compared as text, so that pytest shows the lines that differ.
    assert path.read_bytes().decode("utf-8", "surrogateescape") == actual


def touch(node: hlo.Instruction | hlo.Module, *, header: bool = False) -> None:
    """Marks a node as edited after its private fields were changed, which no edit would do."""
    if isinstance(node, hlo.Module):
        (dirty_lines.touch_header if header else dirty_lines.mark_module_dirty)(Journal(node), node)
    else:
        dirty_lines.mark_dirty(
            Journal(node.computation.module if node.computation is not None else None), node
        )
