"""`hlotext diff`: what differs between two modules, and by how much."""

from __future__ import annotations

import os
from pathlib import Path

import click

import hlotext as hlo
from hlotext import dumps
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import pluralize
from hlotext.cli import diff_folders
from hlotext.cli.common import Unreadable, is_folder, limit_option, say, write_file, write_json
from hlotext.cli.listing import Listing
from hlotext.cli.output import echo, emit_report, output
from hlotext.cli.table_options import table_options
from hlotext.diff import Diff, ThresholdError, compare, golden_text, parse_thresholds, report, violations
from hlotext.diff.changes import Change
from hlotext.diff.totals import TotalChange, Totals
from hlotext.dumps.program_changes import argument_changes, have_common_arguments
from hlotext.dumps.texts import compilation_beside
from hlotext.findings.errors import brief
from hlotext.findings.escape import one_line
from hlotext.schemas.columns import Shown

_DIFFERENT = 1
"""Exit status where the modules differ, or a bound of --fail-on is crossed."""
_ROWS = 20
"""Groups that are shown unless more are asked for."""


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW", required=False)
@click.option(
    "--fail-on",
    metavar="BOUNDS",
    help="Thresholds for exit status 1: bytes+1%,collectives+0."
    f" Names: {', '.join(Totals.NAMES)}, changes, any opcode.",
)
@click.option(
    "--write-golden",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write OLD as a golden file, then exit.",
)
@click.option(
    "--exact",
    is_flag=True,
    help="Compare everything in JAX's compilation cache key, including names; for two logs, compare the keys.",
)
@click.option(
    "--by",
    type=click.Choice(["kind", "scope", "computation"]),
    default="kind",
    show_default=True,
    help="Group changes.",
)
@click.option("--full", is_flag=True, help="List every change instead of groups.")
@limit_option(_ROWS)
@table_options
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "markdown", "github"]),
    default="text",
    show_default=True,
)
def command(
    old: str,
    new: str | None,
    fail_on: str | None,
    write_golden: Path | None,
    exact: bool,
    by: str,
    full: bool,
    limit: int,
    output_format: str,
) -> None:
    """Compare OLD and NEW: compiler versions, commits of a model, builds with and without a flag.

    Bodies of fusions, calls and loops are compared too. Names, ids, metadata and the order of independent operations
    are ignored. OLD and NEW are files or dump folders. For two folders, compilations are paired by content, and
    settings, age, chip and the programs before and after optimization are compared; for one folder, before and after
    optimization. For two steps of one compilation, operations are followed through the steps in between.

    \b
    Examples:
      hlotext diff old.txt new.txt
      hlotext diff old.txt new.txt --fail-on collectives+0,bytes+1%
      hlotext diff dumps_tuesday/ dumps_today/
      hlotext diff first.log second.log --exact
      hlotext diff module.txt --write-golden golden.hlo
      hlotext diff golden.hlo module.txt --format github

    Exit status: 0 equal (with --fail-on: within thresholds), 1 different (or beyond a threshold), 2 unreadable input.
    """
    if write_golden is not None:
        if new is not None:
            raise click.UsageError("--write-golden takes one module")
        _write(write_golden, golden_text(_load(old)))
        return
    if new is not None and fail_on is None and output_format != "github":
        is_same = _of_more_than_modules(old, new, exact, limit, output_format)
        if is_same is not None:
            raise click.exceptions.Exit(0 if is_same else _DIFFERENT)
    if exact:
        raise click.UsageError("--exact takes two folders, or two logs with keys of JAX's compilation cache")
    try:
        bounds = parse_thresholds(fail_on) if fail_on is not None else ()
        found = compare(*_both(old, new))
        beyond = violations(bounds, found.totals, len(found.changes)) if bounds else []
    except ThresholdError as error:
        raise click.UsageError(str(error)) from None
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    except hlo.HloSyntaxError as error:
        raise Unreadable(brief(error), str(error)) from None
    if output_format == "json":
        write_json(report.as_json(found, beyond))
    elif output_format == "markdown":
        emit_report(report.markdown(found, beyond))
    elif output_format == "github":
        emit_report(report.github(found, new or old, beyond))
    else:
        _show(found, by, full, limit)
        for one in beyond:
            say(str(one))
    if beyond or (fail_on is None and not found.is_equal):
        raise click.exceptions.Exit(_DIFFERENT)


def _of_more_than_modules(old: str, new: str, exact: bool, limit: int, output_format: str) -> bool | None:
    """True if two folders, or the keys in two logs, are the same, after saying how they differ; None for what is a module."""
    if is_folder(old) and is_folder(new):
        found = diff_folders.compare_folders(old, new, exact)
        if output_format == "json":
            write_json(diff_folders.json_of(found))
        elif output_format == "markdown":
            emit_report(diff_folders.markdown_of(found))
        else:
            diff_folders.show(found, limit)
        return found.is_same
    keys = diff_folders.compare_logs(old, new) if exact else None
    if keys is None:
        return None
    if output_format == "json":
        write_json(diff_folders.keys_json(keys))
    elif output_format == "markdown":
        emit_report(diff_folders.keys_markdown(keys))
    else:
        diff_folders.show_keys(keys)
    return keys.is_same


def _show(found: Diff, by: str, full: bool, limit: int) -> None:
    out = output()
    out.heading(f"{found.old.name} -> {found.new.name}: {report.summary(found)}")
    if found.platforms is not None:
        echo(f"  {report.platforms(found.platforms)}")
    if left_out := report.not_compared(found):
        echo(f"  {left_out}")
    if found.old.name != found.new.name and not have_common_arguments(found.old, found.new):
        echo(
            "  the modules have different names and no argument in common, so they are probably not builds of the "
            "same program"
        )
    for told in argument_changes(found.old, found.new):
        echo(f"  {one_line(told.text)}")
    changes = found.changes
    if changes.renamed:
        echo(f"  {pluralize(len(changes.renamed), 'operation')} renamed only")
    if full:
        changes_of: Listing[Change] = Listing(
            "diff.changes", lambda c: (c.kind, c.name, c.what, "; ".join(map(str, c.parts)))
        )
        out.table(changes_of.table("changes", list(changes), limit))
    elif len(changes):
        groups: Listing[tuple[str, list[Change]]] = Listing(
            "diff.groups",
            lambda row: (
                row[0],
                len(row[1]),
                _difference(found.weights.of_all(row[1])[0]),
                ", ".join(c.name for c in row[1][:2] if c.name),
            ),
            {"what": "what" if by == "kind" else by},
        )
        out.table(groups.table("changes", _groups(found, by), limit))
    totals = [t for t in report.totals(found) if t.difference or (t.difference is None and t.old != t.new)]
    totals_of: Listing[TotalChange] = Listing(
        "diff.totals", lambda t: (t.name, *report.figures(t), report.difference(t))
    )
    out.table(totals_of.table("different totals", totals, limit))
    if len(changes) and (equal := report.equal_totals(found.totals)):
        out.facts([("equal totals", equal)])


def _difference(size: float) -> Shown | None:
    """Bytes after less those before; None if they are equal."""
    return Shown(int(size), f"{'+' if size > 0 else '-'}{byte_text(int(abs(size)))}") if int(size) else None


def _groups(found: Diff, by: str) -> list[tuple[str, list[Change]]]:
    if by == "kind":
        return found.weights.ordered(found.changes.folded())
    groups = found.by_scope() if by == "scope" else found.changes.by_computation()
    return found.weights.ordered((title or "(header)", group) for title, group in groups.items())


def _both(old: str, new: str | None) -> tuple[hlo.Module | dumps.Step, hlo.Module | dumps.Step]:
    """The two modules: of two paths, or both ends of one compilation. Steps of one compilation are left as steps."""
    if new is not None:
        return _steps(old, new) or (_load(old), _load(new))
    try:
        texts = list(dumps.module_texts([old], "ends"))
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    if len(texts) != 2 or texts[0].file is None:
        raise click.UsageError(
            "expected two modules, or a dump folder with one compilation (compared before and after optimization)"
        )
    first, last = texts[0].compilation, texts[1].compilation
    if first is not None and first is last and first.first is not None and first.last is not None:
        return first.first, first.last
    return _read(texts[0]), _read(texts[1])


def _steps(old: str, new: str) -> tuple[dumps.Step, dumps.Step] | None:
    """Two files that are steps of one compilation; None for any others."""
    if is_folder(old) or is_folder(new) or os.path.dirname(old) != os.path.dirname(new):
        return None
    compilation = compilation_beside(old)
    if compilation is None:
        return None
    steps = {os.path.basename(step.path): step for step in compilation.steps}
    first, second = steps.get(os.path.basename(old)), steps.get(os.path.basename(new))
    return (first, second) if first is not None and second is not None else None


def _load(path: str) -> hlo.Module:
    """The module of a file, or the final one of a folder with one compilation."""
    try:
        texts = list(dumps.module_texts([path]))
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    if len(texts) != 1:
        raise Unreadable(f"{path} holds {len(texts) or 'no'} modules; name one file")
    return _read(texts[0])


def _read(text: dumps.ModuleFile) -> hlo.Module:
    try:
        return text.load()
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    except hlo.HloSyntaxError as error:
        raise Unreadable(brief(error), str(error)) from None


def _write(path: Path, text: str) -> None:
    write_file(path, text)
    say(f"wrote {path}")
