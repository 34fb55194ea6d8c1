"""The documentation: its Python sessions and its commands run, and give what the pages show.

`pytest --update-goldens` writes the outputs of commands anew into the pages.
"""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hlotext import matchers, rewrite
from hlotext.cli import main
from hlotext.ir.foreign_names import ForeignName
from tests import support

DOCS = support.ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "tables"}.intersection(path.parts))
_COMMANDS = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SESSIONS = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WIDTH = 88


def name(path: Path) -> str:
    """Ids of test cases."""
    return str(path.relative_to(DOCS))


def with_outputs(block: str) -> str:
    """The text of a console block, each `$ hlotext ...` followed by what it prints.

    Lines from `...` on stand for any others, so that a page may show the beginning of a long output.
    """
    shown = []
    for part in re.split(r"^(?=\$ )", block, flags=re.MULTILINE):
        if not part.strip():
            continue
        command, _, old = part.partition("\n")
        words = shlex.split(command.removeprefix("$ "))
        if not words or words[0] != "hlotext":
            shown.append(part)  # a command of another program is there to be read
            continue
        result = CliRunner().invoke(main, words[1:], prog_name="hlotext", terminal_width=_WIDTH)
        lines = result.output.splitlines()
        cut = old.rstrip().endswith("\n...") or old.strip() == "..."
        if cut:
            kept = max(len(old.rstrip().splitlines()) - 1, 0)
            lines = [*lines[:kept], "..."]
        shown.append("\n".join([command, *lines]) + "\n")
    return "".join(shown)


@pytest.mark.parametrize("page", [p for p in PAGES if _COMMANDS.search(p.read_text("utf-8"))], ids=name)
def test_commands_print_what_the_page_shows(
    page: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Every `$ hlotext` of a page, run in the root of the project."""
    monkeypatch.chdir(support.ROOT)
    text = page.read_text(encoding="utf-8")
    if "$ hlotext sql" in text:
        for library in ("duckdb", "fsspec", "pyarrow"):
            pytest.importorskip(library)
    found = _COMMANDS.sub(lambda match: f"```console\n{with_outputs(match[1])}```", text)
    if request.config.getoption("--update-goldens"):
        page.write_text(found, encoding="utf-8")
    assert found == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [p for p in PAGES if _SESSIONS.search(p.read_text("utf-8"))], ids=name)
def test_python_sessions_give_what_the_page_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `pycon` block of a page, as one session."""
    monkeypatch.chdir(support.ROOT)
    blocks = _SESSIONS.findall(page.read_text(encoding="utf-8"))
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name(page), str(page), 0)
    for library in re.findall(r"^>>> import (duckdb|jax|pandas|polars)\b", "\n".join(blocks), re.MULTILINE):
        pytest.importorskip(library)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append)
    assert results.attempted
    assert not results.failed, "".join(report)


@pytest.mark.parametrize("page", [support.ROOT / "README.md", *PAGES], ids=lambda path: path.name)
def test_nothing_is_installed_from_a_registry(page: Path) -> None:
    """The package is not published, and its name is free for anybody: commands install from a clone."""
    bare = r"\b(?:uvx|(?:pip3?|pipx|uv|uv pip|uv tool) (?:install|run|add))\b[^`\n]*?['\" ]hlotext\b(?![/.])[^`\n]*"
    found = re.findall(bare, page.read_text(encoding="utf-8"))
    assert not [
        command for command in found if not re.search(r"--from [./]|[./]\S*hlotext|-e [.'\"]", command)
    ]


def test_the_first_page_tests_what_it_says(monkeypatch: pytest.MonkeyPatch, hlo: Any) -> None:
    """Its pytest block passes, with the fixture of the plugin."""
    monkeypatch.chdir(support.ROOT)
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (DOCS / "index.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    for block in blocks:
        found: dict[str, Any] = {}
        exec(block, found)
        tests = [one for key, one in found.items() if key.startswith("test_")]
        assert tests
        for one in tests:
            one(hlo)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_pages(page: Path) -> None:
    """Links between pages; those below `tables/` are made with the site and checked when it is built."""
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" in target or "tables/" in target:
            continue
        assert (page.parent / target).exists(), target


def test_the_page_of_names_lists_all_of_them() -> None:
    """Methods of patterns, helpers of `rewrite`, and what builders have besides a method for each opcode."""
    text = (DOCS / "rewriting" / "names.md").read_text(encoding="utf-8")
    own = {name for name, value in vars(rewrite.Builder).items() if not isinstance(value, ForeignName)}
    builders = {name for name in own if not name.startswith("_")} - {"computation", "place"}
    patterns = {name for name in vars(matchers.Pattern) if name.startswith("with_")}
    patterns |= {name for name in matchers.__all__ if name[0].islower()} | {"Not"}
    helpers = {name for name in rewrite.__all__ if name[0].islower()} | {"PASSES"}
    words = set(re.findall(r"\w+", text))
    assert sorted((builders | patterns | helpers) - words) == []


def test_the_lexer_takes_every_text_whole() -> None:
    """Colours lose nothing, end in time, and real modules have no word that is no token."""
    from pygments.token import Error

    from hlotext.view.pygments_lexer import HloLexer

    lexer = HloLexer(stripnl=False, ensurenl=False)
    assert HloLexer.analyse_text("HloModule m\n") == 1.0
    for path in sorted((support.ROOT / "corpus" / "tpu").glob("*.txt"))[:3]:
        text = path.read_text(encoding="utf-8")[:100_000]
        tokens = list(lexer.get_tokens(text))
        assert "".join(value for _, value in tokens) == text
        assert not [value for kind, value in tokens if kind is Error]
    for hostile in ('"', "/*", "[]", "{" * 1000, "\x1b[31m", "a" * 100_000, "f32[]" * 1000):
        assert "".join(value for _, value in lexer.get_tokens(hostile)) == hostile
