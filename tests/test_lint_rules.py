"""Each rule by itself: where it fires, where it must not, what its page says; and every rule over every real module."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import attrs
import pytest

import hlotext as hlo
from hlotext import lint
from hlotext.ir.nodes.source import Source
from hlotext.lint.merged import MergedRule, reports_of
from hlotext.lint.rule import Rule
from hlotext.syntax.source.inputs import read_source
from tests import cli_support, support

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


def _parts() -> dict[str, Rule]:
    """The parts of merged rules, by the names of their files."""
    merged = (rule for rule in lint.builtin_rules().values() if issubclass(rule, MergedRule))
    return {part.__module__.rpartition(".")[2]: part() for rule in merged for part in rule.parts}


@pytest.mark.parametrize("path", sorted((FOLDER / "parts").glob("*.txt")), ids=lambda path: path.stem)
def test_a_part_fires_where_expected_and_nowhere_else(path: Path) -> None:
    """The same of each part of a merged rule that has a file of its own: the others are what their rule's file is about."""
    text = path.read_text()
    part = _parts()[path.stem]
    found = []
    for module in hlo.parse_all(text):
        context = lint.make_context(module)
        if part.applies_to(context):
            starts = [one.instruction for one in reports_of(part, context) if one.instruction is not None]
            found += [one.span.line for one in starts if one.span is not None]
    assert sorted(found) == [n for n, line in enumerate(text.splitlines(), 1) if "// expect: " in line]


def test_each_part_has_a_case() -> None:
    """Of its own, or that of its rule."""
    of_rules = {
        "masked_slice",
        "duplicate_collective",
        "double_precision",
        "exposed_collective",
        "reshard",
        "uneven_sharding",
        "tiny_rounds",
        "relayout_copy",
    }
    own = {path.stem for path in (FOLDER / "parts").glob("*.txt")}
    assert set(_parts()) == own | of_rules | {"long_lived_array"}


@pytest.mark.parametrize(("old", "new"), lint.registry.former_codes().items())
def test_a_former_code_means_the_rule_that_it_became_part_of(old: str, new: str) -> None:
    """In every list of a configuration, with one note; its thresholds are gone; `hlotext help rule` shows the page."""
    with pytest.warns(DeprecationWarning, match=f"{old} is a part of {new}") as noted:
        config = lint.Config(select=(old,))
    assert len(noted) == 1
    assert config.select == (new,)
    with pytest.warns(DeprecationWarning, match=old):
        config = lint.config_from_table(
            {"ignore": [old], "per-file-ignores": {"x": [old]}, "rules": {old: {"min_bytes": 1}}}
        )
    assert (config.ignore, config.per_file_ignores, config.rules) == ((new,), {"x": (new,)}, {})
    assert lint.code_of(old).name == new
    shown = cli_support.run("rule", old)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(f"# {new}: ")
    assert f"{old} is a part of {new}" in shown.stderr


@pytest.mark.parametrize("old", lint.registry.GONE)
def test_a_code_that_went_is_taken_and_said_to_be_gone(old: str) -> None:
    """It selects nothing, and is not refused."""
    with pytest.warns(DeprecationWarning, match=f"{old} is no longer a rule"):
        assert lint.Config(ignore=(old,)).ignore == ()
    assert cli_support.run("rule", old).exit_code == 2


WAITED = (FOLDER / "parts" / "nothing_overlapped.txt").read_text()


def test_comments_and_baselines_with_former_codes_still_hold() -> None:
    """A comment that names the old code, and a baseline that was written under it."""
    config = lint.Config(select=("C106",), **support.SAY_ALL)
    source = Source(WAITED, "module_0001.after_optimizations.txt")
    found = [one for one in lint.lint_source(source, config).findings if "does not overlap" in one.message]
    assert found
    quiet = WAITED.replace("// expect: C106", "// hlotext: ignore[S102]")
    still = lint.lint_source(Source(quiet, source.name), config).findings
    assert not [one for one in still if "does not overlap" in one.message]
    old = [
        attrs.evolve(one, code="S102", fingerprint=one.former_fingerprints[0], other_fingerprints=())
        for one in found
    ]
    known = lint.Baseline.of(old)
    compared = known.compare(found)
    assert (compared.new, compared.gone) == ((), ())


def test_a_plugin_cannot_take_a_former_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments that name it mean the rule that it became part of."""

    class Taken(Rule):
        code = "S102"

    class Point:
        value = "plugin:Taken"

        def load(self) -> type[Rule]:
            return Taken

    monkeypatch.setattr(metadata, "entry_points", lambda group: [Point()])
    lint.registry.all_rules.cache_clear()
    try:
        with pytest.raises(lint.RuleError, match="S102 is a part of C106"):
            lint.registry.all_rules()
    finally:
        lint.registry.all_rules.cache_clear()


@pytest.mark.parametrize("code", lint.builtin_rules())
def test_a_rule_has_a_page(code: str) -> None:
    """It says why the finding costs, how it is detected, its limits, and shows one."""
    rule = lint.builtin_rules()[code]
    page = rule.page()
    assert page.startswith(f"# {code}: {rule.title}\n")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == [
        *("Why it costs", "How it is detected", "Limitations", "How to fix it", "Not reported", "Example")
    ]
    assert not rule.title.endswith(".")


@pytest.mark.parametrize("code", lint.builtin_rules())
def test_the_example_of_a_page_is_real(code: str) -> None:
    """The file that the page names has the line, and the rule says there what the page quotes."""
    page = lint.builtin_rules()[code].page()
    named = re.search(r"In `([^`]+)`, line (\d+):\n\n```\n.*?\n```\n\n(.*?)(?:\n\n|\Z)", page, re.DOTALL)
    assert named is not None
    source = read_source(support.ROOT / named[1])
    found = lint.lint_source(
        Source(source.text, "x.after_optimizations.txt"), lint.Config(select=(code,), **support.SAY_ALL)
    )
    quoted = " ".join(named[3].replace("`", "").split()).rstrip(".").casefold()
    assert quoted in [
        f.message.replace("`", "").casefold()
        for f in found.findings
        if f.code == code and int(named[2]) in (f.line, *f.other_lines)
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
    assert own == [("C112", "devices_per_host")]


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


def test_the_table_of_rules_is_current(request: pytest.FixtureRequest) -> None:
    """It is made from the rules; --update-goldens writes it."""
    path = support.ROOT / "docs" / "reference" / "rules.md"
    before, rest = path.read_text("utf-8").split("<!-- rules -->\n")
    after = rest.split("<!-- /rules -->", 1)[1]
    expected = f"{before}<!-- rules -->\n{lint.rule_table()}<!-- /rules -->{after}"
    if request.config.getoption("--update-goldens"):
        path.write_text(expected, "utf-8")
    assert path.read_text("utf-8") == expected
