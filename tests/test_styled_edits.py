"""Memory equals text: edits of modules in every style of source; `python -m tests.styled_edits` makes more of them."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import hlotext as hlo
from hlotext import proto, rewrite
from tests import source_styles, styled_edits

COUNT = int(os.environ.get("HLOTEXT_STYLED_EDITS", "400"))
"""How many accepted edits to make; 12,000 take a minute."""


def test_memory_equals_text_after_every_edit() -> None:
    happened: Counter[str] = Counter()
    done = seed = 0
    while done < COUNT:
        done += styled_edits.sequence(seed, 8, happened)
        seed += 1
    styles = {f"({rewrite.__name__})" for rewrite in source_styles.REWRITES}
    readers = {"(parsed)", "(lazy)", "(tolerant)", "(op line)", "(copy)", "(module 0 of two)"}
    with suppress(proto.MissingProtobuf):
        hlo.parse(f"ENTRY e {{\n{PLAIN}").to_proto()
        readers.add("(proto)")
    assert styles | readers <= happened.keys()


PLAIN = "  a = f32[4] parameter(0)\n  b = f32[4] negate(a)\n}\n"
"""A computation whose root is said by its place alone."""


def as_text(module: hlo.Module) -> str:
    """The text of a module, which must say what the module is."""
    text = str(module)
    assert styled_edits.difference(module, hlo.parse(text)) is None
    return text


def test_a_root_that_is_not_last_any_more_is_marked() -> None:
    m = hlo.parse(f"HloModule a\n\nENTRY e {{\n{PLAIN}")
    rewrite.Builder.after(m.entry.root).sine(m.entry.root)
    assert "  ROOT b = f32[4] negate(a)\n  sine = f32[4] sine(b)\n" in as_text(m)
    assert str(m.entry.root) == "ROOT b = f32[4] negate(a)"
    assert "ROOT b" in str(m.entry)
    with m.transaction() as record:
        m.entry["sine"].erase()
    assert "ROOT" not in as_text(m).replace("ROOT b", "")
    record.undo()
    assert "sine" in as_text(m)


def test_a_parameter_added_behind_an_unmarked_root() -> None:
    m = hlo.parse(f"HloModule a\n\nENTRY e {{\n{PLAIN}")
    rewrite.add_parameter(m.entry, hlo.parse_shape("f32[3]"))
    assert len(hlo.parse(as_text(m)).entry.parameters) == 2


def test_a_move_leaves_the_root() -> None:
    m = hlo.parse("e {\n  a = f32[4] parameter(0)\n  c = f32[4] sine(a)\n  b = f32[4] negate(a)\n}\n")
    m.entry["b"].move_before(m.entry["c"])
    assert m.entry.root.name == "b"
    assert "  ROOT b = f32[4] negate(a)\n  c = f32[4] sine(a)\n" in as_text(m)


@pytest.mark.parametrize("header", ["", "HloModule m\n\n", "// RUN: x\n"])
def test_an_entry_that_is_not_last_any_more_is_marked(header: str) -> None:
    m = hlo.parse(f"{header}e {{\n{PLAIN}")
    name = m.name
    b = rewrite.Builder.new(m, "callee", [hlo.parse_shape("f32[4]")])
    b.finish(b.sine(b.computation.parameters[0]))
    assert (m.entry.name, m.name) == ("e", name)
    assert f"{header}ENTRY e {{\n{PLAIN}" in as_text(m)


@pytest.mark.parametrize("before", ["// RUN: tool\n// more\n", "/* two\nlines */ ", "\n\n"])
def test_a_header_is_put_behind_comments(before: str) -> None:
    m = hlo.parse(f"{before}ENTRY e {{\n{PLAIN}")
    m.attributes["num_partitions"] = 8
    assert as_text(m).startswith(f"{before}HloModule module_e, ")
    assert f"num_partitions=8\n\nENTRY e {{\n{PLAIN}" in str(m)


def test_a_header_behind_a_comment_is_printed_in_its_place() -> None:
    m = hlo.parse(f"// RUN: tool\nHloModule x\n// more\nENTRY e {{\n{PLAIN}")
    m.name = "y"
    assert as_text(m).startswith("// RUN: tool\nHloModule y, ")
    assert "\n// more\nENTRY e {\n" in str(m)


def test_a_bounded_size_in_the_first_signature_of_a_text_without_header() -> None:
    body = " {\n  p = f32[<=4] parameter(0)\n}\n"
    m = hlo.parse(f"c (p: f32[<=4]) -> f32[<=4]{body}\nENTRY e (p: f32[<=4]) -> f32[<=4]{body}")
    assert [c.name for c in m.computations] == ["c", "e"]


def test_a_renamed_entry_leaves_the_name_of_a_module_without_header() -> None:
    m = hlo.parse(f"ENTRY e {{\n{PLAIN}")
    m.entry.name = "other"
    assert hlo.parse(as_text(m)).name == "module_e"


def test_a_new_thread_behind_a_comment_with_a_brace() -> None:
    m = hlo.parse(
        "c {\n  p = f32[] parameter(0) // } not this\n}\n\nENTRY e {\n  a = f32[] parameter(0)\n}\n"
    )
    m.computations[0].execution_thread = "host"
    assert "// } not this\n}, execution_thread=" in as_text(m)


NESTED = "ENTRY e {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  c = f32[] add(negate(p), negate(q))\n}\n"


def test_nothing_stands_in_the_middle_of_a_line() -> None:
    m = hlo.parse(NESTED)
    rewrite.Builder.after(m.entry.instructions[2]).sine(m.entry.parameters[0])
    as_text(m)


def test_names_that_the_text_leaves_to_its_reader_are_written_with_the_first_line_of_their_own() -> None:
    m = hlo.parse(NESTED)
    m.entry.instructions[2].name = "other"
    as_text(m)


MADE_UP = (
    "ENTRY e {\n  p = f32[] parameter(0)\n  q = (f32[], s32[]) parameter(1)\n  negate.anon = f32[] negate(p)\n"
    "  q_0 = f32[] sine(p)\n  a = f32[] add(negate(p), q#0)\n  last = f32[] cosine(p)\n  ROOT r = f32[] add(a, last)\n}\n"
)
"""Operands in place that a reader numbers, since lines before have the names that it would make up first."""


@pytest.mark.parametrize("name", ["negate.anon", "q_0"])
def test_a_name_that_is_given_up_stays_out_of_what_a_reader_makes_up(name: str) -> None:
    def names(m: hlo.Module) -> list[str]:
        return [i.name for i in hlo.parse(as_text(m)).entry]

    m = hlo.parse(MADE_UP)
    assert names(m)[4:6] == ["negate.anon.1", "q_0.1"]
    m.entry[name].name = "other"
    assert name not in names(m)
    m = hlo.parse(MADE_UP)
    m.entry[name].move_before(m.entry["last"])
    assert names(m)[-3:] == [name, "last", "r"]
    m = hlo.parse(MADE_UP)
    with m.transaction() as record:
        m.entry[name].erase()
    assert {"negate.anon.1", "q_0.1"} <= set(names(m))
    record.undo()
    assert str(m) == MADE_UP
    m.entry["last"].name = "other"  # no name that a reader could make up
    assert "add(negate(p), q#0)" in str(m)


def test_a_broken_line_in_which_the_closing_brace_may_be_is_not_edited_around() -> None:
    m = hlo.parse_tolerant(
        "c { p = f32[] parameter(0) a = f32[] negate(p) ?b = f32[] sine(a) }\n\n" + NESTED
    ).module
    with pytest.raises(hlo.EditError, match="a guess"):
        rewrite.Builder.after(m.entry.instructions[1]).sine(m.entry.instructions[0])


INLINE = (
    "ENTRY e {\n  p = f32[4] parameter(0)\n  z = f32[] constant(0)\n  r = f32[] reduce(p, z), dimensions={0}, to_apply="
    "{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] call(a, b), to_apply={ d = f32[] parameter(0) "
    "f = f32[] parameter(1) ROOT g = f32[] add(d, f) } }\n}\n"
)


def test_a_body_of_a_body_gets_a_text_of_its_own() -> None:
    m = hlo.parse(INLINE)
    root = m.entry["r"].called_computations[0].root
    rewrite.Builder.after(root).negate(root)
    assert "to_apply=\n" not in as_text(m)


def test_a_body_that_two_call_is_named_by_both() -> None:
    m = hlo.parse(INLINE)
    rewrite.Builder.after(m.entry["r"]).reduce(
        *m.entry["r"].operands, dimensions=(0,), to_apply=m.entry["r"].called_computations[0]
    )
    assert as_text(m).count("to_apply=inline_body") == 3


BROKEN_BODY = """HloModule m

ENTRY e {
  p = f32[9] parameter(0)
  a = ((f32[9]), f32[9], s32[]) call-start(p), to_apply={
    x = f32[9] ?parameter(0)
    ROOT y = f32[9] negate(x)
  }
  ROOT d = f32[9] call-done(a)
}
"""


@pytest.mark.parametrize("text", [f"HloModule m, ={{\n\nENTRY e {{\n{PLAIN}", BROKEN_BODY])
def test_a_text_whose_structure_is_a_guess_is_not_edited(text: str) -> None:
    """A header that cannot be read, or a brace that may close an inline body or the computation around it."""
    m = hlo.parse_tolerant(text).module
    text = str(m)
    with pytest.raises(hlo.EditError, match="is a guess"):
        next(m.instructions()).name = "renamed"
    assert str(m) == text


@pytest.mark.parametrize("name", ["_", "add"])
def test_a_line_whose_callee_is_elsewhere_becomes_no_module(name: str) -> None:
    """Also where a short spelling names it for the operation that it wraps."""
    line = f"%s = ((), (), s32[]) call-start(), to_apply=%{name}"
    m = hlo.parse(line)
    with pytest.raises(hlo.EditError, match=f"refers to {name}, which is missing"):
        m.name = "module"
    assert str(m) == line


BOUND_LATE = """HloModule m

ENTRY main {
  p = f32[9]{0} parameter(0)
  s = ((), (), s32[]) call-start(), to_apply={
    x = f32[9]{0} parameter(0)
    ROOT z = f32[9]{0} negate(x)
  }
  u = ((f32[9]{0}), (), s32[]) call-update(s, p)
  d = f32[9]{0} call-done(u)
  ROOT r = f32[9]{0} negate(p)
}
"""


def test_another_shape_of_a_done_leaves_what_is_wrapped_alone() -> None:
    """Spelled short, the wrapped operation would be read with the shape of the done."""
    m = hlo.parse(BOUND_LATE)
    m.instruction("d").shape = "f32[2,3]{1,0}"
    again = hlo.parse(str(m))
    wrapped = [one.instruction("d").async_wrapped_computation for one in (m, again)]
    assert [str(body.root.shape) for body in wrapped if body is not None] == ["f32[9]{0}"] * 2
    assert [f.code for f in hlo.verify(again)] == [f.code for f in hlo.verify(m)] != []


def test_a_root_whose_line_has_no_name_that_can_be_read_stays_the_root() -> None:
    """Wherever it is moved: its text says ROOT."""
    text = "ENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] negate(a)\n  ROOT x: = f32[] ?negate(b)\n}\n"
    m = hlo.parse_tolerant(text).module
    assert m.entry.root is list(m.entry)[-1]
    moved = hlo.parse_tolerant(
        text.replace("  b = f32[] negate(a)\n", "").replace("\n}", "\n  b = f32[] negate(a)\n}")
    ).module
    assert moved.entry.root is list(moved.entry)[1]


TABLES = (
    'HloModule m\n\nFileNames\n1 "a.py"\n\nFunctionNames\n1 "f"\n\nFileLocations\n1 {file_name_id=1 function_name_id=1 '
    "line=1 end_line=1 column=1 end_column=2}\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=?}\n\n"
)


def test_a_text_of_which_a_row_of_a_table_could_not_be_read_is_edited() -> None:
    m = hlo.parse_tolerant(f"{TABLES}ENTRY e {{\n{PLAIN}").module
    m.entry["a"].name = "x"
    assert str(m) == f"{TABLES}ENTRY e {{\n{PLAIN.replace('a =', 'x =').replace('(a)', '(x)')}"
    m.attributes["num_partitions"] = 8
    m.name = "n"
    text = str(m)
    assert text.startswith("HloModule n, ")
    assert "parent_frame_id=?}\n\nENTRY e {" in text
    assert styled_edits.difference(m, hlo.parse_tolerant(text).module) is None


@pytest.mark.parametrize("name", ["c", "%c"])
@pytest.mark.parametrize("gap", ["\n ", "\r\n ", "\n\n", " \r"])
def test_a_first_computation_is_not_read_as_a_table_behind_a_new_header(name: str, gap: str) -> None:
    m = hlo.parse(f"// RUN\n{name}{gap}{{\n{PLAIN}\nENTRY e {{\n{PLAIN}")
    m.entry["b"].name = "d"
    assert f"{name}{gap}{{\n" in as_text(m)
    m.attributes["num_partitions"] = 8
    assert f"\n\nc {{\n{PLAIN}" in as_text(m)  # in the style of the text, which has few %


def test_a_first_computation_of_a_text_read_lazily(tmp_path: Path) -> None:
    body = "  ROOT a = f32[4] parameter(0)\n}\n"
    path = tmp_path / "m.hlo"
    path.write_text(f"HloModule m\n\nb {{\n{body}\n%c (a: f32[4]) -> f32[4] {{\n{body}\nENTRY e {{\n{PLAIN}")
    m = hlo.load(path, lazy=True)
    m.remove(m.computations[0])
    as_text(m)


@pytest.mark.parametrize("gap", ["\r\n ", "\n\n"])
def test_a_computation_that_comes_first_is_not_read_as_a_table(gap: str) -> None:
    m = hlo.parse(f"HloModule m\n\na {{\n{PLAIN}\nc{gap}{{\n{PLAIN}\nENTRY e {{\n{PLAIN}")
    m.remove(m.computations[0])
    assert "c {\n" in as_text(m)


def test_a_line_that_could_not_be_read_stays_as_it_stands() -> None:
    m = hlo.parse_tolerant(
        "HloModule m\n\nENTRY e {\n  a = f32[] parameter(0)\n  b = f32[] ?(a)\n  ROOT c = f32[] negate(b)\n}\n"
    ).module
    m.entry["c"].attributes["control-predecessors"] = (m.entry["b"],)
    assert "\n  b = f32[] ?(a)\n" in str(m)
    assert "\n  b = f32[] ?(a)\n" in str(m.clone())
    with pytest.raises(hlo.EditError, match="could not be read"):
        m.entry.root = m.entry["b"]


def test_a_clone_prints_every_preset_alike() -> None:
    """What was not edited in a clone is printed with the options, not copied from the source."""
    text = 'HloModule m\n\nENTRY %e (a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0), metadata={op_name="x"}\n}\n'
    options = hlo.PrintOptions(print_metadata=False)
    assert hlo.parse(text).clone().to_text(options) == hlo.parse(text).to_text(options)


BODIES = (
    "ENTRY e {\n  p = s32[] parameter(0)\n  a = s32[] call(p), to_apply={ x = s32[] parameter(0) }\n"
    "  w = s32[] while(p), condition={ y = s32[] parameter(0) ROOT k = pred[] constant(true) }, "
    "body={ z = s32[] parameter(0) ROOT g = s32[] call(z), to_apply={ v = s32[] parameter(0) } }\n"
    "  n = s32[] negate(p)\n  ROOT t = (s32[], s32[], s32[]) tuple(a, n, w)\n}\n"
)
STARTED = (
    "HloModule m\n\nENTRY e {\n  p = f32[4] parameter(0)\n  r = ((f32[4]), f32[4], u32[]) all-to-all-start(p), "
    "replica_groups={}\n"
    "  g = ((f32[4]), f32[8], u32[]) collective-broadcast-start(p), replica_groups={}\n"
    "  s = f32[4] all-to-all-done(r)\n  ROOT h = f32[8] collective-broadcast-done(g)\n}\n"
)


@pytest.mark.parametrize(
    ("text", "moved", "before"),
    [(BODIES, "w", "a"), (BODIES, "a", "n"), (BODIES, "a", "t"), (STARTED, "g", "r"), (STARTED, "r", "s")],
)
def test_bodies_inside_of_a_line_move_with_it(text: str, moved: str, before: str) -> None:
    m = hlo.parse(text)
    with m.transaction() as record:
        m.entry[moved].move_before(m.entry[before])
    assert "inline_body" not in as_text(m)
    record.undo()
    assert str(m) == text
    assert styled_edits.difference(m, hlo.parse(text)) is None


def test_a_damaged_line_before_one_that_begins_with_a_comment() -> None:
    text = "ENTRY e {\n  a = f32[] ?parameter(0)\n  b = f32[] parameter(1)\n  /* c, d */ ROOT c = f32[] add(a, b)\n}\n"
    m = hlo.parse_tolerant(text).module
    m.entry["b"].move_before(m.entry["a"])
    again = hlo.parse_tolerant(str(m)).module
    assert [i.name for i in again.entry] == ["b", "a", "c"]


def test_a_damaged_line_before_one_with_a_comment_in_front_of_its_sign() -> None:
    text = (
        "ENTRY e {\n  a /* = */ = /* shape */ f32 /**/ [ /* 2 */ 2 ] parameter /* */ ( /* number */ 0 /**/ )\n"
        "  b = f32[2] ?constant({1,\n  2} )\n  ROOT c = f32[2] add(a, b)\n}\n"
    )
    m = hlo.parse_tolerant(text).module
    m.entry["b"].move_before(m.entry["a"])
    again = hlo.parse_tolerant(str(m)).module
    assert [(i.name, i.opcode) for i in again.entry] == [
        ("b", "(unreadable)"),
        ("a", "parameter"),
        ("c", "add"),
    ]


def test_what_could_not_be_read_becomes_no_operand() -> None:
    """An operand that no line defines would leave the text with its last use."""
    m = hlo.parse_tolerant(
        'ENTRY e {\n  "}\n  a = f32[] ?parameter(0)\n  ROOT s = f32[] negate(y)\n}\n'
    ).module
    before = str(m)
    nameless, named, missing, root = m.entry
    assert (nameless.name, named.name, missing.name) == ("", "a", "y")
    for line in (nameless, named):
        with pytest.raises(hlo.EditError, match="could not be read"):
            missing.replace_all_uses_with(line)
        with pytest.raises(hlo.EditError, match="could not be read"):
            root.replace_operand(0, line)
        with pytest.raises(hlo.EditError, match="could not be read"):
            root.change(operands=[line])
    assert str(m) == before


def test_an_op_line_calls_nothing_of_its_own() -> None:
    m = hlo.parse("ROOT t = f32[] reduce(f32[4] a, f32[] b), dimensions={0}, to_apply=_")
    assert m.entry.root.called_computations[0] is not m.entry
    with pytest.raises(hlo.EditError, match="refers to _, which is missing"):
        m.entry.execution_thread = "host"


def test_what_an_op_line_only_names_is_not_inlined() -> None:
    m = hlo.parse("t = f32[4] call(f32[4] a), to_apply=b")
    with pytest.raises(hlo.EditError, match="has no instructions"):
        rewrite.inline(m.entry.root)


@pytest.mark.parametrize("word", ["replicated", "ROOT", "maximal", "true"])
def test_a_reserved_word_keeps_the_percent_sign_that_makes_it_a_name(word: str) -> None:
    m = hlo.parse(f"b = f32[] negate(%{word})")
    m.entry.root.attributes["control-predecessors"] = m.entry.root.operands
    assert str(m) == f"b = f32[] negate(%{word}), control-predecessors={{%{word}}}"
    hlo.parse(str(m))
    text = f"ENTRY e {{\n  b = f32[] parameter(0)\n  %{word} = f32[] call(b), to_apply=%{word}\n}}\n"
    m = hlo.parse(f"%{word} {{\n  a = f32[] parameter(0)\n  c = f32[] negate(a)\n}}\n{text}")
    m.entry.root.shape = "f32[]"
    m.computations[0].root.opcode = "sine"
    rewrite.Builder.after(m.entry.root).sine(m.entry.root)
    hlo.parse(str(m))
