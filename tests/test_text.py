"""How XLA quotes, and what it takes for a dict."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotext.ir.nodes.source import Source
from hlotext.ir.values.text import braced, is_json_dict, quote, quote_unless_dict, short_float
from hlotext.syntax.language.words import unquote


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '""'),
        ("plain ?", '"plain ?"'),
        ("a\nb\tc\rd", r'"a\nb\tc\rd"'),
        ("\"'\\", r'"\"\'\\"'),
        ("\0\x1f\x7f", r'"\000\037\177"'),
        ("é😀", r'"\303\251\360\237\230\200"'),
        ("\udcff", r'"\377"'),
    ],
)
def test_quote(text: str, expected: str) -> None:
    """Six named escapes, three octal digits for every other byte that is no printable ASCII."""
    actual = quote(text)
    assert expected == actual


@given(st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_quoted_text_reads_back(text: str) -> None:
    """Any bytes survive quoting and unquoting."""
    assert text == unquote(quote(text))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"a":[1,{"b":"}"}]}',
        "{a = 1 : i64}",
        " \t\r\n{} ",
        "/*c*/{}// to the end",
        '{"}{\\"}"}',
        "{'}",
        "{/* no comment inside */}",
        "{[(}",
    ],
)
def test_dicts(text: str) -> None:
    """Braces that balance, with blanks and comments around, are printed raw."""
    assert is_json_dict(text)
    assert text == quote_unless_dict(text)


@pytest.mark.parametrize(
    "text",
    ["", "a", "{", "}", "{}}", "{}{}", "{} x", '{"}', '{"a\\"}', "[{}]", "/*{}", "/{}", "{} /* c", '"{}"'],
)
def test_no_dicts(text: str) -> None:
    """Everything else is quoted."""
    assert not is_json_dict(text)
    assert quote(text) == quote_unless_dict(text)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        "{}" + " " * 100_000 + "x",
        "{}" + "// " * 100_000 + "\nx",
        "/*" * 100_000,
        '{"' + '\\"' * 100_000,
        '{"' + "a" * 100_000,
        "{" * 50_000 + "}" * 49_999,
    ],
)
def test_hostile_text_ends_soon(text: str) -> None:
    """The answer for a long text that almost is a dict comes in one pass over it."""
    assert not is_json_dict(text)


def test_lists_and_floats() -> None:
    """No blanks in lists; six significant digits."""
    assert braced((1, -2)) == "{1,-2}"
    assert braced(()) == "{}"
    assert [short_float(x) for x in (1.0, 1e-5, 0.1234567, 1e10, -0.0)] == [
        "1",
        "1e-05",
        "0.123457",
        "1e+10",
        "-0",
    ]


@pytest.mark.parametrize(
    "text", ["", "\n", "a", "a\n", "\n\na\n\nb", "a\x0bb\x0c\u2028\nc", "a\r\nb\rc\n\r", "\r"]
)
def test_places_of_lines(text: str) -> None:
    """The quick way to find lines, for texts without CR, finds those that the other one does."""
    source = Source(text)
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text))]
    assert [source.position(start) for start in starts] == [(n, 1) for n in range(1, len(starts) + 1)]
    assert source.position(len(text))[0] == len(starts)


@given(st.lists(st.sampled_from(["a", "bc", " ", "\n", "\r\n", "\r"]), max_size=12))
def test_the_line_around_an_offset(pieces: list[str]) -> None:
    """Found from its own ends, as the table of all lines has it."""
    source = Source("".join(pieces), "x")
    for offset in range(len(source.text) + 1):
        assert source.bounds_at(offset) == source.bounds(source.position(offset)[0])
