"""`hlotext rewrite`: applies rules and runs passes over modules."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from hlotext import execution
from hlotext.analysis.formatting import seconds
from hlotext.cli.common import Inputs, Unreadable, refuse_missing, say
from hlotext.cli.files import Rewriting
from hlotext.cli.output import echo, emit, printable
from hlotext.cli.usage import missing_argument
from hlotext.ir.nodes.module import Module
from hlotext.rewrite.passes import PassOptionError, parse_passes
from hlotext.rewrite.passes.base import PLATFORM_NAMES, Pass
from hlotext.rewrite.pipeline import PassError, Pipeline
from hlotext.rewrite.rule_files import RuleFileError, as_pass, load_rules
from hlotext.syntax.source.inputs import missing


@click.command()
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("-p", "--passes", "names", metavar="PASSES", help="Passes in order: dce,cse,algsimp{...}.")
@click.option(
    "--platform",
    type=click.Choice(PLATFORM_NAMES),
    help="Compiler to follow where compilers differ.  [default: from the text]",
)
@click.option(
    "--age",
    metavar="RELEASE|DATE",
    help="XLA release or date to assume if the text does not show it: 0.10.2.",
)
@click.option(
    "-r",
    "--rules",
    "rule_files",
    multiple=True,
    metavar="FILE.toml",
    help="Rules as op lines, applied to a fixpoint before any pass; repeatable.",
)
@click.option(
    "--check-rules",
    is_flag=True,
    help="Test each rule on its example: it must fire and compute the same results on the CPU.",
)
@click.option("-i", "--in-place", is_flag=True, help="Write each FILE in place.")
@click.option("--stats", is_flag=True, help="Print changes and time of each pass to standard error.")
@click.option("--no-verify", is_flag=True, help="Do not verify the module after each pass.")
@click.option(
    "--dump-to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the module after each pass to this folder.",
)
def command(
    files: tuple[str, ...],
    names: str | None,
    platform: str | None,
    age: str | None,
    rule_files: tuple[str, ...],
    check_rules: bool,
    in_place: bool,
    stats: bool,
    no_verify: bool,
    dump_to: Path | None,
) -> None:
    """Apply rules and passes to each FILE and print it; unmodified lines are kept byte for byte.

    `hlotext help pass` lists the passes and their options. A rule file is TOML with a table for each rule: `rule` is
    op lines with wildcards as for `hlotext grep`, then =>, then the replacement of a match; `example` is a module
    on which the rule fires.

    \b
    Examples:
      hlotext rewrite -p dce,cse,'algsimp{max_iterations=10}' dump.txt | diff dump.txt -
      hlotext rewrite -p algsimp,reshape-mover,cse --platform gpu dump.txt
      hlotext rewrite -i -p strip-metadata golden/*.hlo
      hlotext rewrite -p call-inliner,tuple-simplifier,dce --stats --dump-to after/ dump.txt
      hlotext rewrite -r rules.toml dump.txt
      hlotext rewrite --check-rules -r rules.toml

    Exit status: 0 success, 1 a pass failed or left an invalid module, or a rule does not hold, 2 usage error or
    unreadable input.
    """
    if check_rules:
        if files or names or not rule_files:
            raise click.UsageError("--check-rules accepts only rule files (-r)")
        _check(rule_files)
        return
    if not files:
        raise missing_argument("FILE...")
    refuse_missing(files)
    passes = _passes(names, rule_files, platform or "", age or "")
    if in_place and "-" in files:
        raise click.UsageError("standard input cannot be written in place")
    pipeline, inputs = Pipeline(tuple(passes), verify=not no_verify, dump_to=dump_to), Inputs(files)
    if in_place:
        inputs.refuse_packed()
    with Rewriting() as rewriting:
        for place, result in inputs:
            for module in result.modules:
                try:
                    _run(pipeline, module, place, stats)
                except OSError as error:
                    raise Unreadable(f"{dump_to}: cannot write: {error.strerror}") from None
            text = "".join(map(str, result.modules))
            if in_place:
                if len(result.modules) > 1 and not text:
                    raise Unreadable(f"{place} would become empty")
                rewriting.put(place, text)
            else:
                emit(text)
        inputs.finish()
        rewriting.commit()


def _passes(names: str | None, rule_files: tuple[str, ...], platform: str, age: str) -> list[Pass]:
    """The rules as passes, then the passes."""
    if not names and not rule_files:
        raise click.UsageError("missing option -p PASSES (`hlotext help pass` lists them) or -r FILE.toml")
    try:
        return [
            *(as_pass(load_rules(path)) for path in rule_files),
            *parse_passes(names or "", platform, age),
        ]
    except PassOptionError as error:
        raise click.UsageError(str(error)) from None
    except FileNotFoundError as error:
        raise Unreadable(str(missing(error.filename))) from None
    except OSError as error:
        raise Unreadable(f"{error.filename} cannot be read: {error.strerror}") from None
    except RuleFileError as error:
        raise Unreadable(str(error)) from None


def _run(pipeline: Pipeline, module: Module, place: str, stats: bool) -> None:
    """Runs the pipeline over a module; edits that were refused are said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            steps = pipeline.run(module)
        except PassError as error:
            say(f"{place}: {error}")
            raise click.exceptions.Exit(1) from None
    for warning in caught:
        say(f"{place}: {warning.message}")
    for step in steps if stats else ():
        counts = ", ".join(f"{count:,} {name}" for name, count in step.result.statistics.items())
        say(f"{place}: {step.pass_}: {counts or 'no change'} ({seconds(step.seconds)})")


def _check(paths: tuple[str, ...]) -> None:
    """Tries the rules of files on their examples; a line for each."""
    is_wrong = False
    for path in paths:
        try:
            for one in execution.check_rules(load_rules(path)):
                is_wrong |= bool(one.problem)
                echo(
                    f"{printable(path)}:{one.line}: {printable(one.name)}: {printable(one.problem) or 'fine'}"
                )
        except FileNotFoundError as error:
            raise Unreadable(str(missing(error.filename))) from None
        except OSError as error:
            raise Unreadable(f"{error.filename} cannot be read: {error.strerror}") from None
        except (RuleFileError, execution.NotExecutable) as error:
            raise Unreadable(str(error)) from None
    if is_wrong:
        raise click.exceptions.Exit(1)
