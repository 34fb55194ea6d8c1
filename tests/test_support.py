"""The helpers of the tests: a comparison that cannot fail would hide everything."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from tests import support


def test_a_golden_that_differs_fails(tmp_path: Path) -> None:
    """One blank more is a difference, and so is another line end."""
    path = tmp_path / "case.txt"
    path.write_bytes(b"a\r\n")
    for actual in ("a\n", "a \r\n", ""):
        with pytest.raises(AssertionError):
            support.check_golden(path, actual, update=False)
    support.check_golden(path, "a\r\n", update=False)


def test_a_missing_golden_fails(tmp_path: Path) -> None:
    """A new case needs its golden to be written and read."""
    with pytest.raises(AssertionError, match="--update-goldens"):
        support.check_golden(tmp_path / "case.txt", "a", update=False)


def test_updating_writes_the_golden(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 survive as well."""
    path = tmp_path / "folder" / "case.txt"
    support.check_golden(path, b"a\xff\r\n".decode("utf-8", "surrogateescape"), update=True)
    assert path.read_bytes() == b"a\xff\r\n"


def test_compressed_files_are_unpacked(tmp_path: Path) -> None:
    """read_text gives the same bytes whatever the file is packed with."""
    expected = b"HloModule m\r\n"
    packed = {"a.txt": expected, "b.txt.xz": lzma.compress(expected), "c.txt.gz": gzip.compress(expected)}
    for name, data in packed.items():
        path = tmp_path / name
        path.write_bytes(data)
        assert support.read_text(path) == expected


def test_all_folders_of_the_corpus_are_found() -> None:
    """A corpus that is not found would make tests over all its files pass with none."""
    files = support.corpus_files()
    assert len(files) > 150
    assert {path.parent.name for path in files} == set(support.VALID_FOLDERS)
    assert len({support.corpus_id(path) for path in files}) == len(files)
