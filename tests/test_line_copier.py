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
