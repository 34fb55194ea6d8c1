"""`hlotext rule`: what a code means, why it matters, how it looks, and how to fix it."""

from __future__ import annotations

import click

import hlotext as hlo
from hlotext.cli.common import FORMAT, NotFound, say, write_json
from hlotext.cli.output import TerminalColumn, TerminalTable, echo, is_colourful, output
from hlotext.findings.failures import FAILED, INTERNAL
from hlotext.lint import registry
from hlotext.syntax.source import codes as syntax_codes
from hlotext.syntax.source.reporter import did_you_mean
from hlotext.verify import codes as verify_codes

RULES = {**syntax_codes.RULES, INTERNAL: FAILED, **verify_codes.CODES}
"""Codes that cost nothing to know: X of the reader, V of the verifier."""


@click.command()
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@FORMAT
def command(codes: tuple[str, ...], output_format: str) -> None:
    """Explain each CODE; without one, list them all.

    \b
    Examples:
      hlotext rule V101
      hlotext rule | grep layout
    """
    known = hlo.lint.every_code()  # the rules are loaded here, and not for those who want the table above
    chosen = []
    for code in codes or known:
        if note := registry.note_of(code.upper()):
            say(note)
        rule = known.get(registry.current_code(code.upper()))
        if rule is None:
            raise NotFound(f"there is no code {code}. {did_you_mean(code.upper(), known)}".rstrip())
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
            TerminalColumn("what is wrong"),
        )
        output().table(TerminalTable("Codes", columns, [(r.name, r.severity.value, r.title) for r in chosen]))
    elif is_colourful():
        from rich.console import Console
        from rich.markdown import Markdown

        for rule in chosen:
            Console().print(Markdown(rule.page()))
    else:
        echo("\n".join(rule.page() for rule in chosen), end="")
