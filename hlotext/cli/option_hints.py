"""Answers to options that a command does not have, and to words without the option that they belong to."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence

import click

from hlotext.cli.command_line import noted_words, options_of, pasted, split
from hlotext.ir.spelling import did_you_mean, suggestion

_OTHER_NAMES = {
    "limit": "top head max count num n rows max-rows first most",
    "sort": "order order-by sort-by sortby",
    "columns": "fields select-columns cols",
    "chip": "device target arch hardware gpu tpu accelerator",
    "platform": "backend",
    "format": "output-format fmt f type",
    "output": "out outfile to-file output-file dest",
    "output-file": "output out outfile to-file dest",
    "o": "out outfile output dest",
    "instruction": "name op instr node opcode",
    "select": "rule rules code codes enable only",
    "ignore": "disable exclude skip",
    "pass": "passes p",
    "passes": "pass p",
    "fail-on": "threshold fail error-on max-allowed",
    "jobs": "workers threads processes parallel",
    "quiet": "silent no-notes",
    "version": "v V ver",
    "mesh": "axes topology",
    "trips": "trip-count iterations loops",
    "depth": "hops radius levels distance neighbors neighbours",
    "hops": "depth radius levels distance neighbors neighbours",
    "config": "conf configuration settings pyproject",
    "isolated": "no-config",
    "fix": "autofix apply-fixes",
    "in-place": "inplace write overwrite fix",
}
"""Names that other tools have for an option."""
_HABITS = (
    ("grep", "i ignore-case", "leave it out: opcodes and types are lowercase, and names are matched as written"),
    ("grep", "r R recursive", "leave it out: all modules of a DIR are searched"),
    ("grep", "n line-number", "leave it out: every match shows its line"),
    ("grep", "e regexp", "leave it out: PATTERN is the first argument"),
    ("grep", "E F P w x extended-regexp fixed-strings perl-regexp", "leave it out: a pattern is an op line with wildcards"),
    ("grep", "A B C context", "`hlotext show FILE -i NAME` shows operands and users"),
    ("grep", "v invert-match", "to exclude matches, use `hlotext sql`: select name from instructions where opcode <> 'dot'"),
    ("diff", "u U y unified side-by-side color-words word-diff", "leave it out: --full lists every changed operation"),
    ("diff", "q brief stat name-only exit-code", "leave it out: the exit status is 0 for equal modules and 1 for others"),
    ("diff", "r recursive w b ignore-all-space", "leave it out: folders are compared in full, and whitespace is ignored"),
    ("lint", "exclude extend-exclude include force-exclude", "leave it out: name the files and folders to lint"),
    ("lint", "explain list list-rules show-rules", "`hlotext help rule` lists the rules and explains each"),
    ("lint", "no-cache cache-dir watch preview unsafe-fixes show-fixes add-noqa", "leave it out: there is no such mode"),
)  # fmt: skip
"""Options that people bring from other tools, by command, and what to do instead."""
_PRINTING = frozenset({"o", "output", "out", "outfile", "output-file", "dest", "to-file"})
_MOST_COMMANDS = 6
_UNIT = re.compile(r"[kKMGTP]?i?[bB]?|[num]?s|%")
"""A unit of sizes, times or shares."""


def no_such_option(error: click.NoSuchOption) -> str:
    """Returns the message about an unknown option: a near name, commands that have it, or all options."""
    ctx = error.ctx
    plain = error.option_name.lstrip("-")
    said = f"no option {error.option_name}"
    if ctx is None:
        return said
    command = ctx.command
    if isinstance(command, click.Group) and plain in command.list_commands(ctx):
        return f"{said}; did you mean the command `{plain}`?"
    known = {spelling.lstrip("-"): spelling for option in command.get_params(ctx) for spelling in option.opts}
    for word in noted_words(ctx):  # `-format`, of which click reads the first letter
        name = word.lstrip("-").partition("=")[0]
        if (
            word.startswith(error.option_name)
            and not word.startswith("--")
            and known.get(name) == f"--{name}"
        ):
            return f"no option {word}; did you mean `--{name}`?"
    for name, options, instead in _HABITS:
        if ctx.info_name == name and plain in options.split():
            return f"{said}; {instead}"
    others = [spelling for name, spelling in known.items() if plain in _OTHER_NAMES.get(name, "").split()]
    if others:
        return f"{said}; did you mean `{max(others, key=len)}`?"
    if misplaced := _misplaced(error, ctx):
        return misplaced
    values = {  # that are given like options: --sarif, --by-scope
        word: f"{spelling} {value}"
        for option in command.get_params(ctx)
        for spelling in [max(option.opts, key=len)]
        for value in (option.type.choices if isinstance(option.type, click.Choice) else ())
        for word in (str(value), f"{spelling.lstrip('-')}-{value}")
    }
    long = {name: spelling for name, spelling in known.items() if len(name) > 1 and spelling.startswith("--")}
    near = did_you_mean(plain, [*values, *long]) if len(plain) > 1 else ""
    if not near:  # `--extend-ignore`, which has more words than the option
        within = [name for name in long if set(name.split("-")) < set(plain.split("-"))]
        near = suggestion(sorted(within, key=len)[-1:])
    if near:
        found = near.split("`")[1]
        return f"{said}; did you mean `{long.get(found) or values[found]}`?"
    if plain in _PRINTING and ctx.parent is not None and ctx.parent.parent is None:
        return f"{said}; the result goes to standard output: add `> FILE`"
    few = _elsewhere(error.option_name, ctx, _MOST_COMMANDS)
    return f"{said}{few or _own(list(long.values()), plain, ctx) or _elsewhere(error.option_name, ctx, None)}"


def _elsewhere(option: str, ctx: click.Context, most: int | None) -> str:
    """The commands that have an option; empty if there are more than `most`."""
    group = ctx.find_root().command
    if not isinstance(group, click.Group) or (most is not None and len(option) == len("-x")):
        return ""  # a letter means different things
    loaded = {name: group.get_command(ctx, name) for name in group.list_commands(ctx)}
    found = [
        f"`hlotext {name}`"
        for name, command in loaded.items()
        if command is not None and option in options_of(command)
    ]
    if not found or len(found) > (most or len(found)):
        return ""
    found = found if len(found) <= _MOST_COMMANDS else [*found[: _MOST_COMMANDS - 1], "others"]
    listed = " or ".join(filter(None, [", ".join(found[:-1]), found[-1]]))
    return f" here; {listed} {'has' if len(found) == 1 else 'have'} it"


def _own(options: Sequence[str], plain: str, ctx: click.Context) -> str:
    """The options that there are, of one letter those that begin with it; empty if they are many."""
    options = [one for one in options if one != "--help"]
    if len(plain) == 1:
        options = [one for one in options if one[2] == plain.lower()] or options
    listed = ", ".join(options)
    return f"; {ctx.command_path} has {listed}" if options and len(listed) <= _LONGEST else ""


_LONGEST = 100
"""Characters of a list of options that is worth reading."""


def _misplaced(error: click.NoSuchOption, ctx: click.Context) -> str:
    """The message about an option of `hlotext` behind the command, or one of a command before it; empty for others."""
    root, words, option = ctx.find_root(), noted_words(ctx), error.option_name
    if ctx is not root and option in options_of(root.command):
        at = next((n for n, word in enumerate(words) if word.partition("=")[0] == option), None)
        if at is not None:
            before = words[at : at + 1] if options_of(root.command)[option].is_flag else words[at : at + 2]
            rest = words[:at] + words[at + len(before) :]
            if option == "--version":
                before, rest = [option], []
            return f"{option} goes before the command: {pasted([*before, *rest])}"
    elif ctx is root and isinstance(root.command, click.Group):
        for word in words:
            command = root.command.get_command(ctx, word)
            if command is not None and option in options_of(command):
                at = next(n for n, one in enumerate(words) if one.partition("=")[0] == option)
                known = options_of(command)[option]
                end = at + (1 if known.is_flag or "=" in words[at] else 2)
                rest = [*words[:at], *words[end:], *words[at:end]]
                return f"{option} goes after the command: {pasted(rest)}"
    return ""


def with_option(ctx: click.Context | None, word: str, option: str) -> str:
    """Returns the command line with an option inserted before a word; empty if the word is not in it."""
    words = noted_words(ctx)
    if word not in words:
        return ""
    at = len(words) - 1 - words[::-1].index(word)
    return pasted([*words[:at], option, *words[at:]])


def missing_option(error: click.MissingParameter, option: click.Option) -> str:
    """Returns the message about a missing required option."""
    value = option.metavar or option.type.name.upper()
    said = f"missing option {' or '.join(option.opts)} {value}"
    ctx = error.ctx
    if ctx is None or "DIR" in value:
        return said
    words = noted_words(ctx)
    behind = words[words.index(ctx.info_name) + 1 :] if ctx.info_name in words else words
    given = split(ctx.command, behind).positional
    loose = [word for word in given if not os.path.lexists(word)]
    if len(loose) == 1 and len(given) > 1:
        return f"{said}; did you mean {with_option(ctx, loose[0], option.opts[0])}?"
    return said


def path_meant(ctx: click.Context | None, word: str) -> str:
    """Returns advice about a word given as a path that belongs to an option; empty if there is none."""
    if ctx is None or "/" in word or not word:
        return ""
    known = options_of(ctx.command)
    words = noted_words(ctx)
    parts = word.split(",")
    if len(parts) > 1 and all(map(os.path.lexists, parts)) and word in words:
        at = words.index(word)
        return f"paths are separated by spaces: {pasted([*words[:at], *parts, *words[at + 1 :]])}"
    behind = words[words.index(word) - 1] if word in words[1:] else ""
    before = words[words.index(word) - 2] if behind and words.index(word) > 1 else ""
    listed = known.get(before)
    if (
        listed is not None
        and not listed.is_flag
        and not behind.startswith("-")
        and not os.path.lexists(behind)
    ):
        if behind.isdecimal() and _UNIT.fullmatch(word) is not None:
            return f"write a number and its unit as one word: {before} {behind}{word}"
        return f"values are joined with commas: {before} {behind.rstrip(',')},{word}"
    for option in known.values():
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        if word in map(str, choices):
            return f"did you mean {with_option(ctx, word, max(option.opts, key=len))}?"
    names = importlib.import_module("hlotext.cli.help_names")  # loads all tables
    kinds = names.kinds_of(word.partition("{")[0].partition(",")[0])
    for kind, spelling in (("pass", "-p"), ("pass", "--pass"), ("rule", "--select"), ("chip", "--chip")):
        if kind in kinds and spelling in known:
            return f"did you mean {with_option(ctx, word, spelling)}?"
    if "-i" in known and not known["-i"].is_flag and _NAME.fullmatch(word) is not None:
        return f"to show an instruction, use {with_option(ctx, word, '-i')}"
    if _NAME.fullmatch(word) is not None and (word.startswith("%") or _NUMBERED.search(word) is not None):
        return "instructions are shown by `hlotext show FILE -i NAME`"
    return ""


_NAME = re.compile(r"%?[A-Za-z_][\w\-]*(?:\.\d+)*")
_NUMBERED = re.compile(r"\.\d+\Z")
