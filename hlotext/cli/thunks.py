"""`hlotext thunks`: what the runtime will execute, in order, and which of it goes into command buffers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import click

import hlotext as hlo
from hlotext import analysis, dumps, thunks
from hlotext.cli import thunks_executables, thunks_tpu
from hlotext.cli.chip_options import say_given_platform
from hlotext.cli.common import (
    FORMAT,
    Unreadable,
    age_json,
    limit_option,
    refuse_missing_entry,
    say,
    say_if_converted,
    write_json,
)
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Output, echo, output
from hlotext.cli.thunks_tpu import OnTpu
from hlotext.dumps.storage import is_archive
from hlotext.dumps.texts import age_beside, no_module
from hlotext.findings.errors import brief
from hlotext.thunks import compare, rules, tpu

_DIFFERENT = 1
"""Exit status where --check finds a difference."""
_MOST = 40
"""Thunks that the text shows at once."""


@click.command()
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--command-buffers", is_flag=True, help="Show command buffers, and what ends each.")
@click.option("--overlap", is_flag=True, help="Show what overlaps each asynchronous operation.")
@click.option("--check", is_flag=True, help="Compare with XLA's thunk list next to the text.")
@click.option(
    "--executable",
    is_flag=True,
    help="Show the parts of executables in dump folders, and which files are missing.",
)
@click.option("--platform", type=click.Choice(["gpu", "cpu"]), help="Platform, if it cannot be detected.")
@limit_option(_MOST)
@click.option(
    "--rules",
    "show_rules",
    is_flag=True,
    help="Show the rules from instructions to thunks, with XLA functions.",
)
@FORMAT
def command(
    paths: tuple[str, ...],
    command_buffers: bool,
    overlap: bool,
    check: bool,
    executable: bool,
    platform: str | None,
    limit: int,
    show_rules: bool,
    output_format: str,
) -> None:
    """The thunks of each PATH: kernels, copies, library calls, collectives, loops, in the order of execution.

    A PATH is a scheduled GPU or CPU module, whose thunks are predicted; a dump folder or a tar archive of one; or a
    thunk list of XLA (thunk_sequence.txt, thunk_metadata.txt, a serialized CPU executable). Kernel
    launches are shown if XLA's list is next to the text. TPU programs have no thunks; for
    them, the operations of the after_codegen file are shown.

    \b
    Examples:
      hlotext thunks dump/ --command-buffers
      hlotext thunks module_0001.jit_step.sm_9.0a_gpu_after_optimizations.txt --overlap
      hlotext thunks dump/ --check
      hlotext thunks dump/ --executable

    Exit status: 0 success, 1 --check found a difference, 2 unreadable input, or --check had nothing to compare.
    """
    if show_rules:
        _show_rules(output_format)
        return
    if not paths:
        raise click.UsageError("missing argument: a module, a dump folder or a thunk list")
    if executable:
        thunks_executables.show(paths, limit, output_format)
        return
    everything = [one for path in paths for one in _of(path, platform)]
    if not everything:
        raise Unreadable(str(no_module(", ".join(paths))))
    found = [one for one in everything if isinstance(one, _Found)]
    on_tpu = [one for one in everything if isinstance(one, OnTpu)]
    if command_buffers:
        found = [attrs.evolve(one, tree=one.tree.with_command_buffers()) for one in found]
    different = [(one, _differences(one)) for one in found] if check else []
    if output_format == "json":
        modules = [_json(one, dict_of(different, one)) for one in found]
        write_json({"modules": modules + list(map(thunks_tpu.as_json, on_tpu))})
    else:
        report = output()
        for one in found:
            _show(report, one, limit, is_overlap=overlap, is_buffers=command_buffers)
            if check:
                _show_differences(dict_of(different, one))
        for one_tpu in on_tpu:
            thunks_tpu.show(report, one_tpu, limit)
    if any(differences for _, differences in different):
        raise click.exceptions.Exit(_DIFFERENT)
    if check and all(differences is None for _, differences in different):
        raise Unreadable("--check compared nothing: no XLA thunk list next to these texts")


@attrs.frozen(kw_only=True)
class _Found:
    """The thunks of one module, and what XLA's files say of them."""

    label: str
    tree: thunks.Thunks
    listed: thunks.Thunks | None = None
    """Thunks listed by `thunk_sequence.txt` or its successor after the passes."""
    listed_after: thunks.Thunks | None = None
    names: dict[int, str] = attrs.field(factory=dict)


Differences = tuple[compare.ThunkDifference, ...] | None


def dict_of(different: list[tuple[_Found, Differences]], one: _Found) -> Differences:
    """Returns the differences of one module; None if nothing was compared."""
    return next((differences for found, differences in different if found is one), None)


def _of(path: str, platform: str | None) -> Iterator[_Found | OnTpu]:
    """Yields the contents of a path: the modules of a folder, the list or module of a file."""
    try:
        if os.path.isdir(path) or is_archive(path):
            yield from _of_folder(path, platform)
            return
        if path != "-":
            try:
                yield _Found(label=path, tree=thunks.load(path))
                return
            except thunks.ThunkError:
                pass
        modules = dumps.ModuleFile(path).load_all()
        say_if_converted(path)
        for module in modules:
            refuse_missing_entry(path, module)
            label = path if len(modules) == 1 else f"{path}: {module.name}"
            say_given_platform(label, module, platform)
            if platform is None and analysis.backend_of(module) is analysis.Backend.TPU:
                yield OnTpu(label, tpu.operations(module))
            else:
                yield _predicted(label, module, None, platform, age_beside(path))
    except (hlo.InputError, OSError, thunks.ThunkError, hlo.HloSyntaxError) as error:
        raise Unreadable(brief(error)) from None


def _predicted(
    label: str, module: hlo.Module, options: Any, platform: str | None, age: analysis.XlaAge | None
) -> _Found:
    try:
        tree = thunks.predict(module, options, platform=platform, age=age)
    except thunks.ThunkError as error:
        raise Unreadable(f"{label}: {error}") from None
    return _Found(label=label, tree=tree)


def _of_folder(path: str, platform: str | None) -> Iterator[_Found | OnTpu]:
    for compilation in dumps.open(path).compilations:
        if compilation.platform == "tpu" and platform is None:
            if compilation.steps:
                yield OnTpu(compilation.name, tpu.operations(compilation.steps[-1].module))
            continue
        module = compilation.after
        if module is None:
            say(f"{compilation.name}: no final HLO, so no thunks")
            continue
        try:
            wanted = platform or compilation.platform
            found = _predicted(compilation.name, module, compilation.options, wanted, compilation.age)
        except thunks.ThunkError as error:
            say(f"{compilation.name}: {error}")
            continue
        listed, after, names = _listed(compilation)
        yield attrs.evolve(found, listed=listed, listed_after=after, names=names)


def _listed(
    compilation: dumps.Compilation,
) -> tuple[thunks.Thunks | None, thunks.Thunks | None, dict[int, str]]:
    found: dict[str, thunks.Thunks | None] = {}
    for kind in ("thunk-sequence", "thunk-sequence-after", "thunk-metadata"):
        files = compilation.files_of(kind)
        found[kind] = None
        if files:
            try:
                found[kind] = thunks.parse(files[0].text(), files[0].path)
            except thunks.ThunkError as error:
                say(str(error))
    metadata = found["thunk-metadata"]
    names = {t.number: t.name for t in metadata.thunks if t.number and t.name} if metadata is not None else {}
    listed = found["thunk-sequence"]
    return listed, found["thunk-sequence-after"] or listed, names


def _differences(one: _Found) -> Differences:
    """Differences from XLA's lists; None without companion files."""
    if one.listed is None or not one.tree.is_predicted:
        say(f"{one.label}: nothing to compare with")
        return None
    before = one.tree
    if one.tree.ended or any(t.kind == "kCommandBuffer" for t in one.tree.thunks):
        return compare.differences(one.listed_after or one.listed, one.tree, one.names)
    found = compare.differences(one.listed, before, one.names)
    if not found and one.listed_after is not None:
        found = compare.differences(one.listed_after, before.with_command_buffers(), one.names)
    return found


# ---- text


def _show(report: Output, one: _Found, limit: int, *, is_overlap: bool, is_buffers: bool) -> None:
    tree = one.tree
    total = sum(tree.counts().values())
    kind = "predicted" if tree.is_predicted else "listed by XLA"
    report.heading(f"{one.label}: {total:,} thunks {kind} ({tree.platform})")
    if tree.age is not None and tree.age.is_known:
        report.facts([("age", str(tree.age))])
    for message, count in Counter(note.message for note in tree.notes).items():
        say(f"{one.label}: {message}" + (f" ({count:,} times)" if count > 1 else ""))
    if is_overlap:
        _show_overlap(report, tree)
        return
    launches = {t.number: t.facts.get("launch") for t in one.listed.walk() if t.number} if one.listed else {}
    _show_tree(report, tree, launches, limit)
    if is_buffers:
        _show_runs(report, tree)


def _show_tree(report: Output, tree: thunks.Thunks, launches: Mapping[int, Any], limit: int) -> None:
    rows: list[Row] = []
    total = 0
    for depth, label, thunk in tree.with_depth():
        total += 1
        if limit and len(rows) >= limit:
            continue
        lead = "  " * depth + (f"{label}: " if label not in (None, "nested", "called") else "")
        launch = thunk.facts.get("launch") or launches.get(thunk.number or 0)
        rows.append(
            (
                thunk.number or None,
                lead + thunk.kind,
                thunk.name,
                _launch(launch) if launch is not None else _remark(thunk),
            )
        )
    table = Listing[Row]("thunks.tree", tuple).table("Thunks", rows)
    report.table(attrs.evolve(table, left_out=total - len(rows)))


def _launch(launch: thunks.Launch) -> str:
    grid = "x".join(str(n) for n in launch.grid if n != 1) or "1"
    threads = "x".join(str(n) for n in launch.threads if n != 1) or "1"
    shared = f", {launch.shared_memory:,} B shared" if launch.shared_memory else ""
    return f"{grid} {'block' if grid == '1' else 'blocks'} of {threads}{shared}"


def _remark(thunk: thunks.Thunk) -> str:
    if thunk.facts.get("trip_count") is not None:
        return f"{thunk.facts['trip_count']:,} times"
    if thunk.facts.get("target"):
        return str(thunk.facts["target"])
    if thunk.facts.get("start"):
        return f"ends {thunk.facts['start']}"
    return ""


def _show_runs(report: Output, tree: thunks.Thunks) -> None:
    rows = []
    for run in tree.ended:
        first, last = run.thunks[0], run.thunks[-1]
        where = run.holder.name if run.holder is not None else "entry"
        what = "captured" if run.is_captured else run.too_short.message if run.too_short else "not captured"
        end = "the end of the sequence" if run.ended_by is None else compare.described(run.ended_by)
        why = run.cause.message if run.cause is not None else ""
        rows.append((f"{first.number}-{last.number}", len(run.thunks), where, what, end, why))
    listing = Listing[Row]("thunks.runs", tuple)
    report.table(listing.table("Command buffers: capturable runs, and what ended each", rows))
    if not rows:
        echo("No thunk of this program can be captured with these options.")


def _show_overlap(report: Output, tree: thunks.Thunks) -> None:
    rows = []
    for found in thunks.overlaps(tree):
        names = [t.name or t.kind for t in found.between]
        text = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        start = next(iter(found.start.nested), found.start)
        done = str(found.done.number) if found.done is not None else "not in this sequence"
        rows.append((found.start.number, done, start.kind, found.start.name, len(names), text))
    listing = Listing[Row]("thunks.overlaps", tuple)
    report.table(listing.table("Asynchronous operations and what overlaps them", rows))
    if not rows:
        echo("No asynchronous operations in this program.")


def _show_differences(differences: Differences) -> None:
    if differences is None:
        return
    for difference in differences:
        echo(str(difference))
    if not differences:
        echo("Equal to XLA's list: kinds, order, nesting, names and neighbors.")


def _show_rules(output_format: str) -> None:
    rows = rules.describe()
    if output_format == "json":
        write_json({"rules": [attrs.asdict(row) for row in rows]})
        return
    listing: Listing[rules.ThunkRule] = Listing(
        "thunks.rules",
        lambda r: (r.platform, r.instruction, r.thunks, r.source, "yes" if r.is_seen else "in source only"),
    )
    output().table(listing.table("Instructions and their thunks", rows))


# ---- JSON


def _json(one: _Found, differences: Differences) -> dict[str, Any]:
    tree = one.tree
    facts: dict[str, Any] = {
        "module": one.label,
        "platform": tree.platform,
        "is_predicted": tree.is_predicted,
        "age": None if tree.age is None else age_json(tree.age),
        "counts": tree.counts(),
        "notes": [note.message for note in tree.notes],
        "thunks": [
            {
                "depth": depth,
                "label": label,
                "id": thunk.number,
                "kind": thunk.kind,
                "instruction": thunk.name,
                "previous": thunk.previous.number if thunk.previous is not None else None,
                "next": thunk.next.number if thunk.next is not None else None,
                **{k: attrs.asdict(v) if attrs.has(type(v)) else v for k, v in thunk.facts.items()},
            }
            for depth, label, thunk in tree.with_depth()
        ],
        "runs": [
            {
                "ids": [thunk.number for thunk in run.thunks],
                "in": run.holder.name if run.holder is not None else None,
                "is_captured": run.is_captured,
                "ended_by": compare.described(run.ended_by) if run.ended_by is not None else None,
                "code": run.cause.code if run.cause is not None else None,
                "why": run.cause.message if run.cause is not None else None,
            }
            for run in tree.ended
        ],
    }
    if differences is not None:
        facts["differences"] = [attrs.asdict(difference) for difference in differences]
    return facts
