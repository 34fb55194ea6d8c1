"""`hlotext dump pass`: the changes of one pass, and why."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

import click

import hlotext as hlo
from hlotext import compiler
from hlotext.analysis.meant import NamesMeant
from hlotext.cli.common import FORMAT, NotFound, Unreadable, limit_option, write_json
from hlotext.cli.folders import chosen
from hlotext.cli.output import TerminalColumn, TerminalTable, echo, output
from hlotext.cli.why_output import decisions_json
from hlotext.compiler import Decision, Explanation, Group
from hlotext.compiler.explaining import previous
from hlotext.diff import Change
from hlotext.dumps import Step
from hlotext.dumps.causes import ASK_FOR_PASSES
from hlotext.findings.errors import brief
from hlotext.ir.spelling import did_you_mean, suggestion
from hlotext.ir.values.age import XlaAge, as_age

_ROWS = 20
_NAMES = 3
"""Names that are shown of a group."""
_LOG = "priority-fusion"
_NUMBERS = frozenset({"bytes", "clones", "before", "after", "difference"})
"""Columns of views that hold numbers."""


@click.command("pass")
@click.argument("before", metavar="BEFORE|DIR")
@click.argument("after", metavar="AFTER", required=False)
@click.option("--pass", "name", metavar="NAME", help="Name of the pass in XLA.")
@click.option("-i", "--instruction", "names", metavar="NAME", multiple=True, help="Only this instruction.")
@click.option(
    "--platform", type=click.Choice(["cpu", "gpu", "tpu"]), help="Platform, if it cannot be detected."
)
@click.option("--age", metavar="RELEASE|DATE", help="Release of XLA, if the dumps do not show it: 0.10.2.")
@click.option("-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several.")
@click.option("--step", type=int, metavar="N", help="Run of the pass to explain, if there are several.")
@limit_option(_ROWS)
@FORMAT
def command(
    before: str,
    after: str | None,
    name: str | None,
    names: tuple[str, ...],
    platform: str | None,
    age: str | None,
    module: str | None,
    step: int | None,
    limit: int,
    output_format: str,
) -> None:
    """Changes of one XLA pass, in groups, with their reasons.

    Reasons are known where hlotext has a model of the pass. BEFORE and AFTER are the modules before and after the
    pass; or give a dump folder written with --xla_dump_hlo_pass_re=.* and the pass. If a pass ran several times, its
    runs are listed; --step selects one.

    \b
    Examples:
      hlotext dump pass before.txt after.txt --pass copy-insertion
      hlotext dump pass dumps/ --pass fusion
      hlotext dump pass dumps/ --pass fusion -i broadcast.3

    Exit status: 0 success, 1 no such pass or instruction, 2 usage error or unreadable input.
    """
    found: list[tuple[Step | None, Explanation]]
    if after is not None:
        if os.path.isdir(before):
            raise click.UsageError(
                f"for a dump folder, set --pass{'' if os.path.exists(after) else f' {after}'}"
            )
        try:
            known = as_age(age)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        found = [(None, _explained(before, after, name, platform, age=known))]
    else:
        if name is None:
            raise click.UsageError("set --pass, or pass the modules before and after it")
        found = list(_of_folder(before, module, name, step))
    if names:
        _check(names, (explanation for _, explanation in found))
    if output_format == "json":
        write_json({"explanations": [_as_json(one, where, names) for where, one in found]})
    elif names:
        for where, one in found:
            _about(one, where, names)
    elif len(found) > 1:
        _runs(found)
    else:
        for where, one in found:
            _show(one, where, limit)


def _explained(
    before: Any,
    after: Any,
    name: str | None,
    platform: str | None,
    log: str = "",
    age: XlaAge | None = None,
) -> Explanation:
    try:
        return compiler.explain(before, after, name, platform=platform, log=log, age=age)
    except (hlo.InputError, hlo.HloSyntaxError, ValueError, TypeError) as error:
        raise Unreadable(brief(error)) from None


_MOST = 3
"""Passes that a message suggests."""


def _of_folder(
    path: str, module: str | None, name: str, number: int | None
) -> Iterator[tuple[Step | None, Explanation]]:
    """The runs of a pass, each with the step before it."""
    c = chosen(path, module)
    steps = [step for step in c.steps[1:] if step.name == name and (number is None or step.index == number)]
    if not steps:
        known = list(dict.fromkeys(step.name for step in c.steps[1:]))
        if not any(step.is_pass for step in c.steps):
            raise NotFound(f"no pass of {c.name} was dumped; compile with {ASK_FOR_PASSES}")
        holding = [one for one in known if name in one][:_MOST]
        meant = did_you_mean(name, known) or suggestion(holding)
        listed = f"`{shlex.join(['hlotext', 'dump', 'timeline', path])}` lists its steps"
        raise NotFound(f"no step {name} in {c.name}; {f'{meant} ({listed})' if meant else listed}")
    files = c.files_of(_LOG)
    for step in steps:
        log = files[0].text() if files and name == _LOG else ""
        try:
            texts = previous(step).file.text(), step.file.text()
        except hlo.InputError as error:
            raise Unreadable(str(error)) from None
        yield step, _explained(texts[0], texts[1], name, c.platform, log, c.age)


def _check(names: tuple[str, ...], explanations: Iterable[Explanation]) -> None:
    """Raises NotFound for a name that neither text has."""
    all_of_them = list(explanations)
    for name in names:
        if not any(e.before.find(name) or e.after.find(name) for e in all_of_them):
            hints = NamesMeant(name)
            for one in all_of_them:
                hints.add(one.before)
                hints.add(one.after)
            raise NotFound(f"no instruction {name} before or after the pass{hints}")


# ---- text


def _title(explanation: Explanation, where: Step | None) -> str:
    step = f" (step {where.index})" if where is not None else ""
    name = explanation.name or f"{explanation.before.name} -> {explanation.after.name}"
    return f"{name}{step} on {explanation.platform or 'an unknown platform'}"


def _summary(explanation: Explanation) -> str:
    counts = explanation.counts()
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common()) or "nothing changed"


def _show(explanation: Explanation, where: Step | None, limit: int) -> None:
    out = output()
    out.heading(f"{_title(explanation, where)}: {_summary(explanation)}")
    for note in explanation.notes:
        echo(f"  {note}")
    if explanation.verdict is not None:
        same = explanation.verdict == "agrees"
        echo(
            "  the model reproduces the module"
            if same
            else "  the model produces a different module, so its reasons may differ from XLA's"
        )
    if explanation.outcome is not None and explanation.outcome.is_from_log:
        echo("  decisions, reasons and times from XLA's log")
    groups = explanation.groups
    rows = [[group.title, f"{len(group.changes):,}", _examples(group)] for group in groups]
    columns = (
        TerminalColumn("what", "bold"),
        TerminalColumn("operations", is_number=True),
        TerminalColumn("for example"),
    )
    out.table(
        TerminalTable("changes", columns, rows[: limit or None], max(0, len(rows) - limit) if limit else 0)
    )
    for view in explanation.views:
        titles = tuple(TerminalColumn(title, is_number=title in _NUMBERS) for title in view.columns)
        left_out = max(0, len(view.rows) - limit) if limit else 0
        out.table(TerminalTable(view.title, titles, view.rows[: limit or None], left_out))
        for line in view.lines:
            echo(f"  {line}")
    _reasons(explanation, limit)


def _examples(group: Group) -> str:
    names = [change.name for change in group.changes[:_NAMES] if change.name]
    return ", ".join(names) + (", ..." if len(group.changes) > _NAMES else "")


def _reasons(explanation: Explanation, limit: int) -> None:
    """The rules that decided, with an example of each."""
    counts: dict[str, list[Decision]] = {}
    for decision in explanation.decisions:
        counts.setdefault(decision.rule, []).append(decision)
    ordered = sorted(counts.items(), key=lambda item: -len(item[1]))
    if not ordered:
        return
    echo("\nwhy")
    for rule, decisions in ordered[: limit or None]:
        first = decisions[0]
        echo(f"  {len(decisions):,} x {rule}")
        echo(f"      {first.instruction}: {first.because}")


def _runs(found: list[tuple[Step | None, Explanation]]) -> None:
    """The runs of a pass, a row each."""
    out = output()
    first = found[0][1]
    out.heading(f"{first.name} ran {len(found)} times with changes (select one with --step N)")
    rows = [
        [str(where.index), where.pipeline, _summary(one), one.groups[0].title if one.groups else ""]
        for where, one in found
        if where is not None
    ]
    columns = (
        TerminalColumn("step", is_number=True),
        TerminalColumn("pipeline"),
        TerminalColumn("changes"),
        TerminalColumn("most of them"),
    )
    out.table(TerminalTable("runs", columns, rows))


def _about(explanation: Explanation, where: Step | None, names: tuple[str, ...]) -> None:
    out = output()
    for name in names:
        changes, decisions = explanation.of(name)
        out.heading(f"{name} in {_title(explanation, where)}")
        facts = [(change.kind, _told(change)) for change in changes] or [
            ("unchanged", "unchanged by the pass")
        ]
        facts += [
            (d.rule, d.because if d.instruction == name else f"{d.instruction}: {d.because}")
            for d in decisions
        ]
        out.facts(facts)


def _told(change: Change) -> str:
    return "; ".join(map(str, change.parts)) or change.what


# ---- JSON


def _as_json(explanation: Explanation, where: Step | None, names: tuple[str, ...]) -> dict[str, Any]:
    groups = [_group_json(group) for group in explanation.groups]
    decisions: Iterable[Decision] = explanation.decisions
    if names:
        about = {id(d): d for name in names for d in explanation.of(name)[1]}
        decisions = about.values()
    return {
        "pass": explanation.name,
        "platform": explanation.platform,
        "step": None if where is None else where.index,
        "counts": dict(explanation.counts()),
        "groups": groups,
        "verdict": explanation.verdict,
        "decisions": decisions_json(decisions),
        "views": [
            {
                "title": v.title,
                "columns": list(v.columns),
                "rows": [list(row) for row in v.rows],
                "lines": list(v.lines),
            }
            for v in explanation.views
        ],
        "notes": list(explanation.notes),
    }


def _group_json(group: Group) -> dict[str, Any]:
    return {
        "title": group.title,
        "count": len(group.changes),
        "rules": [rule for rule, _, _ in group.rules()],
        "changes": [
            {
                "kind": change.kind,
                "what": change.what,
                "name": change.name,
                "old_name": None if change.old is None else change.old.name,
                "opcode": change.opcode,
                "computation": change.computation or None,
                "parts": [{"name": p.name, "old": p.old, "new": p.new} for p in change.parts],
            }
            for change in group.changes
        ],
    }
