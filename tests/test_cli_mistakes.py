"""Mistakes on the command line: each is answered in one or two lines that name it and say what to type."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from hlotext.cli import main

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT negate.5 = f32[4]{0} negate(p)\n}\n"

MISTAKES = {
    # Files that are no modules.
    "show nosuch.txt": "nosuch.txt does not exist",
    "show none": "no module found in none",
    "memory none": "no module found in none",
    "diff step.txt none": "none holds no modules",
    "show empty.txt": "empty.txt:1:1: error[X123]: the text is empty",
    "show program": "it seems to be an ELF binary",
    "show x.json": "it seems to be JSON",
    "show short.gz": "short.gz is a damaged compressed file",
    # A file for a folder, and the other way round.
    "dump list step.txt": "step.txt is no dump folder; for one module: hlotext show step.txt",
    "dump timeline modules": "modules holds no files named as --xla_dump_to names them",
    "diff step.txt": "expected two modules",
    # Names.
    "show step.txt -i negate.6": "no instruction or computation negate.6 in step.txt; did you mean negate.5?",
    "extract step.txt -i negate.6": "no instruction is called negate.6 in step.txt; did you mean negate.5?",
    "memory step.txt --chip h1000": "no chip is named 'h1000'; did you mean `h100`?",
    "memory step.txt --chip abacus": "no chip is named 'abacus'; known: v2, v3",
    "cost step.txt --mesh data": "write NAME=SIZE",
    "rewrite step.txt -p algsmp": "there is no pass algsmp; did you mean `algsimp`?",
    "rewrite step.txt": "give passes (-p) or rules (-r)",
    "lint step.txt --select C10I": "neither the code of a rule nor the start of one; did you mean `C1",
    "lint step.txt --config nosuch.toml": "nosuch.toml cannot be read: No such file or directory",
    "lint step.txt --baseline nosuch.json": "nosuch.json cannot be read: No such file or directory",
    "grep 'all-gathr(_)' step.txt": "there is no opcode all-gathr: did you mean `all-gather`?",
    "grep 'add(' step.txt": "at column 5, found the end",
    "show step.txt --format yaml": "'yaml' is not one of 'text', 'json'",
    "run step.txt --inputs x.npz": "Did you mean '--input'?",
    "convert step.txt -o out.xyz": "out.xyz ends in none of .txt, .hlo, .pb, .json",
    "fmt step.txt --age 0.99": "--age says which XLA reads the text: it needs --reread",
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "step.txt": TEXT.encode(),
        "empty.txt": b"",
        "program": b"\x7fELF\x02\x01\x01" + bytes(60),
        "x.json": b'{"a": 1}',
        "short.gz": bytes.fromhex("1f8b08000000000000034b4c4a"),
        "modules/step.txt": TEXT.encode(),
    }.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)
    Path("none").mkdir()


@pytest.mark.parametrize("line", MISTAKES)
@pytest.mark.usefixtures("files")
def test_mistakes(line: str) -> None:
    """At most two lines, the first of which says what is wrong; nothing on standard output."""
    result = CliRunner().invoke(main, shlex.split(line))
    lines = result.stderr.splitlines()
    assert MISTAKES[line] in lines[0]
    assert len(lines) <= 2
    assert max(map(len, lines)) <= 160
    assert result.stdout == ""
    assert result.exit_code == (1 if " -i " in line else 2)
