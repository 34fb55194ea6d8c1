"""Rules as op lines, files of them, numbers as operands, and what a refused or wrong rewrite does."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import hlotext as hlo
from hlotext import matchers as m
from hlotext import rewrite
from hlotext.rewrite.rule_files import RuleFileError, load_rules, read_rules
from tests.cli_support import run

CALLED = "f {\n  ROOT p = f32[4,8]{1,0} parameter(0)\n}\n\n"
HEAD = "ENTRY e {\n  x = f32[4,8]{1,0} parameter(0)\n  i = s32[4] parameter(1)\n"

CASES = {
    "operands": ("negate(negate($x)) => $x", "a = f32[4,8]{1,0} negate(x)\n  ROOT r = f32[4,8]{1,0} negate(a)", "x"),
    "a number": ("add($x, $x) => multiply($x, 2)", "ROOT r = f32[4,8]{1,0} add(x, x)", "multiply(x, broadcast)"),
    "a number matched": ("add($x, 0) => $x", "z = f32[] constant(0)\n  b = f32[4,8]{1,0} broadcast(z), dimensions={}\n"
        "  ROOT r = f32[4,8]{1,0} add(x, b)", "x"),
    "a whole number of integers": ("multiply($x, 2) => add($x, $x)", "c = s32[] constant(2)\n"
        "  b = s32[4] broadcast(c), dimensions={}\n  ROOT r = s32[4] multiply(i, b)", "add(i, i)"),
    "the result is a number": ("subtract($x, $x) => 0", "ROOT r = f32[4,8]{1,0} subtract(x, x)", "broadcast(constant)"),
    "captured texts": ("transpose($x), dimensions=$D => %n = transpose($x), dimensions=$D; negate(negate(%n))",
        "ROOT r = f32[8,4]{1,0} transpose(x), dimensions={1,0}", "negate(negate"),
    "other attributes": ("%t = transpose($A), dimensions={1,0}\ndot(%t, $B), lhs_contracting_dims={1} => "
        "dot($A, $B), lhs_contracting_dims={0}, ...", "t = f32[8,4]{1,0} transpose(x), dimensions={1,0}\n"
        "  ROOT r = f32[8,8] dot(t, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={high,high}",
        "dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={high,high}"),
    "a shape that operands leave open": ("convert(convert($x)) => convert($x)", "a = f16[4,8]{1,0} convert(x)\n"
        "  ROOT r = bf16[4,8]{1,0} convert(a)", "bf16[4,8]{1,0} convert(x)"),
    "a shape that is written": ("exponential($x) => %w = f32[4,8]{1,0} convert($x); exponential(%w)",
        "ROOT r = f32[4,8]{1,0} exponential(x)", "exponential(convert"),
    "a captured shape": ("$S sine($x) => $S custom-call($x), custom_call_target=\"sine\"", "ROOT r = f32[4,8]{1,0} sine(x)",
        'f32[4,8]{1,0} custom-call(x), custom_call_target="sine"'),
    "attributes within operands": ("transpose(transpose($x), dimensions={1,0}), dimensions=$D => $x",
        "a = f32[8,4]{1,0} transpose(x), dimensions={1,0}\n  ROOT r = f32[4,8]{1,0} transpose(a), dimensions={1,0}", "x"),
    "a shape and attributes written within operands": ("$S tanh($x) => transpose(f32[8,4] transpose($x), dimensions={1,0}), "
        "dimensions={1,0}", "ROOT r = f32[4,8]{1,0} tanh(x)", "f32[4,8]{1,0} transpose(transpose), dimensions={1,0}"),
    "a shape matched within operands": ("convert(bf16[*] convert($x)) => tanh($x)", "a = bf16[4,8]{1,0} convert(x)\n"
        "  ROOT r = f32[4,8]{1,0} convert(a)", "tanh(x)"),
    "a computation by its name": ("negate(negate($x)) => call($x), to_apply=f", "a = f32[4,8]{1,0} negate(x)\n"
        "  ROOT r = f32[4,8]{1,0} negate(a)", "call(x), to_apply=f"),
    "a truth value": ("compare($x, $x), direction=EQ => true", "ROOT r = pred[4,8]{1,0} compare(x, x), direction=EQ",
        "broadcast("),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_rule_in_text(case: str) -> None:
    """It fires once, leaves what is valid and prints as it should; what is new takes metadata over."""
    text, body, wanted = CASES[case]
    once = ("sine", "exponential", "transpose")  # their right sides match again
    head = CALLED + HEAD if "to_apply" in text else HEAD
    module = hlo.parse(f'{head}  {body}, metadata={{op_name="here"}}\n}}\n')
    rule = rewrite.rule(text, "r")
    if text.split("(")[0].split()[-1] in once:
        root = module.entry.root
        match = rule.pattern.match(root)
        assert match is not None
        new = rule.function(rewrite.Rewrite.of(root, match))
        assert isinstance(new, hlo.Instruction)
        root.replace_with(new)
    else:
        assert rewrite.apply_rules(module, [rule]) == {"r": 1}
    root = module.entry.root
    shown = root.name if root.opcode == "parameter" else str(root)
    assert wanted in shown, shown
    assert root.opcode == "parameter" or "here" in shown
    assert hlo.verify(hlo.parse(str(module))) == []


def test_a_line_named_as_on_the_left_takes_from_that_instruction() -> None:
    """Metadata and other attributes, also by `r.like`; everything else has those of the matched instruction."""
    text = HEAD + (
        '  t = f32[8,4]{1,0} transpose(x), dimensions={1,0}, metadata={op_name="inner"}\n'
        '  ROOT r = f32[8,4]{1,0} negate(t), metadata={op_name="outer"}\n}\n'
    )
    sunk = rewrite.rule("%t = transpose($x); negate(%t) => %n = negate($x); %t = transpose(%n), ...", "sunk")

    @rewrite.pattern(m.negate(m.transpose(m.op("x"), name="t")))
    def function(r: rewrite.Rewrite) -> hlo.Instruction:
        return r.like("t").transpose(r.b.negate(r["x"]), dimensions=r["t"].attributes["dimensions"])

    for rule in (sunk, function):
        module = hlo.parse(text)
        assert rewrite.apply_rules(module, [rule]) == {rule.name: 1}
        root = module.entry.root
        notes = [i.metadata.op_name for i in (root, root.operands[0]) if i.metadata is not None]
        assert notes == ["inner", "outer"]
        assert root.attributes["dimensions"] == (1, 0)


WRONG = {
    "negate(x) => x": "column 8: there is no opcode x: write \\$x for any operand",
    "negate($x)": "column 11: expected =>",
    "negate($x) => $y": r"column 15: the left side does not capture \$y, but \$x",
    "negate($x) => abs": "column 15: abs needs all of its operands",
    "negate($x) => abs(_)": "column 19: _ does not say",
    "negate($x) => add-*($x)": r"column 15: (add-\* does not say|no opcode matches)",
    "negate($x) => abs(custom-call($x))": "column 19: the operands of custom-call do not determine its shape",
    "negate($x) => abs($x), dimensions={0}": "column 24: abs has no attribute dimensions",
    "transpose($x), dimensions={1,0} => transpose($x), dimensions=$D": r"captures no \$D as the text",
    "negate($x) => f32[*] convert($x)": "is a shape pattern, not a shape",
    "negate($x) =>\n  abs($x); negate($x)": "line 2, column 3: only the last line may be unnamed",
    "negate($x) => abs(negate($x), dimensions={0})": "column 31: negate has no attribute dimensions",
    "negate(transpose($x, dimensions={1,0})) => $x": "column 22: dimensions must follow the parenthesis",
    "negate($x) => abs($x), metadata=a)": "expected an attribute or the end",
    "sort($x) => reduce($x, 0), dimensions={0}": "column 13: reduce needs the attribute to_apply",
    "negate($x) => abs(get-tuple-element($x))": "column 19: get-tuple-element needs the attribute index",
    "negate($x) => add($x)": "column 15: add takes two operands, but has 1",
    "negate($x) => add($x, f32[] constant(2))": "column 29: the right side of a rule has no constant; write a number",
    "negate($x) => abs($x) negate($x)": "expected an attribute or the end at column 22",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_rule_that_cannot_be_read_says_where(text: str) -> None:
    """With the column, and the line where there are several."""
    with pytest.raises(m.PatternError, match=WRONG[text]):
        rewrite.rule(text)


def test_a_rule_in_text_goes_to_other_processes() -> None:
    """As its text."""
    rule = rewrite.rule("negate(negate($x)) => $x", "n")
    again = pickle.loads(pickle.dumps(rule))
    module = hlo.parse(HEAD + "  a = f32[4,8]{1,0} negate(x)\n  ROOT r = f32[4,8]{1,0} negate(a)\n}\n")
    assert rewrite.apply_rules(module, [again]) == {"n": 1}


def test_several_lines_are_one_pattern() -> None:
    """Operands name the lines before, also for `hlotext grep`."""
    pattern = m.parse_pattern("%t = transpose($A), dimensions={1,0}; negate(%t)")
    text = (
        HEAD + "  t = f32[8,4]{1,0} transpose(x), dimensions={1,0}\n  ROOT r = f32[8,4]{1,0} negate(t)\n}\n"
    )
    match = pattern.match(hlo.parse(text).entry.root)
    assert match is not None
    assert (match["t"].name, match["A"].name) == ("t", "x")
    assert (
        pattern.match(
            hlo.parse(
                text.replace("transpose(x), dimensions={1,0}", 'custom-call(x), custom_call_target="f"')
            ).entry.root
        )
        is None
    )


@pytest.mark.parametrize(("pattern", "value", "matches"), [
    ("add($x, 0)", "f32[] constant(0)", True), ("add($x, 0)", "s32[] constant(0)", True),
    ("add($x, 0.0)", "s32[] constant(0)", False), ("add($x, 2.5)", "f32[] constant(2.5)", True),
    ("and($x, true)", "pred[] constant(true)", True), ("and($x, true)", "pred[] constant(false)", False),
    ("add($x, -1e2)", "f32[] constant(-100)", True),
])  # fmt: skip
def test_numbers_in_patterns(pattern: str, value: str, matches: bool) -> None:
    """A whole number is one of any type."""
    type_ = value.split("[")[0]
    opcode = pattern.split("(")[0]
    text = f"ENTRY e {{ x = {type_}[] parameter(0)  c = {value}  ROOT r = {type_}[] {opcode}(x, c) }}"
    assert (m.parse_pattern(pattern).match(hlo.parse(text).entry.root) is not None) == matches


# ---- numbers as operands


def test_numbers_take_the_type_of_what_they_meet() -> None:
    """Elementwise operations get whole arrays, others scalars; numpy's scalars must be of that type."""
    module = hlo.parse(HEAD + "  ROOT r = f32[4,8]{1,0} negate(x)\n}\n")
    b = rewrite.Builder.before(module.entry.root)
    x, i = module.entry.parameters
    assert str(b.add(x, 1.5).operands[1].operands[0]).startswith("constant = f32[] constant(1.5)")
    assert str(b.subtract(1, i).operands[0].shape) == "s32[4]{0}"
    assert b.maximum(x, np.float32(2)).operands[1].opcode == "broadcast"
    assert str(b.compare(x, 0, "GT").shape) == "pred[4,8]{1,0}"
    assert str(b.pad(x, 7, padding="0_0x1_1").operands[1].shape) == "f32[]"
    chosen = b.select(b.compare(x, 0, "GT"), x, 0)
    assert str(chosen.operands[2].shape).startswith("f32[4,8]")


@pytest.mark.parametrize(("build", "said"), [
    (lambda b, x, i: b.constant(1.0), r"b.constant\(1.0, 'f32'\)"),
    (lambda b, x, i: b.constant([1, 2]), "needs its element type"),
    (lambda b, x, i: b.constant([1, 300], "s8"), "300 is not a value of type s8"),
    (lambda b, x, i: b.constant([[1.5]], "s8"), "1.5 is not a value of type s8"),
    (lambda b, x, i: b.add(1.0, 2.0), "has no operand to take its type from"),
    (lambda b, x, i: b.add(i, 1.5), "1.5 is not a value of type s32"),
    (lambda b, x, i: b.add(i, 1 << 40), "is not a value of type s32"),
    (lambda b, x, i: b.add(x, np.float64(1)), "a number of type float64 is not f32 like x"),
    (lambda b, x, i: b.add(x, "1"), "takes instructions and numbers, not a str"),
])  # fmt: skip
def test_numbers_without_a_type_or_of_another_are_refused(build: object, said: str) -> None:
    """The message says the way out."""
    module = hlo.parse(HEAD + "  ROOT r = f32[4,8]{1,0} negate(x)\n}\n")
    text = str(module)
    with pytest.raises(rewrite.EditError, match=said):
        build(rewrite.Builder.before(module.entry.root), *module.entry.parameters)  # type: ignore[operator]
    assert str(module) == text


# ---- refused rewrites


def test_a_refused_rewrite_does_not_stop_the_others() -> None:
    """It is taken back and warned of; asked to, it ends the run."""
    body = "  c = s32[4,8]{1,0} convert(x)\n  n = f32[4,8]{1,0} negate(x)\n  p = f32[4,8]{1,0} negate(n)\n"
    text = HEAD + body + "  ROOT r = (s32[4,8]{1,0}, f32[4,8]{1,0}) tuple(c, p)\n}\n"
    rules = [
        rewrite.rule("convert($x) => $x", "retyped"),
        rewrite.rule("negate(negate($x)) => $x", "negations"),
    ]
    module = hlo.parse(text)
    profile: rewrite.Profile = {}
    with pytest.warns(
        rewrite.RefusedRewriteWarning, match=r"the rule retyped was refused: c: x is f32\[4,8\]"
    ):
        assert rewrite.apply_rules(module, rules, profile=profile) == {"negations": 1}
    assert profile["retyped"].refused
    assert "tuple(c, x)" in str(module.entry.root)
    module = hlo.parse(text)
    with pytest.raises(rewrite.EditError):
        rewrite.apply_rules(module, rules, on_refused="raise")
    with pytest.raises(ValueError, match="on_refused must be warn or raise, not skip"):
        rewrite.apply_rules(module, rules, on_refused="skip")


@pytest.mark.xla
def test_the_first_rewrite_that_changed_a_result_is_named() -> None:
    """All is taken back then; what computes the same stays."""
    pytest.importorskip("jax")
    text = (
        HEAD
        + "  n = f32[4,8]{1,0} negate(x)\n  p = f32[4,8]{1,0} negate(n)\n  ROOT s = f32[4,8]{1,0} sine(p)\n}\n"
    )
    right, wrong = (
        rewrite.rule("negate(negate($x)) => $x", "right"),
        rewrite.rule("sine($x) => cosine($x)", "wrong"),
    )
    module = hlo.parse(text)
    assert rewrite.apply_rules(module, [right], verify="equivalence") == {"right": 1}
    module = hlo.parse(text)
    with pytest.raises(
        rewrite.RewriteError, match="after rewrite 2 of 2, wrong on s: the largest relative difference is"
    ):
        rewrite.apply_rules(module, [right, wrong], verify="equivalence")
    assert "sine(p)" in str(module)
    module = hlo.parse(
        text.replace(
            "ROOT s = f32[4,8]{1,0} sine(p)", 'ROOT s = f32[4,8]{1,0} custom-call(p), custom_call_target="f"'
        )
    )
    with pytest.warns(RuntimeWarning, match="was not verified by execution"):
        assert rewrite.apply_rules(module, [right], verify="equivalence") == {"right": 1}


# ---- files

FILE = '''[negations]
rule = "negate(negate($x)) => $x"
example = """
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT z = f32[4] negate(y)
}"""

[wrong]
rule = "sine($x) => cosine($x)"
example = "ENTRY e { x = f32[4] parameter(0)  ROOT z = f32[4] sine(x) }"

[silent]
rule = "abs(abs($x)) => abs($x)"
example = "ENTRY e { x = f32[4] parameter(0)  ROOT z = f32[4] abs(x) }"

[bare]
rule = "tanh($x) => $x"
'''

BAD_FILES = {
    "[a]\nrule = 1\n": "f.toml:1: a needs rule",
    "[a]\nrule = 'abs($x) => $x'\nrules = 1\n": "f.toml:1: a takes the strings rule and example, not rules",
    "\n[a]\nexample = ''\nrule = 'abs(x) => x'\n": "f.toml:4: a: column 5: there is no opcode x",
    "[a": "f.toml is not valid TOML: ",
    "": "f.toml: no rules",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_file_of_rules_that_cannot_be_read(text: str) -> None:
    """With file and line."""
    with pytest.raises(RuleFileError) as caught:
        read_rules(text, "f.toml")
    assert str(caught.value).startswith(BAD_FILES[text])


def test_rules_from_the_command_line(tmp_path: Path) -> None:
    """They are applied to a fixpoint, before passes."""
    rules, module = tmp_path / "r.toml", tmp_path / "m.hlo"
    rules.write_text(FILE, "utf-8")
    module.write_text(
        HEAD
        + "  a = f32[4,8]{1,0} negate(x)\n  b = f32[4,8]{1,0} negate(a)\n  ROOT r = f32[4,8]{1,0} abs(b)\n}\n",
        "utf-8",
    )
    done = run("rewrite", "-r", str(rules), "--stats", str(module))
    assert done.exit_code == 0, done.stderr
    assert "abs(x)" in done.stdout
    assert "negate" not in done.stdout
    assert "1 negations" in done.stderr
    assert run("rewrite", str(module)).exit_code == 2
    assert run("rewrite", "-r", str(tmp_path / "none"), str(module)).exit_code == 2
    assert run("rewrite", "--check-rules", "-r", str(rules), str(module)).exit_code == 2
    assert [one.rule.name for one in load_rules(rules)] == ["negations", "wrong", "silent", "bare"]


@pytest.mark.xla
def test_rules_are_tried_on_their_examples(tmp_path: Path) -> None:
    """Each must fire and compute the same."""
    pytest.importorskip("jax")
    rules = tmp_path / "r.toml"
    rules.write_text(FILE, "utf-8")
    done = run("rewrite", "--check-rules", "-r", str(rules))
    assert done.exit_code == 1
    said = [line.split(":", 1)[1] for line in done.stdout.splitlines()]
    assert said[0] == "1: negations: fine"
    assert said[1].startswith("10: wrong: it changes the result: the largest relative difference is")
    assert said[2].startswith(
        "14: silent: it does not match its example: operand 0 of z, x: the opcode is parameter, not abs"
    )
    assert said[3] == "18: bare: it has no example"


def test_no_warning_where_nothing_was_refused() -> None:
    """Rules that fit say nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rewrite.apply_rules(
            hlo.parse(HEAD + "  ROOT r = f32[4,8]{1,0} negate(x)\n}\n"), [rewrite.rule("abs($x) => $x")]
        )


def test_a_constant_is_replaced_by_its_value() -> None:
    """Such a rule was read, and never fired."""
    module = hlo.parse("ENTRY e { c = s32[] constant(200) d = s32[] constant(7) ROOT a = s32[] add(c, d) }")
    assert rewrite.apply_rules(module, [rewrite.rule("s32[] constant(200) => 100", "smaller")]) == {
        "smaller": 1
    }
    assert [str(one.literal) for one in module.instructions() if one.opcode == "constant"] == ["100", "7"]


def test_rules_are_checked_with_jax_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it no rule is at fault: exit status 2."""
    rules = tmp_path / "rules.toml"
    rules.write_text(FILE, "utf-8")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    done = run("rewrite", "--check-rules", "-r", str(rules))
    assert done.exit_code == 2
    assert "needs jax" in done.output or "hlotext[jax]" in done.output
