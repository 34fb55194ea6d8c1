"""`hlotext table`: modules to a dataset of Parquet files, for SQL and dataframes; in processes, or on a cluster."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import attrs
import click

from hlotext import tables
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.sizes import byte_text
from hlotext.cli import UNREADABLE
from hlotext.cli.common import FORMAT, Unreadable, say, which_option, write_json
from hlotext.cli.output import WorkBar
from hlotext.dumps.texts import Which
from hlotext.syntax.source.inputs import InputError
from hlotext.tables import schema
from hlotext.tables.errors import TableError

if TYPE_CHECKING:
    from hlotext.tables.batch import Plan
    from hlotext.tables.batch_task import Status
    from hlotext.tables.dataset import Done

_SAID = 20
"""Inputs that could not be read of which each is said; of the others only how many they are."""
_MANY_PARTS = 16
"""Small parts from which on they are compacted."""

BUILD = click.option(
    "--build",
    metavar="NAME",
    help="Build of the modules.  [default: the first subfolder of the given folder, or the file's folder]",
)
JOBS = click.option(
    "-j", "--jobs", type=click.IntRange(min=1), help="Number of processes.  [default: one per core]"
)


_QUERIED = frozenset({".parquet", ".csv", ".json"})
_FILES = _QUERIED | {".arrow", ".feather", ".db", ".sqlite", ".duckdb", ".xlsx", ".tsv"}
"""Endings of single files, as which no dataset is written."""


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE|DIR|URL...")
@click.option("-o", "--output", "dataset", required=True, metavar="DIR|URL", help="Dataset to write.")
@click.option(
    "--tables",
    "names",
    metavar="NAMES",
    help=f"Tables to write: all, basic ({', '.join(schema.BASIC)}), or any of {', '.join(schema.TABLES)}.  [default: basic]",
)
@BUILD
@which_option("last")
@click.option("--append", is_flag=True, help="Add to a dataset built from other inputs.")
@JOBS
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler: tcp://host:8786.")
@click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Retries after an error on a cluster.",
)
@click.option("--retry", is_flag=True, help="Retry inputs that were unreadable before.")
@click.option("--anew", is_flag=True, help="Convert all inputs again.")
@click.option("--no-compact", is_flag=True, help="Do not merge files of many inputs.")
@click.option("-q", "--quiet", is_flag=True, help="Omit the summary line.")
@FORMAT
def command(
    places: tuple[str, ...],
    dataset: str,
    names: str | None,
    build: str | None,
    which: Which,
    append: bool,
    jobs: int | None,
    scheduler: str | None,
    retries: int,
    retry: bool,
    anew: bool,
    no_compact: bool,
    quiet: bool,
    output_format: str,
) -> None:
    """Export modules as tables, a folder of Parquet files for each table, for `hlotext sql` and other tools that read
    Parquet. To list the operations that take the most time, bytes or FLOPs: `hlotext sql --query costs DATASET`.

    An input is a file, a dump folder, or a URL of a file, folder or pattern: s3://, gs://, http:// and others of
    fsspec. Unchanged inputs of earlier runs are skipped, so an interrupted run resumes. Unreadable inputs are
    reported and listed in the table `modules`. Needs the extra `hlotext[tables]`; for URLs also the matching package
    (s3fs, gcsfs, aiohttp); for --scheduler `hlotext[dist]`.

    \b
    Examples:
      hlotext table dumps/ -o tables/
      hlotext table dump/ -o s3://bucket/tables --append --build 2026-11-22
      hlotext table 's3://bucket/nightly/*/' -o s3://bucket/tables --scheduler tcp://scheduler:8786

    Exit status: 0 success, 2 usage error, or an input that could not be read.
    """
    stem, ending = os.path.splitext(dataset)
    if ending.lower() in _FILES and not os.path.isdir(dataset):
        use = (
            f", or write a file with `hlotext sql QUERY INPUTS -o {dataset}`"
            if ending.lower() in _QUERIED
            else ""
        )
        raise click.UsageError(
            f"-o {dataset}: a dataset is a folder, with one of Parquet files for each table; use `-o {stem}`{use}"
        )
    for place in (dataset, os.path.dirname(dataset)):
        if os.path.exists(place) and not os.path.isdir(place):
            raise click.UsageError(f"{place} is a file; -o needs a folder")
    began = time.monotonic()
    try:
        wanted = schema.chosen(names)
        with WorkBar("listing") as bar:
            inputs = list(bar.each(tables.batch_inputs.find_inputs(places, build=build, which=which)))
        planned = tables.batch.plan(inputs, dataset, wanted, retry=retry, is_anew=anew)
        if planned.others and not append:
            raise Unreadable(
                f"{dataset} holds tables of {pluralize(planned.others, 'other input')}; use --append to add to it"
            )
        counts = _Counts(known=[one for one in planned.before if one.status != "ok"])
        number = jobs or os.cpu_count() or 1
        with WorkBar("converting", len(planned.todo)) as bar:
            for status in bar.each(
                tables.batch.run(
                    planned, jobs=number, scheduler=scheduler, retries=retries, is_together=not no_compact
                )
            ):
                counts.add(status)
        if not no_compact and planned.todo:
            with WorkBar("compacting"):
                tables.compaction.compact(planned.dataset, least=_MANY_PARTS)
    except TableError as error:
        raise click.UsageError(str(error)) from None
    except (InputError, ImportError) as error:
        raise Unreadable(str(error)) from None
    _report(counts, planned, dataset, time.monotonic() - began, quiet, output_format)
    if counts.bad or counts.known:
        raise click.exceptions.Exit(UNREADABLE)


@attrs.define
class _Counts:
    """Outcome counts of a run's inputs."""

    known: list[Done]
    """Those that an earlier run found unreadable, and that were not tried again."""
    ok: int = 0
    size: int = 0
    bad: list[Status] = attrs.field(factory=list)

    def add(self, status: Status) -> None:
        """Counts one, and says what is wrong with it."""
        self.ok += status.status == "ok"
        self.size += status.size
        if status.status != "ok":
            self.bad.append(status)
            if len(self.bad) <= _SAID:
                Unreadable(
                    _problem(status.input.path, status.error), where={"file": status.input.path}
                ).show()


def _problem(path: str, error: str) -> str:
    return error if path in error else f"{path}: {error}"


def _report(
    counts: _Counts, planned: Plan, dataset: str, seconds: float, quiet: bool, output_format: str
) -> None:
    bad = [(one.input.path, one.input.build, one.status, one.error) for one in counts.bad]
    bad += [(one.path, one.build, one.status, one.error) for one in counts.known]
    if output_format == "json":
        write_json(
            {
                "dataset": dataset,
                "converted": counts.ok,
                "done_before": len(planned.before) - len(counts.known),
                "written_bytes": counts.size,
                "refused": [
                    dict(zip(("file", "build", "status", "message"), one, strict=True)) for one in bad
                ],
            }
        )
    if len(counts.bad) > _SAID:
        say(f"... and {len(counts.bad) - _SAID:,} more: hlotext sql --query unreadable {dataset}")
    if quiet:
        return
    before = len(planned.before) - len(counts.known)
    by_status = [sum(one.status == kind for one in counts.bad) for kind in ("unreadable", "failed")]
    parts = [f"{pluralize(counts.ok, 'input')} converted ({byte_text(counts.size)})"]
    parts += [f"{before:,} done before"] * bool(before)
    parts += [f"{by_status[0]:,} unreadable"] * bool(by_status[0])
    parts += [f"{by_status[1]:,} failed"] * bool(by_status[1])
    parts += [f"{len(counts.known):,} unreadable before (--retry to read them again)"] * bool(counts.known)
    say(f"{dataset}: {', '.join(parts)}, {seconds:.1f} s")
