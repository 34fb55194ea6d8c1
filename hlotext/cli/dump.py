"""`hlotext dump`: a dump folder as the compilations that it tells of."""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import click

import hlotext as hlo
from hlotext import compiler, dumps
from hlotext.analysis import MetadataSource, SourceLocation, byte_text, source_locations
from hlotext.analysis.formatting import pluralize
from hlotext.analysis.views import array_of
from hlotext.cli import CommandGroup, why_output
from hlotext.cli.common import FORMAT, Unreadable, age_json, limit_option, read, write_json
from hlotext.cli.folders import asked, chosen, opened
from hlotext.cli.listing import Listing
from hlotext.cli.listing import Row as Cells
from hlotext.cli.output import echo, output
from hlotext.dumps.causes import ASK_FOR_PASSES, UNKNOWN, Cause, executed_copies
from hlotext.dumps.changes import Changes
from hlotext.dumps.identity.owners import START
from hlotext.dumps.timeline import Rounds, TimelineEntry, rounds
from hlotext.memory.usage import line_text
from hlotext.syntax.source.inputs import several

_ROWS = 40
"""Rows that are shown unless more are asked for."""

PATH = click.argument("path", metavar="DIR")
MODULE = click.option(
    "-m", "--module", metavar="NAME|NUMBER", help="Compilation to use, if there are several."
)
NAME = click.option(
    "-i",
    "--instruction",
    "names",
    metavar="NAME",
    multiple=True,
    required=True,
    help="Name of the instruction.",
)
LIMIT = limit_option(_ROWS)


_FILES = ("bisect", "collectives", "hosts", "pass")


class _Dump(CommandGroup):
    """The commands on dump folders; those with a file of their own are loaded when they are called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted((*super().list_commands(ctx), *_FILES))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _FILES:
            found: click.Command = importlib.import_module(f"hlotext.cli.dump_{cmd_name}").command
            return found
        return super().get_command(ctx, cmd_name)

    def unknown(self, ctx: click.Context, word: str, rest: Sequence[str] = ()) -> str:
        if os.path.exists(word):
            meant = next((one for one in rest if self.get_command(ctx, one) is not None), "list")
            line = f"dump {meant}" if _is_dump(word) else "show"
            return f"{word} is not a command of `hlotext dump`; did you mean `hlotext {line} {word}`?"
        return super().unknown(ctx, word, rest)


def _is_dump(path: str) -> bool:
    """True for a folder, a file in a dump folder and a packed one."""
    if os.path.isdir(path):
        return True
    try:
        opened(path)
    except click.ClickException:
        return False
    return True


@click.group(cls=_Dump)
def command() -> None:
    """Explore an XLA dump folder: modules, passes, provenance. DIR is a folder, a file in one, or a
    folder packed with tar (.tar, .tgz, .tar.xz, .tar.zst) or zip.

    \b
    Examples:
      hlotext dump list dumps/
      hlotext dump timeline dumps/ -m jit_step
      hlotext dump trace dumps/ -i fusion.3
      hlotext dump why dumps/ -i copy.4
      hlotext dump pass dumps/ --pass fusion
      hlotext dump copies dumps/
      hlotext dump collectives dumps/
      hlotext dump hosts dumps_of_all_hosts/
      hlotext dump bisect dumps/

    Exit status: 0 success, 1 not found, 2 usage error or unreadable input.
    """


# ---- what there is


@command.command("list")
@PATH
@LIMIT
@FORMAT
def list_(path: str, limit: int, output_format: str) -> None:
    """List the compiled modules, platforms, stages and files."""
    folder = opened(path)
    if output_format == "json":
        write_json(
            {
                "version": 1,
                "path": folder.path,
                "notes": [str(note) for note in folder.notes],
                "compilations": [_compilation_json(c) for c in folder.compilations],
                "other_files": [file.path for file in folder.files if file.compilation is None],
            }
        )
        return
    out = output()
    out.heading(
        f"{folder.path}: {pluralize(len(folder), 'compilation')}, {pluralize(len(folder.files), 'file')}"
    )
    for note in folder.notes:
        out.note(f"note: {note}")
    has_folders = len({c.folder for c in folder}) > 1
    without = () if has_folders else ("folder",)
    out.table(_COMPILATIONS.table("compilations", folder.compilations, limit, without=without))
    if len(folder) == 1:
        _one(folder.compilations[0])


_COMPILATIONS: Listing[dumps.Compilation] = Listing(
    "dump.compilations",
    lambda c: (
        c.folder, c.number, c.name, c.platform or "unknown", str(c.age) if c.age.is_known else "unknown",
        len(c.steps), len(c.files), "; ".join(note.code for note in c.notes),
    ),
)  # fmt: skip


def _one(c: dumps.Compilation) -> None:
    """More about the only compilation."""
    out = output()
    facts = []
    if c.options is not None:
        expression = c.options.last("xla_dump_hlo_pass_re")
        every = (
            "every change"
            if c.options.dumps_every_change
            else f"passes matching {expression}"
            if expression
            else "no passes"
        )
        if c.options.debug:
            facts.append(("dumped", every))
        if c.options.target is not None:
            device = c.options.target.message("gpu_device_info").text("name") or c.options.target.text(
                "device_description_str"
            )
            facts.append(("device", device or "unknown"))
    if c.passes:
        facts.append(
            (
                "passes run",
                f"{len(c.passes):,}, {sum(run.changed for run in c.passes):,} with changes",
            )
        )
    for note in c.notes:
        facts.append(("note", str(note)))
    out.facts(facts)
    present = Counter(step.stage for step in c.steps)
    of_kind = Counter(
        stage.name for file in c.files if (stage := compiler.stages.of_kind(file.kind)) is not None
    )
    stages: Listing[compiler.Stage] = Listing(
        "dump.stages", lambda stage: (stage.name, stage.title, present[stage.name], of_kind[stage.name])
    )
    out.table(stages.table("stages", list(compiler.stages)))
    kinds = Counter(file.kind for file in c.files)
    files: Listing[tuple[str, int]] = Listing("dump.files", tuple)
    out.table(files.table("files", sorted(kinds.items())))


def _compilation_json(c: dumps.Compilation) -> dict[str, Any]:
    return {
        "number": c.number,
        "name": c.name,
        "folder": c.folder,
        "platform": c.platform,
        "age": age_json(c.age),
        "steps": len(c.steps),
        "stages": dict(Counter(step.stage for step in c.steps)),
        "files": dict(sorted(Counter(file.kind for file in c.files).items())),
        "notes": [{"code": note.code, "message": note.message, "path": note.path} for note in c.notes],
        "dumps_every_change": None if c.options is None else c.options.dumps_every_change,
    }


# ---- the timeline


@command.command()
@PATH
@MODULE
@click.option(
    "--stage",
    type=click.Choice([stage.name for stage in compiler.stages]),
    metavar="STAGE",
    help="Only this stage.",
)
@click.option("--all", "show_all", is_flag=True, help="Include steps without changes, and every iteration.")
@FORMAT
def timeline(path: str, module: str | None, stage: str | None, show_all: bool, output_format: str) -> None:
    """Changes of each step: operations, bytes of results, time.

    Operations are added, removed, changed or renamed, inside fusions too. Bytes are the increase in the results of all
    operations that run step by step: what is inside fusions and reducers is not written.

    \b
    Example:
      hlotext dump timeline dumps/ --stage fusion
    """
    c = chosen(path, module)
    rows = asked(lambda: list(c.timeline(stage)))
    if output_format == "json":
        write_json(
            {"version": 1, "module": c.name, "number": c.number, "steps": [_row_json(row) for row in rows]}
        )
        return
    out = output()
    out.heading(
        f"{c.name}, number {c.number}, {c.platform or 'platform unknown'}: {pluralize(len(c.steps), 'step')}"
    )
    for note in (*c.notes, *(row.note for row in rows if row.note is not None)):
        out.note(f"note: {note}")
    shown = [row for row in rows if show_all or not row.is_quiet or not row.step.is_pass]
    has_times = any(row.milliseconds is not None for row in rows)
    without = () if has_times else ("ms",)
    cells: list[Cells] = []
    for group in rounds(shown) if not show_all else [Rounds((row,)) for row in shown]:
        cells += map(_cells, group.rows)
        if group.others:
            cells.append(_round_cells(group))
    out.table(Listing[Cells]("dump.steps", tuple).table("steps", cells, without=without))
    if not any(step.is_pass for step in c.steps):
        out.note(f"note: no pass was dumped; compile with {ASK_FOR_PASSES}")
    quiet = len(rows) - len(shown)
    if quiet:
        echo(f"  {pluralize(quiet, 'step')} without changes (show with --all)")
    if c.options is not None and c.options.dumps_every_change is False:
        echo("  Not every pass was dumped: a step may include changes by earlier passes.")


def _cells(row: TimelineEntry) -> Cells:
    step, found = row.step, row.changes
    counts: Cells = ("?",) * 5
    if found is not None:
        numbers = len(found.added), len(found.removed), len(found.changed), len(found.renamed)
        counts = *numbers, _signed(found.bytes) if len(found) else ""
        if not step.index:
            counts = (0, 0, 0, 0, "")
    # Named by its pipeline: what a text at its start has changed, passes before it did.
    name = f"start of {step.pipeline}" if step.name == START and step.pipeline else step.name
    return step.index, step.stage, name, *counts, row.milliseconds


def _round_cells(group: Rounds) -> Cells:
    """Sums of the later iterations of the same passes."""
    steps = [row.step.index for row in group.others]
    found = [row.changes for row in group.others if row.changes is not None]
    numbers = [
        sum(map(len, parts))
        for parts in zip(*((c.added, c.removed, c.changed, c.renamed) for c in found), strict=True)
    ] or [0] * 4
    times = [row.milliseconds for row in group.others if row.milliseconds is not None]
    sizes = [changes.bytes for changes in found]
    known = [size for size in sizes if size is not None]
    what = "the same" if len(group.rows) == 1 else f"the same {len(group.rows)} passes"
    return (
        f"{min(steps)}-{max(steps)}",
        group.rows[0].step.stage,
        f"{what} {pluralize(group.count - 1, 'time')} more",
        *numbers,
        _signed(sum(known) if len(known) == len(sizes) else None),
        sum(times) if times else None,
    )


def _row_json(row: TimelineEntry) -> dict[str, Any]:
    step, found = row.step, row.changes
    return {
        "index": step.index,
        "number": step.number,
        "stage": step.stage,
        "pipeline": step.pipeline,
        "pass": step.name,
        "path": step.path,
        "milliseconds": row.milliseconds,
        "note": None if row.note is None else str(row.note),
        "changes": None if found is None else _changes_json(found),
    }


def _changes_json(found: Changes) -> dict[str, Any]:
    return {
        "added": [change.name for change in found.added],
        "removed": [change.name for change in found.removed],
        "changed": [{"name": change.name, "parts": list(change.parts)} for change in found.changed],
        "renamed": [{"name": change.name, "old_name": change.old_name} for change in found.renamed],
        "bytes": found.bytes,
        "is_same_text": found.is_same_text,
    }


# ---- where operations come from


@command.command()
@PATH
@NAME
@MODULE
@click.option("--forward", is_flag=True, help="Follow an instruction before optimization to the final HLO.")
@FORMAT
def trace(path: str, names: tuple[str, ...], module: str | None, forward: bool, output_format: str) -> None:
    """Origin of an instruction: operations and Python lines.

    Lists the operations before optimization that an instruction of the final HLO derives from, each with the rule
    and step of the weakest match in between, and its confidence.
    """
    c = chosen(path, module)
    follow = c.forward if forward else c.trace
    found = {name: asked(partial(follow, name)) for name in names}
    if output_format == "json":
        write_json(
            {
                "version": 1,
                "module": c.name,
                "traces": {name: _LINKS.json(links) for name, links in found.items()},
            }
        )
        return
    out = output()
    for name, links in found.items():
        out.heading(
            f"{name} {'became' if forward else 'comes from'}" + ("" if links else " unknown operations")
        )
        out.table(_LINKS.table("operations", links, _ROWS))


def _link(link: dumps.Link) -> Cells:
    metadata = link.instruction.metadata
    source = _line(link.instruction)
    return (
        link.instruction.name,
        link.instruction.opcode,
        None if metadata is None else metadata.op_name or None,
        source or None,
        link.confidence,
        link.rule,
        _step_name(link.step),
        source,
        link.step.index,
        link.step.name,
    )


_LINKS = Listing("dump.links", _link)


@command.command()
@PATH
@NAME
@MODULE
@FORMAT
def why(path: str, names: tuple[str, ...], module: str | None, output_format: str) -> None:
    """Explain why an instruction is there: the pass and its reason.

    NAME is an instruction of the final HLO. For passes that hlotext models, such as fusion and copy insertion, the
    rules by which XLA decided are shown too.

    DIR may also be a single module, which shows why a copy is needed, but not which pass inserted an
    instruction.
    """
    if why_output.is_module_alone(path):
        _why_in_module(path, names, output_format)
        return
    c = chosen(path, module)
    found = [asked(partial(c.why, name)) for name in names]
    said = [asked(partial(compiler.why, c, name)) for name in names]
    if output_format == "json":
        write_json(
            {
                "module": c.name,
                "causes": [_cause_json(cause) for cause in found],
                "answers": _answers_json(names, said),
            }
        )
        return
    out = output()
    for cause, own in zip(found, said, strict=True):
        out.heading(f"{cause.instruction.name}: {cause.cause}")
        facts = [
            ("because", cause.because or "unknown"),
            ("inserted by", _brought(cause)),
            ("confidence", cause.confidence),
        ]
        if cause.step is not None:
            facts.append(("stage", cause.step.stage))
        facts += [("to avoid it", cause.change)] * bool(cause.change)
        facts += [("evidence" if not number else "", line) for number, line in enumerate(cause.evidence)]
        if len(cause.candidates) > 1:
            facts.append(("candidates", ", ".join(cause.candidates)))
        facts.append(("chain", cause.chain))
        if (wrapped := why_output.wrapped(cause.instruction)) is not None:
            inner = asked(partial(c.why, wrapped.name))
            facts.append(("it runs", f"{wrapped.name}: {inner.because or 'unknown'} ({_brought(inner)})"))
        out.facts([*facts, *why_output.facts(own)])


def single(path: str) -> hlo.Module:
    """Returns the module of a file that is not part of a dump folder. Raises Unreadable."""
    modules = read(path).modules
    if not modules:
        raise Unreadable(f"{path} contains no module")
    if len(modules) > 1:
        raise Unreadable(several(path, [module.name for module in modules]))
    return modules[0]


def _why_in_module(path: str, names: tuple[str, ...], output_format: str) -> None:
    """Prints the answers of the models that fit a module."""
    module = single(path)
    said = [asked(partial(compiler.why_in, module, name)) for name in names]
    if output_format == "json":
        write_json({"module": module.name, "causes": [], "answers": _answers_json(names, said)})
        return
    out = output()
    for name, own in zip(names, said, strict=True):
        out.heading(name)
        out.facts(why_output.facts(own, module) or [("", _NOTHING_ALONE)])


_NOTHING_ALONE = (
    f"a single module does not show which pass created it; pass a dump folder, compiled with {ASK_FOR_PASSES}"
)


def _answers_json(names: tuple[str, ...], said: list[tuple[compiler.Answer, ...]]) -> dict[str, Any]:
    return {name: list(map(why_output.as_json, own)) for name, own in zip(names, said, strict=True)}


@command.command()
@PATH
@MODULE
@LIMIT
@FORMAT
def copies(path: str, module: str | None, limit: int, output_format: str) -> None:
    """Copies and transposes, by pass and cause.

    Lists those of the final HLO with their bytes, including fusions that only rearrange, slice or concatenate arrays.
    Not listed: a transpose in a fusion that also computes, which needs no separate pass over memory; a transpose that
    moves no bytes; slices and concatenations alone.

    DIR may also be a single module, whose text does not show causes.
    """
    after: hlo.Module | None
    if why_output.is_module_alone(path):
        text = after = single(path)
        name, is_alone = text.name, True
        found = [Cause(node, None, UNKNOWN, "") for node in executed_copies(text)]
    else:
        c = chosen(path, module)
        name, found, after, is_alone = c.name, asked(c.copies), c.after, not c.identity.shows_passes
    if output_format == "json":
        write_json({"version": 1, "module": name, "copies": [_cause_json(cause) for cause in found]})
        return
    groups: dict[tuple[str, str], list[Cause]] = {}
    for cause in found:
        groups.setdefault((_step_name(cause.step), cause.cause), []).append(cause)
    out = output()
    transposes = sum(cause.instruction.opcode == "transpose" for cause in found)
    counted = (pluralize(len(found) - transposes, "copy", "copies"), pluralize(transposes, "transpose"))
    out.heading(f"{name}: {' and '.join(counted)}, {_bytes(_sum(found))}")
    rows = [
        (
            step,
            cause,
            len(group),
            _bytes(_sum(group)),
            max(group, key=lambda one: one.bytes or 0).instruction.name,
        )
        for (step, cause), group in sorted(groups.items(), key=lambda entry: -(_sum(entry[1]) or 0))
    ]
    out.table(Listing[Cells]("dump.copies", tuple).table("By pass and cause", rows))
    largest = sorted(found, key=lambda one: -(one.bytes or 0))
    places = source_locations(after) if after is not None else {}
    out.table(Listing[Cause]("dump.moved", lambda one: _moved(one, places)).table("Largest", largest, limit))
    changes: dict[str, list[Cause]] = {}
    for cause in largest:
        if cause.change:
            changes.setdefault(cause.change, []).append(cause)
    ways = [(change, len(group), _bytes(_sum(group))) for change, group in changes.items()]
    out.table(Listing[Cells]("dump.ways", tuple).table("How to avoid them", ways, limit))
    if is_alone and any(cause.cause == UNKNOWN for cause in found):
        out.note(f"note: no pass was dumped; to see causes, compile with {ASK_FOR_PASSES}")


def _moved(cause: Cause, places: Mapping[hlo.Instruction, tuple[SourceLocation, MetadataSource]]) -> Cells:
    """A copy or transpose; by the fusion around it if there is one, as profiles name it."""
    node = cause.instruction
    home = node.computation
    caller = next(iter(home.callers), None) if home is not None and home.is_fusion_body else None
    shown = caller or node
    place = places.get(node) or places.get(shown)
    return (
        shown.name,
        node.opcode,
        _bytes(cause.bytes),
        str(array_of(node.shape) or node.shape),
        cause.cause,
        line_text(place[0] if place is not None else None),
    )


def _cause_json(cause: Cause) -> dict[str, Any]:
    return {
        "instruction": cause.instruction.name,
        "opcode": cause.instruction.opcode,
        "cause": cause.cause,
        "because": cause.because,
        "evidence": list(cause.evidence),
        "change": cause.change,
        "bytes": cause.bytes,
        "step": None if cause.step is None else cause.step.index,
        "pipeline": None if cause.step is None else cause.step.pipeline,
        "pass": None if cause.step is None else cause.step.name,
        "stage": None if cause.step is None else cause.step.stage,
        "confidence": cause.confidence,
        "owner": cause.pass_name or None,
        "is_bracket": cause.owner is not None and cause.owner.is_bracket,
        "candidates": list(cause.candidates),
        "chain": cause.chain,
        "history": [
            {
                "step": event.step.index,
                "kind": event.kind,
                "name": event.name,
                "before": list(event.before),
                "owner": event.pass_name,
                "confidence": event.confidence,
            }
            for event in cause.history
        ],
    }


# ---- help


def _brought(cause: Cause) -> str:
    """The pass that brought it, and the step that shows it where that has another name."""
    step = _step_name(cause.step)
    if cause.owner is not None and cause.owner.is_bracket:
        return f"{cause.owner} (first seen in {step})"
    if (
        not cause.pass_name
        or cause.step is None
        or cause.pass_name == cause.step.name
        or not cause.step.index
    ):
        return step
    return f"{cause.pass_name} (first seen in {step})"


def _step_name(step: dumps.Step | None) -> str:
    if step is None:
        return "unknown"
    return f"{step.pipeline} / {step.name}" if step.pipeline else step.name


def _line(instruction: hlo.Instruction) -> str:
    frames = instruction.frames
    return f"{frames[0].file.rpartition('/')[2]}:{frames[0].line}" if frames else ""


def _sum(found: Iterable[Cause]) -> int | None:
    sizes = [cause.bytes for cause in found]
    return None if any(size is None for size in sizes) else sum(size or 0 for size in sizes)


def _bytes(number: int | None) -> str:
    return "unknown" if number is None else byte_text(number)


def _signed(number: int | None) -> str:
    return "?" if number is None else f"{number:+,}"
