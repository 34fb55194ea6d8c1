"""Messages about a mistaken command line: one sentence, with the nearest name where there is one."""

from __future__ import annotations

import importlib
import os
import re
import stat
from contextlib import suppress
from typing import Any

import click

from hlotext.cli.command_line import noted_words, split
from hlotext.cli.option_hints import missing_option, no_such_option
from hlotext.ir.spelling import did_you_mean, suggestion

_OTHER_WORDS = {"cuda": "gpu", "rocm": "gpu", "nvidia": "gpu", "amd": "gpu", "host": "cpu"}
"""Other names of platforms."""
_QUOTED = re.compile(r"'(.*)' is not one of")
_INVALID = re.compile(r"^Invalid value for '?([^':]+)'?: ")
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)$")
_NO_PATH = re.compile(r"(File|Directory|Path) '(.*)' (does not exist|is a (?:file|directory)\b.*)")
_NUMBER = re.compile(r"'?([^' ]+)'? is not (?:a valid|in the range)")


def named_elsewhere(word: str) -> str:
    """Returns a suggestion for a name of another kind than requested; empty for an unknown word."""
    names = importlib.import_module("hlotext.cli.help_names")  # loads all tables
    told: str = names.meant(word) if names.kinds_of(word) else ""
    return told


def is_instruction_name(word: str) -> bool:
    """True if a word is not a file, but may be an instruction: `all-reduce.5`."""
    return not os.path.lexists(word) and re.fullmatch(r"%?[a-z][\w\-]*(?:\.\d+)+", word) is not None


def missing_argument(name: str) -> click.UsageError:
    """Returns the error for a missing argument that only some options make unnecessary."""
    is_piped = "FILE" in name and not name.startswith("-") and _is_piped()
    return click.UsageError(f"missing argument {name}" + (" (- for standard input)" if is_piped else ""))


def _is_piped() -> bool:
    """True if something is piped or redirected into standard input."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def usage_message(error: click.UsageError) -> str:
    """Returns the message of a usage error in one line, without the hint at the help."""
    if isinstance(error, click.NoSuchOption):
        return no_such_option(error)
    if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
        return _no_command(error)
    if isinstance(error, click.BadOptionUsage) and error.message.endswith("requires an argument."):
        return f"{error.option_name} needs a value"
    if isinstance(error, click.BadOptionUsage) and error.message.endswith("does not take a value."):
        return f"{error.option_name} is a switch and takes no value"
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Option):
        return missing_option(error, error.param)
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Argument):
        return _misplaced(error) or _behind(error) or missing_argument(_argument(error.param)).message
    if isinstance(error, click.BadParameter) and error.param is not None:
        return _bad_value(error, error.param) or _plain(error)
    return _plain(error)


def _argument(param: click.Parameter) -> str:
    return param.metavar or param.human_readable_name.upper()


def _misplaced(error: click.MissingParameter) -> str:
    """The message for a path that stands where another argument belongs, which is the one that is missing."""
    for one in error.ctx.command.params if error.ctx is not None else ():
        value = error.ctx.params.get(one.name or "") if error.ctx is not None else None
        if not isinstance(one, click.Argument) or isinstance(value, tuple | None) or "FILE" in _argument(one):
            continue
        if os.path.exists(str(value)):
            return f"missing argument {_argument(one)} before {value}"
    return ""


def _behind(error: click.MissingParameter) -> str:
    """The message about words behind `--` alone, of which click takes the first for another argument."""
    words = noted_words(error.ctx)
    first = (
        next((one for one in error.ctx.command.params if isinstance(one, click.Argument)), None)
        if error.ctx
        else None
    )
    if error.ctx is None or "--" not in words or first is None or first.nargs != 1 or words[-1] == "--":
        return ""
    before = split(error.ctx.command, words[1:]).positional
    return "" if before else f"missing argument {_argument(first)} before --"


def _plain(error: click.UsageError) -> str:
    message = _INVALID.sub(r"\1: ", " ".join(error.format_message().split()))
    extra = _EXTRA.match(message)
    if extra is None:
        return message
    takes = "" if error.ctx is None else " ".join(error.ctx.command.collect_usage_pieces(error.ctx)[1:])
    if not takes and error.ctx is not None:
        return f"{error.ctx.command_path} takes no arguments: leave out {extra[1]}"
    return f"too many arguments: {extra[1]}" + (f"; expected {takes}" if takes else "")


def _no_command(error: click.UsageError) -> str:
    group = error.ctx.command if error.ctx is not None else None
    if error.ctx is None or not isinstance(group, click.Group):
        return "missing arguments"
    return f"{error.ctx.info_name} needs a command: {', '.join(group.list_commands(error.ctx))}"


def _bad_value(error: click.BadParameter, param: click.Parameter) -> str:
    """The message about a value that is none of a choice, or no number in a range; empty for others."""
    name = max(param.opts, key=len) if isinstance(param, click.Option) else _argument(param).strip("[]")
    kind = param.type
    if (match := _NO_PATH.search(error.message)) is not None:
        what = match[3].removesuffix(".").replace("directory", "folder")
        wanted = {"is a file": "; name a folder", "is a folder": "; name a file in it"}.get(what, "")
        return f"{name}: {match[2]} {what}{wanted}"
    if isinstance(kind, click.Choice) and (match := _QUOTED.match(error.message)) is not None:
        known = list(map(str, kind.choices))
        longer = [name for name in known if match[1] and name.startswith(match[1])]
        word = _OTHER_WORDS.get(match[1].lower(), match[1])
        meant = (
            suggestion([word])
            if word in known
            else did_you_mean(longer[0] if len(longer) == 1 else word, known)
        )
        takes_chips = "--chip" in {option for one in _options(error) for option in one.opts}
        if not meant and takes_chips and _is_chip(match[1]):
            meant = "chips are set with --chip"
        return f"{name} takes {_listed(known)}, not {match[1]!r}" + (f"; {meant}" if meant else "")
    is_number = isinstance(kind, click.types.IntParamType | click.types.FloatParamType)
    if is_number and (match := _NUMBER.match(error.message)) is not None:
        what = "a number" if isinstance(kind, click.types.FloatParamType) else "an integer"
        return f"{name} takes {what}{_range(kind)}, not {_typed(match[1], error.ctx)}"
    return ""


def _typed(number: str, ctx: click.Context | None) -> str:
    """A number as it was typed, which click has converted."""
    for word in noted_words(ctx):
        for part in (word, word.partition("=")[2]):
            with suppress(ValueError):
                if float(part) == float(number):
                    return part
    return number


def _is_chip(word: str) -> bool:
    try:
        return importlib.import_module("hlotext.analysis.chips").chip(word) is not None
    except ValueError:
        return False


def _options(error: click.UsageError) -> list[click.Parameter]:
    """The options of the command that an error is about."""
    return [] if error.ctx is None else error.ctx.command.get_params(error.ctx)


def _listed(names: list[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _range(kind: click.ParamType[Any]) -> str:
    """The bounds of a number's type, in words."""
    least, most = getattr(kind, "min", None), getattr(kind, "max", None)
    if least is not None and most is None and getattr(kind, "min_open", False):
        return f" above {least}"
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" of at least {least}"
    return f" of at most {most}" if most is not None else ""
