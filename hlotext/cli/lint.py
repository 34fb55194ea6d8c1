"""`hlotext lint`: what costs time or memory in a module, and can be seen in its text."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import attrs
import click

import hlotext as hlo
from hlotext import lint, reports
from hlotext.analysis import Backend
from hlotext.analysis.formatting import pluralize
from hlotext.cli import DEBUG_VARIABLE, UNREADABLE
from hlotext.cli.common import (
    TRIPS,
    Unreadable,
    is_folder,
    refuse_missing,
    say,
    say_if_converted,
    say_outward_links,
    trips_of,
    write_file,
)
from hlotext.cli.files import Rewriting
from hlotext.cli.findings import (
    EXIT_ZERO,
    FOUND,
    LIMIT,
    MOST_SHOWN,
    OUTPUT_FILE,
    QUIET,
    cut,
    say_cut,
    show,
    write_report,
    write_text_or_show,
)
from hlotext.cli.json_output import json_text
from hlotext.cli.output import Kind, TerminalColumn, TerminalTable, echo, output, shortened
from hlotext.dumps.texts import ModuleFile
from hlotext.ir.spelling import codes_meant, did_you_mean, suggestion
from hlotext.lint.engine import loop_bodies
from hlotext.lint.files import compilation_around
from hlotext.lint.registry import current_code, note_of
from hlotext.syntax.source.inputs import read_source

FORMATS = ("text", *reports.WRITERS)
_MANY = 20
"""Files from which on a progress bar is worth it."""


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option(
    "--select",
    metavar="CODES",
    help="Rules to run: C101, C for the family, ALL for every rule.",
)
@click.option("--extend-select", metavar="CODES", help="Rules to run in addition.")
@click.option("--ignore", metavar="CODES", help="Rules not to run.")
@click.option(
    "--profile",
    type=click.Choice([backend.value for backend in Backend]),
    help="Platform to assume.  [default: from each module]",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="Configuration file.  [default: the nearest one]",
)
@click.option(
    "--rules",
    "rule_files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Python file with custom rules (codes Z...); it is executed.",
)
@click.option("--isolated", is_flag=True, help="Ignore configuration files.")
@click.option("--format", "output_format", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--statistics", is_flag=True, help="Print only the count per code.")
@click.option(
    "--baseline",
    metavar="FILE|DATASET",
    help="Suppress findings listed in this baseline file, or found in the newest build of a dataset of `hlotext table`.",
)
@click.option(
    "--write-baseline",
    type=click.Path(path_type=Path),
    help="Write all findings to this baseline file, then exit.",
)
@click.option(
    "--diff-against", metavar="OLD", help="Suppress findings that also occur in this file or folder."
)
@click.option(
    "--source-root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Source checkout: GitHub, GitLab and SARIF reports point at its Python lines.",
)
@click.option("--chip", metavar="NAME", help="Chip for time estimates.  [default: h100, v5e or cpu]")
@TRIPS
@click.option(
    "--fail-on",
    metavar="CONDITION",
    help="Findings, including notes, that cause exit status 1: share>3%.  [default: warnings]",
)
@click.option(
    "--what-if",
    is_flag=True,
    help="Apply repairs to a copy, and show time and peak memory before and after.",
)
@click.option("--explain-silence", metavar="CODE", help="Explain why this rule reports nothing, then exit.")
@click.option("--fix", is_flag=True, help="Apply safe fixes in place, then lint.")
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), help="Number of processes.  [default: one per core]"
)
@LIMIT
@OUTPUT_FILE
@EXIT_ZERO
@click.option("--show-settings", is_flag=True, help="Print the settings and the selected rules, then exit.")
@click.option("--show-files", is_flag=True, help="List the files to lint, then exit.")
@QUIET
@click.option("--debug", is_flag=True, help="Show the traceback of a failing rule.")
def command(
    paths: tuple[str, ...],
    select: str | None,
    extend_select: str | None,
    ignore: str | None,
    profile: str | None,
    config_file: Path | None,
    rule_files: tuple[Path, ...],
    isolated: bool,
    output_format: str,
    statistics: bool,
    baseline: str | None,
    write_baseline: Path | None,
    diff_against: str | None,
    source_root: Path | None,
    chip: str | None,
    trips: tuple[str, ...],
    fail_on: str | None,
    what_if: bool,
    explain_silence: str | None,
    fix: bool,
    jobs: int | None,
    limit: int | None,
    output_file: Path | None,
    exit_zero: bool,
    show_settings: bool,
    show_files: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """Find wasted time and memory in each FILE: collectives in loops, padding, copies, missing donations, wide types.

    In a DIR, modules after optimization are linted. `hlotext help rule C101` explains a code. Settings are in
    [tool.hlotext.lint] of pyproject.toml, or [lint] of hlotext.toml.

    \b
    Examples:
      hlotext lint module_0001.jit_step.after_optimizations.txt
      hlotext lint dumps/ --write-baseline hlotext-baseline.json
      hlotext lint dumps/ --baseline hlotext-baseline.json --format github
      hlotext lint dumps/ --baseline s3://bucket/tables
      hlotext lint new.txt --diff-against old.txt
      hlotext lint dump.txt --chip h100 --fail-on 'share>3%'
      hlotext lint dump.txt --what-if

    Exit status: 0 success (notes do not count), 1 findings, 2 usage error, unreadable input or a rule that failed.
    """
    try:
        config = _config(
            config_file, isolated, _split(select), _split(extend_select), _split(ignore), profile, rule_files
        )
        config = attrs.evolve(
            config,
            source_root=source_root or config.source_root,
            chip=config.chip if chip is None else chip,
            trips={**config.trips, **trips_of(trips)},
            what_if=what_if or config.what_if,
        )
        lint.all_rules(config.rule_files)  # a plugin may be no rule
        known = _known(baseline) if baseline is not None else lint.Baseline()
    except (lint.ConfigError, lint.RuleError, lint.BaselineError) as error:
        raise Unreadable(str(error)) from None
    output_format = "full" if output_format == "text" else output_format
    least = None if fail_on in (None, _WARNINGS) else _least_share(fail_on)
    if show_settings:
        _show_settings(
            config, config.active_rules(), config_file or (None if isolated else lint.find_config(Path.cwd()))
        )
        return
    files = _files(paths)
    if show_files:
        for file in files:
            echo(_label(file))
        return
    if statistics and output_format not in reports.STATISTICS:
        raise click.UsageError(
            f"--statistics only counts, but {output_format} lists findings; use {', '.join(reports.STATISTICS)}"
        )
    if trips and (fix or explain_silence is not None):  # before anything is written or said
        _check_trips(trips_of(trips), _bodies(files))
    if explain_silence is not None:
        _explain(files, explain_silence.upper(), config)
        return
    if fix:
        if what_if:
            raise click.UsageError("--fix cannot be used with --what-if")
        _fix(files, config, quiet)
    for file in files:
        if isinstance(file, str) and not quiet:
            say_if_converted(file)
    findings, has_failed, bodies = _lint(files, config, jobs, not quiet)
    if not has_failed:
        _check_trips(trips_of(trips), bodies)
    if diff_against is not None:
        old, old_failed, *_ = _lint(_files([diff_against]), config, jobs, False)
        known, has_failed = lint.Baseline.of(old), has_failed or old_failed
    if write_baseline is not None:
        _write(write_baseline, findings, quiet)
        raise click.exceptions.Exit(UNREADABLE if has_failed else 0)
    compared = known.compare(findings)
    gone = sum(entry.count for entry in compared.gone)
    show_traceback = debug or bool(os.environ.get(DEBUG_VARIABLE))
    found = [
        _shown(finding, show_traceback)
        for finding in compared.new
        if not (quiet and finding.severity is hlo.Severity.NOTE)
    ]
    report = reports.FindingsReport(
        found, list(map(_label, files)), lint.code_of, hlo.__version__, gone, with_origin=True
    )
    if statistics:
        write_text_or_show(_counted(report, output_format), output_file)
    elif output_format == "full" and output_file is None:
        most = MOST_SHOWN if limit is None else limit
        show(found[: most or None], with_origin=True)
        say_cut(len(found), most)
    else:
        write_report(cut(report, limit), output_format, output_file)
    if output_format in ("full", "concise") and not quiet and (found or not has_failed):
        _say_counts(report, compared, baseline)
        if not findings and select is None and not statistics:
            _say_off(config)
    if has_failed:
        raise click.exceptions.Exit(UNREADABLE)
    if any(_fails(finding, least) for finding in found) and not exit_zero:
        raise click.exceptions.Exit(FOUND)


# ---- what to do


_WARNINGS = "warnings"
"""The condition that holds unless another is given."""
_CONDITION = re.compile(r"\s*share\s*(>=?)\s*([0-9]*\.?[0-9]+)\s*(%?)\s*")


def _least_share(condition: str) -> tuple[float, bool]:
    """The share of `share>3%`, and whether it is enough itself."""
    match = _CONDITION.fullmatch(condition)
    if match is None:
        quote = "; > needs quotes: --fail-on 'share>3%'" if condition.strip() == "share" else ""
        raise click.UsageError(
            f"--fail-on takes {_WARNINGS}, share>3% or share>=0.03, not {condition!r}{quote}"
        )
    share = float(match[2]) / (100 if match[3] else 1)
    if share >= 1 and not match[3]:
        raise click.UsageError(
            f"--fail-on {condition!r} is {100 * share:.4g}%; did you mean share{match[1]}{match[2]}%?"
        )
    if share >= 1:
        raise click.UsageError(f"--fail-on {condition!r} never holds: a share is at most 100%")
    return share, match[1] == ">="


def _fails(finding: lint.Finding, least: tuple[float, bool] | None) -> bool:
    """True if a finding makes the exit status 1; errors always do."""
    if least is None or finding.severity is hlo.Severity.ERROR:
        return finding.severity is not hlo.Severity.NOTE
    share, is_enough = least
    return finding.share > share or (is_enough and finding.share == share)


def _show_settings(config: lint.Config, rules: Sequence[lint.Rule], file: Path | None) -> None:
    """Each setting with its value, the file that they come from, and the rules that they choose."""
    report = output()
    report.heading(f"Lint settings from {file if file is not None else 'no file'}")
    report.facts(
        (field.name, _value_text(getattr(config, field.name))) for field in attrs.fields(lint.Config)
    )
    columns = [TerminalColumn("rule", "bold"), TerminalColumn("finds", kind=Kind.PROSE)]
    report.table(
        TerminalTable(
            "Rules that run", columns, [(rule.code, lint.code_of(rule.code).title) for rule in rules]
        )
    )


def _known(place: str) -> lint.Baseline:
    """The baseline of a file, or of a dataset. Raises Unreadable, BaselineError."""
    if "://" not in place and not os.path.isdir(place):
        return lint.Baseline.load(Path(place))

    try:
        return hlo.tables.dataset_baseline.baseline(place)
    except (hlo.InputError, ImportError) as error:
        raise Unreadable(str(error)) from None


def _value_text(value: object) -> str:
    if isinstance(value, Backend):
        return value.value
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value_text(one)}" for name, one in value.items()) or "none"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return "not set" if value is None else str(value)


def _label(file: str | ModuleFile) -> str:
    return file if isinstance(file, str) else file.label


def _explain(files: Sequence[str | ModuleFile], code: str, config: lint.Config) -> None:
    """Why a rule says nothing, for each module."""
    if note := note_of(code):
        say(note)
    code = current_code(code)
    if code not in lint.all_rules(config.rule_files):
        if code in lint.every_code():
            raise Unreadable(f"{code} is not a lint rule: `hlotext help {code}` says what it is")
        meant = suggestion(codes_meant(code, lint.all_rules(config.rule_files)))
        raise Unreadable(f"no rule {code}; {meant or '`hlotext help rule` lists all'}")
    for file in files:
        try:
            silences = lint.explain_silence(_source(file), code, config, compilation_around(file))
        except hlo.InputError as error:
            raise Unreadable(str(error)) from None
        for silence in silences:
            echo(f"{_label(file)}: {silence.module}: {silence.reason}")
            for line in silence.details:
                echo(f"  {line}")


def _source(file: str | ModuleFile) -> hlo.Source:
    return read_source(file) if isinstance(file, str) else file.source()


def _split(codes: str | None) -> tuple[str, ...] | None:
    return None if codes is None else tuple(map(_as_code, codes.replace(",", " ").split()))


def _as_code(word: str) -> str:
    """A code, its beginning or `all` in capitals; a word that is none as it was written."""
    is_code = len(word) == 1 or word.lower() == "all" or any(map(str.isdigit, word))
    return word.upper() if word.isalnum() and is_code else word


def _config(
    file: Path | None,
    isolated: bool,
    select: tuple[str, ...] | None,
    extend_select: tuple[str, ...] | None,
    ignore: tuple[str, ...] | None,
    profile: str | None,
    rule_files: tuple[Path, ...],
) -> lint.Config:
    """The configuration of the project, with what the command line says instead."""
    found = file or (None if isolated else lint.find_config(Path.cwd()))
    with warnings.catch_warnings(record=True) as caught:  # Python shows nobody that a setting is retired
        warnings.simplefilter("always")
        config = lint.load_config(found) if found is not None else lint.Config()
    for warning in caught:
        say(f"{found}: {warning.message}")
    return attrs.evolve(
        config,
        rule_files=(*config.rule_files, *rule_files),
        select=config.select if select is None else select,
        extend_select=config.extend_select + (extend_select or ()),
        ignore=config.ignore + (ignore or ()),
        profile=config.profile if profile is None else Backend(profile),
    )


def _files(paths: Sequence[str]) -> list[str | ModuleFile]:
    """The files of a command line, folders replaced by the modules in them. Raises Unreadable for an empty one."""
    refuse_missing(paths)
    files: list[str | ModuleFile] = []
    for path in paths:
        if is_folder(path):
            say_outward_links(path)
            try:
                files += lint.texts_in(path)
            except hlo.InputError as error:
                raise Unreadable(str(error)) from None
        else:
            files.append(path)
    return files


def _fix(files: Sequence[str | ModuleFile], config: lint.Config, quiet: bool) -> None:
    """Rewrites the files that passes improve, all of them or none. Unreadable ones are left to the linter to report."""
    if "-" in files:
        raise click.UsageError("--fix writes files and cannot read standard input")
    if any(isinstance(file, ModuleFile) for file in files):
        raise click.UsageError("--fix writes files and cannot write an archive")
    with Rewriting() as rewriting:
        for file in map(_label, files):
            try:
                text, passes = lint.fix_text(read_source(file), config)
            except hlo.InputError:
                continue
            if passes:
                rewriting.put(file, text)
                if not quiet:
                    say(f"{file}: changed by {', '.join(passes)}")
        rewriting.commit()


def _lint(
    files: Sequence[str | ModuleFile], config: lint.Config, jobs: int | None, show: bool
) -> tuple[list[lint.Finding], bool, frozenset[str]]:
    """The findings of all files, whether a file could not be read or a rule failed, and the names of all loop bodies."""
    found: list[lint.Finding] = []
    bodies: frozenset[str] = frozenset()
    has_failed = False
    number = 1 if "-" in files else jobs or os.cpu_count() or 1
    is_slow = show and len(files) > _MANY and sys.stderr.isatty()
    results = lint.lint_files(files, config, number)
    with _bar(results, len(files)) if is_slow else nullcontext(results) as shown:
        for result in shown:
            if result.linted is None:
                Unreadable(result.problem, where={"file": result.file}).show()
                has_failed = True
            else:
                found += result.linted.findings
                for told in result.linted.notes:
                    say(f"{result.file}: {told}")
                has_failed = has_failed or result.linted.has_failed
                bodies |= result.linted.loop_bodies
    return found, has_failed or any(finding.code.startswith("X1") for finding in found), bodies


def _check_trips(trips: Mapping[str, int], bodies: frozenset[str]) -> None:
    """Raises UsageError for trip counts that the command line gives to a loop that no file has."""
    if missing := sorted(set(trips) - bodies):
        meant = did_you_mean(missing[0], bodies) or (
            f"loops and bodies: {shortened(', '.join(sorted(bodies)), 400)}"
            if bodies
            else "no file has loops"
        )
        raise click.UsageError(f"no loop or loop body is named {missing[0]}; {meant}")


def _bodies(files: Sequence[str | ModuleFile]) -> frozenset[str]:
    """The names of the loop bodies of all files that can be read."""
    found: frozenset[str] = frozenset()
    for file in files:
        with suppress(hlo.InputError):
            found |= loop_bodies(_source(file))
    return found


def _bar(results: Iterator[lint.FileResult], count: int) -> AbstractContextManager[Iterable[lint.FileResult]]:
    return click.progressbar(results, length=count, file=sys.stderr, label="linting")


# ---- what to say


def _counted(report: reports.FindingsReport, output_format: str) -> str:
    """Number of findings by code."""
    if output_format == "json":
        return json_text(reports.counted_document(report)) + "\n"
    return reports.STATISTICS[output_format](report)


def _write(path: Path, findings: Sequence[lint.Finding], quiet: bool) -> None:
    """Writes the baseline, and says how many findings are in it, as the summary of lint counts them."""
    write_file(path, lint.Baseline.of(findings).to_text())
    if not quiet:
        places = sum(finding.places for finding in findings)
        where = f" in {pluralize(places, 'place')}" if places > len(findings) else ""
        say(f"{pluralize(len(findings), 'finding')}{where} written to {path}")


def _shown(finding: lint.Finding, show_traceback: bool) -> lint.Finding:
    """The finding, of a rule that failed without its traceback unless that is wanted."""
    if finding.code != lint.INTERNAL or show_traceback:
        return finding
    return attrs.evolve(finding, help="--debug shows the traceback")


def _say_off(config: lint.Config) -> None:
    """Says that nothing found is not nothing to find: rules for costs that may be meant run only when asked for."""
    rules = lint.all_rules(config.rule_files)
    off = [code for code in rules if not rules.is_default(code) and not config.is_selected(code, False)]
    if off:
        say(f"{pluralize(len(off), 'rule')} disabled by default did not run (--extend-select ALL runs them)")


def _say_counts(report: reports.FindingsReport, compared: lint.Comparison, baseline: str | None) -> None:
    say(reports.summary(report.findings, len(report.files)))
    if compared.known:
        say(f"{pluralize(len(compared.known), 'known finding')} suppressed")
    if compared.gone and baseline is not None:
        gone = sum(entry.count for entry in compared.gone)
        codes = ", ".join(sorted({entry.code for entry in compared.gone}))
        way = (
            ""
            if "://" in baseline or os.path.isdir(baseline)
            else f": --write-baseline {baseline} drops them"
        )
        verb = "no longer occurs" if gone == 1 else "no longer occur"
        say(f"{pluralize(gone, 'known finding')} {verb} ({codes}){way}")
