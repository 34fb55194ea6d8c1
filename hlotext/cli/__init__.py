"""The command `hlotext`. Each sub-command is a file of this package and is loaded when it is called for."""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import click

from hlotext import __version__
from hlotext.findings import escape
from hlotext.syntax.source import inputs

COMMANDS = {
    "show": "What is in a module, or one instruction of it.",
    "fmt": "Print modules in another style.",
    "convert": "A module from text to proto, and back.",
    "check": "Whether texts can be read, and all that is wrong in them.",
    "verify": "Whether modules are well-formed HLO.",
    "lint": "What costs time or memory in modules.",
    "rule": "What the codes of findings mean.",
    "grep": "Find instructions by a pattern.",
    "rewrite": "Run passes over modules.",
    "passes": "What passes there are.",
    "run": "A module executed on the CPU.",
    "extract": "A small module around one instruction.",
    "bisect": "Which pass, flag or release makes a command fail.",
    "reduce": "The smallest module for which a command still fails.",
    "bugreport": "A report of a compiler fault to show to anybody.",
    "memory": "What lives where and when in memory.",
    "thunks": "What the runtime of a GPU or CPU will execute.",
    "cost": "Operations and bytes, through loops, by scope or line.",
    "time": "The least time on a chip, and what is waited for.",
    "triage": "Many modules ranked, and what to do first.",
    "comm": "What is sent along which axes of the mesh.",
    "shard": "What each device holds of an array.",
    "dump": "What a dump folder tells of a compilation.",
    "explain": "What one pass of XLA did, and why.",
    "diff": "What differs between two modules.",
    "message": "What compilers' messages in a log say.",
    "table": "Modules as tables, a dataset of Parquet files.",
    "sql": "Questions to these tables, in SQL.",
    "graph": "A page to walk in: operations and what is around them.",
    "report": "A page to send around: memory, costs, collectives.",
    "layout": "Where the elements of an array lie in memory.",
    "opcodes": "What the opcodes of HLO take.",
    "schema": "What the JSON of a command holds.",
    "lsp": "A language server: serves editors over stdio.",
    "skill": "Pages for agents: which command answers what.",
    "mcp": "A server for agents, by the model context protocol.",
}
"""The sub-commands by name and what `--help` says of each; `hlotext/cli/NAME.py` holds it as `command`."""

GROUPS = {
    "Look": (
        "show",
        "grep",
        "dump",
        "memory",
        "cost",
        "time",
        "comm",
        "shard",
        "thunks",
        "table",
        "sql",
        "graph",
        "report",
    ),
    "Judge": ("triage", "check", "verify", "lint", "diff", "run", "bisect"),
    "Change": ("fmt", "rewrite", "extract", "reduce", "bugreport", "convert"),
    "Explain": ("explain", "message", "rule", "layout", "opcodes", "passes", "schema"),
    "Serve": ("lsp", "mcp", "skill"),
}
"""What `--help` lists together, in its order; what is in none comes last."""

DEBUG_VARIABLE = "HLOTEXT_DEBUG"
"""Set to anything but nothing, a failure of hlotext itself shows its traceback."""

UNREADABLE = 2
"""Exit status for wrong usage, unreadable input, and a failure of hlotext itself."""
_INTERRUPTED = 130
_BROKEN_PIPE = 141
_UNWRITABLE = (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """Loads sub-commands by name, and turns everything that can go wrong into one line and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"hlotext.cli.{cmd_name}").command
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # One screen: commands by group, what for on the left, then the options. Not click's own list, which loads every
        # command to ask it for its help.
        left = dict(COMMANDS)
        groups = {
            title: [(name, left.pop(name)) for name in names if name in left]
            for title, names in GROUPS.items()
        }
        groups["More"] = list(left.items())
        groups["Options"] = [
            record for one in self.get_params(ctx) if (record := one.get_help_record(ctx)) is not None
        ]
        formatter.write_paragraph()
        for title, rows in groups.items():
            if title == "Options":
                formatter.write("\n")
            for number, (name, text) in enumerate(rows):
                formatter.write(f"{'' if number else title:<9}{name:<{9 if title in GROUPS else 19}}{text}\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "json" in " ".join(args):
            from hlotext.cli.documents import note_format

            note_format(ctx, args)
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

    def invoke(self, ctx: click.Context) -> Any:
        if sys.stdout is None:
            click.echo("hlotext: standard output is closed", err=True)
            ctx.exit(UNREADABLE)
        try:
            if sys.stdout.isatty() and not ctx.params.get("no_pager"):
                from hlotext.cli.pager import paged

                with paged():
                    result = super().invoke(ctx)
            else:
                result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(_INTERRUPTED)
        except BrokenPipeError:
            # The reader has seen enough. What is still to be written goes nowhere, without complaint.
            _give_up_output()
            ctx.exit(_BROKEN_PIPE)
        except MemoryError:
            click.echo("hlotext: out of memory", err=True)
            ctx.exit(UNREADABLE)
        except OSError as error:
            if error.errno not in _UNWRITABLE or error.filename is not None:
                _internal(ctx, error)
            ctx.exit(_unwritable(error))
        except click.exceptions.Exit as ending:
            if ending.exit_code:
                _write_failure(ctx)
            raise
        except click.ClickException as error:
            _write_failure(ctx, error)
            raise
        except click.Abort:
            raise
        except Exception as error:
            _internal(ctx, error)
        return result


def _unwritable(error: OSError) -> int:
    """Says that standard output cannot be written; gives the exit status."""
    _give_up_output()
    click.echo(f"hlotext: standard output cannot be written: {error.strerror}", err=True)
    return UNREADABLE


def _give_up_output() -> None:
    """What is still to be written goes nowhere, without complaint."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal(ctx: click.Context, error: Exception) -> NoReturn:
    """Says that hlotext itself has failed."""
    if os.environ.get(DEBUG_VARIABLE):
        traceback.print_exc()
    message = escape.line(" ".join(f"{type(error).__name__}: {error}".split()))
    click.echo(f"hlotext: internal error: {message} ({DEBUG_VARIABLE}=1 shows where)", err=True)
    _write_failure(ctx, error)
    ctx.exit(UNREADABLE)


def _write_failure(ctx: click.Context, error: Exception | None = None) -> None:
    """The document of a command that could not write its own, where JSON is asked for."""
    from hlotext.cli import documents

    with ctx:
        if isinstance(error, click.UsageError):
            documents.note_error("usage", error.format_message())
        elif isinstance(error, click.ClickException):
            # Said here and not when it is shown, which is after the document.
            kind = "unreadable" if error.exit_code == UNREADABLE else "not-found"
            documents.note_error(kind, error.message, getattr(error, "where", None))
        elif error is not None:
            documents.note_error("internal", f"{type(error).__name__}: {error}")
        documents.write_failure(ctx)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.option("--no-pager", is_flag=True, help="Never show long output in a pager.")
@click.option(
    "--max-source",
    metavar="SIZE",
    help="Bytes that a source may hold or unpack to; else 4G.",
)
@click.option("--follow-links", is_flag=True, help="Also links in a folder that lead out of it.")
def main(no_pager: bool, max_source: str | None, follow_links: bool) -> None:
    """\b
    Look into XLA's HLO text, check it, change it.
    A FILE may be packed (.gz, .xz, .zst); - is standard input.
    Exit status: 0 fine, 1 something was found, 2 wrong usage or unreadable input.
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
                f"{max_source} is no size, such as 8G", param_hint="--max-source"
            ) from None
