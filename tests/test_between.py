"""Instructions are put between users and operands at once: the module is that of single edits, and undoing works."""

from __future__ import annotations

import re

import pytest

import hlotext as hlo
from hlotext import compiler
from hlotext.compiler.deep_copy import Copier
from hlotext.edit import between, integrity, structure
from hlotext.ir.nodes.instruction import Instruction
from tests.test_copy_rows import PLATFORMS, _Program, _scheduled
from tests.test_linear import counted

_TEXT = """HloModule m, is_scheduled=true

ENTRY e {
  a = f32[8]{0} parameter(0)
  x = f32[8]{0} sine(a)
  s = f32[2]{0} slice(x), slice={[0:2]}
  k = s32[] constant(3)
  u = f32[8]{0} dynamic-update-slice(x, s, k)
  ROOT v = f32[8]{0} dynamic-update-slice(x, s, k)
}
"""


def _copy(operand: Instruction, name: str) -> Instruction:
    return Instruction(name, "copy", operand.shape, (operand,))


@pytest.mark.parametrize("few", [0, 16], ids=["one by one", "the list anew"])
def test_inserted_bypassed_and_undone(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    module = hlo.parse(_TEXT)
    e = module.entry
    x, u, v = e["x"], e["u"], e["v"]
    assert x.users == (e["s"], u, v)
    monkeypatch.setattr(structure, "FEW", few)
    with module.transaction() as record:
        copies = _copy(x, "c.1"), _copy(x, "c.2")
        between.insert(e, [(u, {0: copies[0]}), (v, {0: copies[1]})])
        assert [i.name for i in e] == ["a", "x", "c.2", "c.1", "s", "k", "u", "v"]
        assert sorted(e.order[i] for i in e) == [e.order[i] for i in e]
        assert (u.operands[0], v.operands[0]) == copies
        assert set(x.users) == {e["s"], *copies}
        assert copies[0].users == (u,)
        assert module.instruction_names.unique("c.1") != "c.1"
        assert integrity.problems(module) == []
        between.bypass(copies[0])
        assert u.operands[0] is x
        assert not copies[0].users
        e.remove(copies[0])
    assert hlo.verify(module) == hlo.verify(hlo.parse(str(module)))
    assert str(hlo.parse(str(module))) == str(module)
    assert "c.2 = f32[8]{0} copy(x)" in str(module)
    assert integrity.problems(module) == []
    record.undo()
    assert integrity.problems(module) == []
    assert [i.name for i in e] == ["a", "x", "s", "k", "u", "v"]
    assert set(x.users) == {e["s"], u, v}
    assert "c.2" not in e


@pytest.mark.parametrize(
    ("name", "number", "said"),
    [
        ("u", 0, "already has an instruction named u"),
        ("c", 2, "its only operand is not operand 2"),
        ("c", 9, "its only operand is not operand 9"),
    ],
)
def test_what_does_not_fit_is_refused(name: str, number: int, said: str) -> None:
    module = hlo.parse(_TEXT)
    e = module.entry
    with pytest.raises(hlo.EditError, match=re.escape(said)):
        between.insert(e, [(e["u"], {number: _copy(e["x"], name)})])
    assert str(module) == _TEXT


def test_halves_of_asynchronous_operations_are_refused() -> None:
    text = _TEXT.replace("ROOT v = f32[8]{0} dynamic-update-slice(x, s, k)", "")
    text = text.replace(
        "  u = f32[8]{0} dynamic-update-slice(x, s, k)",
        "  w = (f32[8]{0}, f32[8]{0}, u32[]) copy-start(x)\n  ROOT u = f32[8]{0} copy-done(w)",
    )
    e = hlo.parse(text).entry
    assert not between.is_plain(hlo.parse(text), e["w"])
    with pytest.raises(hlo.EditError, match="asynchronous"):
        between.insert(e, [(e["w"], {0: _copy(e["x"], "c")})])


@pytest.mark.parametrize(
    "seeds", [range(8), pytest.param(range(8, 200), marks=[pytest.mark.slow, pytest.mark.nightly])]
)
def test_copies_are_those_of_single_edits(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    at_once = counted(monkeypatch, between, "insert")
    for seed in seeds:
        text = _Program(seed).text()
        for module in (hlo.parse(text), hlo.parse(_scheduled(text))):
            for platform in PLATFORMS:
                quick = compiler.copy_insertion(module, platform)
                with monkeypatch.context() as patch:
                    patch.setattr(Copier, "copy_later", lambda *_: None)
                    patch.setattr(between, "bypass", lambda i, _: i.replace_all_uses_with(i.operands[0]))
                    slow = compiler.copy_insertion(module, platform)
                assert quick.decisions == slow.decisions
                assert str(quick.module) == str(slow.module)
    assert at_once[0] > len(seeds)
