"""Matchers: what matches, what is captured, and why something does not match."""

from __future__ import annotations

import doctest

import pytest

import hlotext as hlo
from hlotext import matchers as m
from hlotext.matchers import pattern, text

TEXT = """ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  zero = f32[] constant(0)
  zeros = f32[4]{0} broadcast(zero), dimensions={}
  neg = f32[4]{0} negate(x)
  sum = f32[4]{0} add(neg, zeros)
  twice = f32[4]{0} add(x, x)
  both = f32[4]{0} multiply(sum, twice)
  bits = f32[2,2]{1,0} bitcast(both)
  ROOT cat = f32[4,2]{1,0} concatenate(bits, bits), dimensions={0}, metadata={op_name="cat"}
}
"""


@pytest.fixture
def entry() -> hlo.Computation:
    return hlo.parse(TEXT).entry


MATCHES = {
    "any": (m.op("a"), "sum", {"a": "sum"}),
    "opcode and operands": (m.add(m.negate(m.op("a")), m.op("b")), "sum", {"a": "x", "b": "zeros"}),
    "any order": (
        m.multiply_any_order(m.add(m.op("a"), m.op("a")), m.op("b")),
        "both",
        {"a": "x", "b": "sum"},
    ),
    "splat": (m.add(m.op("a"), m.splat(0, name="z")), "sum", {"a": "neg", "z": "zeros"}),
    "any of": (m.any_of(m.subtract(), m.add(name="a")), "sum", {"a": "sum"}),
    "backtracking": (
        m.multiply_any_order(m.any_of(m.op("a"), m.op("b")), m.add(m.op("c"), m.op("c"))),
        "both",
        {"a": "sum", "c": "x"},
    ),
    "through": (m.concatenate(m.multiply(name="a"), m.op()).through("bitcast"), "cat", {"a": "both"}),
    "attribute": (m.concatenate(dimensions=(0,), name="a"), "cat", {"a": "cat"}),
    "attribute as text": (m.op("a").with_attribute("metadata", '{op_name="cat"}'), "cat", {"a": "cat"}),
    "conditions": (
        m.op("a")
        .with_shape("f32[4]")
        .with_layout("{0}")
        .with_one_use()
        .with_one_user()
        .with_element_type("f32"),
        "sum",
        {"a": "sum"},
    ),
    "number": (m.parameter(1, name="a"), "y", {"a": "y"}),
}


@pytest.mark.parametrize(("pattern", "name", "captures"), MATCHES.values(), ids=MATCHES)
def test_match(entry: hlo.Computation, pattern: m.Pattern, name: str, captures: dict[str, str]) -> None:
    found = pattern.match(entry[name])
    assert found is not None
    assert {key: value.name for key, value in found.items()} == captures
    assert pattern.explain(entry[name]) is None


EXPLANATIONS = {
    "opcode": (m.add(), "neg", "neg: the opcode is negate, not add"),
    "operand": (
        m.add(m.op(), m.constant(0)),
        "sum",
        "operand 1 of sum, zeros: the opcode is broadcast, not constant",
    ),
    "the deepest attempt": (
        m.any_of(m.subtract(), m.add(m.negate(m.constant()), m.op())),
        "sum",
        "operand 0 of neg, x: the opcode is parameter, not constant",
    ),
    "capture": (
        m.add(m.op("a"), m.op("a")),
        "sum",
        "operand 1 of sum, zeros: a is already another instruction",
    ),
    "count": (m.concatenate(m.op()), "cat", "cat: it has 2 operands, not 1"),
    "uses": (m.op().with_one_use(), "x", "x: it must be that it is used in one place"),
    "shape": (m.op().with_shape("f32[5]"), "x", "x: it must be that the shape is f32[5]"),
    "attribute": (m.concatenate(dimensions=(1,)), "cat", "cat: it must be that dimensions=(1,)"),
    "predicate": (
        m.op().with_predicate(lambda i: False, "it never is"),
        "x",
        "x: it must be that it never is",
    ),
}


@pytest.mark.parametrize(("pattern", "name", "reason"), EXPLANATIONS.values(), ids=EXPLANATIONS)
def test_explanation(entry: hlo.Computation, pattern: m.Pattern, name: str, reason: str) -> None:
    assert pattern.match(entry[name]) is None
    assert pattern.explain(entry[name]) == reason


def test_through_a_fusion() -> None:
    module = hlo.parse(
        "body { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }\n"
        "ENTRY e { x = f32[4] parameter(0)  s = f32[4] sine(x)\n"
        "f = f32[4] fusion(s), kind=kLoop, calls=body  ROOT r = f32[4] cosine(f) }"
    )
    inside = m.cosine(m.negate(m.sine(m.op("x"))))
    assert not inside.matches(module.entry.root)
    found = inside.through(fusion=True).match(module.entry.root)
    assert found is not None
    assert found["x"].name == "x"


def test_every_opcode_has_a_matcher_and_nothing_else_has() -> None:
    assert m.get_tuple_element(m.op()).opcode == "get-tuple-element"
    assert m.and_().opcode == "and"
    with pytest.raises(AttributeError):
        m.subtract_any_order  # noqa: B018


TEXTS = {
    "%a = f32[4] add(%b, broadcast(_))": {"a": "sum", "b": "neg"},
    "add($A, $A)": {"A": "x"},
    "$S multiply(add(...), %t)": {"S": "f32[4]{0}", "t": "twice"},
    "concat*(...), dimensions={0}, metadata=*cat*": {},
    "f32[*] concatenate(_, ...), dimensions=$D": {"D": "{0}"},
    "f32[4]{0} negate": {},
}


@pytest.mark.parametrize(("written", "captures"), TEXTS.items(), ids=TEXTS)
def test_text_pattern(entry: hlo.Computation, written: str, captures: dict[str, str]) -> None:
    found = [match for i in entry if (match := m.parse_pattern(written).match(i)) is not None]
    assert len(found) == 1
    assert {key: getattr(value, "name", value) for key, value in found[0].items()} == captures


@pytest.mark.parametrize(
    "written", ["", "add(", "add(%a", "add(..., %a)", "add(%a) x", "%x = = add()", "add(%a), x"]
)
def test_text_that_is_no_pattern(written: str) -> None:
    with pytest.raises(m.PatternError):
        m.parse_pattern(written)


@pytest.mark.parametrize("module", [m, pattern, text], ids=lambda module: module.__name__)
def test_examples(module: object) -> None:
    assert not doctest.testmod(module).failed  # type: ignore[arg-type]
