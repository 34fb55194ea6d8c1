"""Escaping of untrusted module text for terminals, HTML, markdown and CI servers.

Dumps are untrusted: names of operations, files and targets may contain terminal escape sequences, CI commands, images,
links and mentions. Each function handles one medium and accepts any text. Active content is replaced or quoted; all
other text, and so nearly every name, is returned unchanged.

The product of a command, such as a formatted module, is written byte for byte, or through `lines` if written to a
terminal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hlotext.ir.caches import lazy_regex

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_COMMAND = lazy_regex(r"#(?=#(?:\[|vso\[|teamcity\[))|^(\s*):(?=:)", re.MULTILINE)
"""The first character of a command of a CI server in a log: GitHub, Azure Pipelines, TeamCity."""


def line(text: str) -> str:
    """Returns the text on one line for terminals and logs; unprintable characters become U+FFFD.

    If the text has any, runs of whitespace become one blank.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else REPLACEMENT for c in " ".join(text.split()))
    return _without_commands(text)


def one_line(text: str) -> str:
    """Returns a text of several lines as one line for terminals and logs, with runs of whitespace as one blank."""
    if "  " in text or not text.isprintable():
        return line(" ".join(text.split()))
    return _without_commands(text.strip())


def each_line(texts: Sequence[str]) -> Sequence[str]:
    """Applies `line` to each text; returns the same sequence if that changes none."""
    text = "\n".join(texts)  # what two of them make together is as good as none
    is_plain = (
        # `isprintable` asks for each character, `translate` takes a quarter of the time.
        not text.encode("ascii").translate(None, _ASCII) if text.isascii() else "".join(texts).isprintable()
    )
    is_plain &= text.count("\n") == len(texts) - 1
    return texts if is_plain and "::" not in text and "##" not in text else list(map(line, texts))


_ASCII = bytes((*range(ord(" "), 127), ord("\n")))


def lines(text: str) -> str:
    """Escapes a text of several lines, keeping line breaks, tabs and blanks."""
    if not text.isprintable():
        text = "\n".join(map(_shown, text.split("\n")))
    return _without_commands(text)


def _shown(text: str) -> str:
    text = text.removesuffix("\r")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\t" else REPLACEMENT for c in text)


def _without_commands(text: str) -> str:
    """The same, but no line is a command: https://docs.github.com/actions/reference/workflow-commands-for-github-actions."""
    if "##" not in text and "::" not in text:
        return text
    return _COMMAND().sub(lambda match: (match[1] or "") + REPLACEMENT, text)


# ---- GitHub's workflow commands, where the command is ours and the text is not


def github_data(text: str) -> str:
    """Escapes the message of a GitHub workflow command; line ends are kept."""
    return lines(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """Escapes the value of a property of a GitHub workflow command."""
    return github_data(line(text)).replace(":", "%3A").replace(",", "%2C")


# ---- SARIF


def sarif(text: str) -> str:
    """Escapes the text of a SARIF message, whose only markup is `[words](target)`."""
    return lines(text).replace("](", "\\](")


# ---- Markdown, as GitHub and GitLab show it

_MARKUP = lazy_regex(
    r"[\\`*\[\]<>|~$&]|(?<!\w)_|_(?!\w)|^[-+=#/]|(?<=^[0-9])[.)]|(?<=[a-z]):(?=//)|(?<=\bwww)\.",
    re.IGNORECASE,
)
_REFERENCE = lazy_regex(r"[@#!~&$%](?=[\w\"(])|\bGH-(?=[0-9])", re.IGNORECASE)
"""Text that a code host turns into a mention, which notifies people and leaves traces elsewhere."""


def markdown(text: str) -> str:
    """Escapes prose for one line of Markdown, tables included: no markup, images, links, mentions or references."""
    escaped = _MARKUP().sub(r"\\\g<0>", line(text))
    # References are looked for in what Markdown has given, where only a character that nobody sees parts them.
    return _REFERENCE().sub(r"\g<0>&#8203;", escaped)


def markdown_code(text: str) -> str:
    """Returns a code span for a Markdown table; empty for an empty text."""
    text = line(text)
    if not text.strip():
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    pad = " " if text[0] in " `" or text[-1] in " `" else ""
    # A bar ends a table's cell even there; the table takes the backslash away before the span is read.
    return f"{fence}{pad}{text}{pad}{fence}".replace("|", "\\|")


# ---- HTML, SVG and other XML


def html(text: str) -> str:
    """Escapes text for HTML, SVG or XML, as content or quoted attribute, keeping lines and tabs. Not for link targets."""
    if text.isalnum():  # as the numbers in pictures
        return text
    text = lines(text)
    for character, entity in _ENTITIES:
        text = text.replace(character, entity)
    return text


_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;"))


# ---- JSON


def json(value: Any, indent: int | None = 2) -> str:
    """Returns a value as ASCII JSON; `##`, which CI systems interpret, is written `#\u0023`."""
    from json import dumps  # takes milliseconds, and most programs write none

    try:
        text = dumps(value, indent=indent, allow_nan=False)
    except ValueError:  # a number beyond all floats, which JSON has digits for and Python's writer has not
        text = _ENDLESS.sub(lambda found: _DIGITS.get(found[0], found[0]), dumps(value, indent=indent))
    return text.replace("##", "#\\u0023").replace("\x7f", "\\u007f")


_ENDLESS = re.compile(r'"(?:[^"\\]|\\.)*"|-?Infinity|NaN')
_DIGITS = {"Infinity": "1e999", "-Infinity": "-1e999", "NaN": "null"}


def script_json(value: Any) -> str:
    """Returns a value as JSON for a `<script>` element of HTML; no text in it can close the element."""
    return json(value, None).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
