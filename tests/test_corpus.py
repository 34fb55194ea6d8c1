"""The corpus is what its manifest says, and stays small."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from corpus import manifest
from tests import support

MEGABYTE = 1_000_000
ENTRIES = manifest.read()


def test_the_manifest_lists_every_file_and_no_other() -> None:
    """corpus/manifest.json and the folders hold the same files, in the same order."""
    expected = [path.relative_to(support.CORPUS).as_posix() for path in manifest.corpus_paths()]
    actual = [entry["path"] for entry in ENTRIES]
    assert expected == actual


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["path"])
def test_an_entry_describes_its_file(entry: manifest.Entry) -> None:
    """Size, digest and what the name says are those of the file."""
    expected = manifest.describe(support.CORPUS / entry["path"])
    actual = {key: value for key, value in entry.items() if key != "versions"}
    assert expected == actual


def test_every_compiled_module_has_its_versions() -> None:
    """A module that XLA wrote names the releases that wrote it."""
    for entry in ENTRIES:
        if "platform" in entry:
            assert set(manifest.COMPILED[entry["platform"]]) == set(entry["versions"]), entry["path"]
            assert "unknown" not in entry["versions"].values(), entry["path"]


def test_the_manifest_is_what_its_script_writes() -> None:
    """Running corpus/manifest.py again changes nothing."""
    expected = manifest.text_of(manifest.build(ENTRIES, {}))
    actual = manifest.MANIFEST.read_text(encoding="utf-8")
    assert expected == actual


def test_the_corpus_is_small() -> None:
    """At most 6 MB as it lies in the repository, and at most 100 compiled modules."""
    files = [path for path in support.CORPUS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) <= 6 * MEGABYTE
    assert 60 <= sum("platform" in entry for entry in ENTRIES) <= 100


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_no_file_names_the_machine_that_made_it(path: Path) -> None:
    """Source files stand in the dumps by relative names."""
    for line in support.read_text(path).splitlines():
        if b"source_file=" in line or line[:1].isdigit():
            assert b'"/' not in line


@pytest.mark.xla
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="the programs are JAX programs")
@pytest.mark.parametrize("platform", manifest.COMPILED)
def test_every_compiled_module_can_be_made_anew(platform: str) -> None:
    """corpus/generate.py knows the program and the topology of every module it could have written."""
    command = [sys.executable, "-m", "corpus.generate", platform, "--list"]
    listed = subprocess.run(command, cwd=support.ROOT, capture_output=True, text=True, check=True).stdout
    jobs = {tuple(line.split()) for line in listed.splitlines()}
    expected = {
        (entry["origin"], entry["topology"]) for entry in ENTRIES if entry.get("platform") == platform
    }
    assert expected <= jobs
