"""`hlotext help rule`: meaning, reason, example and repair of a diagnostic code."""

from __future__ import annotations

import click

import hlotext as hlo
from hlotext.cli.common import FORMAT, say, write_json
from hlotext.cli.output import Kind, TerminalColumn, TerminalTable, echo, is_colourful, output
from hlotext.cli.usage import named_elsewhere
from hlotext.findings.failures import FAILED, INTERNAL
from hlotext.ir.spelling import codes_meant, suggestion
from hlotext.syntax.source import codes as syntax_codes
from hlotext.verify import codes as verify_codes

RULES = {**syntax_codes.RULES, INTERNAL: FAILED, **verify_codes.CODES}
"""Codes known without loading lint: X of the reader, V of the verifier."""


@click.command("rule")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@FORMAT
def command(codes: tuple[str, ...], output_format: str) -> None:
    """Explain each diagnostic CODE; without one, list all.

    \b
    Examples:
      hlotext help rule V101
      hlotext help rule | grep layout

    Exit status: 0 success, 2 no such code.
    """
    known = hlo.lint.every_code()  # loads the rules
    chosen = []
    for code in codes or known:
        if note := hlo.lint.registry.note_of(code.upper()):
            say(note)
        rule = known.get(hlo.lint.registry.current_code(code.upper()))
        if rule is None:
            near = named_elsewhere(code) or suggestion(codes_meant(code, known))
            every = "`hlotext help rule` lists all"
            raise click.UsageError(
                f"no code {code}; {near} ({every})" if near else f"no code {code}; {every}"
            )
        chosen.append(rule)
    if output_format == "json":
        rows = [
            {"code": r.name, "severity": r.severity.value, "title": r.title, "page": r.page()} for r in chosen
        ]
        write_json({"codes": rows})
    elif not codes:
        columns = (
            TerminalColumn("code", "bold"),
            TerminalColumn("severity"),
            TerminalColumn("finding", kind=Kind.PROSE),
        )
        output().table(TerminalTable("Codes", columns, [(r.name, r.severity.value, r.title) for r in chosen]))
    elif is_colourful():
        from rich.console import Console
        from rich.markdown import Markdown
        from rich.theme import Theme

        # By default code has a black background, which is a bar in a light terminal.
        console = Console(theme=Theme({"markdown.code": "bold cyan"}))
        for rule in chosen:
            console.print(Markdown(rule.page()))
    else:
        echo("\n".join(rule.page() for rule in chosen), end="")
