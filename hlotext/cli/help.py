"""`hlotext help`: help on commands, rules, opcodes, passes and schemas."""

from __future__ import annotations

import importlib

import click

from hlotext.cli import CommandGroup, current

_TOPICS = {
    "rule": "Explain diagnostic codes; without a CODE, list them.",
    "opcode": "Operands, attributes and shape rule of an opcode; without a NAME, list them.",
    "pass": "Explain a pass of `hlotext rewrite`; without a NAME, list them.",
    "schema": "JSON Schema of what a command writes; without a COMMAND, list them.",
}


class _Help(CommandGroup):
    """Topics, and the names of commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_TOPICS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _TOPICS:
            found: click.Command = importlib.import_module(f"hlotext.cli.help_{cmd_name}").command
            return found
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Topics"):
            formatter.write_dl(list(_TOPICS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        words = current(args)
        if words[:1] == ["help"] and len(words) > 1:  # `help opcodes`, a former spelling of a topic
            words = words[1:]
        if words and (words[0] in _TOPICS or words[0].startswith("-")):
            return super().resolve_command(ctx, words)
        return "command", _of_command, [word for word in words if not word.startswith("-")]


@click.command()
@click.argument("words", nargs=-1)
@click.pass_context
def _of_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    root = ctx.find_root()
    assert isinstance(root.command, click.Group)
    found: click.Command = root.command
    outer = root
    for word in words:
        if not isinstance(found, click.Group):
            outer.fail(f"{outer.command_path} has no commands")
        inner = found.get_command(outer, word)
        if inner is None:
            outer.fail(
                found.unknown(outer, word) if isinstance(found, CommandGroup) else f"no command {word!r}"
            )
        found, outer = inner, click.Context(inner, info_name=word, parent=outer)
    click.echo(found.get_help(outer))


@click.group(cls=_Help, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Help on a COMMAND, or on a rule, opcode, pass or schema.

    \b
    Examples:
      hlotext help memory
      hlotext help dump trace
      hlotext help rule C101
      hlotext help opcode all-gather
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.find_root().get_help())
