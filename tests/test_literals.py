"""Literals: text to value and back, exact to the bit, by both readers."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.findings.errors import TermError
from hlotext.ir.values import numbers
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import ElementType, TypeKind, element_type
from hlotext.syntax.literals import arrays, read_literal
from hlotext.syntax.literals.tokens import literal_from_tokens, read_tokens
from hlotext.syntax.reading import terms
from tests.literal_cases import TYPES, array_shape, by_grammar, cases, from_bits, shape_of

FLOATS = [row for row in TYPES if row.is_floating]


# ---- the data files


@pytest.mark.parametrize("case", cases("case"))
def test_reads_and_prints(case: dict[str, Any]) -> None:
    """Each text is read by both readers as the same value, which prints as the file says."""
    shape = shape_of(case["shape"])
    literal = read_literal(case["text"], shape)
    assert by_grammar(case["text"], shape) == literal
    prints = case.get("prints", case["text"])
    assert str(literal) == prints
    assert literal.abbreviated_text() == case.get("default", prints)
    assert literal.essential_text() == case.get("essential", case.get("default", prints))
    assert literal.is_elided == case.get("elided", False)
    assert literal.is_bare == case.get("bare", False)
    assert read_literal(prints, literal.shape) == literal


@pytest.mark.parametrize("case", cases("error"))
def test_refuses(case: dict[str, Any]) -> None:
    """Each text is refused with the message and the offset of the file, by both readers."""
    shape = shape_of(case["shape"])
    with pytest.raises(TermError) as caught:
        read_literal(case["text"], shape)
    assert (caught.value.message, caught.value.position) == (case["message"], case["at"])
    with pytest.raises(TermError):
        by_grammar(case["text"], shape)


@pytest.mark.parametrize("case", cases("with_shape"))
def test_literal_with_shape(case: dict[str, Any]) -> None:
    """The attribute `literal=` brings shapes along, and prints them again."""
    literal = terms.read("literal_with_shape", case["text"])
    assert literal.text_with_shape() == case.get("prints", case["text"])
    assert str(literal.shape) == case["shape"]


# ---- values


@pytest.mark.parametrize(
    ("shape", "text", "expected"),
    [
        ("f32[2]", "{0.1, -0}", np.array([0.1, -0.0], np.float32)),
        ("s32[2,2]", "{ { 1, 2 }, { 3, 4 } }", np.array([[1, 2], [3, 4]], np.int32)),
        ("s32[2,2]{0,1}", "{ { 1, 2 }, { 3, 4 } }", np.array([[1, 2], [3, 4]], np.int32)),
        ("pred[]", "true", np.array(True)),
        ("u64[]", "-1", np.array(2**64 - 1, np.uint64)),
        ("bf16[1]", "{1.0039062500000002}", np.array([1], ml_dtypes.bfloat16)),
        ("f8e4m3fn[]", "1.0625000000000002", np.array(1.125, ml_dtypes.float8_e4m3fn)),
        ("s4[2]", "{-8, 7}", np.array([-8, 7]).astype(ml_dtypes.int4)),
        ("c64[1]", "{(1, -2)}", np.array([1 - 2j], np.complex64)),
        ("f32[3]", "5", np.array([5, 0, 0], np.float32)),
        ("f32[2,0]", "{...}", np.zeros((2, 0), np.float32)),
    ],
)
def test_array(shape: str, text: str, expected: np.ndarray[Any, Any]) -> None:
    """The numpy array has the dimensions of the shape, the type's dtype, and the exact values."""
    array = read_literal(text, shape_of(shape)).array
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    assert array.tobytes() == expected.tobytes()
    assert not array.flags.writeable


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ("f32[3]", "{...}"),
        ("(f32[])", "(1)"),
        ("(f32[])", "{...}"),
        ("token[]", "token"),
        ("f32[1000000000000]", "0"),
    ],
)
def test_no_array(shape: str, text: str) -> None:
    """What is elided, no array, or out of proportion to its text has no array, and says so."""
    literal = read_literal(text, shape_of(shape))
    with pytest.raises(ValueError, match=re.escape(shape)):
        _ = literal.array


def test_unknown_element_type_keeps_its_text() -> None:
    """A type from a later XLA: the braces must balance, the rest is kept."""
    shape = shape_of("f5e2m2[2]{0}")
    literal = read_literal("{ 1.5,2 }", shape)
    assert str(literal) == "{ 1.5, 2 }"
    assert read_literal(str(literal), shape) == literal == by_grammar("{1.5 ,2}", shape)
    assert read_literal("{...}", shape).is_elided
    with pytest.raises(ValueError, match="f5e2m2"):
        _ = literal.array
    with pytest.raises(TermError):
        read_literal("{1.5", shape)


def test_equality_is_by_shape_and_bits() -> None:
    """A NaN equals itself, zeros differ by sign, and so do payloads, layouts and ways of writing."""
    shape = shape_of("f32[2]{0}")
    assert read_literal("{nan, 1}", shape) == read_literal("{nan,1.0}", shape)
    assert hash(read_literal("{nan, 1}", shape)) == hash(read_literal("{nan,1.0}", shape))
    different = ["{0, 1}", "{-0, 1}", "{nan, 1}", "{nan(0x1), 1}", "{-nan, 1}", "{...}", "0"]
    literals = [read_literal(text, shape) for text in different]
    assert len(set(literals)) == len(different)
    assert read_literal("{0, 1}", shape) != read_literal("{0, 1}", shape_of("f32[2]{0:S(1)}"))
    assert read_literal("( 1, 2 )", shape_of("(s32[], s32[])")) != read_literal(
        "( 1, 3 )", shape_of("(s32[], s32[])")
    )


def test_from_array() -> None:
    """Without a shape the array's own; with one that does not fit, or a dtype of no type, an error."""
    literal = Literal.from_array(np.array([[1, 2], [3, 4]], np.int8))
    assert (str(literal.shape), str(literal)) == ("s8[2,2]{1,0}", "{ { 1, 2 }, { 3, 4 } }")
    assert str(Literal.from_array(np.array([1.5], ">f4"))) == "{1.5}"
    assert str(Literal.from_array(True)) == "true"
    array = np.zeros(2, np.float32)
    copy = Literal.from_array(array)
    array[0] = 1
    assert str(copy) == "{0, 0}"
    with pytest.raises(TypeError, match="datetime64"):
        Literal.from_array(np.zeros(1, "M8[s]"))
    for shape in ("f32[3]", "f64[2]", "(f32[2])"):
        with pytest.raises(ValueError, match=re.escape(shape)):
            Literal.from_array(np.zeros(2, np.float32), shape_of(shape))


def test_nothing_heavy_is_imported() -> None:
    """The package's heart is light: numpy is imported when a literal is read or made, not before."""
    code = "import sys, hlotext.ir.values.literal, hlotext.syntax.literals; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- text and back


@pytest.mark.parametrize("type_", [row for row in FLOATS if row.bits <= 16], ids=str)
def test_every_narrow_float_survives(type_: ElementType) -> None:
    """All values of 4, 6, 8 and 16 bits, NaNs with every payload among them, come back from their text."""
    literal = from_bits(type_, np.arange(1 << type_.bits))
    assert read_literal(str(literal), literal.shape) == literal


@pytest.mark.parametrize("type_", [row for row in TYPES if row.bits <= 8 and not row.is_floating], ids=str)
def test_every_narrow_integer_survives(type_: ElementType) -> None:
    """All values of at most 8 bits come back from their text, in an array and alone."""
    least, greatest = (0, 1) if type_.kind is TypeKind.PREDICATE else numbers.limits(type_)
    values = np.arange(least, greatest + 1).astype(np.int8 if least else np.uint8).astype(type_.dtype)
    literal = Literal.from_array(values, array_shape(type_, values.shape))
    assert read_literal(str(literal), literal.shape) == literal
    for value in values:
        scalar = Literal.from_array(np.array(value, type_.dtype), array_shape(type_, ()))
        assert read_literal(str(scalar), scalar.shape) == scalar


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    """Arrays of any type with random bits, of ranks 0 to 6, zero sizes included."""
    type_ = draw(st.sampled_from(TYPES))
    dimensions = tuple(draw(st.lists(st.integers(0, 3), max_size=6)))
    part = numbers.component_type(type_)
    count = int(np.prod(dimensions, dtype=np.int64)) * (2 if type_.is_complex else 1)
    width = part.bits if type_.kind is not TypeKind.PREDICATE else 1
    one = st.integers(0, (1 << width) - 1)
    bits = draw(st.lists(one, min_size=count, max_size=count))
    if type_.is_integral and width < 8:
        signed = [b - (1 << width) if type_.kind is TypeKind.SIGNED and b >> (width - 1) else b for b in bits]
        array = np.array(signed, np.int8).astype(type_.dtype).reshape(dimensions)
        return Literal.from_array(array, array_shape(type_, dimensions))
    return from_bits(type_, bits, dimensions)


@given(literals())
@settings(max_examples=400, deadline=None)
def test_random_literals_survive(literal: Literal) -> None:
    """Text and back is the identity on bits, by all three roads."""
    text = str(literal)
    assert read_literal(text, literal.shape) == literal
    assert by_grammar(text, literal.shape) == literal
    at_once = arrays.read(text, literal.shape)
    assert at_once is None or at_once == literal


@given(literals(), st.randoms(use_true_random=False))
@settings(max_examples=400, deadline=None)
def test_both_roads_agree_on_damaged_text(literal: Literal, random: Any) -> None:
    """A damaged text is read at once as it is token by token, or not at all."""
    text = str(literal)
    place = random.randrange(len(text) + 1)
    piece = random.choice(
        ["", " ", ",", "{", "}", "(", ")", "1", "-", ".", "+", "e5", "inf", "nan", "/*,*/", "//", "9" * 19]
    )
    text = text[:place] + piece + text[place + random.randrange(3) :]
    at_once = arrays.read(text, literal.shape)
    try:
        expected = literal_from_tokens(read_tokens(text), literal.shape)
    except TermError:
        expected = None
    assert at_once is None or at_once == expected


LONG = np.arange(1, 601, dtype=np.int64)


@pytest.mark.parametrize("type_", [row for row in TYPES if row.bits >= 16], ids=str)
@pytest.mark.parametrize("dimensions", [(600,), (20, 30), (2, 3, 5, 4, 5)])
def test_long_arrays_are_read_at_once(type_: ElementType, dimensions: tuple[int, ...]) -> None:
    """The fast road takes what it is meant for, and gives what the slow one gives."""
    array = LONG.astype(type_.dtype).reshape(dimensions)
    literal = Literal.from_array(
        array / 8 if type_.is_floating and type_.bits > 16 else array, array_shape(type_, dimensions)
    )
    text = str(literal)
    assert arrays.read(text, literal.shape) == literal
    assert literal_from_tokens(read_tokens(text), literal.shape) == literal


@given(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))
@example(1e6, 1e15)
@example(16777216.0, 0.1)
@example(3.4028234663852886e38, 1.7976931348623157e308)
@example(float("inf"), 5e-324)
def test_floats_print_as_c_does(single: float, double: float) -> None:
    """Six (fifteen) digits where those read back as the same number, else nine (seventeen)."""
    for value, name, digits, more in ((single, "f32", 6, 9), (double, "f64", 15, 17)):
        dtype = element_type(name).dtype
        short = f"%.{digits}g" % value
        with np.errstate(over="ignore"):
            is_exact = np.array(float(short)).astype(dtype) == value
        assert str(Literal.from_array(np.array(value, dtype))) == (
            short if is_exact else f"%.{more}g" % value
        )


@given(st.lists(st.integers(0, 2**32 - 1), min_size=30, max_size=200))
@settings(max_examples=50, deadline=None)
def test_many_floats_print_as_each_does(patterns: list[int]) -> None:
    """Writing an array's floats all at once gives what writing one by one gives."""
    f32 = element_type("f32")
    array = np.array(patterns * 2, np.uint32).view(np.float32)
    assert numbers.number_texts(array, f32) == [numbers.float_text(f32, bits) for bits in patterns * 2]


# ---- hostile texts


@pytest.mark.parametrize(
    "text", ["{" * 200_000, "(" * 200_000, "{1," * 100_000, "{" + "/*" * 200_000, "{" + "1" * 200_000 + "}"]
)
def test_hostile_texts_are_refused(text: str) -> None:
    """Nesting without end and numbers without end: an error, not a crash."""
    for shape in ("f32[2]", "s32[1,1,1]", "(f32[2], f32[])"):
        with pytest.raises(TermError):
            read_literal(text, shape_of(shape))


def test_many_dimensions() -> None:
    """A text with thousands of braces is read and printed without recursion."""
    shape = array_shape(element_type("s32"), (1,) * 3000)
    text = "{" * 3000 + "7" + "}" * 3000
    literal = read_literal(text, shape)
    assert str(literal).startswith("{ { /*i0=0*/ { /*i1=0*/ { /*i2=0*/ ")
    assert read_literal(str(literal), shape) == literal


def test_many_braces_without_elements() -> None:
    """Where braces without elements would fill the memory, `{...}` is printed, which means the same."""
    shape = array_shape(element_type("f32"), (10**12, 0))
    literal = read_literal("{...}", shape)
    assert str(literal) == "{...}"
    assert literal.array.shape == (10**12, 0)


def test_nested_tuples() -> None:
    """Tuples as deep as shapes allow are read and printed without recursion."""
    text = "(" * 50 + "s32[]" + ")" * 50
    literal = read_literal("(" * 50 + "7" + ")" * 50, shape_of(text))
    assert str(literal) == "( " * 50 + "7" + " )" * 50


def test_numpy_takes_a_literal() -> None:
    literal = hlo.parse_instruction("c = s32[2,2]{1,0} constant({{1,2},{3,4}})").literal
    assert literal is not None
    assert np.asarray(literal).tolist() == [[1, 2], [3, 4]]
    assert np.asarray(literal, dtype="f8").dtype == np.float64
    assert np.array(literal, copy=True).flags.writeable
    with pytest.raises(TypeError, match="the text does not have the elements"):
        np.asarray(Literal.elided(hlo.parse_shape("f32[4]")))
