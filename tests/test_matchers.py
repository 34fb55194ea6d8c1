"""Matchers: what matches, what is captured, and why something does not match."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hlotext as hlo
from hlotext import matchers as m
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import ELEMENT_TYPES, ElementType
from hlotext.matchers import glob
from hlotext.matchers.numbers import is_all

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
        m.subtract_any_order  # type: ignore[attr-defined]  # noqa: B018


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


# ---- what XLA's pattern matcher asks of attributes, shapes and operands

RICH = """HloModule m

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(b, a) }
argmax { a = f32[] parameter(0)  b = f32[] parameter(1)  c = f32[] maximum(a, b)  ROOT d = f32[] negate(c) }
body { p = f32[2,3]{1,0} parameter(0)  t = f32[2,3]{1,0} tanh(p)  ROOT n = f32[2,3]{1,0} negate(t) }
pair { p = f32[2,3]{1,0} parameter(0)  t = f32[2,3]{1,0} tanh(p)  n = f32[2,3]{1,0} negate(p)
  ROOT r = (f32[2,3]{1,0}, f32[2,3]{1,0}) tuple(t, n) }

ENTRY e {
  x = f32[2,3]{1,0} parameter(0), sharding={devices=[2,1]0,1 metadata={op_name="x"}}
  y = f32[3,2]{1,0} parameter(1)
  one = f32[1,1]{1,0} parameter(2)
  zero = f32[] constant(0)
  dot = f32[2,2]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  batched = f32[2,3,3]{2,1,0} dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={1}
  reduce = f32[2]{0} reduce(x, zero), dimensions={1}, to_apply=sum
  other = f32[2]{0} reduce(x, zero), dimensions={1}, to_apply=argmax
  all = f32[2,3]{1,0} all-reduce(x), channel_id=1, replica_groups=[2,2]<=[4], use_global_device_ids=true, to_apply=sum
  less = pred[2,3]{1,0} compare(x, x), direction=LT
  loop = f32[2,3]{1,0} fusion(x), kind=kLoop, calls=body
  many = (f32[2,3]{1,0}, f32[2,3]{1,0}) fusion(x), kind=kInput, calls=pair
  second = f32[2,3]{1,0} get-tuple-element(many), index=1
  abs = f32[2,3]{1,0} abs(second)
  tuple = (f32[2,3]{1,0}, (pred[2,3]{1,0})) custom-call(x), custom_call_target="f"
  call = f32[] custom-call(x, y), custom_call_target="g"
  ROOT r = f32[1,1]{1,0} negate(one)
}
"""

RICH_MATCHES: dict[str, tuple[m.Pattern, set[str]]] = {
    "contracting dims": (m.op().with_contracting_dims((1,), (0,)), {"dot"}),
    "other contracting dims": (m.dot().with_contracting_dims(lhs=(0,), rhs=(0,)), set()),
    "batch dims": (m.op().with_batch_dims([0], [1]), {"batched"}),
    "no batch dims": (m.dot().with_batch_dims((), ()), {"dot"}),
    "replica groups as text": (m.op().with_replica_groups("{{0,1},{2,3}}"), {"all"}),
    "replica groups, iota": (m.op().with_replica_groups("[2,2]<=[4]"), {"all"}),
    "replica groups as lists": (m.all_reduce().with_replica_groups([[0, 1], [2, 3]]), {"all"}),
    "more replica groups than can be listed": (
        m.op().with_replica_groups("[1048576,1048576]<=[1048576,1048576]T(1,0)"),
        set(),
    ),
    "other replica groups": (m.op().with_replica_groups([[0, 2], [1, 3]]), set()),
    "sharding": (m.op().with_sharding("{devices=[2,1]<=[2]}"), {"x"}),
    "sharding as a value": (m.op().with_sharding(hlo.parse_sharding("{replicated}")), set()),
    "comparison direction": (m.op().with_comparison_direction("LT", "LE"), {"less"}),
    "other direction": (m.op().with_comparison_direction("GT"), set()),
    "reducer": (m.op().with_reducer("add"), {"reduce", "all"}),
    "reducer that does more": (m.op().with_reducer("maximum"), set()),
    "fusion kind": (m.op().with_fusion_kind("kLoop", "kCustom"), {"loop"}),
    "effective scalar": (m.op().with_effective_scalar(), {"one", "zero", "call", "r"}),
    "effective scalar constant": (m.constant_effective_scalar(0), {"zero"}),
    "operand": (m.op().with_operand(1, m.op(opcode="parameter")), {"dot", "batched", "less", "call"}),
    "operand if present": (
        m.custom_call().with_operand_if_present(1, m.parameter(0)),
        {"tuple"},
    ),
    "not": (m.dot(m.Not(m.parameter(1)), m.op()).with_batch_dims((), ()), {"dot"}),
    "not, failing": (m.dot(m.op(), m.Not(m.parameter())), set()),
    "but not": (m.reduce().but_not(m.op().with_reducer("add")), {"other"}),
    "sub-shape": (m.op().with_subshape((1, 0), "pred[2,3]"), {"tuple"}),
    "sub-shape of a pair": (m.fusion().with_subshape((1,), "f32[2,3]"), {"many"}),
    "start at a fusion": (m.negate(m.tanh(m.parameter(0))).through(fusion=True, start=True), {"loop"}),
    "look through a fusion of two": (m.abs(m.negate(m.parameter(0))).through(fusion=True), {"abs"}),
}


@pytest.mark.parametrize(("wanted", "names"), RICH_MATCHES.values(), ids=RICH_MATCHES)
def test_conditions(wanted: m.Pattern, names: set[str]) -> None:
    """Each condition finds what it is for in a module, and nothing else; `explain` agrees."""
    entry = hlo.parse(RICH).entry
    assert {i.name for i in entry if wanted.matches(i)} == names
    assert {i.name for i in entry if wanted.explain(i) is None} == names


def test_a_match_that_starts_at_a_fusion_captures_inside() -> None:
    module = hlo.parse(RICH)
    wanted = m.negate(m.tanh(m.op("given"), name="inner"), name="root").through(fusion=True, start=True)
    found = wanted.match(module.entry["loop"])
    assert found is not None
    assert {key: value.name for key, value in found.items()} == {"given": "x", "inner": "t", "root": "n"}
    assert wanted.explain(module.entry["dot"]) == "dot: the opcode is dot, not negate"


def test_what_must_not_match_sees_captures() -> None:
    """Not the same operand twice."""
    different = m.add(m.op("a"), m.Not(m.op("a")))
    module = hlo.parse(
        "ENTRY e { x = f32[] parameter(0)  y = f32[] parameter(1)  s = f32[] add(x, x)  ROOT d = f32[] add(x, y) }"
    )
    assert [i.name for i in module.entry if different.matches(i)] == ["d"]
    assert different.explain(module.entry["s"]) == "operand 1 of s, x: it matches an excluded pattern"


# ---- numbers, by value and type

NUMBERS: list[tuple[str, Any, bool]] = [
    ("f32[] constant(0.5)", 0.5, True),
    ("s32[] constant(0)", 0.5, False),
    ("s32[] constant(1)", 1.5, False),
    ("s32[] constant(1)", 1, True),
    ("s32[] constant(1)", 1.0, False),
    ("s4[] constant(-7)", 9, False),
    ("s4[] constant(-7)", -7, True),
    ("u32[] constant(4294967295)", -1, False),
    ("u32[2] constant({1, 1})", 1, True),
    ("u8[] constant(1)", 257, False),
    ("f32[] constant(1)", 1, True),
    ("f32[] constant(0.1)", 0.1, True),
    ("f32[] constant(0)", 1e-60, False),
    ("f32[] constant(inf)", 1e300, False),
    ("f32[] constant(inf)", math.inf, True),
    ("f32[] constant(16777216)", 16777217, False),
    ("f32[] constant(-0)", 0, True),
    ("f32[2] constant({nan, -nan})", math.nan, True),
    ("f32[] constant(1)", math.nan, False),
    ("bf16[] constant(0.5)", np.float32(0.5), True),
    ("f8e4m3fn[] constant(448)", 1e9, False),
    ("f8e4m3fn[] constant(448)", 448, True),
    ("f16[] constant(1)", 10**400, False),
    ("pred[] constant(true)", True, True),
    ("pred[] constant(true)", 1, True),
    ("pred[] constant(true)", 2, False),
    ("pred[] constant(true)", 1.0, False),
    ("s32[] constant(1)", True, False),
    ("f32[] constant(1)", True, False),
    ("c64[] constant((1, 0))", 1, True),
    ("c64[] constant((1, 2))", 1 + 2j, True),
    ("f32[] constant(1)", 1 + 0j, False),
    ("f32[0] constant({})", 0, False),
    ("f32[4] constant({...})", 0, False),
    ("s32[2] constant({1, 2})", 1, False),
]


@pytest.mark.parametrize(("written", "number", "matches"), NUMBERS)
def test_numbers(written: str, number: Any, matches: bool) -> None:
    """A number matches constants of that value whose type holds it."""
    instruction = hlo.parse_instruction(f"c = {written}")
    assert m.constant(number).matches(instruction) is matches
    assert m.splat(number).matches(instruction) is matches


def test_a_constant_is_matched_with_a_number_or_a_literal() -> None:
    instruction = hlo.parse_instruction("c = s32[2] constant({1, 2})")
    assert instruction.literal is not None
    assert m.constant(instruction.literal).matches(instruction)
    with pytest.raises(TypeError, match="not 'x'"):
        m.constant("x")  # type: ignore[arg-type]


@pytest.mark.parametrize("type_", [t for t in ELEMENT_TYPES.values() if t.dtype_name])
@pytest.mark.parametrize("number", [0, 1, -1, 9, 1.5, 300, math.nan, -math.inf, 1e30, 2**70, True, 1j])
def test_every_number_with_every_type(type_: ElementType, number: Any) -> None:
    """No number fails with any type; what matches is equal."""
    try:
        literal = Literal.from_array(np.ones((), type_.dtype))
    except TypeError:
        pytest.skip("this ml_dtypes does not have the type")
    found = is_all(literal, number)
    assert not found or complex(literal.array[()]) == number


# ---- no way is tried twice


def test_nested_patterns_in_any_order_are_not_exponential() -> None:
    """24 levels, which have 16 million orders: what fails at the bottom is asked about a few times."""
    lines = ["v0 = f32[] parameter(0)"] + [f"v{n} = f32[] add(v{n - 1}, v{n - 1})" for n in range(1, 25)]
    module = hlo.parse("ENTRY e {\n" + "\n".join(lines) + "\n}")
    asked: list[str] = []

    def never(i: hlo.Instruction) -> bool:
        asked.append(i.name)
        return False

    wanted = m.op().with_predicate(never, "never")
    for _ in range(24):
        wanted = m.add_any_order(wanted, m.any_of(m.op(), m.add()))
    assert not wanted.matches(module.entry.root)
    assert wanted.explain(module.entry.root) == "operand 0 of v1, v0: it must be that never"
    assert len(asked) < 10


def test_names_in_several_places_are_found_in_any_order() -> None:
    """Each name is one instruction, whichever order that takes; many names that are alone cost nothing."""
    lines = [f"p{n} = f32[] parameter({n})" for n in range(14)] + ["v0 = f32[] add(p0, p1)"]
    lines += [f"v{n} = f32[] add(p{n + 1}, v{n - 1})" for n in range(1, 13)]
    lines += ["ROOT r = f32[] multiply(v12, p0)"]
    module = hlo.parse("ENTRY e {\n" + "\n".join(lines) + "\n}")
    deep = m.add_any_order(m.op("a"), m.op("b"))
    for n in range(12):
        deep = m.add_any_order(deep, m.op(f"x{n}"))
    found = m.multiply_any_order(m.op("a"), deep).match(module.entry.root)
    assert found is not None
    assert {found["a"].name, found["b"].name} == {"p0", "p1"}
    assert found["a"].name == "p0"
    found = m.multiply_any_order(m.op("b"), deep).match(module.entry.root)
    assert found is not None
    assert found["b"].name == "p0"
    assert not m.multiply_any_order(m.op("x3"), deep).matches(module.entry.root)


def test_too_many_orders_are_refused() -> None:
    with pytest.raises(ValueError, match="7 operands in any order"):
        m.Pattern(operands=(m.op(),) * 7, any_order=True)


@pytest.mark.parametrize("stars", [4, 40])
def test_shell_patterns_do_not_go_back(stars: int) -> None:
    """What a matcher that goes back would need ages for."""
    text = "a" * 4000
    assert not glob.is_like(text, "*a" * stars + "*b")
    assert glob.is_like(text + "b", "*a" * stars + "*b")
    instruction = hlo.parse_instruction(f'x = f32[] parameter(0), metadata={{op_name="{text}"}}')
    assert not m.parse_pattern(f"_, metadata={'*a' * stars}*b").matches(instruction)


@given(st.text("ab[", max_size=8), st.text("ab*?[", max_size=8))
def test_shell_patterns_mean_what_expressions_mean(text: str, wanted: str) -> None:
    expression = re.escape(wanted).replace(r"\*", ".*").replace(r"\?", ".")
    assert glob.is_like(text, wanted) == (re.fullmatch(expression, text, re.DOTALL) is not None)


def test_a_pattern_of_endless_depth_is_refused() -> None:
    with pytest.raises(m.PatternError, match="nested"):
        m.parse_pattern("add(" * 5000 + "_" + ")" * 5000)
