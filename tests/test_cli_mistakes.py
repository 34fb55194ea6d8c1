"""Mistakes on the command line: each is answered in one or two lines that name it or say what to type."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests import support
from tests.cli_support import run

CORPUS = {
    "MODULE": "corpus/cpu/data_parallel.cpu_4.0006.spmd-cleanup.after_dce.before_tuple-simplifier.txt",
    "RING": "corpus/cpu/ring_attention.cpu_4.after_optimizations.txt",
    "GPU": "corpus/gpu/resnet_train.h100_1x1x1.after_optimizations.txt",
    "DUMPS": "tests/data/dumps",
}
STEP = b"HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT negate.5 = f32[4]{0} negate(p)\n}\n"
CONTENTS = {
    "STEP": STEP,
    "EMPTY": b"",
    "BINARY": bytes(range(256)),
    "PROGRAM": b"\x7fELF\x02\x01\x01" + bytes(60),
    "PYTHON": b"import jax\n",
    "MLIR": b"module @m {\n}\n",
    "JSON": b'{"a": 1}',
    "GZIP": bytes.fromhex("1f8b08000000000000034b4c4a"),
    "TAR": b"junk" * 200,
}
NAMES = {"TAR": "junk.tar", "FOLDER": "folder", "NONE": "none", "MODULES": "modules"}
LINES = [line.split("|") for line in (support.DATA / "mistakes.txt").read_text("utf-8").splitlines()[3:]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the lines, by names relative to this folder."""
    found = tmp_path_factory.mktemp("mistakes")
    for word, content in CONTENTS.items():
        (found / place(word)).write_bytes(content)
    for word in ("FOLDER", "NONE", "MODULES"):
        (found / place(word)).mkdir()
    (found / place("MODULES") / "step").write_bytes(STEP)
    return found


def place(word: str) -> str:
    """The path that a word in capitals stands for; other words as they are."""
    if word in CORPUS:
        return str(support.ROOT / CORPUS[word])
    return NAMES.get(word, word.lower() if word in CONTENTS else word)


@pytest.mark.parametrize(("line", "status", "said"), LINES)
def test_mistakes(line: str, status: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most two lines, the first of which says what is wrong; nothing on standard output, but for what is marked so."""
    monkeypatch.chdir(folder)
    result = run(*map(place, shlex.split(line)))
    lines = result.stderr.splitlines()
    assert re.sub(r"{([A-Z]+)}", lambda match: place(match[1]), said) in lines[0]
    assert len(lines) <= 2
    assert max(len(re.sub(r"\S+/corpus/\S+", "FILE", line)) for line in lines) <= 160
    assert (result.stdout == "") is not status.endswith("+")
    assert result.exit_code == int(status[0])
