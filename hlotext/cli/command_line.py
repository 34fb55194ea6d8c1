"""The words of a command line before click reads them, and what click would accept although it is a slip.

An option that is given twice, `-output` for `--output`, standard input read twice, and output that would replace the
input are refused before anything is read.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

import attrs
import click

_WORDS = __name__
"""Key of a context's words in its root's `meta`."""
_OTHER_PICTURES = frozenset({".png", ".pdf", ".jpg", ".jpeg", ".gif", ".html"})
_OUTPUTS = frozenset({"--output", "--output-file", "--svg", "--write-baseline", "--write-golden"})
"""Options whose value is a file to write."""


@attrs.define
class CommandLine:
    """The words of a command: options with values, and positional words."""

    options: list[tuple[click.Option, str, str]] = attrs.field(factory=list)
    """Each option as it is given: the parameter, its spelling, and its value, empty for a flag."""
    positional: list[str] = attrs.field(factory=list)


def note_words(ctx: click.Context, words: Sequence[str]) -> None:
    """Stores the words of the command line for error messages."""
    ctx.find_root().meta[_WORDS] = list(words)


def noted_words(ctx: click.Context | None) -> list[str]:
    """Returns the words of the command line; empty if there is no context."""
    found: list[str] = [] if ctx is None else ctx.find_root().meta.get(_WORDS, [])
    return found


def pasted(words: Sequence[str]) -> str:
    """Returns a command line of `hlotext` in backquotes, quoted for a shell."""
    return f"`hlotext {shlex.join(words)}`"


def split(command: click.Command, words: Sequence[str]) -> CommandLine:
    """Splits the words of a command before `--` into options and others; unknown options are left out."""
    known = options_of(command)
    found = CommandLine()
    waiting: tuple[click.Option, str] | None = None
    for word in words:
        if word == "--":
            break
        if waiting is not None:
            found.options.append((*waiting, word))
            waiting = None
            continue
        if not word.startswith("-") or word == "-":
            found.positional.append(word)
            continue
        name, equals, value = word.partition("=")
        if not word.startswith("--"):
            name, value = word[:2], word[2:]
        option = known.get(name)
        if option is None:
            continue
        if option.is_flag or option.count or value or equals:
            found.options.append((option, name, value))
        else:
            waiting = option, name
    return found


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Returns the options of a command by their spellings."""
    return {
        spelling: option for option in command.params if isinstance(option, click.Option) for spelling in option.opts
    }  # fmt: skip


def refuse_slips(ctx: click.Context, command: click.Command, words: Sequence[str]) -> None:
    """Raises UsageError for mistakes in a command line that click would accept."""
    is_mixed = bool(command.context_settings.get("ignore_unknown_options"))
    if is_mixed and "--" not in words:
        return  # where another program's command begins is not known
    known = options_of(command)
    given = split(command, words)
    if is_mixed:
        _refuse_unknown(ctx, known, words[: words.index("--")], given)
    values = {value for _, _, value in given.options}
    for word in words[: words.index("--")] if "--" in words else words:
        long = f"-{word.partition('=')[0]}"
        if not word.startswith("--") and len(long) > 3 and long in known and word not in values:
            ctx.fail(f"no option {word}; did you mean `-{word}`?")
    once: dict[click.Option, tuple[str, str]] = {}
    for option, spelling, value in given.options:
        before = once.setdefault(option, (spelling, value))
        if not option.multiple and not option.is_flag and option.nargs == 1 and before[1] != value:
            joined = ",..." in (option.metavar or "") or (option.metavar or "") in (
                "PASSES",
                "CODES",
                "NAMES",
            )
            what = f"join them: {spelling} {before[1]},{value}" if joined else "give one of them"
            ctx.fail(f"{spelling} is given twice, {before[1]} and {value}; {what}")
        if not _OUTPUTS.isdisjoint(option.opts) and value and "DIR" not in (option.metavar or ""):
            _refuse_output(ctx, spelling, value, given.positional)
    if given.positional.count("-") > 1:
        ctx.fail("standard input (-) can be read only once; save it to a file to use it twice")


def _refuse_unknown(
    ctx: click.Context, known: Mapping[str, click.Option], words: Sequence[str], given: CommandLine
) -> None:
    """Refuses options before `--` that click would hand on to the other program. Raises NoSuchOption."""
    values = {value for _, _, value in given.options}
    for word in words:
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if word.startswith("-") and word != "-" and name not in known and word not in values:
            raise click.NoSuchOption(name, ctx=ctx)


def _refuse_output(ctx: click.Context, option: str, path: str, inputs: Sequence[str]) -> None:
    """Refuses a file that cannot be written, or that is read. Raises UsageError."""
    folder = os.path.dirname(path) or "."
    if path == "-":
        return
    ending = os.path.splitext(path)[1].lower()
    if option == "--svg" and ending in _OTHER_PICTURES:
        ctx.fail(f"--svg {path}: the picture is SVG; name it {os.path.splitext(path)[0]}.svg")
    if os.path.isdir(path):
        ctx.fail(f"{option}: {path} is a folder; name a file in it")
    if not os.path.isdir(folder):
        ctx.fail(
            f"{path}: cannot write: there is no folder {folder}; `mkdir -p {shlex.quote(folder)}` creates it"
        )
    if not os.access(folder, os.W_OK):
        ctx.fail(f"{path}: cannot write: Permission denied in the folder {folder}")
    refuse_overwriting(option, path, inputs)


def refuse_overwriting(option: str, path: str, inputs: Sequence[str]) -> None:
    """Refuses a file to write that is read. Raises UsageError."""
    for one in inputs:
        if os.path.isfile(one) and os.path.exists(path) and os.path.samefile(one, path):
            raise click.UsageError(f"{option} {path} would overwrite the input; name another file")
