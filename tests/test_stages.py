"""What is done with texts: nothing is left out of the list, and whatever a text is, each of it ends well."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import click
import pytest

import hlotext as hlo
from hlotext.cli import COMMANDS, main
from hlotext.lint.config import Config
from hlotext.lint.registry import builtin_rules
from hlotext.rewrite.passes import PASSES
from tests import stages, support
from tests.bench import kinds, others
from tests.fuzz import chain, mutate, seeds

EXTRAS = frozenset({"convert", "report", "graph"})
"""Commands that may need a library beyond the core install."""


def test_every_command_and_pass_has_its_stage() -> None:
    """A new command needs its lines in `tests/stages.py`; passes are there by themselves."""
    assert set(stages.LINES) | set(stages.WITHOUT_MODULE) == set(COMMANDS)
    assert not set(stages.LINES) & set(stages.WITHOUT_MODULE)
    for command, lines in stages.LINES.items():
        assert lines
        assert all(line.split()[0] == command and stages.FILE in line.split() for line in lines)
    assert {f"pass {name}" for name in PASSES} <= {stage.name for stage in stages.STAGES}
    assert len({stage.name for stage in stages.STAGES}) == len(stages.STAGES)


def test_every_format_of_every_command_has_its_line() -> None:
    """A new writer of reports is in the lines of what uses it; another format needs a line of its own."""
    context = click.Context(main)
    for command, lines in stages.LINES.items():
        found = main.get_command(context, command)
        assert found is not None
        for option in found.params:
            if "--format" not in option.opts or not isinstance(option.type, click.Choice):
                continue
            words = [line.split() for line in lines]
            # Without a default the ending of the output decides; of other names the first choice is written.
            usual = option.default if isinstance(option.default, str) else option.type.choices[0]
            shown = {w[w.index("--format") + 1] if "--format" in w else usual for w in words}
            assert shown == {*option.type.choices} - stages.OF_DATASETS.get(command, set()), (
                f"lines of {command}"
            )


def test_every_rule_runs_in_the_lines_of_lint() -> None:
    """They select all rules, so that a new one is among them."""
    assert all("--select ALL" in line for line in stages.LINES["lint"])
    assert set(builtin_rules()) <= {rule.code for rule in Config(select=("ALL",)).active_rules()}


def test_every_command_has_its_row_in_the_bench_of_linearity() -> None:
    """Those that take one module have theirs by `LINES`; others need one in `tests/bench/others.py`."""
    words = {word.strip(",") for name, *_ in others.OTHERS for word in name.split()[:2]}
    assert set(stages.WITHOUT_MODULE) <= words | set(others.FIXED)
    assert set(others.FIXED) <= set(stages.WITHOUT_MODULE)


@pytest.mark.parametrize("kind", kinds.MODULES)
def test_modules_of_one_kind_read_back(kind: str) -> None:
    text = kinds.MODULES[kind][1](5)
    assert str(hlo.parse(text)) == text


@pytest.mark.slow
@pytest.mark.parametrize("row", others.OTHERS, ids=[f"{name} {kind}" for name, kind, *_ in others.OTHERS])
def test_rows_of_the_bench_run(row: tuple[str, str, int, Any]) -> None:
    if row[0].startswith(("proto", "show, convert")):
        pytest.importorskip("google.protobuf")
    with row[3](8) as run:
        run()


def _core() -> list[stages.Stage]:
    return [stage for stage in stages.STAGES if stage.name.split()[0] not in EXTRAS]


@pytest.mark.parametrize("part", range(4))
def test_damaged_texts_through_drawn_stages(part: int) -> None:
    """A piece of what `python -m tests.fuzz.chain` does; how long it takes is not judged here."""
    texts = seeds.small()
    found = _core()
    for number in range(part, 160, 4):
        problem = chain.examine(found[number % len(found)], mutate.case(texts, 77, number))
        assert not problem or problem.startswith("slow"), f"case {number} of seed 77: {problem}"


@pytest.mark.parametrize("number", range(8))
def test_damaged_texts_through_the_whole_chain(number: int) -> None:
    """A piece of what `python -m tests.fuzz.chain --tiny --whole` does."""
    data = mutate.case(seeds.tiny(), 79, number, chain.TINY_NEST)
    for stage in stages.chain(data, random.Random(number)):
        if stage.name.split()[0] not in EXTRAS:
            problem = chain.examine(stage, data)
            assert not problem or problem.startswith("slow"), f"case {number} of seed 79: {problem}"


FOUND = sorted((support.DATA / "chain").glob("*.hlo"))
"""What some stage failed on once."""


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once(path: Path) -> None:
    """Every stage, since what was wrong in one may be wrong in others."""
    data = path.read_bytes()
    for stage in [*_core(), *stages.chain(data, random.Random(1))]:
        if stage.name.split()[0] in EXTRAS:
            continue
        problem = chain.examine(stage, data)
        assert not problem or problem.startswith("slow"), problem


@pytest.mark.slow
@pytest.mark.parametrize("stage", stages.STAGES, ids=[stage.name for stage in stages.STAGES])
def test_damaged_texts_through_each_stage(stage: stages.Stage) -> None:
    if stage.name.split()[0] in EXTRAS:
        pytest.importorskip("jinja2")
    texts = seeds.small()
    for number in range(20):
        problem = chain.examine(stage, mutate.case(texts, 78, number))
        assert not problem or problem.startswith("slow"), f"case {number} of seed 78: {problem}"


@pytest.mark.slow
@pytest.mark.parametrize("stage", stages.STAGES, ids=[stage.name for stage in stages.STAGES])
def test_an_armed_module_through_each_stage(stage: stages.Stage) -> None:
    """Nothing of its text acts in a terminal or a log."""
    from tests.test_escape import COMMAND, MODULE

    if stage.name.split()[0] in EXTRAS:
        pytest.importorskip("jinja2")
    shown = stage.run(MODULE.encode("utf-8", "surrogateescape"))
    assert all(c.isprintable() or c in "\n\t" for c in shown)
    ours = r"::(?:error|warning|notice) file=" if "github" in stage.name else "$^"
    assert not [line for line in shown.splitlines() if COMMAND.search(line) and not re.match(ours, line)]
