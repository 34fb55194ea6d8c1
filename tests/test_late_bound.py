"""Asynchronous operations whose operands and results are bound late: edits, copies, protos and passes."""

from __future__ import annotations

import pytest

import hlotext as hlo
from hlotext import cost, proto
from hlotext.edit.cloning import clone_computation
from hlotext.findings.errors import Severity
from hlotext.rewrite.passes import PASSES

GENERIC = """HloModule m

work {
  x = f32[9]{0} parameter(0)
  y = f32[9]{0} parameter(1)
  ROOT z = f32[9]{0} add(x, y)
}

ENTRY main {
  p = f32[9]{0} parameter(0)
  q = f32[9]{0} parameter(1)
  s = ((f32[9]{0}), (), s32[]) async-start(p), calls=work
  u = ((f32[9]{0}, f32[9]{0}), f32[9]{0}, s32[]) async-update(s, q)
  ROOT d = f32[9]{0} async-done(u)
}
"""
ONE_BY_ONE = """HloModule m

ENTRY main {
  p = f32[9]{0} parameter(0)
  q = f32[9]{0} parameter(1)
  s = ((), (), s32[]) call-start(), to_apply={
    x = f32[9]{0} parameter(0)
    y = f32[9]{0} parameter(1)
    ROOT z = f32[9]{0} maximum(x, y)
  }
  u = ((f32[9]{0}), (), s32[]) call-update(s, p)
  v = ((f32[9]{0}, f32[9]{0}), (), s32[]) call-update(u, q)
  ROOT d = f32[9]{0} call-done(v)
}
"""
DOT = """HloModule m

ENTRY main {
  p = f32[3,4]{1,0} parameter(0)
  q = f32[4,5]{1,0} parameter(1)
  s = ((), (), s32[]) dot-start(), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  u = ((f32[3,4]{1,0}, f32[4,5]{1,0}), f32[3,5]{1,0}, s32[]) dot-update(s, p, q)
  ROOT d = f32[3,5]{1,0} dot-done(u)
}
"""
AT_ONCE = """HloModule m

ENTRY main {
  a = f32[4]{0} parameter(0)
  s = ((f32[4]{0}), f32[4]{0}, s32[]) call-start(a), to_apply={
    x = f32[4]{0} parameter(0)
    ROOT y = f32[4]{0} negate(x)
  }
  ROOT d = f32[4]{0} call-done(s)
}
"""
TEXTS = {"generic": GENERIC, "one by one": ONE_BY_ONE, "dot": DOT, "at once": AT_ONCE}
pytestmark = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)


def is_sound(module: hlo.Module) -> bool:
    """Whether a module, and what it is read back as, has no errors, and both are the same."""
    again = hlo.parse(str(module))
    assert again.to_text() == module.to_text()
    return not [d for m in (module, again) for d in hlo.verify(m) if d.severity is Severity.ERROR]


def test_edits_of_every_line(text: str) -> None:
    module = hlo.parse(text)
    for number, instruction in enumerate(module.entry):
        instruction.name = f"n{number}"
    assert is_sound(module)
    for place in range(len(module.entry)):
        module = hlo.parse(text)
        module.entry.instructions[place].attributes["frontend_attributes"] = '{a="1"}'
        assert is_sound(module)


def test_copies(text: str) -> None:
    module = hlo.parse(text)
    assert str(module.clone()) == text
    clone_computation(module.entry)
    assert is_sound(module)
    order = {computation: place for place, computation in enumerate(module.computations)}
    for computation in module.computations:  # XLA reads no name before what it names
        for instruction in computation:
            assert all(order[callee] < order[computation] for callee in instruction.called_computations)


def test_protos_there_and_back(text: str) -> None:
    pytest.importorskip("google.protobuf")
    module = proto.read_module(hlo.parse(text).to_proto())
    assert is_sound(module)
    assert hlo.reread(module).to_text() == hlo.reread(hlo.parse(text)).to_text()


def test_the_operation_costs_what_it_costs(text: str) -> None:
    wanted = {DOT: 2 * 3 * 4 * 5, AT_ONCE: 4}.get(text, 9)
    assert cost.analyze(hlo.parse(text)).flops == wanted


def test_every_pass_leaves_it_sound(text: str) -> None:
    for one in PASSES.values():
        module = hlo.parse(text)
        one().run(module)
        assert is_sound(module), one
