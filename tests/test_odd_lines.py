"""Odd lines in an otherwise usual module: the grammar sees them and little else, and both readers make the same of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import lark
import pytest

import hlotext as hlo
from hlotext.ir.nodes.bad_instruction import BadInstruction
from hlotext.ir.nodes.compare import difference
from hlotext.syntax.fast import line_records
from hlotext.syntax.read import as_source, read_modules
from hlotext.syntax.reading import steps, terms
from hlotext.syntax.reading.builders.instruction import TokenTracker
from hlotext.syntax.source.limits import MAX_DIAGNOSTICS

BODY = "".join(
    f'  %x{i} = f32[4]{{0}} add(%x{i - 1}, %p), metadata={{op_name="a/{i}"}}\n' for i in range(1, 200)
)
TEXT = (
    "HloModule m\n\n%f (q: f32[4]) -> f32[4] {\n  %q = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%q)\n}\n\n"
    "ENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  %x0 = f32[4]{0} call(%p), to_apply=%f\n"
    f"{BODY}  ROOT %r = f32[4]{{0}} negate(%x199)\n}}\n"
)
LINE = '  %x77 = f32[4]{0} add(%x76, %p), metadata={op_name="a/77"}\n'
MOST = 400
"""Tokens: a small part of the 3,000 of the whole text."""
RIGHT: dict[str, Callable[[str], str]] = {
    "wrapped between operands": lambda line: line.replace(", ", ",\n    ", 1),
    "wrapped before an attribute": lambda line: line.replace("), ", "),\n     ", 1),
    "wrapped before a comma": lambda line: line.replace("), ", ")\n     , ", 1),
    "wrapped behind a comment": lambda line: line.replace("), ", "),  // all of them, {\n     ", 1),
    "wrapped in the list": lambda line: line.replace("(%", "(\n    %").replace("%p)", "%p\n  )"),
    "comment behind": lambda line: line.replace("\n", " // done\n"),
    "wrapped in metadata": lambda line: line.replace("={", "={\n  "),
    "unknown opcode": lambda line: line.replace(" add(", " frobnicate("),
    "unknown attribute": lambda line: line.replace(", metadata", ", no_such={1,2}, metadata"),
    "comment above": lambda line: f"  // a comment\n{line}",
    "comment inside": lambda line: line.replace("%p)", "/* a */ %p)"),
    "empty line": lambda line: f"\n{line}",
    "indented": lambda line: f"     {line}",
    "tab": lambda line: line.replace("), ", "),\t").replace("a/77", "a"),
    "no percent signs": lambda line: line.replace("%", ""),
    "two on one line": lambda line: line.replace("\n", "  %y = f32[4]{0} negate(%p)\n"),
    "inline body": lambda line: line + "  %y = f32[4]{0} map(%p), dimensions={0}, to_apply={\n"
    "    %a = f32[] parameter(0)\n    ROOT %b = f32[] negate(%a)\n  }\n",
}  # fmt: skip
WRONG: dict[str, Callable[[str], str]] = {
    "undefined operand": lambda line: line.replace("%x76", "%nowhere"),
    "undefined callee": lambda line: line.replace("add(%x76, %p)", "call(%x76), to_apply=%nowhere"),
    "broken": lambda line: line.replace("[4]", "[[4"),
    "open metadata": lambda line: line.replace("={", "={{"),
    "equals sign missing": lambda line: line.replace(" = ", " "),
    "prefix of a log": lambda line: f"I0000 00:00:17.000000   12 dump.cc:5] {line}",
    "quote missing": lambda line: line.replace('="a', "=a"),
    "operand type": lambda line: line.replace("%x76", "f32[5] %x76"),
}
HEADERS: dict[str, tuple[str, str]] = {
    "wrapped": ("(p: f32[4]) -> f32[4] {", "(p: f32[4])\n    -> f32[4] {"),
    "comment": ("(p: f32[4]) -> f32[4] {", "(p: f32[4]) -> /* a */ f32[4] {"),
    "blanks": ("ENTRY %e (p: f32[4]) -> f32[4] {", "ENTRY   %e  (p: f32[4])  ->  f32[4]   {"),
}


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of all tokens that the grammar reads."""
    places: list[int] = []
    count = TokenTracker.counted

    def counted(token: Any, depth: int) -> int:
        places.append(token.start_pos or 0)
        return count(token, depth)

    monkeypatch.setattr(TokenTracker, "counted", staticmethod(counted))
    return places


@pytest.mark.parametrize("change", RIGHT.values(), ids=RIGHT)
def test_what_is_behind_an_odd_line_is_read_fast(change: Callable[[str], str], tokens: list[int]) -> None:
    """Strictly and tolerantly."""
    text = TEXT.replace(LINE, change(LINE))
    assert text != TEXT
    module = hlo.parse(text)
    result = hlo.parse_tolerant(text)
    assert len(tokens) < MOST
    assert str(module) == text == str(result.module)
    assert not [d for d in result.diagnostics if d.severity is hlo.Severity.ERROR]
    by_grammar = read_modules(as_source(text), reader="reference")[0][0]
    assert difference(module, by_grammar) is None
    assert difference(module, result.module) is None


def test_elements_behind_the_names_of_tuples_are_read_fast(tokens: list[int]) -> None:
    """As XLA writes them since 2026: in every tenth line of what it compiled for TPUs."""
    lines = "".join(
        f"  %t{i} = (f32[4]{{0}}, (s32[], f32[4]{{0}})) custom-call(%x{i}, %t{i - 1}#1#1, /*index=2*/%t0#0), "
        'custom_call_target="c"\n'
        for i in range(1, 100)
    )
    first = '  %t0 = (f32[4]{0}, (s32[], f32[4]{0})) custom-call(%p), custom_call_target="c"\n'
    text = TEXT.replace("  ROOT %r", f"{first}{lines}  ROOT %r")
    module = hlo.parse(text)
    assert not tokens
    assert str(module) == text
    by_grammar = read_modules(as_source(text), reader="reference")[0][0]
    assert difference(module, by_grammar) is None
    for bad in ("%t0#2", "%t0#", "%t0#0#0", "%x0#0", "%t0#-1"):
        for reader in ("fast", "reference"):
            with pytest.raises(hlo.HloSyntaxError):
                read_modules(as_source(text.replace("%t0#0", bad, 1)), reader=reader)


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_is_behind_a_wrong_line_is_read_fast(change: Callable[[str], str], tokens: list[int]) -> None:
    """One error, and everything else is there."""
    text = TEXT.replace(LINE, change(LINE))
    result = hlo.parse_tolerant(text)
    assert len(tokens) < MOST
    assert len(result.diagnostics) == 1
    assert len(result.module.entry) in (202, 203)
    assert str(result.module) == text
    codes = []
    for reader in ("fast", "reference"):
        with pytest.raises(hlo.HloSyntaxError) as failure:
            read_modules(as_source(text), reader=reader)
        codes.append(str(failure.value))
    assert codes[0] == codes[1]
    assert codes[0] == str(result.diagnostics[0])


@pytest.mark.parametrize(("old", "new"), HEADERS.values(), ids=HEADERS)
def test_what_is_behind_an_odd_header_is_read_fast(old: str, new: str, tokens: list[int]) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    modules = hlo.parse(text), hlo.parse_tolerant(text).module
    assert len(tokens) < MOST
    for module in modules:
        assert str(module) == text
        assert difference(module, read_modules(as_source(text), reader="reference")[0][0]) is None
    start = text.index("ENTRY")
    wrong = text[:start] + re.sub(r"f32\[4\](?=\s*\{\n)", "f32[5]", text[start:], count=1)
    with pytest.raises(hlo.HloSyntaxError, match="X113"):
        hlo.parse(wrong)


def test_a_pasted_entry_needs_no_grammar(tokens: list[int]) -> None:
    """Its callees are not defined, which is said of each, and that is all."""
    lines = "".join(f"  %y{i} = f32[4]{{0}} call(%p), to_apply=%missing.{i}\n" for i in range(50))
    first, last = "  %p = f32[4]{0} parameter(0)\n", "  ROOT %r = f32[4]{0} negate(%p)\n"
    text = f"ENTRY %e (p: f32[4]) -> f32[4] {{\n{first}{lines}{last}}}\n"
    result = hlo.parse_tolerant(text)
    assert len(tokens) < MOST
    assert [d.code for d in result.diagnostics] == ["X104"] * 50
    for diagnostic in result.diagnostics:
        assert re.match(r"%missing", text[diagnostic.span.start :])


def test_only_the_right_blanks_are_joined() -> None:
    """What is kept as it stands is not what the joined line says, and strings hold what they hold."""
    for tail in (
        'backend_config={"a":\n  1}', "no_such={1,\n  2}", "no_such={1, /* a */ 2}", 'metadata={op_name="a /* b */  c"}',
        'metadata={op_name="a"\n    op_type="b"}', 'frontend_attributes={a="b",\n  c="d  // e"}',
        "control-predecessors={%x75,\n  %x74}", "sharding={devices=[2,2]0,1,\n  2,3}", 'metadata={op_name="a\n b"}',
    ):  # fmt: skip
        text = TEXT.replace(LINE, LINE.partition("metadata")[0] + tail + "\n")
        module = hlo.parse(text)
        by_grammar = read_modules(as_source(text), reader="reference")[0][0]
        assert difference(module, by_grammar) is None
        assert str(module) == text


def test_trials_leave_nothing_behind() -> None:
    """What a line made before it proved wrong is made once: elements, bodies, names that wait for their computation."""
    lines = {
        "callee before an undefined operand": "  %y = f32[4]{0} call(%p, %nowhere), to_apply=%later\n",
        "element before it": "  %t = (f32[4]{0}) tuple(%p)\n  %y = f32[4]{0} add(%t#0, %nowhere)\n",
        "body before it": "  %y = f32[4]{0} map(%nowhere), dimensions={0}, to_apply={\n    %a = f32[] parameter(0)\n"
        "    ROOT %b = f32[] negate(%a)\n  }\n",
        "operation before it": "  %y = f32[4]{0} add(negate(%p), %nowhere)\n",
        "name twice": "  %x3 = f32[4]{0} negate(%p)\n  %y = f32[4]{0} negate(%nowhere)\n",
    }
    for what, line in lines.items():
        text = TEXT.replace(LINE, LINE + line)
        result = hlo.parse_tolerant(text)
        names = [
            i.name for i in result.module.entry if not i.name.startswith("x") and not hasattr(i, "is_missing")
        ]
        assert len(names) == len(set(names)), what
        assert str(result.module) == text
        said = [d.code for d in result.diagnostics]
        assert len(said) == len(set(map(str, result.diagnostics))), what
        assert "X102" in said, what


def test_places_are_found_without_all_line_ends() -> None:
    """They are counted from the multiple of a stride before, which says the same as looking all line ends up."""
    text = "a\nbb\n\nccc\n" * 5_000
    counted, noted = as_source(text), as_source(text)
    starts = noted._line_starts
    for offset in (5, 40_000, 0, 17, *range(0, len(text), 701), len(text)):
        line = sum(start <= offset for start in starts)
        assert counted.position(offset) == (line, offset - starts[line - 1] + 1)
    assert "_line_starts" not in vars(counted)


@pytest.mark.parametrize("value", ['{\n"a":1\n}', '{\n"a":"x"\n}', '{"a":\n"x"}'])
def test_dicts_over_several_lines_are_kept(value: str) -> None:
    """Line ends inside of the braces stay, whatever comes behind them; those between attributes mean nothing."""
    attributes = f'frontend_attributes={{k={value}}},\n metadata={{op_name="q"}}, backend_config={value}'
    line = f'%x77 = f32[4]{{0}} custom-call(%x76), custom_call_target="f", {attributes}\n'
    text = TEXT.replace(LINE, f"  {line}")
    for module in (
        read_modules(as_source(text, "x"))[0][0],
        read_modules(as_source(text, "x"), reader="reference")[0][0],
    ):
        found = module.entry["x77"]
        assert found.attributes["frontend_attributes"]["k"] == value
        assert found.attributes["backend_config"].text == value


BEGINNINGS = {
    '%x1 = f32[4]{0} add(%a, %b), kind=kLoop, calls=%f, metadata={{op_name="a"}': ", calls=%f,",
    'ROOT %x1 = (f32[4]{0}, s32[]) tuple(%a, %b, /*index=2*/%c), metadata={op_name="a"}, sharding={x y}': '"a"},',
    "x1 = f32[4]{0} negate(f32[4] a), metadata={": "negate(",
    "%x1 = f32[4]{0} add((%a, %b)": "add(",
    "%x1 = f32[4]{0} add(%a": "add(",
    "%x1 = f32[4]{0} custom-call(), custom_call_target=": "(),",
    "%x1 = f32[[4]{0} add(%a, %b)": "%x1 =",
    "%x1 = f32[4]{0} add(%a, %b), kind=kLoop// calls=%f, metadata={{": "%b),",
    "%x1 = s32[] parameter(x)": "%x1 =",
}
"""Broken op lines, and what ends where they are right as far as is known without the grammar."""


@pytest.mark.parametrize("line", BEGINNINGS)
@pytest.mark.parametrize("rule", ["body_rest", "instruction"])
def test_a_beginning_is_what_the_grammar_would_have_read(line: str, rule: str) -> None:
    """Behind the right beginning of a broken line the parser's stack is the one that reading it would have made."""
    begun = line_records.begun(line, 0, len(line))
    assert begun is not None
    assert line[: begun.position].endswith(BEGINNINGS[line])
    read, put = (terms.parser().parse_interactive(line[: begun.position], start=rule) for _ in range(2))
    terms.enter(rule)
    read.exhaust_lexer()
    state = put.parser_state
    begun.put_on(state.parse_conf.states, state.state_stack, state.value_stack)
    assert put.parser_state.state_stack == read.parser_state.state_stack
    both = zip(put.parser_state.value_stack, read.parser_state.value_stack, strict=True)
    for mine, theirs in both:
        assert type(mine) is type(theirs)
        assert getattr(mine, "start_pos", None) == getattr(theirs, "start_pos", None)
        assert getattr(mine, "end_pos", None) == getattr(theirs, "end_pos", None)


@pytest.mark.parametrize(
    "line", [*BEGINNINGS, *(change(LINE) for change in WRONG.values()), LINE, "%x = é", ""]
)
@pytest.mark.parametrize("rule", sorted(terms.LINES))
def test_lines_are_refused_where_lark_refuses_them(line: str, rule: str) -> None:
    """The parser's own loop for op lines ends with Lark's stack, at Lark's word, and expects what Lark expects."""
    mine = steps.read(rule, line, 0, len(line))
    with terms._lock:
        terms.enter(rule)
        try:
            read = terms.parser().parse(line, start=rule)
        except lark.exceptions.UnexpectedInput as error:
            found: Any = error
        else:
            assert type(mine) is type(read)
            return
    state = found.interactive_parser.parser_state
    assert mine.parser.parser_state.state_stack == state.state_stack
    assert list(map(type, mine.parser.parser_state.value_stack)) == list(map(type, state.value_stack))
    is_token = isinstance(found, lark.exceptions.UnexpectedToken)
    assert mine.is_end == (is_token and found.token.type == "$END")
    assert mine.is_terminal() == is_token
    assert mine.expected() == set(found.expected if is_token else found.allowed)
    if not mine.is_end:
        assert mine.position == found.pos_in_stream


def test_half_a_line(tokens: list[int]) -> None:
    """Before a missing comma stands an op line, which the grammar need not see; what is behind it is an error."""
    text = BODY.replace("), ", ") ")
    hlo.parse_tolerant(TEXT.replace(BODY, text))
    assert len(tokens) < 199 + MOST  # one for each, and the first one is tried as `parse` reads it
    text = TEXT.replace(LINE, LINE.replace("), ", ") ", 1))
    result = hlo.parse_tolerant(text)
    (found,) = result.diagnostics
    assert text[found.span.start :].startswith(" metadata=")  # where the comma is missing
    line, rest = (i for i in result.module.entry if text.index("%x77") <= i._start < text.index("%x78 "))
    assert [i.name for i in line.operands] == ["x76", "p"]
    assert line.metadata is None
    assert isinstance(rest, BadInstruction)
    assert rest.text == 'metadata={op_name="a/77"}'
    assert str(result.module) == text


@pytest.mark.parametrize("name", ["broken", "open metadata", "equals sign missing", "prefix of a log"])
def test_lines_that_are_only_counted(name: str) -> None:
    """Beyond so many errors broken lines are kept and counted as the ones before."""
    right = "  %z = f32[4]{0} negate(%p)\n"  # without it some would be one piece of text that nobody knows
    wrong = [WRONG[name](LINE.replace("%x77", f"%y{i}").replace("%x76", "%p")) for i in range(1_100)]
    lines = "".join(f"{line}{right.replace('%z', f'%z{i}')}" for i, line in enumerate(wrong))
    found = hlo.parse_tolerant(TEXT.replace(LINE, lines + LINE))
    assert len(found.diagnostics) == MAX_DIAGNOSTICS
    assert found.left_out == 100
    assert str(found.module) == TEXT.replace(LINE, lines + LINE)
    bad = [i for i in found.module.entry.instructions if isinstance(i, BadInstruction)]
    assert [i.name for i in bad] == ["" if "log" in name else f"y{i}" for i in range(1_100)]


def test_a_name_alone_in_its_line_is_read_tolerantly_too() -> None:
    """The first name of a body may stand alone in its line; the tolerant reader tries the same text as the strict one."""
    text = TEXT.replace("  %q = f32[4]", "  %q \n= f32[4]")
    assert not hlo.parse_tolerant(text).diagnostics
    assert str(hlo.parse(text)) == str(hlo.parse_tolerant(text).module) == text
