"""The one description of the columns of tables, `hlotext/schemas/tables`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlotext
from hlotext.schemas import columns

_PACKAGE = Path(hlotext.__file__).parent
_FILES = sorted((_PACKAGE / "schemas" / "tables").glob("*.json"))
_NAMES = {f"{path.stem}.{name}" for path in _FILES for name in json.loads(path.read_text("utf-8"))}
_OPTIONS = {
    "style",
    "rank",
    "least",
    "order",
    "unknown",
    "some",
    "optional",
    "bar",
    "hatched",
    "second",
    "signed",
}


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_columns_are_of_known_kinds(name: str) -> None:
    for column in columns.columns(name):
        assert column.title is None or column.kind in columns.WORDS or column.kind in columns.NUMBERS, column
        assert set(column.options) <= _OPTIONS, column
        assert column.key or column.title is not None


def test_every_described_table_is_used_and_every_used_one_described() -> None:
    used = {
        name
        for path in _PACKAGE.rglob("*.py")
        for name in re.findall(r'"([a-z]+\.[a-z_]+)"', path.read_text("utf-8"))
        if name.partition(".")[0] in {file.stem for file in _FILES}
    }
    assert _NAMES - used == set()
    with pytest.raises(KeyError):
        columns.columns("time.nothing")


@pytest.mark.parametrize(
    ("kind", "options", "cell", "text"),
    [
        ("count", {}, 12345, "12,345"),
        ("count", {}, None, ""),
        ("count", {"unknown": True}, None, "?"),
        ("count", {"some": True}, 0, ""),
        ("bytes", {}, 1280, "1.25 KiB"),
        ("bytes", {}, ">= 1 KiB", ">= 1 KiB"),
        ("percent", {}, 0.256, "26%"),
        ("flag", {}, True, "yes"),
        ("flag", {}, False, ""),
        ("index", {}, (1, 0), "{1,0}"),
        ("list", {}, (), ""),
        ("name", {}, columns.Shown(3, "three"), "three"),
    ],
)
def test_text_of_a_cell(kind: str, options: dict[str, bool], cell: object, text: str) -> None:
    assert columns.Column("key", "title", kind, options).text(cell) == text


def test_record_has_the_keys_and_the_values() -> None:
    described = (
        columns.Column("bytes", "bytes", "bytes", {}),
        columns.Column("", "only shown", "text", {}),
        columns.Column("only_json", None, "", {}),
    )
    assert columns.record(described, (columns.Shown(5, "five"), "x", [1])) == {"bytes": 5, "only_json": [1]}
