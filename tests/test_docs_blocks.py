"""Blocks of the documentation that are neither sessions nor outputs: shell, settings, workflows and Python run, or load.

Commands are run in a folder with the files that the pages speak of; those of other programs, and those that need a service
(a bucket, a cluster), are only read: their options must exist.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import tarfile
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import hlotext as hlo
from hlotext import rewrite
from hlotext.cli import main
from hlotext.lint.config import load_config
from tests import support
from tests.test_docs import DOCS, PAGES, name

_BLOCK = re.compile(r"^( *)```(sh|python|toml|yaml|json)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
STEP = support.CORPUS / "tpu" / "data_parallel.v5e_2x2x1.after_codegen.txt"


def blocks(language: str) -> Iterator[tuple[Path, str]]:
    """Page and text of each block of a language."""
    for page in PAGES:
        for indent, kind, text in _BLOCK.findall(page.read_text("utf-8")):
            if kind == language:
                yield page, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)


def cases(language: str) -> pytest.MarkDecorator:
    """Blocks as parameters of a test."""
    found = list(blocks(language))
    assert found
    return pytest.mark.parametrize(
        ("page", "text"), found, ids=[f"{name(page)}:{n}" for n, (page, _) in enumerate(found)]
    )


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `hlotext` command of a shell script, behind variables that are set for it."""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.replace('"$DUMP"', "dumps").replace('"$(date +%F)"', "2026-11-28")
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0], re.DOTALL):
            words = words[1:]
        if words[:3] == ["uvx", "--from", "."]:
            words = words[3:]
        if words[:1] == ["hlotext"]:
            yield words[1 : words.index(">")] if ">" in words else words[1:]


def check_options(words: list[str]) -> None:
    """Raises UsageError for a command or option that there is not."""
    group: click.Command = main
    context = click.Context(main)
    while isinstance(group, click.Group):
        found = group.get_command(context, words[0])
        assert found is not None, words
        group, words = found, words[1:]
    group.make_parser(click.Context(group)).parse_args(list(words))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages speak of: dump folders, a module, accepted steps."""
    place = tmp_path_factory.mktemp("docs")
    for dump in ("dumps", "before", "after"):
        (place / dump).mkdir()
        with tarfile.open(support.DATA / "dumps" / "cpu.mlp_train.tar.xz") as archive:
            archive.extractall(place / dump, filter="data")
    for file in ("dump.txt", "step.txt"):
        (place / file).write_bytes(STEP.read_bytes())
    (place / "accepted.txt").write_text("* * findings  # meant\n")
    (place / "train.py").write_text("pass\n")
    written = ["lint", str(place / "dumps"), "--write-baseline", str(place / "hlotext-baseline.json")]
    assert CliRunner().invoke(main, written).exit_code == 0
    return place


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """The same anew for each block, so that none depends on what another has written."""
    return Path(shutil.copytree(files, tmp_path / "files"))


def follow(page: Path, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the commands of a script in its order; findings are no fault, a command that does not work is."""
    for library in ("duckdb", "jinja2", "bokeh", "pyarrow", "google.protobuf"):
        pytest.importorskip(library)
    if page == DOCS / "index.md":  # its reader is in a clone, which the commands may write to
        (folder / "corpus").symlink_to(support.CORPUS)
    monkeypatch.chdir(folder)
    for words in commands(text):
        check_options(words)
        if any("://" in word for word in words):
            continue
        result = CliRunner().invoke(main, words, prog_name="hlotext")
        assert result.exit_code in (0, 1), f"{words}: {result.output}"


@cases("sh")
def test_scripts_run(page: Path, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    follow(page, text, folder, monkeypatch)


@cases("yaml")
def test_workflows_load_and_their_commands_run(
    page: Path, text: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps with `run:`, and the inputs of the action of this repository."""
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(text)
    steps = found if isinstance(found, list) else [s for job in found["jobs"].values() for s in job["steps"]]
    for step in steps:
        if "run" in step:
            follow(page, step["run"], folder, monkeypatch)
        elif step["uses"].startswith("./"):
            action = yaml.safe_load((support.ROOT / step["uses"] / "action.yml").read_text("utf-8"))
            assert set(step["with"]) <= set(action["inputs"])


@cases("toml")
def test_settings_load(page: Path, text: str, tmp_path: Path) -> None:
    """Those of the linter, rules, and others that are TOML."""
    found = tomllib.loads(text)
    place = tmp_path / "pyproject.toml"
    place.write_text(text)
    if "tool" in found:
        load_config(place)
    elif any("rule" in one for one in found.values() if isinstance(one, dict)):
        assert len(rewrite.load_rules(str(place))) == len(found)


@cases("json")
def test_settings_of_editors_are_json(page: Path, text: str) -> None:
    assert json.loads(text if text.startswith("{") else f"{{{text}}}")


_PRELUDES = {
    "explain/memory.md": "",
    "tutorials/pages.md": "",
    "rewriting/index.md": f"import hlotext as hlo\nmodule = hlo.load({str(STEP)!r})\nimport hlotext.interop.jax",
    "tutorials/rewrite_in_jax.md": (
        "import jax\nimport jax.numpy as jnp\nfrom hlotext import matchers as m, rewrite\n"
        "@rewrite.pattern(m.multiply(m.op('x'), m.splat(2)))\n"
        "def twice(r):\n    return r.b.add(r['x'], r['x'])\n"
    ),
}
"""What a reader has before a block, by page; blocks of other pages use names of the reader's own program."""


def _model_explorer() -> types.ModuleType:
    """A module with the names that an adapter takes: all of them keep what they are given."""
    found = types.ModuleType("model_explorer")

    class Kept:
        def __init__(self, **given: Any) -> None:
            vars(self).update({"nodes": [], **given})

    builder = types.SimpleNamespace(
        **dict.fromkeys(("Graph", "GraphNode", "IncomingEdge", "KeyValue", "MetadataItem"), Kept)
    )
    given = {"Adapter": Kept, "AdapterMetadata": Kept, "ModelExplorerGraphs": dict, "graph_builder": builder}
    vars(found).update(given)
    return found


@cases("python")
def test_python_runs(page: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it stands on its own, or behind what its page has said; the rest is Python."""
    code = compile(text, str(page), "exec")
    prelude = _PRELUDES.get(name(page))
    if prelude is None or "..." in text.splitlines():
        return
    if "jax" in prelude + text:
        pytest.importorskip("jax")
    monkeypatch.chdir(support.ROOT)
    monkeypatch.setitem(sys.modules, "model_explorer", _model_explorer())
    names: dict[str, Any] = {}
    exec(prelude, names)
    exec(code, names)
    if "HloAdapter" in names:
        graphs = names["HloAdapter"]().convert(str(STEP), {})["graphs"]
        assert next(len(graph.nodes) for graph in graphs) == len(hlo.load(STEP).entry)
