"""Names that users have for what a compiled program calls otherwise: opcodes, arguments, lines."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hlotext as hlo
from hlotext import cost, diff, layout, lint, matchers, memory, rewrite
from hlotext.analysis.meant import meant_instruction, names_meant
from hlotext.ir.foreign_name_tables import FOREIGN
from hlotext.ir.foreign_names import is_member
from hlotext.ir.short_names import Abbreviated
from hlotext.ir.spelling import did_you_mean, text_or_path
from tests.cli_support import run

SORT = """HloModule m, is_scheduled=true

compare {
  sort.1 = f32[] parameter(0)
  sort.4 = f32[] parameter(1)
  ROOT less = pred[] compare(sort.1, sort.4), direction=LT
}

ENTRY e {
  p = f32[8]{0} parameter(0), metadata={op_name="state[\\'m\\']"}
  q = f32[4]{0} parameter(1), metadata={op_name="state[\\'v\\']"}
  r = f32[16]{0} parameter(2), metadata={op_name="batch"}
  n = f32[8]{0} negate(p), metadata={op_name="jit(f)/neg" source_file="/src/f.py" source_line=7}
  c = f32[8]{0} copy(n)
  s.1 = f32[8]{0} sort(c), dimensions={0}, to_apply=compare
  w = f32[4]{0} negate(q)
  x = f32[16]{0} sine(r)
  ROOT t = (f32[8]{0}, f32[4]{0}, f32[16]{0}) tuple(s.1, w, x)
}
"""


def test_an_opcode_is_the_instruction_that_has_it() -> None:
    """Where only one has it; a name with a number is no opcode, but those of the opcode come before similar names."""
    module = hlo.parse(SORT)
    found = meant_instruction(module, "sort")
    assert found is not None
    assert found.name == "s.1"
    assert meant_instruction(module, "negate") is None
    assert meant_instruction(module, "sort.3") is None
    assert names_meant(module, "sort.3") == "; did you mean `s.1`?"
    assert names_meant(module, "negate") == "; did you mean `n` or `w`?"
    assert names_meant(module, "sort1").startswith("; did you mean `s")


def test_what_a_compiler_inserts_has_the_line_of_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(SORT)
    assert "/src/f.py:7 (inferred from its neighbors)" in run("show", tmp_path / "m.txt", "-i", "c").stdout
    assert "inferred" not in run("show", tmp_path / "m.txt", "-i", "n").stdout


def test_copies_of_one_text(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(SORT)
    found = run("dump", "copies", tmp_path / "m.txt")
    assert found.exit_code == 0
    assert "m: 1 copy and 0 transposes, 32 B" in found.stdout
    assert "f.py:7" in found.stdout


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [("state", "0, 1"), ("state['v']", "1"), ("batch", "2"), ("state,batch", "0-2"), ("0,2", "0, 2")],
)
def test_donation_by_the_name_of_an_argument(tmp_path: Path, asked: str, numbers: str) -> None:
    """An argument of the program is many parameters of the module."""
    (tmp_path / "m.txt").write_text(SORT)
    found = run("memory", tmp_path / "m.txt", "--platform", "cpu", "--what-if", f"donate={asked}")
    assert found.exit_code == 0, found.stderr
    assert f"donate {numbers} (" in found.stdout


def test_donation_of_an_unknown_argument(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(SORT)
    found = run("memory", tmp_path / "m.txt", "--platform", "cpu", "--what-if", "donate=stat")
    assert (found.exit_code, "m has no argument stat; its arguments are state, batch" in found.stderr) == (
        2,
        True,
    )


def test_names_that_are_nearly_right(tmp_path: Path) -> None:
    for end in ("before", "cpu_after"):
        (tmp_path / f"module_0000.m.{end}_optimizations.txt").write_text(SORT)
    for more in ((), ("--forward",)):
        found = run("dump", "trace", tmp_path, "-i", "sort.3", *more)
        assert found.exit_code == 1
        assert "; did you mean `s.1`?" in found.stderr


def test_parquet_is_what_another_command_writes(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(SORT)
    for arguments in (("-o", tmp_path / "m.parquet"), ("-o", tmp_path / "m", "--to", "parquet")):
        found = run("convert", tmp_path / "m.txt", *arguments)
        assert found.exit_code == 2
        assert f"hlotext table {tmp_path / 'm.txt'} -o DATASET" in found.stderr


def test_words_that_look_the_same_come_first() -> None:
    assert did_you_mean("C1O1", ["C101", "C119", "C111"]) == "did you mean `C101`?"
    assert did_you_mean("all_reduce", ["all-reduce", "all-gather"]) == "did you mean `all-reduce`?"
    assert did_you_mean("sort.l", ["sort.1", "sort.2"]) == "did you mean `sort.1`?"


def test_types_by_the_names_of_numpy() -> None:
    """XLA takes its own names alone; a type that nobody knows may be newer than this release."""
    with pytest.raises(hlo.HloSyntaxError, match="did you mean `f32`"):
        hlo.parse_shape("float32[8,16]")
    with pytest.raises(hlo.EditError, match=r"float32.*did you mean `f32`"):
        hlo.parse_instruction("p = f32[] parameter(0)").shape = "float32[8,16]"
    (note,) = hlo.parse_tolerant("p = bool[8] parameter(0)").diagnostics
    assert note.help == "did you mean `pred`?"
    assert str(hlo.parse_shape("f12e3[8]")) == "f12e3[8]"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("HloModule m", "text"),
        ("x = f32[] add(a, b)", "text"),
        ("a\nb", "text"),
        ("f32[8]{0}", "text"),
        ("dumps/lr=3/step.txt", "path"),
        ("step.hlo", "path"),
        ("C:\\dumps\\step", "path"),
        ("step", ""),
    ],
)
def test_a_text_is_told_from_a_path(value: str, kind: str) -> None:
    assert text_or_path(value) == kind
    with pytest.raises(TypeError, match="hlotext.parse" if kind == "text" else "hlotext.load"):
        cost.analyze(value)  # type: ignore[arg-type]
    with pytest.raises(hlo.InputError, match="not a path" if kind == "text" else "does not exist"):
        hlo.load(value)


def wrong(value: object) -> Any:
    """A value whose type mypy does not see."""
    return value


STEP = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT n = f32[4]{0} negate(p)\n}\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: wrong(m).entry_computation, "did you mean `.entry`?"),
        (
            lambda m: wrong(m.entry).root_instruction,
            "'Computation' object has no attribute 'root_instruction'; did you mean `.root`?",
        ),
        (lambda m: wrong(m.entry).instruction("n"), "did you mean `.module.instruction(name)`?"),
        (lambda m: wrong(m).instruction(3), "list(module.instructions())[3] is the one at position 3"),
        (lambda m: hlo.load(wrong(m)), "this is a module already"),
        (
            lambda m: m.memory(chip=wrong(5)),
            "Module.memory() takes a string, a Chip or None as chip=, not int",
        ),
        (lambda m: m.cost(**wrong({"trip": 3})), "Module.cost() got an unexpected keyword argument 'trip'"),
        (lambda m: wrong(hlo).__getattr__("interop"), "import hlotext.interop"),
        (
            lambda m: m.memory("tpu", chip="h100"),
            "h100 is a GPU, but the module is for TPU; its chips: v2, v3",
        ),
        (lambda m: wrong(m.entry.root).operand, "did you mean `.operands`?"),
        (lambda m: wrong(m.entry.root.shape).dtype, "did you mean `.element_type`?"),
        (lambda m: rewrite.apply_rules(m, wrong("negate($x) => $x")), "use [hlotext.rewrite.rule(text)]"),
        (
            lambda m: rewrite.apply_rules(m, wrong(["negate($x) => $x"])),
            "it contains str; hlotext.rewrite.rule(text)",
        ),
        (lambda m: rewrite.Pipeline(wrong("dce")).run(m), "parse_passes(text) returns one"),
        (lambda m: rewrite.Pipeline(wrong(["dce"])).run(m), "but it contains str"),
        (lambda m: hlo.tables.tables_of(m, "all")["collectivs"], "did you mean `collectives`?"),
        (
            lambda m: hlo.parse_instruction("t = f32[4] transpose(p), dimensions={0}").attributes.update(
                dimensions="{x}"
            ),
            "expected a list of integers as dimensions of t, not '{x}'",
        ),
        (lambda m: m.instruction(0), "a name is a string, not int"),
        (lambda m: m.entry[0], "a name is a string, not int"),
        (lambda m: m.find(None), "a name is a string, not NoneType"),
        (lambda m: m.computation("en"), "no computation is named en"),
        (lambda m: cost.analyze(m.entry.root), "not Instruction; pass its .computation.module"),
        (lambda m: cost.analyze(m).of(wrong("n")), "expected an Instruction, not str; module.instruction"),
        (lambda m: cost.estimate(m, wrong(5)), "a chip is named by a string, not int"),
        (lambda m: cost.estimate(m, "cpu", mesh=wrong({"a": 1})), "expected a DeviceMesh, not dict"),
        (lambda m: lint.run(m, wrong({"select": ["C"]})), "expected a Config, not dict"),
        (lambda m: memory.assign(m, "cpu").peak(wrong("HBM")), "a memory space is a number"),
        (lambda m: memory.what_if.donate(m, wrong(0), "cpu"), "parameters is a list of numbers"),
        (lambda m: diff.compare(m, "nosuch.txt"), "nosuch.txt does not exist"),
        (lambda m: hlo.load("."), "hlotext.dumps.open reads a dump folder"),
        (lambda m: hlo.load(""), "the path is empty"),
        (lambda m: hlo.parse_shape(wrong(3)), "must be a string, such as 'bf16[8,128]{1,0}', not int"),
        (lambda m: hlo.parse_layout("1,0"), "for example: `{1,0:T(8,128)}`"),
        (lambda m: layout.explain(wrong("f32[8]")), "hlotext.parse_shape reads its text"),
        (
            lambda m: rewrite.change_shape(wrong("x"), "f32[4]"),
            "change_shape() takes an Instruction as its first argument (instruction), not str; module.instruction('x')",
        ),
        (lambda m: rewrite.Builder.before(wrong(m.entry)), "not Computation; its .root is one"),
        (lambda m: rewrite.remove_parameter(wrong(m), 0), "takes a Computation as its first argument"),
        (lambda m: hlo.reread(wrong("a.txt")), "not str; hlotext.load(path) reads a file"),
        (lambda m: m.entry.remove_all(wrong(m.entry.root)), "put it in a list: [it]"),
        (lambda m: m.entry.root.shape.subshape(wrong(3)), "takes a list of integers as its first argument"),
        (lambda m: m.lint(select=wrong([5])), "select=, not one that holds an int"),
        (
            lambda m: m.to_text(wrong(hlo.PrintOptions)),
            "not the class PrintOptions; make one: PrintOptions(...)",
        ),
        (lambda m: list(m.find_all(wrong(3))), "Module.find_all() takes a string as its first argument"),
        (lambda m: hlo.load_all(wrong(["a.txt"])), "not list; pass one at a time"),
        (lambda m: hlo.verify(wrong([m, m])), "expected a Module, not list; pass one at a time"),
        (
            lambda m: rewrite.shape_of("float32", (4,)),
            "no element type is named float32; did you mean `f32`?",
        ),
        (lambda m: rewrite.shape_of("f32", wrong("4")), "sizes are a list of integers"),
        (lambda m: rewrite.shape_of("f32", wrong((1.5,))), "sizes are integers, not (1.5,)"),
        (lambda m: hlo.Shape(wrong((4,)), wrong("f32")), "an element type is an ElementType, its name"),
        (lambda m: hlo.Layout(wrong("{1,0}")), "hlotext.parse_layout(text) reads one"),
        (
            lambda m: hlo.parse_shape("f32[4]").with_layout(wrong("{0}")),
            "the layout of a shape is a Layout, not str",
        ),
        (lambda m: hlo.Literal(wrong([1, 2])), "a Literal has a Shape, not list"),
        (lambda m: matchers.op("x", "ad"), "there is no opcode ad"),
        (lambda m: matchers.negate(matchers.op(), matchers.op()), "negate takes one operand, but has 2"),
        (lambda m: matchers.negate(wrong("x")), "an operand of negate is a pattern, not str; use op('x')"),
        (lambda m: matchers.op().with_shape("f32[4"), "'f32[4' is not the text of a Shape"),
        (lambda m: matchers.op().with_element_type("float32"), "did you mean `f32`?"),
        (lambda m: matchers.op().with_rank(wrong("2")), "a rank is an integer, not str"),
        (lambda m: rewrite.pattern("negate($x)"), "hlotext.matchers.parse_pattern(text) makes a pattern"),
        (lambda m: rewrite.pattern("ad"), "there is no opcode ad"),
        (lambda m: wrong(rewrite.Builder.before(m.entry.root)).exp, "did you mean `exponential`?"),
        (lambda m: wrong(matchers).sub, "did you mean `subtract`?"),
        (lambda m: rewrite.Builder.before(m.entry.root).constant(wrong(None), "f32"), "not NoneType"),
        (lambda m: rewrite.Builder.before(m.entry.root).op("ad"), "ad is not an opcode; did you mean"),
        (lambda m: m.entry.root.attributes[wrong(0)], "the name of an attribute is a string, not int"),
        (lambda m: m.attributes["num_partitons"], "no attribute is named num_partitons"),
        (lambda m: m.attributes.update(num_partitions=-1), "must not be negative, but is -1"),
        (lambda m: m.remove(wrong("e")), "module.computation('e') finds one"),
        (lambda m: m.entry.root.replace_operand(5, m.entry.root), "n has no operand 5; it has 1"),
        (lambda m: m.entry.root.replace_operand(0, hlo.parse(STEP).entry["p"]), "is in another module, m"),
        (lambda m: wrong(hlo.lint)(m), "hlotext.lint is a package; call hlotext.lint.run"),
        (lambda m: wrong(hlo.cost)(m), "hlotext.cost is a package; call hlotext.cost.analyze"),
        (lambda m: wrong(hlo.diff)(m, m), "hlotext.diff is a package; call hlotext.diff.compare"),
    ],
)
def test_values_of_another_type(call: Callable[[Any], object], said: str) -> None:
    """The message says what was expected and what makes it; an attribute that a wrong value lacks would tell nobody."""
    with pytest.raises((TypeError, LookupError, ValueError, OSError, AttributeError)) as caught:
        call(hlo.parse(STEP))
    assert said in str(caught.value)


@pytest.mark.parametrize("kind", [hlo.Module, hlo.Computation, hlo.Instruction, hlo.Shape])
def test_names_of_xla(kind: type) -> None:
    """None of them hides a name of ours, each proposes one that exists, and they are no attributes to anybody."""
    module = hlo.parse(STEP)
    value = {"Module": module, "Computation": module.entry, "Instruction": module.entry.root}.get(
        kind.__name__, module.entry.root.shape
    )
    for name, meant in FOREIGN[kind.__name__].items():
        assert not hasattr(value, name)
        assert not hasattr(kind, name)
        assert not any(name in vars(base) for base in kind.__mro__[1:] if base is not Abbreviated)
        assert not is_member(meant) or hasattr(value, re.split(r"[.(\[]", meant)[0])
        said = f"did you mean `.{meant}`?" if is_member(meant) else f"use {meant}"
        with pytest.raises(AttributeError, match=re.escape(said)) as caught:
            getattr(value, name)
        assert caught.value.name is None  # Python proposes nothing else
    assert str(copy.deepcopy(module)) == str(pickle.loads(pickle.dumps(module))) == str(module)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("x", "returned a str for n"),
        (5, "returned an int for n"),
        (True, "says that it changed n, but edited nothing"),
    ],
)
def test_a_rule_that_returns_no_result(result: object, said: str) -> None:
    rule = rewrite.pattern("negate", name="r")(lambda r: wrong(result))
    with pytest.raises(rewrite.RewriteError, match=f"the rule r {said}"):
        rewrite.apply_rules(hlo.parse(STEP), [rule])


def test_types_of_numpy_are_element_types() -> None:
    import numpy as np

    for given in (np.float16, np.dtype("float16"), "f16"):
        assert str(rewrite.shape_of(given, (4,))) == "f16[4]"
    assert str(hlo.Shape(wrong(np.int32), (2,))) == "s32[2]"


def test_a_shape_compared_with_text_warns() -> None:
    with pytest.warns(RuntimeWarning, match="a Shape never equals a string") as caught:
        assert hlo.parse_shape("f32[4]") != "f32[4]"
    assert caught[0].filename == __file__


def test_no_name_of_xla_is_proposed() -> None:
    module = hlo.parse(STEP)
    for node in (module, module.entry, module.entry.root, module.entry.root.shape):
        assert FOREIGN[type(node).__name__].keys().isdisjoint(dir(node))
    assert "operands" in dir(module.entry.root)


def test_an_error_of_a_fitting_argument_stays() -> None:
    """Only an argument that contradicts its annotation is named; what happens in a function of the user is his."""
    module = hlo.parse(STEP)

    def fails(i: hlo.Instruction) -> bool:
        return bool(wrong(i).nothing)

    with pytest.raises(AttributeError, match="nothing"):
        matchers.op().with_predicate(fails).match(module.entry.root)
    with pytest.raises(IndexError, match="not a shape index"):
        hlo.parse_shape("f32[4]").subshape((3,))


def test_a_name_of_xla_in_a_computation_that_nobody_has_read(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text(STEP)
    with pytest.raises(AttributeError, match=r"'Computation' object .* did you mean `\.root`\?"):
        assert wrong(hlo.load(tmp_path / "m.txt", lazy=True).entry).root_instruction


def test_python_proposes_what_a_misspelled_name_of_xla_is_here() -> None:
    """Of classes without `__getattr__`, in the words of Python; a list of names has none of these."""
    root = hlo.parse(STEP).entry.root
    script = f"import hlotext\nhlotext.parse({STEP!r}).entry.root.operand_coutn"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr.splitlines()[-1].endswith("Did you mean: 'len(instruction.operands)'?")
    assert "operand_count" not in dir(root)


def test_one_code_is_a_selection() -> None:
    assert lint.Config(select="C101") == lint.Config(select=("C101",))


def test_a_beginning_of_a_name_is_enough() -> None:
    assert did_you_mean("main", ["main.0_spmd", "region_1"]) == "did you mean `main.0_spmd`?"
