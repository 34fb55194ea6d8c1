"""Everything that is done with a text: the list that the armed module, the fuzzer and the bench of linearity go through.

It is made from the registries of passes, printing presets, formats and commands, so what is new there is in it. A command
needs its lines in `LINES`, or a reason in `WITHOUT_MODULE`; a test says so.
"""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import attrs
import click

import hlotext as hlo
from hlotext.cli import COMMANDS
from hlotext.cli.lint import FORMATS
from hlotext.rewrite.kit.limits import PassLimitError
from hlotext.rewrite.passes import PASSES, Pass
from hlotext.rewrite.passes.base import BrokenModuleError
from tests import cli_support
from tests.fuzz import oracle, seeds

FILE, OUT = "FILE", "OUT"
"""What stands for the module's file, and for a file that may be written."""
LINES: dict[str, tuple[str, ...]] = {
    "show": ("show FILE", "show FILE --format json", "show FILE -i e", "show FILE -i x"),
    "fmt": ("fmt FILE", "fmt --style short FILE", "fmt --check --diff FILE"),
    "convert": ("convert FILE -o OUT",),
    "check": tuple(f"check FILE --format {kind}" for kind in FORMATS),
    "verify": tuple(f"verify FILE --format {kind}" for kind in FORMATS),
    "lint": (
        *(f"lint FILE --isolated --select ALL --format {kind}" for kind in FORMATS),
        "lint FILE --isolated --select ALL --statistics",
    ),
    "triage": tuple(f"triage FILE --format {kind} -j 1" for kind in ("text", "json", "markdown")),
    "message": ("message FILE", "message FILE --format json"),
    "grep": ("grep add FILE", "grep *a*a*a*b FILE", "grep dot(...) FILE --format json"),
    "rewrite": ("rewrite -p dce,cse FILE",),
    "extract": ("extract FILE -i x", "extract FILE -i x --whole"),
    "memory": ("memory FILE --platform tpu", "memory FILE --platform cpu --format json"),
    "thunks": ("thunks FILE --platform gpu", "thunks FILE --platform cpu --format json"),
    "cost": (
        *("cost FILE", "cost FILE --by scope", "cost FILE --by line", "cost FILE --format json"),
        *("cost FILE --chip v5e", "cost FILE --chip v5e --format json"),
    ),
    "comm": ("comm FILE", "comm FILE --format json"),
    "shape": ("shape FILE", "shape FILE --format json"),
    "diff": (
        "diff FILE FILE",
        *(f"diff FILE FILE --format {kind}" for kind in ("json", "github", "markdown")),
    ),
    "graph": ("graph FILE -o OUT", "graph FILE --format dot", "graph FILE --format svg"),
    "report": ("report FILE -o OUT",),
    "table": ("table FILE -o OUT --tables all", "table FILE -o OUT --format json"),
    "sql": (
        "sql --query bytes-by-opcode FILE",
        "sql --query bytes-by-line FILE --format json",
        "sql --query bytes-by-line FILE --format csv",
        "sql --query bytes-by-line FILE --format parquet -o OUT",
    ),
}
"""Command lines of each command that takes a module."""
OF_DATASETS = {"report": {"benchmark", "markdown"}}
"""Formats of a command that only a dataset of tables has."""
WITHOUT_MODULE = {
    "bisect": "runs another program many times",
    "reduce": "runs another program many times",
    "bugreport": "runs another program many times",
    "run": "runs the program",
    "dump": "takes folders of a compilation",
    "help": "prints help",
    "lsp": "serves an editor",
    "mcp": "serves an agent",
    "skill": "copies pages",
}
"""Commands that take none, or more than one text can be."""


MODULES = frozenset({"fmt", "rewrite", "extract", "convert"})
"""Commands whose output, in a pipe, is the text of a module itself."""


@attrs.frozen
class Stage:
    """One thing that is done with a text."""

    name: str
    run: Callable[[bytes], str]
    """Does it; gives what a person would be shown. Raises what should not be raised."""


def _read(data: bytes) -> str:
    oracle.check(data, styles=())
    return ""


def _module(data: bytes) -> hlo.Module:
    return hlo.parse_tolerant(data).module


@attrs.define
class Written:
    """How much the last stage wrote: what takes long because its result is long is no fault of the way it is made."""

    count: int = 0
    """Characters, or bytes of files."""


WRITTEN = Written()


def _print(style: hlo.PrintOptions, module: hlo.Module) -> None:
    WRITTEN.count = len(module.to_text(style))


def _pass(kind: type[Pass], module: hlo.Module) -> None:
    """A module whose headers were guessed takes no edits, and says so."""
    refusals = (PassLimitError, BrokenModuleError, *([hlo.EditError] if module._is_guess else []))
    with suppress(*refusals):
        kind().run(module)
    WRITTEN.count = len(str(module))


def _rename(module: hlo.Module) -> None:
    """Every instruction gets a name, and loses its metadata; what the module must keep may be refused."""
    for number, instruction in enumerate(list(module.instructions())):
        with suppress(hlo.EditError):
            instruction.name = f"renamed.{number}"
        with suppress(hlo.EditError):
            kept = {k: v for k, v in instruction.attributes.items() if k != "metadata"}
            instruction.change(attributes=kept)
    str(module)


def _clone(module: hlo.Module) -> None:
    assert str(module.clone()) == str(module)


def _alone(work: Callable[[hlo.Module], None], data: bytes) -> str:
    work(_module(data))
    return ""


def _forget_streams() -> None:
    """click remembers every standard output that it wrote to, and with it what was written: here that is one each time."""
    for function in (click._compat._default_text_stdout, click._compat._default_text_stderr):
        for cell in function.__closure__ or ():
            if isinstance(cell.cell_contents, weakref.WeakKeyDictionary):
                cell.cell_contents.clear()


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """The folder of the files, one for all stages: making one takes as long as some stages do."""
    return tempfile.TemporaryDirectory()


def _command(line: str, data: bytes) -> str:
    folder = Path(_folder().name)
    path = folder / "m.txt"
    path.write_bytes(data)
    out = folder / "out"
    if out.is_dir():
        shutil.rmtree(out)
    out.unlink(missing_ok=True)
    words = {FILE: str(path), OUT: str(out)}
    result = cli_support.run(*(words.get(word, word) for word in line.split()))
    _forget_streams()
    written = [file.stat().st_size for file in (out, *out.rglob("*")) if file.is_file()]
    WRITTEN.count = len(result.stdout) + len(result.stderr) + sum(written)
    if "internal error" in result.stderr or result.exit_code not in (0, 1, 2):
        raise AssertionError(f"exit status {result.exit_code}: {result.stderr.strip()}")
    return result.stderr if line.split()[0] in MODULES else result.stdout + result.stderr


def _works() -> Iterator[tuple[str, Callable[[hlo.Module], None]]]:
    for number, style in enumerate(oracle.STYLES):
        yield f"print {number}", functools.partial(_print, style)
    yield "clone", _clone
    yield "edit", _rename
    for name, kind in PASSES.items():
        yield f"pass {name}", functools.partial(_pass, kind)


WORKS = dict(_works())
"""What is done with a module, by name; the edit and the passes change it."""


def _stages() -> Iterator[Stage]:
    yield Stage("read", _read)
    for name, work in WORKS.items():
        yield Stage(name, functools.partial(_alone, work))
    for command in COMMANDS:
        for line in LINES.get(command, ()):
            yield Stage(line, functools.partial(_command, line))


STAGES = tuple(_stages())

SLOW_TO_START = frozenset({"sql"})
"""Commands that open a database, which takes longer than all others together with a short text."""


def chain(data: bytes, draw: random.Random) -> Iterator[Stage]:
    """All that is done with one text: it is read, its module printed in every style, copied and edited, all passes run over
    it one after another in a drawn order, the outcome is read again, and each command has the text in one of its ways.
    """
    yield STAGES[0]
    module = _module(data)
    was_right = seeds.is_hlo(data)
    for name, work in WORKS.items():
        if not name.startswith("pass "):
            yield Stage(name, lambda _, work=work: work(module) or "")  # type: ignore[misc]
    for name in draw.sample(sorted(PASSES), len(PASSES)):
        yield Stage(f"pass {name}", lambda _, work=WORKS[f"pass {name}"]: work(module) or "")  # type: ignore[misc]
    yield Stage("read again", lambda _: _again(module, was_right))
    for command in COMMANDS:
        if command in LINES and (command not in SLOW_TO_START or draw.random() < 0.1):
            line = draw.choice(LINES[command])
            yield Stage(line, functools.partial(_command, line))


def _again(module: hlo.Module, was_right: bool) -> str:
    """The module's text must be read like any text; strictly where the first text was."""
    text = str(module).encode("utf-8", "surrogateescape")
    assert seeds.is_hlo(text) or not was_right, "what could be read before cannot be now"
    oracle.check(text, styles=())
    return ""
