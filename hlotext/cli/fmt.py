"""`hlotext fmt`: prints modules in another style."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterator

import attrs
import click

import hlotext as hlo
from hlotext.cli.common import FILES, Unreadable, read_each, warn
from hlotext.cli.files import Rewriting
from hlotext.cli.output import echo
from hlotext.cli.print_style import STYLES, PrintStyle, print_style
from hlotext.syntax import grammar

WOULD_CHANGE = 1
"""Exit status of `--check` where a file is not in the style."""


@attrs.frozen
class _File:
    """One file that was read, and its text in the style that was asked for."""

    place: str
    old: str
    new: str
    losses: list[str]
    """What is in the old text and not in the new one."""

    @property
    def changes(self) -> bool:
        return self.old != self.new


@click.command()
@FILES
@click.option(
    "--style",
    type=click.Choice(list(STYLES)),
    default="default",
    show_default=True,
    help="One of XLA's print styles, or source: the text as it stands.",
)
@click.option(
    "--option", "settings", metavar="NAME=VALUE", multiple=True, help="One print option of XLA's, on top."
)
@click.option("--elide-constants", is_flag=True, help="Print constants of more than 10 elements as {...}.")
@click.option("-i", "--in-place", is_flag=True, help="Write each FILE instead of standard output.")
@click.option("--lossy", is_flag=True, help="Allow -i with a style that leaves something out.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a FILE is not in this style.")
@click.option("--diff", "show_diff", is_flag=True, help="Write the differences instead of the text.")
def command(
    files: tuple[str, ...],
    style: str,
    settings: tuple[str, ...],
    elide_constants: bool,
    in_place: bool,
    lossy: bool,
    check: bool,
    show_diff: bool,
) -> None:
    """Print each FILE in one of XLA's styles.

    \b
    source       as it stands, byte for byte
    default      what XLA writes into dumps
    short        no metadata, no control dependencies, no percent signs
    canonical    names made up anew: for comparing modules
    fingerprint  what XLA hashes to tell modules apart

    Unlike XLA, every style prints the numbers of large constants, unless --elide-constants is given.
    --option takes the names of XLA's HloPrintOptions.

    \b
    Examples:
      hlotext fmt --style short dump.txt | less
      hlotext fmt --check --diff expected/*.hlo
      hlotext fmt -i --option print_metadata=false --lossy golden.hlo
      echo 'y = f32[2]{0} negate(f32[2]{0} x)' | hlotext fmt --style short -

    With -i nothing is written unless every FILE could be read; packed files stay packed.

    Exit status: 0 fine, 1 a FILE is not in the style (--check), 2 wrong usage or unreadable input.
    """
    chosen = print_style(style, elide_constants, settings)
    if in_place and (check or show_diff):
        raise click.UsageError("-i writes, --check and --diff do not: give one of them")
    if in_place:
        _write(files, chosen, lossy)
    elif check or show_diff:
        _compare(files, chosen, check, show_diff)
    else:
        for place, result in read_each(files):
            echo(_formatted(place, result, chosen).new, end="")


def _formatted(place: str, result: hlo.ParseResult, style: PrintStyle) -> _File:
    source = result.module.source
    old = source.text if source is not None else ""
    losses = style.losses
    if style.options is not None:
        losses += _unprinted(old, result)
    return _File(place, old, style.text(result.modules), losses)


def _unprinted(text: str, result: hlo.ParseResult) -> list[str]:
    """What no style but `source` prints."""
    terminals = grammar.terminals()
    index = re.compile(r"/\*index=\d+\*/")
    tokens = re.finditer(f"{terminals['STRING']}|(?P<comment>{terminals['COMMENT']})", text)
    comments = any(token["comment"] and not index.fullmatch(token["comment"]) for token in tokens)
    behind = any(note.code == _TEXT_BEHIND for note in result.diagnostics)
    return ["comments"] * comments + ["the text behind the last module"] * behind


_TEXT_BEHIND = "X206"
"""Code of the note on such text."""


def _write(files: tuple[str, ...], style: PrintStyle, lossy: bool) -> None:
    if "-" in files:
        raise click.UsageError("- cannot be written in place")
    if style.losses and not lossy:
        raise click.UsageError(f"this style leaves out {_list(style.losses)}: -i needs --lossy")
    changed = total = 0
    with Rewriting() as rewriting:
        for file in _each(files, style):
            total += 1
            if file.changes and file.losses and not lossy:
                raise Unreadable(
                    f"{file.place} has {_list(file.losses)}, which this style leaves out: -i needs --lossy"
                )
            if file.changes:
                rewriting.put(file.place, file.new)
                changed += 1
        rewriting.commit()
    _say(f"{changed:,} of {total:,} files changed")


def _compare(files: tuple[str, ...], style: PrintStyle, check: bool, show_diff: bool) -> None:
    changed = total = 0
    for file in _each(files, style):
        total += 1
        if file.changes:
            changed += 1
            if check:
                warn(f"{file.place} would change")
            if show_diff:
                for line in _differences(file):
                    echo(line, end="")
    if check:
        _say(f"{changed:,} of {total:,} files would change")
        if changed:
            raise click.exceptions.Exit(WOULD_CHANGE)


def _each(files: tuple[str, ...], style: PrintStyle) -> Iterator[_File]:
    for place, result in read_each(files):
        yield _formatted(place, result, style)


def _differences(file: _File) -> Iterator[str]:
    """A unified diff, coloured on a terminal."""
    colours = (
        {"-": "red", "+": "green", "@": "cyan"}
        if sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        else {}
    )
    old, new = (text.splitlines(keepends=True) for text in (file.old, file.new))
    for line in difflib.unified_diff(old, new, file.place, file.place):
        text = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        yield click.style(text, fg=colours[text[0]]) if text[0] in colours else text


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _say(message: str) -> None:
    click.echo(f"hlotext: {message}", err=True)
