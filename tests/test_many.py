"""New instructions are put before one at once: the module is that of single edits, and undoing works."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext.edit import integrity, many
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.instruction import Instruction
from hlotext.rewrite.passes import PASSES

_TEXT = """HloModule m

ENTRY e {
  a = f32[8]{0} parameter(0)
  x = f32[8]{0} sine(a)
  y = f32[8]{0} cosine(x)
  ROOT v = (f32[8]{0}, f32[8]{0}) tuple(x, y)
}
"""


def _made(module: hlo.Module) -> list[Instruction]:
    x = module.entry["x"]
    first = Instruction("n.1", "negate", x.shape, (x,))
    return [first, Instruction("n.2", "add", x.shape, (first, x))]


def test_put_and_undone() -> None:
    module, single = hlo.parse(_TEXT), hlo.parse(_TEXT)
    made = _made(module)
    x, y = module.entry["x"], module.entry["y"]
    assert x.users == (y, module.entry["v"])
    with module.transaction() as record:
        many.put_before(y, made)
        assert [i.name for i in module.entry] == ["a", "x", "n.1", "n.2", "y", "v"]
        assert set(x.users) == {y, module.entry["v"], *made}
        assert made[0].users == (made[1],)
        assert module.entry["n.1"] is made[0]
        assert module.instruction_names.unique("n.1") != "n.1"
        assert integrity.problems(module) == []
        y.replace_all_uses_with(made[1])
    for one in _made(single):
        single.entry.add(one, single.entry["y"])
    single.entry["y"].replace_all_uses_with(single.entry["n.2"])
    assert str(module) == str(single)
    assert [one for one in record.inserted if isinstance(one, Instruction)] == made
    record.undo()
    assert str(module) == _TEXT
    assert x.users == (y, module.entry["v"])
    assert "n.1" not in module.entry
    assert integrity.problems(module) == []
    many.put_before(y, made)  # what was taken out is new again
    assert integrity.problems(module) == []


@pytest.mark.parametrize(
    ("opcode", "operand", "name", "message"),
    [
        ("negate", "y", "n", "would come before y"),
        ("negate", "x", "y", "already has an instruction named y"),
        ("negate", "x", "n.1", "already has an instruction named n.1"),
        ("negated", "x", "n", "not an opcode"),
        ("transpose", "x", "n", "dimensions"),
    ],
)
def test_what_may_not_stand_there_changes_nothing(opcode: str, operand: str, name: str, message: str) -> None:
    module = hlo.parse(_TEXT)
    e = module.entry
    made = [*_made(module), Instruction(name, opcode, e["x"].shape, (e[operand],))]
    with pytest.raises(EditError, match=message):
        many.put_before(e["y"], made)
    assert str(module) == _TEXT
    assert integrity.problems(module) == []
    assert made[0].computation is None


def test_a_call_is_one_edit_of_all_that_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """What calls or waits is an edit of its own, and stands where it stood."""
    module = hlo.parse(
        "add { l = f32[] parameter(0)  r = f32[] parameter(1)  ROOT s = f32[] add(l, r) }\n"
        "f { p = f32[8] parameter(0)  q = f32[8] sine(p)  z = f32[] constant(0)\n"
        "  w = f32[8] negate(q), control-predecessors={z}\n"
        "  t = f32[] reduce(w, z), dimensions={0}, to_apply=add  ROOT u = f32[] cosine(t) }\n"
        "ENTRY e { x = f32[8] parameter(0)  ROOT c = f32[] call(x), to_apply=f }"
    )
    sizes: list[int] = []
    put = many.put_before

    def noted(place: Instruction, new: list[Instruction], originals: dict[Instruction, Instruction]) -> None:
        sizes.append(len(new))
        assert list(originals)[-len(new) :] == new or not new
        put(place, new, originals)

    monkeypatch.setattr(many, "put_before", noted)
    assert PASSES["call-inliner"]().run(module).statistics["calls"] == 1
    assert [i.opcode for i in module.entry] == ["parameter", "sine", "constant", "negate", "reduce", "cosine"]
    assert sizes == [2, 0, 1]
    assert integrity.problems(module) == []
