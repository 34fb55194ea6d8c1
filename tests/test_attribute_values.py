"""Attributes as data: text, typed value, printed text; see tests/attribute_cases.py for the cases."""

from __future__ import annotations

from typing import Any

import pytest

import hlotext as hlo
from hlotext.findings.errors import TermError
from hlotext.ir.tables.attributes import ATTRIBUTES, HEADER_ATTRIBUTES
from hlotext.ir.tables.opcodes import OPCODES
from hlotext.ir.values.raw_value import RawValue
from hlotext.ir.values.replica_groups import ReplicaGroups
from hlotext.ir.values.sharding import Sharding
from hlotext.syntax.reading import terms
from tests.attribute_cases import BAD, GOOD, Case, canonical, read, text_of

VALUES = [case for case in GOOD if "reference" not in case.values[0]]
REFERENCES = [case for case in GOOD if "reference" in case.values[0]]

UNREADABLE = (
    'scheduling_name="q"x"',
    '{"a"b"}',
    '"a"b"',
    "'a''",
    "result_accuracy={}",
    "a={x} }",
    "a= /*c*/",
)
"""What XLA writes without escapes, or with blanks around that its reader drops; and the text of nothing."""


def at(value: Any, path: str) -> Any:
    """The part of a value at a path; what it calls to is called, what it makes one by one is listed."""
    for part in path.split(".") if path else ():
        if part.startswith("["):
            value = value[part[1:-1]]
        elif part.isdecimal():
            value = value[int(part)]
        else:
            value = getattr(value, part)
            value = list(value()) if callable(value) else value
    return value


def plain(value: Any) -> Any:
    """A value as TOML can hold it."""
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


@pytest.mark.parametrize("case", VALUES)
def test_value_and_text(case: Case) -> None:
    """The value prints what the case says, and has the fields that it says."""
    parsed = read(case)
    name, value = parsed.name, parsed.value
    assert parsed.position == 0
    prints = case.get("prints", case["text"])
    assert prints == text_of(name, value)
    assert case.get("canonical", prints) == text_of(name, canonical(value))
    assert case.get("raw", False) == isinstance(value, RawValue)
    for path, expected in case.get("fields", {}).items():
        assert expected == plain(at(value, path)), path
    hash(value)


@pytest.mark.parametrize("case", VALUES)
def test_text_reads_back(case: Case) -> None:
    """What a value prints, canonical or not, reads back as that value, where XLA can read it."""
    parsed = read(case)
    for value in (parsed.value, canonical(parsed.value)):
        text = text_of(parsed.name, value)
        if any(spoilt in text for spoilt in UNREADABLE):
            continue
        again = terms.read(case["rule"], text).value
        assert text == text_of(parsed.name, again)


@pytest.mark.parametrize("case", REFERENCES)
def test_references(case: Case) -> None:
    """Attributes that name computations or instructions give the names and their places."""
    parsed = read(case)
    references: Any = parsed.value if isinstance(parsed.value, tuple) else (parsed.value,)
    assert case["reference"] == [reference.name for reference in references]
    for reference in references:
        assert case["text"][reference.position :].lstrip("%").startswith(reference.name)


@pytest.mark.parametrize("case", BAD)
def test_errors(case: Case) -> None:
    """A wrong value is refused with the message and the place that the case says."""
    with pytest.raises(TermError) as caught:
        read(case)
    assert case["error"] in caught.value.message
    assert case.get("position", caught.value.position) == caught.value.position
    assert 0 <= caught.value.position <= len(case["text"])


@pytest.mark.parametrize("case", [case for case in GOOD if "full" in case.values[0]])
def test_full_replica_groups(case: Case) -> None:
    """Groups written out, one by one and as a list."""
    groups = read(case).value
    assert isinstance(groups, ReplicaGroups)
    assert case["full"] == str(groups.full_list())
    assert groups.group_count == len(list(groups.groups()))
    assert {groups.group_size} == {len(group) for group in groups.groups()}


def test_every_attribute_has_a_case() -> None:
    """No attribute that the toolkit knows goes without one that reads well: a case, or the example of an opcode's row."""
    examples = {
        name
        for row in OPCODES.values()
        for name, value in hlo.parse_instruction(row.example).attributes.items()
        if not isinstance(value, RawValue)
    }
    for rule, names in (("attribute", ATTRIBUTES), ("header_attribute", HEADER_ATTRIBUTES)):
        actual = {read(case.values[0]).name for case in GOOD if case.values[0]["rule"] == rule}
        assert set(names) <= actual | (examples if rule == "attribute" else set())


def test_shardings_without_metadata() -> None:
    """Metadata goes away in every form, and nothing else."""
    text = '{{replicated metadata={op_name="a"}}, {mesh[\'a\'=2], manual, metadata={{op_name="b"}}}}'
    sharding = terms.read("sharding", text)
    assert isinstance(sharding, Sharding)
    assert str(sharding.without_metadata()) == "{{replicated}, {mesh['a'=2], manual}}"


# ---- what values do besides printing


@pytest.mark.parametrize(
    ("text", "expected"),
    [('{"a":[1,2]}', {"a": [1, 2]}), ('"[1,2]"', [1, 2]), ('" {\\"a\\" : null} "', {"a": None}), ('"3"', 3)],
)
def test_backend_config_as_json(text: str, expected: object) -> None:
    """A config that is JSON gives its value, quoted or not."""
    assert expected == terms.read("backend_config", text).json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{a = 1 : i64}", "this backend_config is not JSON"),
        ('"' + "raw " * 30 + '"', "raw raw raw raw raw raw raw raw raw raw ..."),
        ('"' + "[" * 100_000 + '"', "this backend_config nests too deep to be read as JSON"),
    ],
)
def test_backend_config_that_is_no_json(text: str, message: str) -> None:
    """A config that is none says so, and shows its beginning."""
    with pytest.raises(ValueError, match="backend_config") as caught:
        terms.read("backend_config", text).json()
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


def test_frontend_attributes_are_a_mapping() -> None:
    """Read-only, compared by content whatever the order."""
    one = terms.read("frontend_attributes", '{a="1",b="2"}')
    two = terms.read("frontend_attributes", '{b="2",a="1"}')
    assert one == two
    assert hash(one) == hash(two)
    assert dict(one) == {"a": "1", "b": "2"}
    assert list(two) == ["b", "a"]
    assert one.get("c") is None
    assert repr(one) == "FrontendAttributes({'a': '1', 'b': '2'})"


def test_window_and_slices_of_no_dimensions() -> None:
    """Empty forms are values too."""
    assert terms.read("window", "{}").dimensions == ()
    assert terms.read("slice_dimensions", "{}").strides == ()
    assert terms.read("padding", "").dimensions == ()


def test_original_values_give_their_leaves() -> None:
    """Left to right, None for what has no counterpart."""
    value = terms.read("origin", '{(({"a"}, {}), {"c" {1}})}')
    assert [leaf and leaf.instruction_name for leaf in value.leaves()] == ["a", None, "c"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("backend_config", "{" * 500 + "}" * 500),
        ("frontend_attributes", "{a=" + "{" * 499 + "}" * 499 + "}"),
        ("attribute", "of_next_year=" + "({[" * 166 + "]})" * 166),
        ("attribute", "of_next_year={" + "a, " * 20_000 + "}"),
        ("attribute", "of_next_year=" + "a b " * 20_000),
        ("metadata", "{" + " ".join(f'f{i}="x"' for i in range(5_000)) + "}"),
        ("sharding", "{" + ",".join(["{replicated}"] * 5_000) + "}"),
    ],
)
def test_deep_and_long_values(rule: str, text: str) -> None:
    """Deep nests and long lists are read and printed like any other."""
    value = terms.read(rule, text)
    value = value.value if rule == "attribute" else value
    assert len(str(value)) >= len(text) - len("of_next_year= ")


@pytest.mark.parametrize(
    ("rule", "text", "message"),
    [
        ("origin", "{" + "(" * 60 + ")" * 60 + "}", "original values nest deeper than 50 levels"),
        ("origin", "{" + "(" * 5_000 + ")" * 5_000 + "}", "brackets nest deeper than 500 levels"),
        ("backend_config", "{" * 501 + "}" * 501, "brackets nest deeper than 500 levels"),
        ("backend_config", "{" * 400, None),
        (
            "attribute",
            "of_next_year=" + "({[" * 7_000 + "]})" * 7_000,
            "brackets nest deeper than 500 levels",
        ),
        ("attribute", "of_next_year=" + "(" * 20_000, None),
        ("attribute", "of_next_year={'" + "a" * 20_000, None),
        ("attribute", "of_next_year={" + "/*" * 20_000, None),
        ("attribute", "of_next_year=" + "/ " * 20_000 + '"', None),
        ("int_list", "{" + "9" * 5_000 + "}", "does not fit into 64 bits"),
        ("sharding", "{devices=[4]<=[2,2]T(0,1", None),
    ],
)
def test_hostile_values(rule: str, text: str, message: str | None) -> None:
    """What cannot be read says so and where, however deep or long it is."""
    with pytest.raises(TermError, match=message):
        terms.read(rule, text)


def test_huge_replica_groups_stay_symbolic() -> None:
    """What no machine has is not written out."""
    groups = terms.read("replica_groups", "[1000,1000000]<=[1000000000]")
    assert groups.full_list() is groups
    assert next(groups.groups())[:3] == (0, 1, 2)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("f32[]", "{manual}"),
        ("token[]", "{manual}"),
        ("()", "{{manual}}"),
        ("(f32[], (s32[], ()), token[])", "{{manual}, {manual}, {manual}}"),
    ],
)
def test_a_sharding_for_a_shape(shape: str, expected: str) -> None:
    """One sharding stands for all leaves of a tuple; a tuple of shardings stays as it is."""
    sharding = terms.read("sharding", "{manual}")
    assert expected == str(sharding.for_shape(terms.read("shape", shape)))
    several = terms.read("sharding", "{{manual}, {replicated}}")
    assert several is several.for_shape(terms.read("shape", shape))


STRANGE = """HloModule m, future={a, [b]}, is_scheduled=true, other=x y

ENTRY %e (p: f32[]) -> f32[] {
  %p = f32[] parameter(0), foo=bar baz
  %q = f32[] negate(%p), foo={a, (b, "}")}, metadata={op_name="x"}
  r = f32[] negate(%q), foo=[2,4]<=[8], bar="s, t"
  s = f32[] negate(r), foo= mesh['a'=2] {'b'}   \n  t = f32[] negate(s), foo=x // a, b
  u = f32[] negate(t), foo=x /* a, b */, bar=y
  v = f32[] negate(u), foo={
    a, b
  }, bar=1
  ROOT w = f32[] negate(v), foo=true
}
"""


def test_unknown_attributes_in_their_lines() -> None:
    """They end at a comma or at the end of the line, brackets and strings kept whole, and the rest is read."""
    module = hlo.parse(STRANGE)
    actual = [str(value) for i in module.instructions() for value in i.attributes.values()]
    expected = ["bar baz", '{a, (b, "}")}', '{op_name="x"}', "[2,4]<=[8]", '"s, t"', "mesh['a'=2] {'b'}"]
    assert [*expected, "x", "x", "y", "{\n    a, b\n  }", "1", "true"] == actual
    assert [str(value) for value in module.attributes.values()] == ["{a, [b]}", "True", "x y"]
    assert str(module) == STRANGE
