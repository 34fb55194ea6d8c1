"""Two readers, one language: the fast reader and the grammar alone give the same modules and the same errors."""

from __future__ import annotations

import itertools
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlotext as hlo
from hlotext.ir.nodes.compare import difference
from hlotext.syntax.read import Reader, as_source, read_modules
from tests import mutation, support

EXAMPLES = 2500
SHARDS = 4
"""Together 10,000 damaged op lines; so many tests, so that they can run side by side."""


@attrs.frozen
class Outcome:
    """What one reader makes of a text."""

    modules: tuple[hlo.Module, ...] = attrs.field(default=(), eq=False)
    notes: tuple[str, ...] = ()
    error: str = ""


def outcome(text: str | bytes, reader: Reader) -> Outcome:
    """The modules and notes, or the whole report of the error. Nothing else may be raised."""
    try:
        modules, diagnostics = read_modules(as_source(text), infer=hlo.infer_shape, reader=reader)
    except hlo.HloSyntaxError as error:
        return Outcome(error=str(error))
    return Outcome(tuple(modules), tuple(map(str, diagnostics)))


def check_readers(text: str | bytes) -> Outcome:
    """Asserts that both readers make the same of a text, and that a module that was read prints as it stood there."""
    fast, reference = outcome(text, "fast"), outcome(text, "reference")
    assert fast == reference
    assert len(fast.modules) == len(reference.modules)
    for mine, theirs in zip(fast.modules, reference.modules, strict=True):
        assert difference(mine, theirs, exact=True) is None
    if not fast.error:
        assert "".join(map(str, fast.modules)) == as_source(text).text
    return fast


@pytest.mark.parametrize("path", support.corpus_files(), ids=support.corpus_id)
def test_readers_agree_on_the_corpus(path: Path) -> None:
    """Every real module: the same nodes at the same places, no notes, and the text again."""
    assert check_readers(support.read_text(path)).notes == ()


@pytest.mark.parametrize("path", sorted(support.INVALID.glob("*.txt")), ids=lambda path: path.stem)
def test_readers_agree_on_what_is_wrong(path: Path) -> None:
    """Every broken file: the same report, letter for letter."""
    check_readers(path.read_bytes())


def test_there_are_op_lines_of_every_kind() -> None:
    """What is damaged below covers the opcodes of the corpus, and is right before it is damaged."""
    lines = mutation.lines()
    assert len(lines) > 1000
    for line in lines:
        assert outcome(line.module(), "fast").error == ""


def damages(kinds: dict[str, object], most: int) -> st.SearchStrategy[list[tuple[str, int, int]]]:
    """One to so many damages at any places."""
    places = st.integers(0, 400)
    return st.lists(st.tuples(st.sampled_from(sorted(kinds)), places, places), min_size=1, max_size=most)


@pytest.mark.parametrize("shard", support.in_stages(range(SHARDS), nightly=1))
def test_readers_agree_on_damaged_lines(shard: int) -> None:
    """Op lines of the corpus with tokens, blanks, numbers, attributes out of place: the same module, or the same report."""
    lines = list(itertools.islice(mutation.lines(), shard, None, SHARDS))

    @settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None)
    @given(st.sampled_from(lines), damages(dict(mutation.DAMAGES), 3))
    def check(line: mutation.Line, done: list[tuple[str, int, int]]) -> None:
        check_readers(line.module(mutation.damaged(line.text, done)))

    check()


@pytest.mark.slow
@settings(max_examples=1000, derandomize=True, database=None, deadline=None)
@given(st.sampled_from(mutation.small_texts()), damages(dict(mutation.LINE_DAMAGES), 2))
def test_readers_agree_on_texts_with_damaged_lines(text: str, done: list[tuple[str, int, int]]) -> None:
    """Whole texts with lines missing, doubled, swapped, cut, joined or foreign: the same modules, or the same report."""
    damaged = mutation.with_damaged_lines(text, done)
    check_readers(damaged)
    hlo.parse_tolerant(damaged)


TWO_COMPUTATIONS = """HloModule m, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[2]{0} parameter(0)
  z = f32[] constant(nan)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add, metadata={op_name="x"}
  last = f32[] negate(z), statistics={visualizing_index=0,x=nan}
}
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", None),
        ("HloModule m", "HloModule n", "module name: m and n"),
        ("count=2", "count=3", "header attribute replica_count: 2 and 3"),
        (", replica_count=2", "", "header attributes: (replica_count) and ()"),
        ("f32[2]{0}", "f32[2]{0:S(1)}", "computation main: p: shape: f32[2]{0} and f32[2]{0:S(1)}"),
        ("constant(nan)", "constant(-nan)", "computation main: z: literal: nan and -nan"),
        ("x=nan", "x=-nan", "computation main: last: attribute statistics"),
        ("add(a, b)", "add(b, a)", "computation add: c: operands: (a, b) and (b, a)"),
        ("add(a, b)", "multiply(a, b)", "computation add: c: opcode: add and multiply"),
        ("ROOT r", "r", "computation main: root: (1, 2) and (1, 3)"),
        ('"x"', '"y"', "computation main: r: attribute metadata"),
        (", metadata", ", backend_config={}, metadata", "computation main: r: attributes"),
        ("  last =", "  end =", "computation main: instructions: (p, z, r, last) and (p, z, r, end)"),
        ("}\n\nENTRY", '}, execution_thread="t"\n\nENTRY', "computation add: execution_thread: main and t"),
    ],
)
def test_difference_names_what_differs(old: str, new: str, expected: str | None) -> None:
    """The first part that differs, in words; a NaN is itself, and bits count."""
    actual = difference(hlo.parse(TWO_COMPUTATIONS), hlo.parse(TWO_COMPUTATIONS.replace(old, new)))
    assert actual is None if expected is None else str(actual).startswith(expected)


def test_difference_sees_the_form_of_the_text_only_when_asked() -> None:
    """The order of attributes and where lines stand are the text's; what it means is the same without."""
    text = 'ENTRY e { ROOT c = f32[] constant(1), sharding={replicated}, metadata={op_name="x"} }'
    other = 'ENTRY e { ROOT c = f32[] constant(1), metadata={op_name="x"}, sharding={replicated} }'
    assert difference(hlo.parse(text), hlo.parse(other)) is None
    assert str(difference(hlo.parse(text), hlo.parse(other), exact=True)).startswith(
        "computation e: c: attributes"
    )
