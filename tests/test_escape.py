"""Text of a module on its way out: nothing of it acts, whatever it is shown on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlotext.cli.lint import FORMATS
from hlotext.findings import escape
from tests import cli_support

ARMED = (
    "jit(f)/\x1b]0;owned\x07\x1b[31mred\r\n::error::x\n  ::add-mask::y\n##[error]z ##vso[task.setvariable variable=a]b"
    " ##teamcity[x] \u202egnp.exe \x9b2J \x7f\udc80 ![i](http://evil.example/i.png) [l](javascript:x) @somebody #12 GH-3"
    " <img src=x onerror='alert(1)'> </script> & \"q\" `code` | www.evil.example"
)
"""Everything at once."""
TEXTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["::", "##[", "##vso[", "\n", "\r", " ", "\x1b[2J", "a", "@b", "|", "`", "<", "&", "%", "["]
        )
    ).map("".join),
)
COMMAND = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[", re.MULTILINE)
"""What the runners of GitHub, Azure Pipelines and TeamCity obey in a log."""


MODULE = """HloModule armed

%body (p: f64[1024,8]) -> f64[1024,8] {
  ROOT %p = f64[1024,8]{1,0} parameter(0), metadata={op_name="ARMED" source_file="ARMED"}
}

ENTRY %e (x: f64[1024,8]) -> (f64[1024,8]) {
  %x = f64[1024,8]{1,0} parameter(0)
  %c = f64[1024,8]{1,0} custom-call(%x), custom_call_target="ARMED", metadata={op_name="ARMED"}
  %unknown = f64[1024,8]{1,0} never-heard-of(%c), metadata={op_name="ARMED" source_file="ARMED"}
  %a = f64[1024,8]{1,0} add(%c, %x), metadata={op_name="ARMED" source_file="ARMED" source_line=1}
  ROOT %t = (f64[1024,8]{1,0}) tuple(%a), metadata={op_name="ARMED"}
}
""".replace("ARMED", ARMED.replace("\\", "\\\\").replace('"', '\\"'))
"""All of it in each of the texts that a module may hold, line ends too."""
COMMANDS = [
    *(["lint", "--isolated", "--select", "ALL", "--format", format] for format in FORMATS),
    ["lint", "--isolated", "--select", "ALL", "--statistics"],
    *(
        [command, "--format", format]
        for command in ("check", "verify")
        for format in ("text", "json", "github", "sarif")
    ),
    *(
        ["show", *options]
        for options in ([], ["--format", "json"], ["-i", "c"], ["-i", "unknown"], ["-i", ARMED])
    ),
    ["grep", "custom-call"],
    ["grep", "\x1b[2J\n::error::x"],
    ["fmt", "--style", ARMED],
]


def is_harmless(text: str) -> bool:
    """Whether neither a terminal nor a CI server obeys anything of it."""
    return all(c.isprintable() or c in "\n\t" for c in text) and not COMMAND.search(text)


@given(TEXTS)
def test_nothing_acts_in_a_terminal_or_a_log(text: str) -> None:
    """In one line or several; what is harmless stays, and twice is once."""
    assert is_harmless(escape.line(text))
    assert "\n" not in escape.line(text)
    shown = escape.lines(text)
    assert is_harmless(shown)
    assert shown.count("\n") == text.count("\n")
    assert escape.lines(shown) == shown
    if is_harmless(text):
        assert shown == text


def test_armed_text_in_a_terminal() -> None:
    """What is left of it is legible."""
    assert is_harmless(escape.lines(ARMED))
    assert escape.line("a::b ##c") == "a::b ##c"
    assert escape.lines("a\r\n\tb  c") == "a\n\tb  c"
    assert escape.line("x\n::error::y") == "x ::error::y"
    assert escape.line("::error::y") == f"{escape.REPLACEMENT}:error::y"


@given(TEXTS)
def test_a_workflow_command_is_one_line_with_its_own_properties(text: str) -> None:
    """As the runner splits it: at the first `::` behind the properties, at commas, at `%XX`."""
    command = f"::error file={escape.github_property(text)},line=1::{escape.github_data(text)}"
    assert "\n" not in command
    assert "\r" not in command
    properties, _, data = command.removeprefix("::error ").partition("::")
    assert dict(pair.split("=", 1) for pair in properties.split(","))["line"] == "1"
    assert data.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%") == escape.lines(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("all-gather.1 of jit(f)/mul_2", "all-gather.1 of jit(f)/mul_2"),
        ("![i](http://a.b/c)", "!\\[i\\](http\\://a.b/c)"),
        ("@team/x and #12 GH-3", "@&#8203;team/x and #&#8203;12 GH-&#8203;3"),
        ("a | b <b> *c* _d_ `e` ~f~", "a \\| b \\<b\\> \\*c\\* \\_d\\_ \\`e\\` \\~&#8203;f\\~"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("/close", "\\/close"),
        ("www.a.b x@y.z", "www\\.a.b x@&#8203;y.z"),
        ("\\", "\\\\"),
    ],
)
def test_markdown(text: str, shown: str) -> None:
    """Quoted only where it would do something."""
    assert escape.markdown(text) == shown


@given(TEXTS)
def test_a_code_span_holds_all_of_the_text(text: str) -> None:
    """The fence is longer than any in it."""
    span = escape.markdown_code(text)
    if span:
        fence = re.match("`+", span)[0]  # type: ignore[index]
        assert fence not in span[len(fence) : -len(fence)].replace(fence + "`", "") or span.count(fence) == 2
        assert span.endswith(fence)
        assert "|" not in span.replace("\\|", "")
    else:
        assert not escape.line(text).strip()


@given(TEXTS)
def test_markup_reads_back(text: str) -> None:
    """As an attribute and as text of XML it is what was shown."""
    shown = escape.html(text)
    element = ET.fromstring(f'<a b="{shown}">{shown}</a>')
    assert element.text is None or element.text == escape.lines(text)
    assert (element.get("b") or "").split() == escape.lines(text).split()


@given(TEXTS)
def test_json_is_the_same_value(text: str) -> None:
    """Whatever it is spelt like, and no script ends in it."""
    assert json.loads(escape.json({"a": text})) == {"a": text}
    assert json.loads(escape.script_json([text])) == [text]
    assert is_harmless(escape.json(text))
    assert not set("<>&") & set(escape.script_json(text))


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_armed_module_does_nothing(arguments: list[str], tmp_path: Path) -> None:
    """Whatever a command says of it, on standard output and standard error."""
    path = tmp_path / "armed\x1b[2J\n::error::q.txt"
    path.write_text(MODULE, "utf-8", "surrogateescape")
    result = cli_support.run(*arguments, path)
    said = result.stdout + result.stderr
    commands = [line for line in said.splitlines() if COMMAND.search(line)]
    if "github" in arguments:
        commands = [line for line in commands if not re.match(r"::(?:error|warning|notice) file=", line)]
    assert not commands
    assert all(c.isprintable() or c in "\n\t" for c in said)
    assert said


def test_numbers_beyond_all_floats_are_json() -> None:
    """`Infinity` is none; texts that say so stay."""
    text = escape.json({"a": float("inf"), 'b "Infinity': ["NaN", -float("inf"), 1.5, "\\"]}, None)
    assert text == '{"a": 1e999, "b \\"Infinity": ["NaN", -1e999, 1.5, "\\\\"]}'
    assert json.loads(text) == {"a": float("inf"), 'b "Infinity': ["NaN", -float("inf"), 1.5, "\\"]}
