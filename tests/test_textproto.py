"""Protos in text format, read without schemas."""

from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotext import textproto


def test_all_forms_of_values() -> None:
    """As the specification of the format has them."""
    message = textproto.parse(
        r"""# a comment
        a: [1, -2, 0x1F] b: [{x: 1}, {x: "q\303\251" 'z'}] c < d: true > e { } f: -inf; g: NONE, h: 1.5e3f
        [foo.bar/x.y] { z: "\n\"\u00e9" } 493: 7 a: 4"""
    )
    assert message["a"] == (1, -2, 31, 4)
    assert [b["x"] for b in message.messages("b")] == [(1,), ("qéz",)]
    assert message.message("c").flag("d") is True
    assert len(message.message("e")) == 0
    assert message.number("f") == -math.inf
    assert message.text("g") == "NONE"
    assert message.number("h") == 1500.0
    assert message.message("[foo.bar/x.y]").text("z") == '\n"é'
    assert message.integer("493") == 7
    assert message.text("none") is None
    assert message.integer("h") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a {", "line 1: } is missing at the end"),
        ("a: 1\nb:", "line 2: the value of b is missing"),
        ("a: [1", "] is missing"),
        ("}", "a field's name is missing before '}'"),
        ('a: "x', "does not start a field"),
        ("a b c", "the value of c is missing"),
        ("a: {" * 100_000, "} is missing"),
    ],
)
def test_what_is_no_proto(text: str, problem: str) -> None:
    """An error with its line; what stands before it is kept."""
    with pytest.raises(textproto.TextProtoError, match=problem) as caught:
        textproto.parse(f"first: 1 {text}")
    assert caught.value.message["first"] == (1,)


def test_deep_nesting() -> None:
    """Costs no recursion."""
    depth = 20_000
    message = textproto.parse("a {" * depth + "}" * depth)
    for _ in range(depth):
        message = message.message("a")
    assert len(message) == 0
    assert textproto.parse("a: [{" * depth + "}]" * depth).messages("a")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but TextProtoError."""
    with contextlib.suppress(textproto.TextProtoError):
        textproto.parse(text)
