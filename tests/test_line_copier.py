"""Copied lines are what the printer would have made: both ways of printing give the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlotext as hlo
from hlotext.syntax.printing.xla_styles import TextPrinter
from tests.support import corpus_files, corpus_id, read_text

OPTIONS = {
    "default": hlo.PrintOptions.default(),
    "large constants": hlo.PrintOptions(print_large_constants=True),
    "no metadata": hlo.PrintOptions(print_metadata=False),
    "no percent": hlo.PrintOptions(print_percent=False),
    "no layouts": hlo.PrintOptions(include_layout_in_shapes=False),
    "no control dependencies": hlo.PrintOptions(print_control_dependencies=False),
}


def built(module: hlo.Module, options: hlo.PrintOptions) -> str:
    """The module with every line made anew."""
    printer = TextPrinter(options)
    printer.copier.can_copy = False
    return printer.module(module)


@pytest.mark.parametrize("path", corpus_files(), ids=corpus_id)
def test_copied_text_is_the_text_made_anew(path: Path) -> None:
    """On every module of the corpus, with options that change some lines and not others."""
    module = hlo.parse(read_text(path))
    for name, options in OPTIONS.items():
        assert module.to_text(options) == built(module, options), name


def test_edited_lines_are_not_copied() -> None:
    """Renaming, another shape and a removed line show in the default print."""
    text = (
        "HloModule m\n\nENTRY %e (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n"
        "  %unused = f32[2]{0} negate(%p)\n  %a = f32[2]{0} abs(%p)\n  ROOT %b = f32[2]{0} copy(%a)\n}\n\n"
    )
    module = hlo.parse(text)
    module.entry.remove(module.entry["unused"])
    module.entry["a"].name = "z"
    options = hlo.PrintOptions.default()
    assert module.to_text(options) == built(module, options)
    assert "unused" not in module.to_text(options)
    assert "copy(%z)" in module.to_text(options)


def test_a_sharding_is_copied_only_where_it_is_not_repeated_for_the_leaves() -> None:
    """Equal attribute texts on an array and on a tuple print differently."""
    module = hlo.parse(
        "HloModule m\n\nENTRY %e (p: f32[4], q: (f32[4], f32[4])) -> f32[4] {\n"
        "  %p = f32[4]{0} parameter(0), sharding={replicated}\n"
        "  %q = (f32[4]{0}, f32[4]{0}) parameter(1), sharding={replicated}\n"
        "  ROOT %r = f32[4]{0} negate(%p)\n}\n\n"
    )
    assert "parameter(1), sharding={{replicated}, {replicated}}" in module.to_text()
    assert "parameter(0), sharding={replicated}\n" in module.to_text()


def test_one_line_made_anew_does_not_keep_others_from_being_copied() -> None:
    """Text that is all as XLA writes it is given back, with a sharded tuple in it; a computation with an odd line is not."""
    text = (
        "HloModule m, entry_computation_layout={((f32[4]{0}, f32[4]{0}))->f32[4]{0}}\n\n"
        "%f (x: f32[4]) -> f32[4] {\n  %x = f32[4]{0} parameter(0), sharding={replicated}\n"
        "  ROOT %n = f32[4]{0} negate(%x)\n}\n\n"
        "ENTRY %e (q: (f32[4], f32[4])) -> f32[4] {\n"
        "  %q = (f32[4]{0}, f32[4]{0}) parameter(0), sharding={{replicated}, {replicated}}\n"
        "  %g = f32[4]{0} get-tuple-element(%q), index=1\n  ROOT %r = f32[4]{0} call(%g), to_apply=%f\n}\n\n"
    )
    options = hlo.PrintOptions.default()
    module = hlo.parse(text)
    assert module.to_text(options) is text
    odd = hlo.parse(text.replace("{{replicated}, {replicated}}", "{replicated}"))
    printer = TextPrinter(options)
    assert printer.module(odd) == text
    assert printer.copier.runs(odd, ()) == {odd.computations[0]: odd.computations[0].bounds[1]}


def test_a_computation_without_a_root_mark_gets_one() -> None:
    """XLA marks the root wherever it prints one, and writes numbers without zeros in front."""
    module = hlo.parse("HloModule m\n\nENTRY %e {\n  %p = f32[] parameter(00)\n  %x = f32[] add(%p, %p)\n}\n")
    assert "  ROOT %x = f32[] add(%p, %p)\n" in module.to_text(hlo.PrintOptions.default())
    assert "parameter(0)" in module.to_text(hlo.PrintOptions.default())


def test_a_number_written_oddly_is_copied_nowhere() -> None:
    """Both lines have the same number, and only one of them its text."""
    lines = '  %p = f32[] parameter({}), metadata={{op_name="a"}}\n  ROOT %x = f32[] add(%p, %p)\n}}\n\n'
    text = "HloModule m\n\n" + "".join(
        f"{head} {{\n" + lines.format(number) for head, number in (("%a", "0"), ("ENTRY %b", "00"))
    )
    assert hlo.parse(text).to_text(hlo.PrintOptions.default()).count("parameter(0)") == 2


@pytest.mark.parametrize("path", corpus_files(), ids=corpus_id)
def test_what_the_reader_knows_to_be_written_is_what_the_printer_writes(path: Path) -> None:
    """Of each part of a line that is known as XLA's text."""
    module = hlo.parse(read_text(path))
    printer = TextPrinter(hlo.PrintOptions.default())
    for part, opcode, value, is_known in module._parts:
        if is_known:
            assert printer.copier._written(opcode, value) == part


LINE = """HloModule m

%f (p: f32[2]) -> f32[2] {{
  %p = f32[2]{{0}} parameter(0)
  ROOT %r = f32[2]{{0}} negate(%p){}
}}

"""


@pytest.mark.parametrize(
    ("tail", "is_known"),
    [
        (', metadata={op_name="a" stack_frame_id=3}', True),
        (r", metadata={op_name=QUOTEa[\'b\']QUOTE}".replace("QUOTE", '"'), True),
        (', metadata={op_type="t" op_name="a" source_file="f.py" source_line=3}', True),
        (', frontend_attributes={a="1",b={"k":1}}, metadata={op_name="a"}', True),
        (', backend_config={"k":1}', True),
        (', metadata={op_name="it\'s"}', False),
        (', metadata={op_name="a" stack_frame_id=03}', False),
        (', metadata={op_name="a" stack_frame_id=0}', False),
        (", metadata={source_line=3}", False),
        (', metadata={op_name="a"}, frontend_attributes={a="1"}', False),
        (', frontend_attributes={b="1",a="1"}', False),
        (', frontend_attributes={a="{1}"}', False),
        (', backend_config=""', False),
        (", frontend_attributes={}", False),
    ],
)
def test_the_reader_knows_which_attributes_are_written_as_xla_writes_them(tail: str, is_known: bool) -> None:
    """The order, the escapes, the numbers, and what is left out where it says nothing."""
    module = hlo.parse(LINE.format(tail))
    found = [known for text, _, value, known in module._parts if isinstance(value, dict) and text]
    assert found == [is_known]
    options = hlo.PrintOptions.default()
    assert module.to_text(options) == built(module, options)


def test_a_run_of_computations_ends_where_a_header_is_not_what_is_printed() -> None:
    """Its parameters may bear other names, blank lines may stand before it, and computations may change places."""
    bodies = [
        f"%f{n} (p{n}: f32[2]) -> f32[2] {{\n  %p{n} = f32[2]{{0}} parameter(0)\n"
        f"  ROOT %r = f32[2]{{0}} negate(%p{n})\n}}\n\n"
        for n in range(5)
    ]
    call = "ENTRY %e (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n" + "".join(
        f"  {'ROOT ' if n == 4 else ''}%c{n} = f32[2]{{0}} call(%p), to_apply=%f{n}\n" for n in range(5)
    )
    text = "HloModule m\n\n" + "".join(bodies) + call + "}\n\n"
    options = hlo.PrintOptions.default()
    canonical = hlo.parse(text).to_text(options)
    head, _, rest = canonical.partition("\n\n")
    assert rest == text.partition("\n\n")[2]
    changes = (
        ("(p1:", "(q:"),
        ("}\n\n%f2", "}\n\n\n\n%f2"),
        ("%f3 (p3: f32[2]) -> f32[2]", "%f3"),
        ("(p3: f32[2])", "(p3:  f32[2])"),
    )
    for old, new in changes:
        assert hlo.parse(text.replace(old, new)).to_text(options) == canonical, new
    module = hlo.parse(text)
    first, second, *others = module._computations
    module._computations[:] = [second, first, *others]
    assert (
        module.to_text(options)
        == head + "\n\n" + "".join([bodies[1], bodies[0], *bodies[2:]]) + call + "}\n\n"
    )
    module = hlo.parse(text)
    module.computations[2]["r"].name = "z"
    module.computations[3].name = "g"
    assert module.to_text(options) == built(module, options)
    assert module.to_text(options).count("%g") == 2
