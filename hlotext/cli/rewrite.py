"""`hlotext rewrite`: runs passes over modules."""

from __future__ import annotations

from pathlib import Path

import click

from hlotext.cli.common import FILES, Inputs, Unreadable, say
from hlotext.cli.files import Rewriting
from hlotext.cli.output import emit
from hlotext.rewrite.passes import PassOptionError, parse_passes
from hlotext.rewrite.pipeline import PassError, Pipeline


@click.command()
@FILES
@click.option(
    "-p", "--passes", "names", required=True, metavar="PASSES", help="Passes in order: dce,cse,algsimp{...}."
)
@click.option("-i", "--in-place", is_flag=True, help="Write each FILE instead of standard output.")
@click.option("--stats", is_flag=True, help="Say on standard error what each pass did and how long it took.")
@click.option("--no-verify", is_flag=True, help="Do not check the module after each pass.")
@click.option(
    "--dump-to",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the module after each pass here.",
)
def command(
    files: tuple[str, ...], names: str, in_place: bool, stats: bool, no_verify: bool, dump_to: Path | None
) -> None:
    """Run passes over each FILE and print it; lines that no pass touched stay byte for byte as they are.

    `hlotext passes` lists the passes and their options.

    \b
    Examples:
      hlotext rewrite -p dce,cse,'algsimp{max_iterations=10}' dump.txt | diff dump.txt -
      hlotext rewrite -i -p strip-metadata golden/*.hlo
      hlotext rewrite -p call-inliner,tuple-simplifier,dce --stats --dump-to after/ dump.txt

    Exit status: 0 fine, 1 a pass failed or left a module that is wrong, 2 wrong usage or unreadable input.
    """
    try:
        passes = parse_passes(names)
    except PassOptionError as error:
        raise click.UsageError(str(error)) from None
    if in_place and "-" in files:
        raise click.UsageError("- cannot be written in place")
    pipeline, inputs = Pipeline(tuple(passes), verify=not no_verify, dump_to=dump_to), Inputs(files)
    if in_place:
        inputs.refuse_packed()
    with Rewriting() as rewriting:
        for place, result in inputs:
            for module in result.modules:
                try:
                    steps = pipeline.run(module)
                except PassError as error:
                    say(f"{place}: {error}")
                    raise click.exceptions.Exit(1) from None
                for step in steps if stats else ():
                    counts = ", ".join(f"{count:,} {name}" for name, count in step.result.statistics.items())
                    say(f"{place}: {step.pass_}: {counts or 'nothing'} in {step.seconds:.3f} s")
            text = "".join(map(str, result.modules))
            if in_place:
                if len(result.modules) > 1 and not text:
                    raise Unreadable(f"{place} would become empty")
                rewriting.put(place, text)
            else:
                emit(text)
        inputs.finish()
        rewriting.commit()
