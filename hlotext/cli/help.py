"""`hlotext help`: help on whatever has a name: commands, rules, opcodes, passes, attributes, columns, chips, types."""

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
_PLURALS = {"rules": "rule", "codes": "rule", "code": "rule", "schemas": "schema"}


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
        words[:1] = [_PLURALS.get(word, word) for word in words[:1]]
        if words and (words[0] in _TOPICS or words[0].startswith("-")):
            return super().resolve_command(ctx, words)
        names = importlib.import_module("hlotext.cli.help_names")  # loads all tables
        return "name", names.command, words


@click.group(cls=_Help, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Help on a COMMAND, or on a NAME: a rule, opcode, pass, attribute, column, chip or element type. If a name has
    several meanings, one is shown and the others are listed; a topic before the name, as in `help opcode copy`,
    selects one.

    \b
    Examples:
      hlotext help memory
      hlotext help dump trace
      hlotext help C101
      hlotext help all-gather
      hlotext help replica_groups
      hlotext help opcode
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.find_root().get_help())
