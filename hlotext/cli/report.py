"""`hlotext report`: a module or a compilation as one page to send around."""

from __future__ import annotations

import os
from functools import partial

import attrs
import click

import hlotext as hlo
from hlotext.analysis import DeviceMesh, mesh_of, parse_mesh
from hlotext.analysis.chips import CHIPS
from hlotext.cli import report_builds
from hlotext.cli.chip_options import chip_of, say_given_platform, say_other_platform, told
from hlotext.cli.common import Unreadable, format_of, not_found, write_page
from hlotext.cli.convert_trace import traced
from hlotext.findings.errors import brief
from hlotext.view import report

_ENDINGS = {"html": (".html", ".htm"), "benchmark": (".json",), "markdown": (".md",)}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR [FILE|DIR] | DATASET")
@click.option(
    "-o", "--output", "place", metavar="FILE", required=True, help="Output file; - for standard output."
)
@click.option("--chip", metavar="NAME|FILE.toml", help=f"Chip: {', '.join(CHIPS)}.")
@click.option("--mesh", metavar="NAME=SIZE,...", help="Device mesh, major axis first: dp=2,tp=4.")
@click.option("-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several.")
@click.option(
    "--platform", type=click.Choice(["cpu", "gpu", "tpu"]), help="Platform, if it cannot be detected."
)
@click.option(
    "--source",
    metavar="DIR",
    help="Directory of the program's sources, to show them with the cost of each line.",
)
@click.option(
    "--trace", metavar="XPLANE.pb", help="Profiler trace, to show measured times next to the lower bounds."
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(list(_ENDINGS)),
    help="For a DATASET also benchmark (metrics of the newest build as JSON) and markdown (a comment of bounded length)."
    "  [default: by the ending of FILE, else html]",
)
@click.option(
    "--fail-on",
    metavar="FIGURES",
    callback=report_builds.figures,
    help="Exit status 1 if the newest build of a DATASET is worse than the last good one: any, or some of "
    f"{', '.join(report_builds.NAMES)} (missing: a module is gone).",
)
@click.option(
    "--accepted",
    metavar="FILE",
    help="File of accepted changes, one per line: MODULE BUILD METRIC  # why; omit METRIC for a removed module.",
)
@click.option(
    "--percent",
    type=click.FloatRange(min=0),
    default=0,
    help="Ignore changes up to this many percent.",
)
@click.option("--title", help="Page title.  [default: name of the module]")
def command(
    paths: tuple[str, ...],
    place: str,
    chip: str | None,
    mesh: str | None,
    module: str | None,
    platform: str | None,
    source: str | None,
    trace: str | None,
    output_format: str | None,
    fail_on: tuple[str, ...],
    accepted: str | None,
    percent: float,
    title: str | None,
) -> None:
    """Self-contained HTML report of one or two modules or dump folders: memory over the schedule, costs by scope
    and line, padding, collectives, the schedule in lanes, passes, thunks, findings.

    For a DATASET of builds (`hlotext table --tables modules,instructions,buffers,times,costs,collectives,findings`) the
    page shows the trend of each metric of each module, and for each change the first build, with the operations that
    appeared or grew and their Python lines. Needs the extra `hlotext[sql]` too.

    The file is self-contained and works offline. Sections without data are omitted, with one
    line that says why. Needs the extra `hlotext[report]`.

    \b
    Examples:
      hlotext report dumps/ -o report.html --chip v5e
      hlotext report before/ after/ -o comparison.html
      hlotext report tables/ -o nightly.html --accepted accepted.txt --fail-on peak_bytes,wire_bytes
      hlotext report module_0001.jit_step.after_optimizations.txt -o report.html

    A trace of the schedule for Perfetto: hlotext convert FILE --to trace-events -o OUT.json.gz

    Exit status: 0 success, 1 the folder has no such module or the newest build is worse, 2 usage error or unreadable
    input.
    """
    if len(paths) > 2:
        raise click.UsageError("a report takes one or two inputs")
    output_format = format_of(place, output_format, _ENDINGS)
    if len(paths) == 1 and report_builds.is_builds(paths[0]):
        report_builds.write(paths[0], place, output_format, accepted, percent, fail_on, title)
        return
    if output_format != "html" or fail_on or accepted:
        raise click.UsageError(
            "--format, --fail-on and --accepted are for datasets of builds, which `hlotext table` writes"
        )
    given: DeviceMesh | None = told(lambda: parse_mesh(mesh)) if mesh is not None else None
    row = chip_of(chip) if chip is not None else None
    try:
        subjects = [
            report.report_input(path, module=module, chip=row, platform=platform, mesh=given)
            for path in paths
        ]
        for one in subjects:
            told(partial(mesh_of, one.module, given))
            say_given_platform(one.label, one.module, platform)
            if row is not None:
                say_other_platform(one.label, one.module, row)
        if source is not None:
            if not os.path.isdir(source):
                raise Unreadable(f"--source {source} is not a folder")
            subjects = [attrs.evolve(one, source=source) for one in subjects]
        if trace is not None:
            subjects = [attrs.evolve(one, traced=traced(trace, one.module)) for one in subjects]
        page = report.report_page(*subjects, title=title)
    except ImportError as error:
        raise Unreadable(str(error)) from None
    except LookupError as error:
        raise not_found(error) from None
    except (hlo.InputError, hlo.HloSyntaxError) as error:
        raise Unreadable(brief(error)) from None
    write_page(place, page)
