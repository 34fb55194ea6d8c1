"""Each rule by itself: where it fires, where it must not, what its page says; and every rule over every real module."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.ir.nodes.source import Source
from hlotext.syntax.source.inputs import read_source
from tests import support

FOLDER = support.DATA / "lint"
COMPILED = sorted((FOLDER / "compiled").iterdir())
"""What XLA made of the programs in corpus/programs/wasteful.py."""
_MARK = re.compile(r"// expect: ([A-Z]\d{3})")


@pytest.mark.parametrize("code", lint.builtin_rules())
def test_a_rule_fires_where_expected_and_nowhere_else(code: str) -> None:
    """The first module of the file is marked where the rule must fire; in the second it must not."""
    text = (FOLDER / f"{code}.txt").read_text()
    # The name matters to the rule about files that say which pass wrote them.
    found = lint.lint_source(
        Source(text, "module_0001.after_optimizations.txt"), lint.Config(select=(code,), **support.SAY_ALL)
    )
    expected = [n for n, line in enumerate(text.splitlines(), 1) if f"// expect: {code}" in line]
    assert found.modules == 2
    assert expected
    assert not _MARK.search(text, text.index("HloModule silent"))
    assert {finding.code for finding in found.findings} == {code}
    assert sorted(line for f in found.findings for line in (f.line, *f.other_lines)) == expected


@pytest.mark.parametrize("code", lint.builtin_rules())
def test_a_rule_has_a_page(code: str) -> None:
    """It says why the finding costs, on which evidence it speaks, what that cannot tell, and shows one."""
    rule = lint.builtin_rules()[code]
    page = rule.page()
    assert page.startswith(f"# {code}: {rule.title}\n")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == [
        *("Why it costs", "How to see it", "What it cannot know", "How to fix it", "Not meant", "Example")
    ]
    assert not rule.title.endswith(".")


@pytest.mark.parametrize("code", lint.builtin_rules())
def test_the_example_of_a_page_is_real(code: str) -> None:
    """The file that the page names has the line, and the rule fires there."""
    page = lint.builtin_rules()[code].page()
    named = re.search(r"In `([^`]+)`, line (\d+):", page)
    assert named is not None
    source = read_source(support.ROOT / named[1])
    found = lint.lint_source(
        Source(source.text, "x.after_optimizations.txt"), lint.Config(select=(code,), **support.SAY_ALL)
    )
    assert int(named[2]) in [
        line for f in found.findings if f.code == code for line in (f.line, *f.other_lines)
    ]


def test_every_data_file_belongs_to_a_rule() -> None:
    """No case is left behind when a rule goes."""
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(lint.builtin_rules())


def test_every_compiled_module_is_the_example_of_a_page() -> None:
    """So each of them has a finding, and none is left behind."""
    pages = "".join(rule.page() for rule in lint.builtin_rules().values())
    assert {p.name for p in COMPILED} <= set(re.findall(r"`tests/data/lint/compiled/([^`]+)`", pages))


def test_a_user_can_set_few_things() -> None:
    """The chip, four shares, two floors and the rounds of loops; of rules what no share can tell."""
    own = [(code, field.name) for code, rule in lint.builtin_rules().items() for field in attrs.fields(rule)]
    assert own == [("C112", "devices_per_host"), ("D108", "chip"), ("S104", "chip")]


@pytest.mark.parametrize("path", [*support.corpus_files(), *COMPILED], ids=support.corpus_id)
def test_no_rule_fails_on_a_real_module(path: Path) -> None:
    """Every rule, also those that are off by default; findings name places in the file."""
    source = read_source(path)
    for finding in lint.lint_source(
        source, lint.Config(select=("C", "D", "G", "K", "L", "M", "S", "X"))
    ).findings:
        assert finding.code != lint.INTERNAL, finding.message
        assert finding.source_line == source.line(finding.line)[: len(finding.source_line)]
        assert finding.message
        assert not finding.message.endswith(".")
        assert re.fullmatch(r"[0-9a-f]{16}", finding.fingerprint)


@pytest.mark.parametrize("path", sorted((support.DATA / "ok").glob("*.hlo")), ids=lambda path: path.stem)
def test_no_rule_fails_on_a_form_of_the_language(path: Path) -> None:
    """Nor does the verifier: attributes, opcodes and types may be unknown, computations and shapes missing."""
    found = lint.lint_source(read_source(path), lint.Config(select=("ALL", "V"))).findings
    assert [finding.message for finding in found if finding.code == lint.INTERNAL] == []


def test_linting_changes_nothing() -> None:
    """The text stays byte for byte what it was."""
    path = support.CORPUS / "gpu" / "data_parallel.h100_1x1x4.after_optimizations.txt"
    module = hlo.load(path)
    lint.run(module, lint.Config(select=("ALL",)))
    assert str(module) == path.read_text()


def test_the_table_of_the_readme_is_current(request: pytest.FixtureRequest) -> None:
    """It is made from the rules; --update-goldens writes it."""
    path = support.ROOT / "README.md"
    before, rest = path.read_text("utf-8").split("<!-- rules -->\n")
    after = rest.split("<!-- /rules -->", 1)[1]
    expected = f"{before}<!-- rules -->\n{lint.rule_table()}<!-- /rules -->{after}"
    if request.config.getoption("--update-goldens"):
        path.write_text(expected, "utf-8")
    assert path.read_text("utf-8") == expected
