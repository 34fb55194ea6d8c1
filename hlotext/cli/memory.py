"""`hlotext memory`: what lives where and when, at the peak first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, cast

import attrs
import click

import hlotext as hlo
from hlotext import dumps, memory
from hlotext.analysis import backend_of
from hlotext.analysis.chips import CHIPS, HOST, Chip
from hlotext.analysis.chips import chip as chip_named
from hlotext.analysis.entries import program_name
from hlotext.cli import memory_message
from hlotext.cli.chip_options import say_given_platform
from hlotext.cli.common import (
    FORMAT,
    NotFound,
    Unreadable,
    age_json,
    as_options,
    limit_option,
    refuse_missing,
    refuse_missing_entry,
    say,
    say_if_converted,
    write_json,
    write_picture,
)
from hlotext.cli.memory_limit import peak_limit
from hlotext.cli.memory_tables import (
    excess_facts,
    moment_text,
    show_arrays,
    show_buffer,
    show_differences,
    show_groups,
    show_spaces,
    show_timeline,
    show_what_if,
)
from hlotext.cli.output import Output, echo, output
from hlotext.findings.errors import brief
from hlotext.ir.caches import lazy_regex
from hlotext.memory import explanation, usage, what_if
from hlotext.messages import Message
from hlotext.view import memory_picture

_DIFFERENT = 1
"""Exit status where --check finds a difference."""
_DEFAULT_LIMIT = 12


class _Space(click.ParamType):  # type: ignore[type-arg]  # generic in click 8.4 only
    """A memory space by its number or its usual name."""

    name = "space"
    _NAMED: ClassVar = {"hbm": 0, "main": 0, "device": 0, "vmem": 1, "cmem": 1, "host": HOST}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        number = self._NAMED.get(value.lower(), int(value) if value.isdecimal() else None)
        if number is None:
            known = f"a number, hbm (0), vmem (1) or host ({HOST})"
            raise click.UsageError(f"--space takes {known}, not {value!r}", ctx)
        return number


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--chip", metavar="NAME", help=f"The chip ({', '.join(CHIPS)}): rules and capacities differ between TPUs."
)
@click.option(
    "--platform", type=click.Choice(["cpu", "gpu", "tpu"]), help="Platform, if it cannot be detected."
)
@click.option(
    "--space",
    "memory_space",
    type=_Space(),
    default=0,
    show_default=True,
    metavar="N|hbm|vmem|host",
    help="Memory space to show.",
)
@click.option(
    "--at",
    "moment",
    metavar="NAME|TIME",
    help="Show live buffers at this schedule position instead of at the peak.",
)
@click.option(
    "--by",
    type=click.Choice(["op", "scope", "line", "opcode"]),
    help="Group live bytes and padding.",
)
@click.option(
    "--buffer",
    metavar="NAME",
    help="Show the buffer of an instruction, its sharing, and reasons against reuse.",
)
@click.option(
    "--what-if",
    "changes",
    multiple=True,
    metavar="CHANGE",
    help=(
        "Estimate the peak after a change, and after all changes if there are several: donate=state (an argument "
        "of the program, all its arrays), donate=0,3-5 (numbers of the entry's parameters, one for each array: hlotext "
        "show --arguments) or remat=NAME."
    ),
)
@click.option("--timeline", is_flag=True, help="Draw live bytes over the schedule as bars.")
@click.option(
    "--svg",
    metavar="FILE",
    help="Draw offsets over time, or padding with --by, as SVG; - for standard output.",
)
@click.option("--dump", metavar="DIR", help="Dump folder of the module in an out-of-memory log.")
@click.option(
    "--fail-on",
    metavar="CONDITION",
    help="Exit with status 1 if a module's peak exceeds a limit: peak>8GiB, peak>=500MB.",
)
@click.option("--check", is_flag=True, help="Compare with XLA's buffer assignment files next to the text.")
@limit_option(_DEFAULT_LIMIT)
@FORMAT
def command(
    paths: tuple[str, ...],
    chip: str | None,
    platform: str | None,
    memory_space: int,
    moment: str | None,
    by: str | None,
    buffer: str | None,
    changes: tuple[str, ...],
    timeline: bool,
    svg: str | None,
    dump: str | None,
    fail_on: str | None,
    check: bool,
    limit: int,
    output_format: str,
) -> None:
    """Buffer assignment of each PATH, a scheduled module or a dump folder: use of each memory space, and live
    buffers at the peak with padding, lifetimes, shapes, scopes and Python lines.

    Computed from the text by the rules of XLA's compilers. If XLA's files (-buffer-assignment.txt and others) are
    next to the text, offsets and lifetimes are read from them, and the report says so. Bytes are those of the
    allocator, including padding. JAX's memory_analysis().peak_memory_in_bytes is a different number: on TPU, static
    memory plus the largest heap of any memory space, including VMEM, so it may exceed the peak of HBM; on CPU, static
    memory alone. --format json has it as xla_peak. For a log with an out-of-memory error, show the allocations by
    operation and shape; with --dump DIR, also changes that would make the program fit.

    \b
    Examples:
      hlotext memory module_0001.jit_step.after_optimizations.txt --chip v5e
      hlotext memory dump/ --by scope
      hlotext memory dump.txt --buffer fusion.3
      hlotext memory dump.txt --what-if donate=state --what-if remat=fusion.3
      hlotext memory dump.txt --svg memory.svg
      hlotext memory dump/ --fail-on 'peak>8GiB'
      hlotext memory oom.txt --dump dumps/

    Exit status: 0 success, 1 --check found a difference, a peak exceeds --fail-on, or no such name, 2 unreadable
    input, or --check had nothing to compare.
    """
    refuse_missing(paths)
    known = _chip(chip)
    most = peak_limit(fail_on) if fail_on is not None else None
    logs = [(place, message) for place in paths if (message := memory_message.message_in(place)) is not None]
    if logs or dump is not None:
        if most is not None:
            raise click.UsageError("--fail-on is for modules, not for logs")
        _show_logs(paths, logs, dump, limit, output_format)
        return
    documents: list[dict[str, Any]] = []
    different = compared = False
    beyond: list[str] = []
    for number, found in enumerate(
        one for label, text in _texts(paths) for one in _found(label, text, platform, known)
    ):
        label = found.label
        if svg is not None and (number or output_format == "json"):
            why = (
                "draws one module, but several are given"
                if number
                else "cannot be combined with --format json"
            )
            raise click.UsageError(f"--svg {why}")
        peak = found.shown.peak(memory_space).bytes
        if most is not None and most.fails(peak):
            beyond.append(most.told(label, peak))
        asked = _Asked(found, memory_space, moment, cast("usage.By | None", by), buffer, changes, limit)
        try:
            if svg is not None:
                _write_svg(svg, asked)
                continue
            differences = found.differences() if check else None
            if check and differences is None:
                say(f"{label}: nothing to compare with")
            compared = compared or differences is not None
            different = different or any(not d.is_estimated for d in differences or ())
            if output_format == "json":
                documents.append(_json(asked, timeline, differences))
            else:
                if number:
                    echo("")
                _show(output(), asked, timeline, differences, check=check)
        except memory.MemoryModelError as error:
            raise NotFound(f"{label}: {error}") from None
    if output_format == "json" and svg is None:
        write_json({"modules": documents})
    for line in beyond:
        say(line)
    if different or beyond:
        raise click.exceptions.Exit(_DIFFERENT)
    if check and svg is None and not compared:
        raise Unreadable("--check compared nothing: no XLA buffer assignment files next to these texts")


def _show_logs(
    paths: Sequence[str],
    logs: Sequence[tuple[str, Message]],
    dump: str | None,
    limit: int,
    output_format: str,
) -> None:
    """Logs in place of modules."""
    if len(logs) < len(paths):
        known = [place for place, _ in logs]
        other = next(place for place in paths if place not in known)
        why = "; logs and modules cannot be mixed" if logs else "; --dump needs such a log"
        raise Unreadable(f"{other} has no out-of-memory message{why}")
    found = [memory_message.explained(place, message, dump) for place, message in logs]
    if output_format == "json":
        write_json({"messages": [memory_message.json_of(one, limit) for one in found]})
        return
    for one in found:
        memory_message.show(output(), one, limit)


@attrs.frozen
class _Found:
    """The memory of one module: as computed, and as XLA's files say."""

    label: str
    module: hlo.Module
    computed: memory.Assignment
    read: memory.Assignment | None
    of_folder: Chip | None
    """The chip that the dump folder names."""

    @property
    def shown(self) -> memory.Assignment:
        return self.read or self.computed

    def differences(self) -> tuple[memory.AssignmentDifference, ...] | None:
        """Differences from XLA's files; None without companion files."""
        return None if self.read is None else memory.differences(self.read, self.computed)


@attrs.frozen
class _Asked:
    """One module and what is asked about it."""

    found: _Found
    memory_space: int
    moment: str | None
    by: usage.By | None
    buffer: str | None
    changes: tuple[str, ...]
    limit: int

    @property
    def time(self) -> int:
        shown = self.found.shown
        return shown.peak(self.memory_space).time if self.moment is None else usage.moment(shown, self.moment)

    def arrays(self) -> tuple[usage.LiveArray, ...]:
        return usage.live_arrays(self.found.shown, self.memory_space, self.time)

    def explanations(self) -> tuple[explanation.BufferExplanation, ...]:
        return explanation.explain(self.found.computed, self.buffer) if self.buffer is not None else ()

    def outcomes(self) -> Iterator[what_if.WhatIf]:
        """Each change alone; of several also all together."""
        computed, module = self.found.computed, self.found.module
        donated: list[int] = []
        again: list[str] = []
        for change in self.changes:
            kind, _, value = change.partition("=")
            if kind == "donate" and (numbers := _numbers(value, module)):
                donated += numbers
                yield what_if.donate(module, numbers, memory_space=self.memory_space, before=computed)
            elif kind == "remat" and value:
                again += value.split(",")
                yield what_if.rematerialize(
                    module, value.split(","), memory_space=self.memory_space, before=computed
                )
            else:
                raise click.UsageError(
                    f"--what-if takes donate=ARGUMENT, donate=0-9 or remat=NAME[,NAME], not {change!r}"
                )
        if len(self.changes) > 1:
            yield what_if.together(module, donated, again, computed, self.memory_space)


def _numbers(text: str, module: hlo.Module) -> list[int]:
    """Parameter numbers in `0,3-5`, or of arguments by their names. Raises UsageError for one that is not there."""
    if not _NUMBERS().fullmatch(text):
        return [] if text[:1].isdigit() else _named(text, module)
    bounds = [tuple(map(int, part.split("-"))) for part in text.split(",")]
    count = len(module.entry.parameters)
    for number in (number for pair in bounds for number in pair):
        if number >= count:
            only = f"parameters are 0 to {count - 1}" if count else "the entry has none"
            raise click.UsageError(f"--what-if: no parameter {number}; {only}")
    return [number for pair in bounds for number in range(pair[0], pair[-1] + 1)]


def _named(text: str, module: hlo.Module) -> list[int]:
    """The parameters of arguments of the program, `state,batch`, or of parts of them, `state['m']`, by their metadata."""
    names = {one.parameter_number or 0: program_name(one) for one in module.entry.parameters}
    found = [n for n, name in names.items() if name == text or name.startswith((f"{text}[", f"{text}."))]
    if not found and "," in text:
        return list(dict.fromkeys(number for part in text.split(",") for number in _named(part, module)))
    if text and not found:
        roots = dict.fromkeys(name.partition("[")[0].partition(".")[0] for name in names.values() if name)
        known = (
            f"its arguments are {', '.join(roots)}" if roots else "the text names no argument: give numbers"
        )
        raise click.UsageError(f"--what-if: {module.name} has no argument {text}; {known}")
    return found


_NUMBERS = lazy_regex(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*")


def _chip(name: str | None) -> Chip | None:
    try:
        return chip_named(name) if name is not None else None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _texts(paths: Sequence[str]) -> Iterator[tuple[str, dumps.ModuleFile]]:
    try:
        for path in paths:
            text = None
            for text in dumps.module_texts([path]):
                yield text.label, text
            if text is None:
                raise dumps.no_module(path)
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None


def _found(label: str, text: dumps.ModuleFile, platform: str | None, chip: Chip | None) -> Iterator[_Found]:
    """Yields the results of each module of a text; XLA's companion files describe one module."""
    try:
        modules = text.load_all()
    except (hlo.InputError, hlo.HloSyntaxError) as error:
        raise Unreadable(brief(error)) from None
    if text.file is None and text.real_path is not None:
        say_if_converted(text.real_path)
    compilation = _compilation(text)
    for module in modules:
        called = label if len(modules) == 1 else f"{label}: {module.name}"
        refuse_missing_entry(called, module)
        say_given_platform(called, module, platform)
        try:
            computed = _assigned(module, text, platform, chip)
        except hlo.HloSyntaxError as error:
            raise Unreadable(brief(error)) from None
        except memory.MemoryModelError as error:
            if text.file is not None and compilation is not None and compilation.last is None:
                say(f"{called}: no final HLO in this compilation, so no buffer assignment")
                continue
            raise Unreadable(f"{called}: {as_options(str(error))}") from None
        last = compilation.last if compilation is not None else None
        if not module.is_scheduled and last is not None and last.file is not text.file:
            final = os.path.basename(last.path)
            say(f"{called} is an earlier stage without a schedule; the program that runs is {final}")
        of_folder = compilation.chip if compilation is not None else None
        read = _read(label, text) if len(modules) == 1 else None
        yield _Found(
            called, module, computed, memory.joined(read, computed) if read is not None else None, of_folder
        )


def _compilation(text: dumps.ModuleFile) -> dumps.Compilation | None:
    """The compilation that a text is of, also where the text itself was named; None for what no compiler dumped."""
    if text.file is not None or text.real_path is None:
        return text.compilation
    return next(iter(dumps.open(text.real_path).compilations), None)


def _assigned(
    module: hlo.Module, text: dumps.ModuleFile, platform: str | None, chip: Chip | None
) -> memory.Assignment:
    """The memory of a module, for the platform and chip that are given, else for those that the folder names."""
    compilation = _compilation(text)
    backend = backend_of(module)
    if compilation is not None:
        platform = platform or (compilation.platform if backend is None else None)
        wanted = platform or (backend.value if backend is not None else None)
        own = compilation.chip
        chip = chip or (own if own is not None and own.backend.value == wanted else None)
    return memory.assign(module, platform, chip, age=text.age)


def _read(label: str, text: dumps.ModuleFile) -> memory.Assignment | None:
    """Reads the companion files of a text; None if there are none, or (with a message) if they are unusable."""
    read, why = memory.load_beside(text.real_path)
    if why:
        say(f"{label}: ignoring XLA's files next to it: {why}")
    return read


# ---- text


def _other_than(found: _Found) -> str:
    """Says of a chip that was given that the dump is of another."""
    given, own = found.shown.chip, found.of_folder
    return (
        f", dumped for {own.name}" if own is not None and given is not None and own.name != given.name else ""
    )


def _show(
    report: Output,
    asked: _Asked,
    timeline: bool,
    differences: Sequence[memory.AssignmentDifference] | None,
    *,
    check: bool,
) -> None:
    found, shown = asked.found, asked.found.shown
    # Spaces, names and times that are not there are refused before anything is printed.
    spaces = shown.memory_spaces()
    if asked.memory_space not in spaces:
        there = ", ".join(map(str, spaces)) or "none"
        raise NotFound(f"{found.label}: no memory space {asked.memory_space}; known: {there}")
    explanations, outcomes, time = asked.explanations(), list(asked.outcomes()), asked.time
    platform = found.computed.backend.value if found.computed.backend is not None else "unknown platform"
    chip = f" {shown.chip.name}{_other_than(found)}" if shown.chip is not None else ""
    report.heading(f"{found.module.name} ({platform}{chip})")
    how = "read from XLA's files" if found.read is not None else "computed from the text"
    notes = dict.fromkeys((*found.computed.notes, *shown.notes))
    age = found.computed.age
    known = [("age", str(age))] if age is not None and age.is_known else []
    excess = [fact for space in spaces for fact in excess_facts(shown, space)]
    report.facts([*excess, ("memory", how), *known, *(("note", note) for note in notes)])
    if differences is not None:
        show_differences(report, differences, asked.limit)
    if asked.buffer is not None:
        for explained in explanations:
            show_buffer(report, explained, asked.limit)
        return
    if asked.changes:
        show_what_if(report, outcomes)
        return
    if check:
        return
    show_spaces(report, shown)
    if timeline:
        show_timeline(shown, asked.memory_space)
        return
    arrays = asked.arrays()
    where = f"{usage.space_name(shown, asked.memory_space)} at {moment_text(shown, time)}"
    if asked.by is not None:
        show_groups(report, usage.group_by(arrays, asked.by), asked.by, where, asked.limit)
    else:
        show_arrays(report, arrays, where, asked.limit)


def _write_svg(place: str, asked: _Asked) -> None:
    shown = asked.found.shown
    if asked.by is not None:
        space = usage.space_name(shown, asked.memory_space)
        title = f"{asked.found.module.name}: {space} at {moment_text(shown, asked.time)}"
        text = memory_picture.padding_svg(usage.group_by(asked.arrays(), asked.by), title)
    else:
        text = memory_picture.offsets_svg(shown, asked.memory_space)
    write_picture(place, text)


def _fast_json(computed: memory.Assignment) -> dict[str, Any] | None:
    """Between which bounds the compiler's allocation in the chip's fast memory lies."""
    found = computed.fast_memory
    return None if found is None else {**attrs.asdict(found), "is_exact": found.is_exact}


def _alike_json(arrays: Sequence[usage.LiveArray], limit: int) -> list[dict[str, Any]]:
    """The arrays of a moment, those that are the same in every layer as one row."""
    folded = usage.repeated(arrays)
    return [
        {
            "name": row.array.label,
            "count": row.count,
            "bytes": row.bytes,
            "first": row.first,
            "last": row.last,
            "kind": row.array.kind,
            "layout": row.array.layout,
            "scope": row.array.scope,
            "line": usage.line_text(row.array.place),
        }
        for row in (folded[:limit] if limit else folded)
    ]


def _json(
    asked: _Asked, timeline: bool, differences: Sequence[memory.AssignmentDifference] | None
) -> dict[str, Any]:
    found, shown = asked.found, asked.found.shown
    arrays = asked.arrays()
    rows = arrays[: asked.limit] if asked.limit else arrays
    document: dict[str, Any] = {
        "file": found.label,
        "module": found.module.name,
        "platform": found.computed.backend.value if found.computed.backend is not None else None,
        "chip": found.computed.chip.name if found.computed.chip is not None else None,
        "age": None if found.computed.age is None else age_json(found.computed.age),
        "source": "files" if found.read is not None else "text",
        "notes": [*dict.fromkeys((*found.computed.notes, *shown.notes))],
        "xla_peak": found.computed.xla_peak,
        "statistics": attrs.asdict(found.computed.statistics),
        "memory_spaces": [
            {
                **attrs.asdict(full),
                "static": full.static,
                "needed": full.needed,
                "fragmentation": full.fragmentation,
            }
            for full in (usage.space_usage(shown, space) for space in shown.memory_spaces())
        ],
        "fast_memory": _fast_json(found.computed),
        "memory_space": asked.memory_space,
        "time": asked.time,
        "live": [attrs.asdict(array) for array in rows],
        "live_count": len(arrays),
        "live_alike": _alike_json(arrays, asked.limit),
    }
    if asked.by is not None:
        document["groups"] = [attrs.asdict(group) for group in usage.group_by(arrays, asked.by)]
    if asked.buffer is not None:
        document["buffer"] = [attrs.asdict(explained) for explained in asked.explanations()]
    if asked.changes:
        keep = attrs.filters.exclude("assignment")
        document["what_if"] = [
            {**attrs.asdict(outcome, filter=keep), "saved": outcome.saved, "is_estimate": True}
            for outcome in asked.outcomes()
        ]
    if timeline:
        document["timeline"] = [size for _, size in shown.timeline(asked.memory_space)]
    if differences is not None:
        document["differences"] = [attrs.asdict(difference) for difference in differences]
    return document
