"""What is imported when: starting a program costs what it needs, which the lists in tests/data/imports say."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.syntax.fast import shortcuts
from hlotext.syntax.language import grammar
from tests.support import DATA, ROOT

SMALL = "HloModule m\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  ROOT %p = f32[2]{0} parameter(0)\n}\n"
DUMP = ROOT / "corpus" / "tpu" / "mlp_train.v4_2x2x1.after_optimizations.txt"
STEPS = {
    "import": "import hlotext",
    "small": f"import hlotext; mark(); str(hlotext.parse({SMALL!r}).materialize().entry.root.shape)",
    "dump": f"import hlotext; text = open({str(DUMP)!r}).read(); hlotext.parse({SMALL!r}); mark(); hlotext.parse(text)",
}
"""What a program does; listed is what the last step of it imports."""
HEAVY = {"click", "difflib", "hashlib", "importlib.resources", "json", "lark", "numpy", "pathlib", "rich"}
"""Modules that take milliseconds, and that most texts can be read without."""


def imported(code: str) -> list[str]:
    """The modules that a fresh process imports for a piece of code, behind `mark()` where it calls that, sorted."""
    start = "import sys\nknown = set(sys.modules)\ndef mark(): known.update(sys.modules)\n"
    end = "\nprint(*sorted(set(sys.modules) - known))"
    run = subprocess.run(
        [sys.executable, "-c", f"{start}{code}{end}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return run.stdout.split()


@pytest.mark.parametrize("step", STEPS)
def test_what_is_imported(step: str, golden: Callable[[Path, str], None]) -> None:
    """Exactly the listed modules of hlotext, and nothing that takes long."""
    found = imported(STEPS[step])
    assert not HEAVY.intersection(found)
    ours = [name for name in found if name.partition(".")[0] == "hlotext"]
    golden(DATA / "imports" / f"{step}.txt", "".join(f"{name}\n" for name in ours))


def test_public_names_are_there_before_they_are_imported() -> None:
    """`from hlotext import *` and `dir` know what comes late, and what is no name is said."""
    code = "from hlotext import *; import hlotext; mark(); assert {*hlotext.__all__} <= {*globals()} & {*dir(hlotext)}"
    assert imported(code) == []
    assert imported("import hlotext; assert {*hlotext.__all__, 'lint'} <= {*dir(hlotext)}; mark()") == []
    for name in hlo.__all__:
        assert getattr(hlo, name).__name__ == ("Finding" if name == "Diagnostic" else name)
    with pytest.raises(AttributeError, match="no attribute 'pars'"):
        hlo.pars  # type: ignore[attr-defined] # noqa: B018


PACKAGES = [
    "hlotext",
    *(found.name for found in pkgutil.walk_packages(hlo.__path__, "hlotext.") if found.ispkg),
]


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_resolve(package: str) -> None:
    """A name that is imported on first access fails only there, long after its module was renamed."""
    opened = importlib.import_module(package)
    missing = []
    for name in getattr(opened, "__all__", ()):
        try:
            getattr(opened, name)
        except ImportError as error:
            missing.append(str(error.name))
    assert not [name for name in missing if name.startswith("hlotext")]  # others are optional dependencies


@pytest.mark.parametrize("rule", shortcuts.FAST_RULES)
def test_shortcuts_are_where_the_table_says(rule: str) -> None:
    """Each is for a rule of the grammar."""
    assert rule in grammar.names()
    assert callable(shortcuts.shortcut(rule))


def test_values_show_their_fields() -> None:
    """One `__repr__` for all values gives what attrs would give each."""
    assert repr(hlo.Tile((8, 128))) == "Tile(dimensions=(8, 128))"
    assert repr(hlo.parse_window("{size=3}").dimensions[0]).startswith("WindowDimension(size=3, stride=1, ")


def test_a_command_on_dumps_loads_no_other_and_no_models() -> None:
    """`dump why --help` took a second: it loaded the comparison of folders, execution and every model."""
    found = imported("from hlotext.cli import dump; dump.command")
    assert not {"hlotext.cli.dump_bisect", "hlotext.cli.dump_pass", "hlotext.execution"} & {*found}
    found = imported("from hlotext.compiler import models; models.model_of('copy-insertion', 'tpu')")
    assert not {"hlotext.compiler.copies", "hlotext.compiler.scheduling"} & {*found}
    assert "hlotext.messages.kinds" not in imported("import hlotext.messages; hlotext.messages.Message")


COMMANDS = {
    "check": ("check", "FILE"),
    "diff": ("diff", "FILE", "FILE"),
    "lint": ("lint", "FILE"),
    "rewrite": ("rewrite", "-p", "dce", "FILE"),
    "show": ("show", "FILE"),
    "verify": ("verify", "FILE"),
}


NOT_FOR_SMALL_TEXTS = {
    "hlotext.dumps.compilation",
    "hlotext.dumps.identity.graph",
    "hlotext.execution.client",
    "hlotext.memory.assignment",
    "multiprocessing",
    "numpy",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_on_a_small_text_do_without_numpy(command: str, tmp_path: Path) -> None:
    """It takes as long to import as the command takes; nor is loaded what other texts need: models of memory, folders."""
    path = tmp_path / "small.txt"
    path.write_text(SMALL, encoding="utf-8")
    words = [str(path) if word == "FILE" else word for word in COMMANDS[command]]
    code = f"import os; os.dup2(2, 1); from hlotext.cli import main; main({words!r}, standalone_mode=False)"
    start = "import sys\nknown = set(sys.modules)\n"
    end = "\nprint('loaded', *sorted(set(sys.modules) - known), file=sys.stderr)"
    run = subprocess.run(
        [sys.executable, "-c", f"{start}{code}{end}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = {*run.stderr.rpartition("loaded ")[2].split()}
    assert f"hlotext.cli.{command}" in found
    assert not NOT_FOR_SMALL_TEXTS & found


def test_a_name_that_a_module_has_too_is_not_the_module() -> None:
    """`analysis.loops` is the function, whether its module was imported before or not."""
    for first in ("import hlotext.analysis.loops", "from hlotext.analysis.loops import Loop", ""):
        imported(
            f"{first}\nfrom hlotext import analysis, cost\nassert callable(analysis.loops)\nanalysis.loops"
        )
        imported(
            f"import hlotext.cost.estimate\nfrom hlotext import cost\nassert callable(cost.estimate)\n{first}"
        )
