"""`hlotext fmt`: prints modules in another style."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

import hlotext as hlo
from hlotext.analysis.formatting import pluralize
from hlotext.cli import line_diff
from hlotext.cli.common import FILES, Inputs, Unreadable, say
from hlotext.cli.files import Rewriting
from hlotext.cli.output import emit
from hlotext.cli.print_style import STYLES, PrintStyle, print_style
from hlotext.syntax.language import grammar

WOULD_CHANGE = 1
"""Exit status of `--check` where a file is not in the style."""


@click.command()
@FILES
@click.option(
    "--style",
    type=click.Choice(list(STYLES)),
    default="default",
    show_default=True,
    help="Print style of XLA, or source: the text unchanged.",
)
@click.option(
    "--option", "settings", metavar="NAME=VALUE", multiple=True, help="Set one print option of XLA."
)
@click.option("--elide-constants", is_flag=True, help="Print constants of more than 10 elements as {...}.")
@click.option(
    "--reread", is_flag=True, help="Print FILE as XLA does after parsing it, with its order and names."
)
@click.option(
    "--age", metavar="RELEASE|DATE", help="With --reread: release of XLA, such as 0.10.2.  [default: newest]"
)
@click.option(
    "--annotate", is_flag=True, help="Print the text with line, bytes and executions after each op line."
)
@click.option("-i", "--in-place", is_flag=True, help="Write each FILE in place.")
@click.option("--lossy", is_flag=True, help="Allow -i with a style that drops information.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a FILE differs from this style.")
@click.option("--diff", "show_diff", is_flag=True, help="Print a diff instead of the text.")
def command(
    files: tuple[str, ...],
    style: str,
    settings: tuple[str, ...],
    elide_constants: bool,
    reread: bool,
    age: str | None,
    annotate: bool,
    in_place: bool,
    lossy: bool,
    check: bool,
    show_diff: bool,
) -> None:
    """Print each FILE in one of XLA's styles.

    \b
    source       unchanged, byte for byte
    default      what XLA writes into dumps
    short        no metadata, no control dependencies, no percent signs
    canonical    normalized names, for comparing modules
    fingerprint  the text that XLA hashes to identify modules

    Unlike XLA, every style prints large constants in full, unless --elide-constants is given. Elements of tuples are
    printed as in the text, as p#0 or on separate lines. --option takes names of XLA's HloPrintOptions. With --reread,
    computations and instructions are in the order in which XLA's tools print them, and renamed as these tools do, so
    that a diff against such a tool shows only its changes.

    \b
    Examples:
      hlotext fmt --style short dump.txt | less
      hlotext fmt --check --diff expected/*.hlo
      hlotext fmt --annotate -i dump.txt
      hlotext fmt --reread dump.txt | diff - <(hlo-opt --passes=dce dump.txt)
      hlotext fmt -i --option print_metadata=false --lossy golden.hlo
      echo 'y = f32[2]{0} negate(f32[2]{0} x)' | hlotext fmt --style short -

    --annotate writes comments that XLA and hlotext ignore, //@ train.py:12 mlp, 4.0 MiB, x48,
    and replaces existing ones.

    With -i, nothing is written unless every FILE can be read; packed files stay packed.

    Exit status: 0 success, 1 a FILE is not in the style (--check), 2 usage error or unreadable input.
    """
    chosen = print_style(style, elide_constants, settings, is_reread=reread, age=age)
    if annotate:
        if style != "default" or settings or elide_constants or reread:
            raise click.UsageError("--annotate keeps the text unchanged and cannot be combined with --style")
        chosen = chosen.annotating()
    if in_place and (check or show_diff):
        raise click.UsageError("-i cannot be combined with --check or --diff")
    if in_place:
        _write(files, chosen, lossy, annotate)
    elif check or show_diff:
        _compare(files, chosen, check, show_diff)
    else:
        inputs = Inputs(files)
        for _, result in inputs:
            emit(chosen.text(result.modules))
        inputs.finish()


def _write(files: tuple[str, ...], style: PrintStyle, lossy: bool, annotate: bool) -> None:
    """Writes the files in place: all of them, or none where one cannot be read, or would lose something."""
    if "-" in files:
        raise click.UsageError("standard input cannot be written in place")
    if style.losses and not lossy:
        raise click.UsageError(f"this style drops {_list(style.losses)}: -i needs --lossy")
    inputs, changed, total = Inputs(files, which="all"), 0, 0
    inputs.refuse_packed()
    with Rewriting() as rewriting:
        for place, result in inputs:
            total += 1
            old, new = _text(result), style.text(result.modules)
            if old == new:
                continue
            if not lossy and not annotate and (losses := _unprinted(old, result)):
                raise Unreadable(f"{place} has {_list(losses)}, which this style drops: -i needs --lossy")
            rewriting.put(place, new)
            changed += 1
        inputs.finish()
        rewriting.commit()
    say(f"{changed:,} of {pluralize(total, 'file')} changed")


def _unprinted(text: str, result: hlo.ParseResult) -> list[str]:
    """Features of a text that only the style `source` prints."""
    terminals = grammar.terminals()
    index = re.compile(r"/\*index=\d+\*/")
    tokens = re.finditer(f"{terminals['STRING']}|(?P<comment>{terminals['COMMENT']})", text)
    comments = any(token["comment"] and not index.fullmatch(token["comment"]) for token in tokens)
    behind = any(note.code == _TEXT_BEHIND for note in result.diagnostics)
    return ["comments"] * comments + ["text after the last module"] * behind


_TEXT_BEHIND = "X206"
"""Code of the note on such text."""


def _compare(files: tuple[str, ...], style: PrintStyle, check: bool, show_diff: bool) -> None:
    """Says which files would change, and how; with `check` that is the exit status."""
    inputs, changed, total = Inputs(files, which="all"), 0, 0
    for place, result in inputs:
        total += 1
        old, new = _text(result), style.text(result.modules)
        if old == new:
            continue
        changed += 1
        if check:
            say(f"{place} would change")
        if show_diff:
            for line in _differences(place, old, new):
                emit(line, _COLOURS.get(line[0]))
    inputs.finish()
    if check:
        say(f"{changed:,} of {pluralize(total, 'file')} would change")
        if changed:
            raise click.exceptions.Exit(WOULD_CHANGE)


def _text(result: hlo.ParseResult) -> str:
    source = result.module.source
    return source.text if source is not None else ""


_COLOURS = {"-": "red", "+": "green", "@": "cyan"}


def _differences(place: str, old: str, new: str) -> Iterator[str]:
    """A unified diff."""
    for line in line_diff.unified(_lines(old), _lines(new), place):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _list(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
