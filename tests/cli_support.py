"""Running the commands in tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from hlotext.cli import main
from tests import support

GOLDEN = support.DATA / "golden" / "cli"
"""What commands write, one file for each case."""


def run(*arguments: str | Path, input: str | bytes | None = None) -> Result:
    """`hlotext ARGUMENTS` in this process, standard output and error apart."""
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], input=input, prog_name="hlotext"
    )


def run_json(*arguments: str | Path) -> Any:
    """What a command with `--format json` writes; it must end well."""
    result = run(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def module_json(path: Path) -> dict[str, Any]:
    """The facts of the one module in a file."""
    (facts,) = run_json("show", path)["modules"]
    assert isinstance(facts, dict)
    return facts


def run_process(*arguments: str, input: bytes = b"", env: dict[str, str] | None = None) -> Any:
    """`python -m hlotext ARGUMENTS` in a process of its own, in the root of the project."""
    return subprocess.run(
        [sys.executable, "-m", "hlotext", *arguments],
        input=input,
        capture_output=True,
        cwd=support.ROOT,
        env={**os.environ, **(env or {})},
        check=False,
    )
