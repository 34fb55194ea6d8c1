"""What commands write and where they look: whole files or none, no links out of a folder, devices that are full."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hlotext.ir import files
from tests.cli_support import run

TEXT = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[4] parameter(0)
  ROOT r = f32[4] negate(p)
}
"""
WRONG = TEXT.replace("f32[4] negate", "f32[5] negate")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    "line",
    [
        "report {0} -o {1}",
        "graph {0} -o {1}",
        "convert {0} -o {1}",
        "extract {0} -i r -o {1}",
        "memory {0} --svg {1}",
        "verify {0} -o {1}",
    ],
)
def test_a_file_is_written_whole_or_not_at_all(
    line: str, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was there stays where writing fails on the way, and nothing else is left."""
    if line.startswith("report"):
        pytest.importorskip("bokeh")
        pytest.importorskip("jinja2")
    out = tmp_path / ("out.html" if line.startswith(("report", "graph")) else "out.txt")
    out.write_text("before")
    out.chmod(0o640)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    arguments = line.format(text, out).split()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        result = run(*arguments)
        assert (result.exit_code, "No space left on device" in result.stderr) == (2, True), result.output
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.hlo", out.name]
    assert run(*arguments).exit_code == 0
    assert out.read_text() != "before"
    assert out.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.hlo", out.name]


@pytest.mark.skipif(os.name == "nt", reason="links and pipes")
def test_links_and_devices_stay_what_they_are(text: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("before")
    link.symlink_to(target)
    assert run("convert", text, "-o", link).exit_code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("HloModule m")
    other = tmp_path / "other.txt"
    os.link(target, other)
    files.write_text(other, "both")
    assert target.read_text() == "both"
    files.write_text(os.devnull, "nothing")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
@pytest.mark.parametrize("line", ["--help", "--version", "show --help", "dump list --help", "opcodes"])
def test_a_full_device_is_one_line(line: str) -> None:
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [sys.executable, "-m", "hlotext", *line.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == "hlotext: standard output: cannot write: No space left on device\n"


@pytest.mark.skipif(os.name == "nt", reason="links")
@pytest.mark.parametrize("command", ["check", "lint", "verify", "show", "cost", "table"])
def test_links_out_of_a_folder_are_not_followed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dump that came from elsewhere shows no line of a file of this machine."""
    if command == "table":
        pytest.importorskip("pyarrow")
        pytest.importorskip("fsspec")
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "a.hlo").write_text(TEXT)
    (folder / "near.hlo").symlink_to(folder / "a.hlo")
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0\n")
    (folder / "b.hlo").symlink_to(secret)
    more = ["-o", str(tmp_path / "out"), "-j", "1"] if command == "table" else []
    result = run(command, folder, *more)
    assert "root:" not in result.output
    assert result.exit_code == 0, result.output
    if command != "table":
        assert (
            "b.hlo: skipped, because it links out of the folder (hlotext --follow-links follows such links)"
            in result.stderr
        )
    monkeypatch.setenv("HLOTEXT_FOLLOW_LINKS", "0")
    assert run(command, folder, *more, *(["--append"] if more else [])).exit_code == 0
    monkeypatch.setenv("HLOTEXT_FOLLOW_LINKS", "1")
    assert run(command, folder, *more, *(["--append"] if more else [])).exit_code != 0


def test_statistics_in_every_format(tmp_path: Path) -> None:
    path = tmp_path / "wrong.hlo"
    path.write_text(WRONG)
    given = ("lint", path, "--isolated", "--statistics", "--extend-select", "V", "-q")
    result = run(*given, "--format", "json")
    found = json.loads(result.stdout)
    assert found["findings"] == []
    assert {"code": "V101", "count": 1}.items() <= found["statistics"][0].items()
    assert json.loads(run(*given, "--format", "json-lines").stdout)["code"] == "V101"
    assert "| V101 | 1 |" in run(*given, "--format", "markdown").stdout
    assert run(*given).stdout.startswith("1  V101")
    refused = run(*given, "--format", "sarif")
    assert (refused.exit_code, "--statistics only counts" in refused.stderr) == (2, True)


JUNIT = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {
            *(
                "name",
                "tests",
                "failures",
                "errors",
                "group",
                "time",
                "skipped",
                "timestamp",
                "hostname",
                "id",
                "package",
            ),
            *("file", "log", "url"),
        },
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set()),
}
"""Attributes and elements that Jenkins' junit-10.xsd allows, as far as they are written."""


def test_junit_is_what_its_schema_allows(tmp_path: Path) -> None:
    for name, text in (("a.hlo", TEXT), ("b.hlo", WRONG)):
        (tmp_path / name).write_text(text)
    for command in ("verify", "check", "lint"):
        root = ET.fromstring(run(command, tmp_path / "a.hlo", tmp_path / "b.hlo", "--format", "junit").stdout)
        assert root.tag == "testsuites"
        for element in root.iter():
            attributes, inside = JUNIT[element.tag]
            assert set(element.attrib) <= attributes
            assert {child.tag for child in element} <= inside
            needed = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}}
            assert needed.get(element.tag, set()) <= set(element.attrib)
