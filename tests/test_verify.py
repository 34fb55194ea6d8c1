"""The verifier: every code with cases that are right and wrong, its documentation, and the real modules."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.semantics.facts import facts_of
from hlotext.semantics.operation import OP_CHECKS, check_operation
from hlotext.syntax.source import codes as syntax_codes
from hlotext.verify import run as verify_run
from hlotext.verify.codes import CODES
from hlotext.verify.survey import Survey
from tests import support, verify_cases
from tests.corruptions import KINDS, corrupt
from tests.verify_cases import FOLDER

WARNING_OR_ERROR = (hlo.Severity.ERROR, hlo.Severity.WARNING)


def errors(module: hlo.Module) -> list[hlo.Diagnostic]:
    return [d for d in hlo.verify(module) if d.severity is hlo.Severity.ERROR]


# ---- cases


@pytest.mark.parametrize("code", CODES)
def test_what_is_wrong(code: str, golden: Callable[[Path, str], None]) -> None:
    """Each case has a finding of its code, and all that is found in it stands under it."""
    path = FOLDER / "err" / f"{code}.txt"
    cases = verify_cases.cases(path)
    for case in cases:
        assert code in {d.code for d in hlo.verify(verify_cases.read(case))}, case
    golden(path, "\n---\n".join(map(verify_cases.with_findings, cases)) + "\n")


@pytest.mark.parametrize("code", CODES)
def test_what_is_right(code: str) -> None:
    """Nothing is found in a right case, but for notes of other codes."""
    for case in verify_cases.cases(FOLDER / "ok" / f"{code}.txt"):
        found = hlo.verify(verify_cases.read(case))
        assert [str(d) for d in found if d.severity is not hlo.Severity.NOTE or d.code == code] == []


def test_every_file_is_of_a_code() -> None:
    for kind in ("ok", "err"):
        assert {path.stem for path in (FOLDER / kind).iterdir()} == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_severity_and_place(code: str) -> None:
    """Every finding has its code's severity and a place in the text it names; the caret stands under something."""
    for case in verify_cases.cases(FOLDER / "err" / f"{code}.txt"):
        for diagnostic in hlo.verify(verify_cases.read(case)):
            known = CODES.get(diagnostic.code) or syntax_codes.RULES[diagnostic.code]
            assert diagnostic.severity is known.severity
            assert diagnostic.source is not None
            text = diagnostic.source.text[diagnostic.span.start : diagnostic.span.end]
            assert text.strip() == text != ""
            assert "^" in str(diagnostic)


# ---- documentation


@pytest.mark.parametrize("code", [*CODES, *syntax_codes.RULES])
def test_page(code: str) -> None:
    """Every code's page says why, how it looks and how to fix it; its examples are wrong and right."""
    known = CODES.get(code) or syntax_codes.RULES[code]
    page = known.page()
    assert page.startswith(f"# {code}: {known.title}\n\nSeverity: {known.severity.value}.\n")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings == ["Why it matters", "How it looks", "How to fix it"]
    wrong, right = verify_cases.examples(page)
    assert code in {d.code for d in _found(wrong)}
    assert code not in {d.code for d in _found(right)}
    assert not [str(d) for d in _found(right) if d.severity in WARNING_OR_ERROR]


def _found(text: str) -> list[hlo.Diagnostic]:
    """What the reader finds in a text, or else the verifier."""
    found = list(hlo.parse_tolerant(text).diagnostics)
    if any(d.severity is hlo.Severity.ERROR for d in found):
        return found
    return found + hlo.verify(verify_cases.read(text))


def test_pages_of_no_code() -> None:
    for package, known in (("verify", CODES), ("syntax", syntax_codes.RULES)):
        pages = support.ROOT / "hlotext" / package / "pages"
        assert {path.stem for path in pages.iterdir()} == set(known)


def test_every_code_is_used() -> None:
    """No check reports what the table does not know (it would fail), and the table has nothing that no check reports."""
    rooms = [support.ROOT / "hlotext" / room for room in ("verify", "semantics")]
    text = "".join(path.read_text() for room in rooms for path in room.rglob("*.py"))
    assert {code for code in CODES if text.count(f'"{code}"') < 2} == set()


# ---- the door


@pytest.mark.parametrize(
    "program",
    [
        "import hlotext as hlo; import hlotext.semantics.infer",
        "import hlotext.semantics.infer; import hlotext as hlo",
        "import hlotext.semantics.infer as infer; import hlotext as hlo; infer.infer_shape",
        "from hlotext.semantics.infer import infer_shape; import hlotext as hlo",
        "from hlotext.verify import codes, verify; import hlotext as hlo; assert hlo.verify is verify",
        "import importlib; importlib.import_module('hlotext.semantics.infer'); import hlotext as hlo",
        "import hlotext as hlo; hlo.verify(hlo.parse('f32[] negate(f32[] x)')); import hlotext.verify.run",
    ],
)
def test_function_and_package_of_one_name(program: str) -> None:
    """In whatever order they are imported, `hlotext.verify` is the function, and the package is found behind it."""
    rest = (
        "import hlotext.semantics.infer; hlotext.semantics.infer.infer_shape; "
        "assert hlo.verify(hlo.parse('f32[2] negate(f32[] x)'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"{program}; {rest}"], cwd=support.ROOT, capture_output=True, text=True
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_infer_shape_at_the_door() -> None:
    assert str(hlo.infer_shape(hlo.parse_instruction("f32[9] negate(f32[4] x)"))) == "f32[4]"


def test_result_is_in_the_order_of_the_text() -> None:
    lines = "".join(f"  x{n} = f32[2]{{0}} negate(x{n - 1})\n" for n in range(1, 9))
    module = hlo.parse(f"ENTRY e {{\n  x0 = f32[4]{{0}} parameter(0)\n{lines}}}\n")
    assert [d.line for d in hlo.verify(module)] == [3]
    module = hlo.parse(
        f"ENTRY e {{\n  x0 = f32[4]{{0}} parameter(0)\n{lines}}}\n".replace("x3 = f32[2]", "x3 = f32[3]")
    )
    assert [d.line for d in hlo.verify(module)] == [3, 5, 6]


# ---- modes

TUPLE = "{}ENTRY e {{\n  x = f32[4,8]{{1,0}} parameter(0)\n  ROOT t = (f32[4,8]{{0,1}}) tuple(x)\n}}\n"
MIXED = "{}ENTRY e {{\n  x = f32[4]{{0}} parameter(0)\n  ROOT y = bf16[4]{{0}} negate(x)\n}}\n"


@pytest.mark.parametrize(
    ("header", "layout_sensitive", "found"),
    [
        ("", None, []),
        ("HloModule m, is_scheduled=true\n", None, ["V205"]),
        ("", True, ["V205"]),
        ("HloModule m, is_scheduled=true\n", False, []),
    ],
)
def test_layouts_count_once_they_are_final(
    header: str, layout_sensitive: bool | None, found: list[str]
) -> None:
    module = hlo.parse(TUPLE.format(header))
    assert [d.code for d in hlo.verify(module, layout_sensitive=layout_sensitive)] == found


@pytest.mark.parametrize(("mixed_precision", "found"), [(None, ["V106"]), (True, []), (False, ["V106"])])
def test_precisions_mix_on_demand(mixed_precision: bool | None, found: list[str]) -> None:
    module = hlo.parse(MIXED.format(""))
    assert [d.code for d in hlo.verify(module, mixed_precision=mixed_precision)] == found


def test_pasted_line_has_no_final_layouts() -> None:
    """What a pasted line does not say is not held against it."""
    for line in ("f32[4,8]{0,1} negate(x)", "f32[4,8]{0,1} negate(f32[4,8] x)", "add.1 = f32[2] add(a, b)"):
        assert hlo.verify(hlo.parse(line)) == []


# ---- edited and built modules


def test_edited_instruction_is_shown_as_it_is_now() -> None:
    module = hlo.parse(
        "ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n", name="file"
    )
    root = module.entry.root
    root._shape = hlo.parse_shape("f32[5]{0}")
    support.touch(root)
    (found,) = hlo.verify(module)
    assert found.instruction is root
    assert found.related_instructions == (module.entry.parameters[0],)
    assert found.source is not None
    assert found.source.name == "<module_e, edited>"
    assert found.source_line == "ROOT y = f32[5]{0} negate(x)"


def test_edited_instruction_meets_the_reader_s_conditions() -> None:
    module = hlo.parse("ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n")
    root = module.entry.root
    root._operands = (root.operands[0],) * 2
    support.touch(root)
    (found,) = hlo.verify(module)
    assert (found.code, found.instruction) == ("X108", root)


MANY_FAULTS = """
HloModule many, input_output_alias={ {7}: (0, {}, may-alias) }

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[2]{0} add(a, b)
}

ENTRY e {
  x = f32[4]{0} parameter(0)
  z = f32[] constant(0)
  first = f32[5]{0} negate(x)
  second = f32[4]{0} negate(x)
  third = f32[6]{0} negate(x)
  r = f32[] reduce(third, z), dimensions={0}, to_apply=add
  ROOT last = f32[4]{0} add(second, third)
}
"""


def test_findings_stand_in_the_order_of_the_text() -> None:
    found = hlo.verify(hlo.parse_tolerant(MANY_FAULTS).module)
    assert {2, 7, 13, 15, 16, 17} <= {d.line for d in found}
    assert [d.span.start for d in found] == sorted(d.span.start for d in found)


def test_findings_stand_in_the_order_of_what_an_edited_module_prints() -> None:
    """Whatever was edited, findings come as they would if the printed text were read."""
    for names in (["first"], ["third", "last"], ["x", "first", "second", "third", "r", "last"]):
        module = hlo.parse_tolerant(MANY_FAULTS).module
        for name in names:
            support.touch(module.entry[name])
        again = hlo.verify(hlo.parse_tolerant(str(module)).module)
        edited = hlo.verify(module)
        assert [(d.code, d.message) for d in edited] == [(d.code, d.message) for d in again]
        assert any(d.source is not module.source for d in edited)


def test_what_was_found_before_an_edit_is_mended() -> None:
    """Computations that are not edited are looked at once, also after edits that were undone."""
    module = hlo.parse("""HloModule m

k { a = f32[8] parameter(0) ROOT n = f32[8] negate(a) }

o { b = f32[8] parameter(0) ROOT s = (f32[8], f32[8], u32[]) copy-start(b) }

ENTRY e {
  p = f32[8] parameter(0)
  f = f32[8] fusion(p), kind=kLoop, calls=k
  g = (f32[8], f32[8], u32[]) call(p), to_apply=o
  ROOT t = (f32[8], (f32[8], f32[8], u32[])) tuple(f, g)
}
""")
    entry, other = module.entry, module.computations[1]

    def found() -> list[str]:
        return [d.code for d in hlo.verify(module, within=[other])]

    before = found()
    assert before == ["V401"]
    with module.transaction() as record:
        entry["f"].replace_all_uses_with(entry["p"])
        entry.remove(entry["f"])
        assert found() == ["V309", *before]
        entry["t"].name = "renamed"
        assert found() == ["V309", *before]
    record.undo()
    assert found() == before


def test_only_lines_with_findings_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass may have edited every line of a large module: that none of them is wrong costs no text."""
    module = hlo.parse("ENTRY e {\n  x = f32[4]{0} parameter(0)\n  ROOT y = f32[4]{0} negate(x)\n}\n")
    for instruction in module.instructions():
        support.touch(instruction)
    printed: list[hlo.Instruction] = []
    text = hlo.Instruction.__str__

    def watched(instruction: hlo.Instruction) -> str:
        printed.append(instruction)
        return text(instruction)

    monkeypatch.setattr(hlo.Instruction, "__str__", watched)
    assert hlo.verify(module) == []
    assert printed == []
    root = module.entry.root
    root._operands = (root.operands[0],) * 2
    assert [d.code for d in hlo.verify(module)] == ["X108"]
    assert printed == [root]


# ---- real modules


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_nothing_is_wrong_with_real_modules(path: Path) -> None:
    assert [str(d) for d in errors(hlo.load(path))] == []


def differences(module: hlo.Module) -> list[hlo.Instruction]:
    """The instructions for which the memory gives other problems than a check of its own."""
    survey = Survey.of(module)
    facts = facts_of(module, survey.shapes, True, False)
    memory = verify_run.Memory()
    found = []
    for computation in module.computations:
        inside = verify_run.facts_inside(facts, computation, survey)
        for instruction in computation:
            if memory.problems(instruction, inside) != check_operation(instruction, inside):
                found.append(instruction)
    return found


@pytest.mark.slow
def test_equal_operations_have_equal_problems() -> None:
    """The memory changes nothing, neither in real modules nor in corrupted ones."""
    chance = random.Random(1)
    problems = 0
    for path in support.corpus_files():
        module = hlo.load(path)
        assert differences(module) == []
        for kind in chance.sample(list(KINDS), 5):
            if len(module.computations) < 40 and module.computations and corrupt(module, kind, chance):
                assert differences(module) == []
                problems += len(hlo.verify(module, layout_sensitive=True, mixed_precision=False))
    assert problems > 1000


def test_checks_are_for_opcodes_that_exist() -> None:
    for check in OP_CHECKS:
        assert (check.opcodes or set()) <= OPCODES.keys()
