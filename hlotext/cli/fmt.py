"""`hlotext fmt`: prints modules in another style."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

import hlotext as hlo
from hlotext.analysis.quantities import counted
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
    help="One of XLA's print styles, or source: the text as it stands.",
)
@click.option(
    "--option", "settings", metavar="NAME=VALUE", multiple=True, help="One print option of XLA's, on top."
)
@click.option("--elide-constants", is_flag=True, help="Print constants of more than 10 elements as {...}.")
@click.option(
    "--reread", is_flag=True, help="Print what XLA prints after reading FILE: its order, its names."
)
@click.option("--age", metavar="RELEASE|DATE", help="With --reread: which XLA, as 0.10.2; else the newest.")
@click.option(
    "--annotate", is_flag=True, help="The text as it stands, with line, bytes and runs behind each op line."
)
@click.option("-i", "--in-place", is_flag=True, help="Write each FILE instead of standard output.")
@click.option("--lossy", is_flag=True, help="Allow -i with a style that leaves something out.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a FILE is not in this style.")
@click.option("--diff", "show_diff", is_flag=True, help="Write the differences instead of the text.")
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
    source       as it stands, byte for byte
    default      what XLA writes into dumps
    short        no metadata, no control dependencies, no percent signs
    canonical    names made up anew: for comparing modules
    fingerprint  what XLA hashes to tell modules apart

    Unlike XLA, every style prints the numbers of large constants, unless --elide-constants is given. Elements of
    tuples are written as the text writes them, behind the tuple's name (p#0) or in lines of their own.
    --option takes the names of XLA's HloPrintOptions. With --reread computations
    and instructions come in the order in which XLA's tools print them, renamed
    where they rename, so that a diff against such a tool shows what it did.

    \b
    Examples:
      hlotext fmt --style short dump.txt | less
      hlotext fmt --check --diff expected/*.hlo
      hlotext fmt --annotate -i dump.txt
      hlotext fmt --reread dump.txt | diff - <(hlo-opt --passes=dce dump.txt)
      hlotext fmt -i --option print_metadata=false --lossy golden.hlo
      echo 'y = f32[2]{0} negate(f32[2]{0} x)' | hlotext fmt --style short -

    --annotate writes comments that XLA and hlotext read over, //@ train.py:12 mlp, 4.0 MiB, x48,
    and replaces those that are there.

    With -i nothing is written unless every FILE could be read; packed files stay packed.

    Exit status: 0 fine, 1 a FILE is not in the style (--check), 2 wrong usage or unreadable input.
    """
    chosen = print_style(style, elide_constants, settings, is_reread=reread, age=age)
    if annotate:
        if style != "default" or settings or elide_constants or reread:
            raise click.UsageError("--annotate keeps the text as it stands: no style goes with it")
        chosen = chosen.annotating()
    if in_place and (check or show_diff):
        raise click.UsageError("-i writes, --check and --diff do not: give one of them")
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
        raise click.UsageError("- cannot be written in place")
    if style.losses and not lossy:
        raise click.UsageError(f"this style leaves out {_list(style.losses)}: -i needs --lossy")
    inputs, changed, total = Inputs(files, which="all"), 0, 0
    inputs.refuse_packed()
    with Rewriting() as rewriting:
        for place, result in inputs:
            total += 1
            old, new = _text(result), style.text(result.modules)
            if old == new:
                continue
            if not lossy and not annotate and (losses := _unprinted(old, result)):
                raise Unreadable(
                    f"{place} has {_list(losses)}, which this style leaves out: -i needs --lossy"
                )
            rewriting.put(place, new)
            changed += 1
        inputs.finish()
        rewriting.commit()
    say(f"{changed:,} of {counted(total, 'file')} changed")


def _unprinted(text: str, result: hlo.ParseResult) -> list[str]:
    """What is in a text that no style but `source` prints."""
    terminals = grammar.terminals()
    index = re.compile(r"/\*index=\d+\*/")
    tokens = re.finditer(f"{terminals['STRING']}|(?P<comment>{terminals['COMMENT']})", text)
    comments = any(token["comment"] and not index.fullmatch(token["comment"]) for token in tokens)
    behind = any(note.code == _TEXT_BEHIND for note in result.diagnostics)
    return ["comments"] * comments + ["text behind the last module"] * behind


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
        say(f"{changed:,} of {counted(total, 'file')} would change")
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
