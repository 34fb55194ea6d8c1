"""The command `hlotext`. Each subcommand is a module of this package, imported on demand."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from hlotext import __version__
from hlotext.cli.command_line import note_words, pasted, refuse_slips
from hlotext.cli.usage import usage_message
from hlotext.findings import escape
from hlotext.ir import gc_control
from hlotext.ir.spelling import did_you_mean, nearest, suggestion
from hlotext.schemas.command_table import COMMANDS, FORMER, GROUPS, OTHER_NAMES, QUESTIONS, current
from hlotext.syntax.source import inputs

__all__ = [
    "COMMANDS",
    "DEBUG_VARIABLE",
    "FORMER",
    "GROUPS",
    "UNREADABLE",
    "CommandGroup",
    "current",
    "main",
]

DEBUG_VARIABLE = "HLOTEXT_DEBUG"
"""Set to anything but nothing, a failure of hlotext itself shows its traceback."""

UNREADABLE = 2
"""Exit status for wrong usage, unreadable input, and a failure of hlotext itself."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_UNWRITABLE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG)


class CommandGroup(click.Group):
    """A click group that suggests the nearest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolves the command; fails with a suggestion if it is unknown."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(self.unknown(ctx, word, args[1:]))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing and not isinstance(command, click.Group):
            refuse_slips(click.Context(command, info_name=name, parent=ctx), command, rest)
        return name, command, rest

    def unknown(self, ctx: click.Context, word: str, rest: Sequence[str] = ()) -> str:
        """Returns the message about a word that is not a command; `rest` are the words after it."""
        meant = did_you_mean(word, self.list_commands(ctx))
        if not meant and word in COMMANDS:  # `dump show DIR`
            meant = f"did you mean {pasted([word, *rest])}?"
        return f"no command {word!r}; {meant or 'there are ' + ', '.join(self.list_commands(ctx))}"


_TRACE = "`hlotext convert FILE --to trace-events`"


class _Commands(CommandGroup):
    """Loads commands by name; turns every failure into one line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with gc_control.gc_paused(collect_first=False):  # what is imported stays
            command: click.Command = importlib.import_module(f"hlotext.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            len(args) > 1 and args[0] == "explain" and not os.path.exists(args[1])
        ):  # of a pass; also of what has a name
            help_names = importlib.import_module("hlotext.cli.help_names")
            if help_names.has_page(args[1]):
                ctx.fail(f"no command 'explain'; {help_names.meant(args[1])}")
        if args[1:2] == ["help"] and args[0] in COMMANDS and args[0] != "help" and not os.path.exists("help"):
            ctx.fail(f"help does not exist; did you mean {pasted(['help', *(args[2:3] or args[:1])])}?")
        return super().resolve_command(ctx, current(args))

    def unknown(self, ctx: click.Context, word: str, rest: Sequence[str] = ()) -> str:
        if os.path.exists(word):
            meant = next((one for one in rest if one in COMMANDS), "show")
            return f"{word} is a {'folder' if os.path.isdir(word) else 'file'}; did you mean `hlotext {meant} {word}`?"
        inner = {
            name: f"{group} {name}"
            for group in ("dump", "help")
            if isinstance(found := self.get_command(ctx, group), click.Group)
            for name in found.list_commands(ctx)
        }
        former = {name: " ".join(words) for name, words in FORMER.items()}
        known = {**inner, **former, **{name: name for name in COMMANDS}}
        if word in known:
            more = f", or {_TRACE} for a trace of the schedule" if word == "trace" else ""
            return f"no command {word!r}; did you mean `hlotext {known[word]}`{more}?"
        if other := OTHER_NAMES.get(word):
            return f"no command {word!r}; did you mean `hlotext {other}`?"
        help_names = importlib.import_module("hlotext.cli.help_names")  # loads all tables
        if help_names.has_page(word):
            return f"no command {word!r}; {help_names.meant(word)}"
        meant = did_you_mean(word, known)
        for name in filter(None, [meant.partition("`")[2].partition("`")[0]]):
            return f"no command {word!r}; did you mean `{known[name]}`?"
        if f"--{word}" in {option for one in self.params for option in one.opts}:
            return f"no command {word!r}; did you mean `hlotext --{word}`?"
        return f"no command {word!r}; hlotext --help lists all"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # From the table: click's own would load every command for its line of help.
        names = [CompletionItem(n, help=text) for n, text in COMMANDS.items() if n.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Commands by group from the table: click's own list would load every command for its line of help.
        formatter.write_paragraph()
        wide = max(map(len, COMMANDS)) + 2
        for title, names in GROUPS.items():
            for number, (name, text) in enumerate(names.items()):
                formatter.write(f"{'' if number else title:<9}{name:<{wide}}{text}\n")
        formatter.write("\n")
        records = (one.get_help_record(ctx) for one in self.get_params(ctx))
        for number, (name, text) in enumerate(filter(None, records)):
            formatter.write(f"{'' if number else 'Options':<9}{name:<19}{text}\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "json" in " ".join(args):
            from hlotext.cli.json_output import note_format

            note_format(ctx, current(args))
        note_words(ctx, args)
        own = args[: args.index("--")] if "--" in args else args  # behind it stands another program's command
        for place, word in enumerate(own):
            # XLA's flags, of which a build may set none.
            may_be_empty = "--flags" in own[max(0, place - 2) : place]
            if (not word and not may_be_empty) or (word.startswith("--") and word.endswith("=")):
                what = f"{word[:-1]} needs a value" if word else "an argument is empty"
                ctx.fail(f"{what}; is a shell variable unset?")
            if word in ("-help", "-version"):
                ctx.fail(f"no option {word}; did you mean `-{word}`?")
        for word in own[:1]:
            if word.startswith("-") and word[1:] in COMMANDS:  # click would read its letters as options
                ctx.fail(f"no option {word}; did you mean the command `{word[1:]}`?")
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """As click's own, but what its messages quote from the command line does not act in a terminal."""
        main: Callable[..., Any] = super().main
        if not kwargs.pop("standalone_mode", True):
            return main(*args, standalone_mode=False, **kwargs)
        try:
            status = main(*args, standalone_mode=False, **kwargs)
        except click.ClickException as error:
            said = io.StringIO()
            if isinstance(error, click.UsageError):
                said.write(_usage_text(error))
            else:
                error.show(said)
            click.echo(escape.lines(said.getvalue()), err=True, nl=False)
            status = error.exit_code
        except click.Abort:
            click.echo("Aborted!", err=True)
            status = 1
        except BrokenPipeError:  # of --help and --version, which are printed while options are read
            _give_up_output()
            status = _BROKEN_PIPE
        except OSError as error:
            if error.errno not in _UNWRITABLE or error.filename is not None:
                raise
            status = _unwritable(error)
        sys.exit(status if isinstance(status, int) else 0)

    def _invoke(self, ctx: click.Context) -> Any:
        """Runs the command; output that waits for its columns is printed however the command ends."""
        failure: BaseException | None = None
        try:
            return super().invoke(ctx)
        except BaseException as error:
            failure = error
            raise
        finally:
            if (options := sys.modules.get("hlotext.cli.table_options")) is not None:
                with ctx:
                    options.asked().finish(failure is None or isinstance(failure, click.exceptions.Exit))

    def invoke(self, ctx: click.Context) -> Any:
        if sys.stdout is None:
            click.echo("hlotext: standard output is closed", err=True)
            ctx.exit(UNREADABLE)
        _say_unknown_variables()
        try:
            if sys.stdout.isatty() and not ctx.params.get("no_pager"):
                from hlotext.cli.pager import paged

                with paged():
                    result = self._invoke(ctx)
            else:
                result = self._invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:
            # The reader has closed the pipe: the remaining output is discarded.
            _give_up_output()
            ctx.exit(_BROKEN_PIPE)
        except MemoryError:
            click.echo("hlotext: out of memory", err=True)
            ctx.exit(UNREADABLE)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and error.filename is None and not _has_folder():
                _refuse(
                    ctx,
                    error,
                    "the current folder no longer exists; change to one that does, for example with `cd ~`",
                )
            if isinstance(error, PermissionError) and error.filename is not None:
                _refuse(ctx, error, f"{error.filename} cannot be read: {error.strerror}")
            if error.errno not in _UNWRITABLE or error.filename is not None:
                _internal(ctx, error)
            ctx.exit(_unwritable(error))
        except click.exceptions.Exit as ending:
            if ending.exit_code:
                _write_failure(ctx)
            raise
        except click.ClickException as error:
            if isinstance(error, click.UsageError) and error.ctx is None and ctx.invoked_subcommand:
                # What the parser of a command refuses knows nothing of the command.
                error.ctx = click.Context(self, parent=ctx, info_name=ctx.invoked_subcommand)
            _write_failure(ctx, error)
            raise
        except click.Abort:
            raise
        except Exception as error:
            if isinstance(error, ImportError) and "pip install 'hlotext[" in str(error):  # a missing extra
                _refuse(ctx, error, str(error))
            _internal(ctx, error)
        return result


_PREFIX = "HLOTEXT_"
_VARIABLES = (DEBUG_VARIABLE, inputs.LIMIT_VARIABLE, "HLOTEXT_FOLLOW_LINKS", gc_control.VARIABLE)


def _say_unknown_variables() -> None:
    """Says which variables of the environment look like settings of hlotext, and are none."""
    pauses = os.environ.get(gc_control.VARIABLE, "")
    if pauses not in ("", gc_control.UNTOUCHED):
        click.echo(
            f"hlotext: {gc_control.VARIABLE} has one value, {gc_control.UNTOUCHED}, not {escape.line(pauses)}",
            err=True,
        )
    for name in sorted(os.environ):
        if name.startswith(_PREFIX) and name not in _VARIABLES:
            near = nearest(name.removeprefix(_PREFIX), [one.removeprefix(_PREFIX) for one in _VARIABLES])
            meant = suggestion(f"{_PREFIX}{one}" for one in near)
            if meant:
                click.echo(
                    f"hlotext: {escape.line(name)} is not an environment variable of hlotext; {meant}",
                    err=True,
                )


def _has_folder() -> bool:
    """False if the current folder was removed."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _usage_text(error: click.UsageError) -> str:
    """The error of a command line and the way to its help, in two lines."""
    place = error.ctx.command_path if error.ctx is not None else "hlotext"
    return f"hlotext: {usage_message(error)}\nTry '{place} --help'.\n"


def _unwritable(error: OSError) -> int:
    """Says that standard output cannot be written; gives the exit status."""
    _give_up_output()
    click.echo(f"hlotext: standard output: cannot write: {error.strerror}", err=True)
    return UNREADABLE


def _give_up_output() -> None:
    """Discards the remaining output silently."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal(ctx: click.Context, error: Exception) -> NoReturn:
    """Says that hlotext itself has failed."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    said = " ".join(f"{type(error).__name__}: {error}".split())
    _refuse(ctx, error, f"internal error: {said} ({DEBUG_VARIABLE}=1 shows where)")


def _refuse(ctx: click.Context, error: Exception, message: str) -> NoReturn:
    """Says in a line why the command ends without a result."""
    click.echo(f"hlotext: {escape.line(message)}", err=True)
    _write_failure(ctx, error)
    ctx.exit(UNREADABLE)


def _write_failure(ctx: click.Context, error: Exception | None = None) -> None:
    """The document of a command that could not write its own, where JSON is asked for."""
    from hlotext.cli import json_output

    with ctx:
        if isinstance(error, click.UsageError):
            json_output.note_error("usage", usage_message(error))
        elif isinstance(error, click.ClickException):
            # Said here and not when it is shown, which is after the document.
            kind = "unreadable" if error.exit_code == UNREADABLE else "not-found"
            json_output.note_error(kind, error.message, getattr(error, "where", None))
        elif error is not None:
            json_output.note_error("internal", f"{type(error).__name__}: {error}")
        json_output.write_failure(ctx)


@click.command(
    cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option("--no-pager", is_flag=True, help="Do not page long output.")
@click.option("--max-source", metavar="SIZE", help="Maximum size of an unpacked input  [default: 4G].")
@click.option("--follow-links", is_flag=True, help="Follow symbolic links that lead out of a folder.")
@click.pass_context
def main(ctx: click.Context, no_pager: bool, max_source: str | None, follow_links: bool) -> None:
    """\b
    Inspect, verify and transform XLA HLO text.
    FILE: HLO text, .hlo.pb or .hlo.json, also compressed (.gz, .xz, .zst); - is
    stdin. DIR: a folder, .tar or .tgz.
    Exit status: 0 success, 1 findings, 2 usage error or unreadable input.
    Example: hlotext show module_0001.jit_step.after_optimizations.txt
    """
    if follow_links:
        os.environ["HLOTEXT_FOLLOW_LINKS"] = "1"
    if max_source is not None:
        # A variable, since processes that are started later see it too.
        os.environ[inputs.LIMIT_VARIABLE] = max_source
        try:
            inputs.most_bytes()
        except inputs.InputError:
            raise click.BadParameter(
                f"{max_source!r} is not a size, such as 8G", param_hint="--max-source"
            ) from None
    if ctx.invoked_subcommand is None:
        click.echo("Inspect, verify and transform XLA HLO text.\n")
        wide = max(len(question) for question, _ in QUESTIONS) + 2
        for question, line in QUESTIONS:
            click.echo(f"  {question:{wide}}hlotext {line}")
        click.echo("\nAll commands: hlotext --help. One command: hlotext help COMMAND.")
