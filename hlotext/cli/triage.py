"""`hlotext triage`: many modules ranked, and the repairs that are worth most."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import click

from hlotext import lint, triage
from hlotext.analysis import byte_text
from hlotext.analysis.formatting import format_percent, pluralize, seconds
from hlotext.cli.chip_options import chip_of
from hlotext.cli.common import Unreadable, limit_option, refuse_missing, write_json
from hlotext.cli.listing import Listing, Row
from hlotext.cli.output import Command, TerminalColumn, TerminalTable, emit_report, output, printable
from hlotext.cli.show_modules import Recompiled, recompiled
from hlotext.cli.table_options import columns_option
from hlotext.findings.escape import markdown
from hlotext.reports.human import percent

_ROWS = 20
_ACTIONS = 5
_SUSPECTS = 3
_REPEATED = 3
_UNPRICED = 5
_STALLED = 0.05
"""Part of the time of all modules from which on the transfers that a module waits for are named."""
_KEYS: dict[str, Callable[[triage.Examined], float]] = {
    "time": lambda one: one.seconds,
    "memory": lambda one: one.peak_bytes or 0,
    "sent": lambda one: one.sent.bytes,
}


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option(
    "--chip",
    metavar="NAME",
    help="Chip of all modules.  [default: from folder or text, else assumed]",
)
@click.option(
    "--sort",
    type=click.Choice(list(_KEYS)),
    default="time",
    show_default=True,
    help="Rank modules by minimum time, peak memory, or bytes sent.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes.  [default: one per core]",
)
@limit_option(_ROWS, "modules")
@columns_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "markdown"]),
    default="text",
    show_default=True,
)
def command(
    paths: tuple[str, ...], chip: str | None, sort: str, jobs: int | None, limit: int, output_format: str
) -> None:
    """Rank many modules by time, memory and traffic, and list the most valuable repairs.

    In a DIR, the final HLO of each compilation and all other modules are used.
    Modules are ranked by the minimum time of one run. Below them are the contents of memory at the peak, and the
    most valuable repairs that are proven possible, each with its saving. Repairs are ranked by the share of the
    total time of all modules that they save, or of the chip's memory if that is larger. Repairs that lower the peak
    of a module that does not fit come first. Large costs without such a proof, and findings whose saving is
    unknown, are listed separately.

    \b
    Examples:
      hlotext triage dumps/
      hlotext triage dumps/ other.txt --chip h100 --sort memory
      hlotext triage dumps/ --format markdown

    Exit status: 0 success, 2 usage error or unreadable input (the rest is shown).
    """
    config = lint.Config(chip=chip_of(chip).name if chip is not None else "")
    refuse_missing(paths)
    found = triage.run(paths, triage.Settings(config), jobs)
    ranked = sorted(found.modules, key=lambda one: -_KEYS[sort](one))
    for failure in found.failures:
        place = "" if failure.place in failure.problem else f"{failure.place}: "
        Unreadable(f"{place}{failure.problem}", where={"file": failure.place}).show()
    if output_format == "json":
        write_json(_json(found, ranked, config.chip))
    elif not found.modules:
        pass
    elif output_format == "markdown":
        emit_report("\n".join(_markdown(found, ranked, limit, config.chip)))
    else:
        _show(found, ranked, limit, config.chip)
    if found.failures:
        raise click.exceptions.Exit(Unreadable.exit_code)


# ---- text


def _show(found: triage.Triage, ranked: Sequence[triage.Examined], limit: int, chip: str) -> None:
    report = output()
    places = {one.place for one in found.modules}
    where = f" in {printable(next(iter(places)))}" if len(places) == 1 else ""
    report.heading(pluralize(len(found.modules), "module") + where)
    report.facts(_facts(found, chip))
    for table in (_modules(found, ranked, limit), _memory(found, min(limit or _ACTIONS, _ACTIONS))):
        report.table(table)
    for title, actions in _chosen(found):
        for number, action in enumerate(actions, 1):
            report.heading(f"{title} {number}: {action.code} {action.rule}")
            report.facts(_action_facts(action, chip))
    if left := _left_out(found):
        report.heading(left)


def _chosen(found: triage.Triage) -> Iterator[tuple[str, Sequence[triage.Action]]]:
    yield "Error", [one for one in found.unpriced if one.is_error][:_ACTIONS]
    yield "Action", found.actions[:_ACTIONS]
    yield "Large cost, not proven avoidable", found.suspects[:_SUSPECTS]
    yield "Not priced", [one for one in found.unpriced if not one.is_error][:_UNPRICED]


def _left_out(found: triage.Triage) -> str:
    """A line for what `_chosen` leaves out; empty if nothing."""
    errors = sum(one.is_error for one in found.unpriced)
    counts = (
        (errors - _ACTIONS, "error"),
        (len(found.actions) - _ACTIONS, "action"),
        (len(found.suspects) - _SUSPECTS, "large cost"),
        (len(found.unpriced) - errors - _UNPRICED, "unpriced finding"),
    )
    more = [pluralize(count, noun) for count, noun in counts if count > 0]
    return f"Not shown: {', '.join(more)}; --format json lists all." if more else ""


def _facts(found: triage.Triage, chip: str) -> list[tuple[str, str]]:
    full = [one for one in found.fullest if one.excess]
    facts = [("does not fit", f"{one.name}: {one.excess}") for one in full[:_ACTIONS]]
    if len(full) > _ACTIONS:
        facts.append(("does not fit", f"{pluralize(len(full) - _ACTIONS, 'more module')}"))
    if found.modules:
        facts.append(("minimum time", f"{seconds(_step(found))}, for one run of each"))
    assumed: dict[str, int] = {}
    for one in found.modules:
        if one.is_chip_assumed:
            assumed[one.chip] = assumed.get(one.chip, 0) + 1
    if chip and (others := [one for one in found.modules if _is_other(one, chip)]):
        counts = Counter(one.platform for one in others)
        what = " and ".join(
            f"{pluralize(n, 'module')} of {platform}" for platform, n in sorted(counts.items())
        )
        facts.append(("chip", f"{chip} for {what}, so only a rough comparison"))
    if assumed:
        listed = ", ".join(f"{chip} for {count:,}" for chip, count in sorted(assumed.items()))
        facts.append(("chip unknown", f"assuming {listed} (set --chip)"))
    waiting = [one for one in found.modules if one.stall and one.exposed_seconds >= _STALLED * _step(found)]
    waiting.sort(key=lambda one: -one.exposed_seconds)
    facts += [("stalled", _stalled(one)) for one in waiting[:_REPEATED]]
    early = sum(not one.is_bound for one in found.modules)
    if early:
        facts.append(
            ("not optimized", f"{pluralize(early, 'module')}; times before optimization are not lower bounds")
        )
    for number, (place, same) in enumerate(found.repeated[:_REPEATED]):
        facts.append(("" if number else "shown once", f"{place} is the same module as {same}"))
    if len(found.repeated) > _REPEATED:
        facts.append(("", f"{len(found.repeated) - _REPEATED:,} more texts repeat modules in the dumps"))
    if skipped := [place for place, _ in found.unoptimized]:
        more = f" and {len(skipped) - _REPEATED:,} more" if len(skipped) > _REPEATED else ""
        facts.append(
            ("left out", f"HLO before optimization of modules below: {', '.join(skipped[:_REPEATED])}{more}")
        )
    again = _recompiled(found)
    facts += [("" if number else "recompiled", str(one)) for number, one in enumerate(again[:_REPEATED])]
    if len(again) > _REPEATED:
        facts.append(("", f"{len(again) - _REPEATED:,} more functions"))
    if found.failures:
        facts.append(("unreadable", pluralize(len(found.failures), "file")))
    if not found.actions and found.modules:
        facts.append(("actions", "none: no large cost is proven avoidable"))
    return facts


def _recompiled(found: triage.Triage) -> list[Recompiled]:
    return list(recompiled((one.name, (one.platform, one.devices), one.arguments) for one in found.modules))


def _is_other(one: triage.Examined, name: str) -> bool:
    return bool(one.platform) and one.platform != chip_of(name).backend.value


def _stalled(one: triage.Examined) -> str:
    """The wait of a module for transfers, with the transfer that most of it is for."""
    stall = one.stall
    total = f"{one.name}: {seconds(one.exposed_seconds)} ({format_percent(one.exposed_seconds, one.seconds)} of its step)"
    if stall is None:
        return f"{total} on transfers"
    line = f" ({os.path.basename(stall.file)}:{stall.line})" if stall.file else ""
    return f"{total} on transfers, {seconds(stall.seconds)} of it on {stall.name}{line}"


def _step(found: triage.Triage) -> float:
    return sum(one.seconds for one in found.modules)


def _modules(found: triage.Triage, ranked: Sequence[triage.Examined], limit: int) -> TerminalTable:
    step = _step(found)

    def row(one: triage.Examined) -> Row:
        return (
            (">= " if one.is_at_least else "") + seconds(one.seconds),
            format_percent(one.seconds, step),
            format_percent(one.exposed_seconds, one.seconds),
            one.peak_bytes,
            _sent(one),
            len(one.findings),
            one.name,
            one.place,
        )

    title = "Modules (stalled: share of time the core waits for transfers)"
    without = ["file"] if len({one.place for one in ranked}) < 2 else []
    return Listing("triage.modules", row).table(title, ranked, limit, without=without)


def _sent(one: triage.Examined) -> str:
    if not one.sent.count:
        return ""
    if one.sent.unknown == one.sent.count:
        return "?"
    return f"{one.sent.mark}{byte_text(one.sent.bytes)}"


def _memory(found: triage.Triage, limit: int) -> TerminalTable:
    fullest = found.fullest[:limit]

    def row(one: triage.Examined) -> Row:
        sizes = {content.role: content.bytes for content in one.contents}
        layer = one.layers[0] if one.layers else None
        largest = f"{layer.scope}: {byte_text(layer.bytes)}" if layer else ""
        return one.name, one.peak_bytes or 0, *map(sizes.get, triage.Role), largest, one.place

    empty = [
        role.value
        for role in triage.Role
        if not any(content.role is role and content.bytes for one in fullest for content in one.contents)
    ]
    title = "Main memory at the peak, largest first"
    # Files stand in the table of modules: here they only tell modules of one name apart.
    has_names = len({one.name for one in fullest}) == len(fullest)
    without = [*empty, *(["file"] if has_names or len({one.place for one in fullest}) < 2 else [])]
    table = Listing("triage.memory", row).table(title, found.fullest, limit, without=without)
    return attrs.evolve(table, columns=[_by_bytes(column, fullest) for column in table.columns])


def _by_bytes(column: TerminalColumn, fullest: Sequence[triage.Examined]) -> TerminalColumn:
    """The column of a role, more important the more of any module's peak it is: narrow terminals drop the small ones."""
    parts = dict.fromkeys(triage.Role, 0.0)
    for one in fullest:
        for content in one.contents:
            parts[content.role] = max(parts[content.role], content.bytes / (one.peak_bytes or 1))
    order = [role.value for role in sorted(parts, key=parts.__getitem__)]
    return attrs.evolve(column, rank=order.index(column.title)) if column.title in order else column


def _action_facts(action: triage.Action, chip: str) -> list[tuple[str, str]]:
    facts = [("saves", _saved(action))] if action.is_priced else []
    facts.append(("because", action.message))
    if action.help:
        facts.append(("do", action.help))
    if action.file:
        facts.append(("line", f"{action.file}:{action.line}"))
    if len(action.modules) > 1:
        shares = f" ({saved})" if (saved := _first_shares(action)) else ""
        facts.append(("in", f"{len(action.modules)} modules, mostly in {action.modules[0]}{shares}"))
    facts.append(("more", Command(_command(action, chip))))
    return facts


def _saved(action: triage.Action) -> str:
    """Savings in all modules, the peak in the fullest; shares of one module stand beside its name if there are more."""
    is_one = len(action.modules) == 1
    parts = []
    if action.seconds:
        own = action.module_time_share if is_one else None
        of_all = None if action.assumes_trips else action.time_share
        shares = _shares(own, "step", of_all, "all modules")
        parts.append(seconds(action.seconds) + (f" ({shares})" if shares else ""))
    if action.peak_bytes:
        own = action.module_peak_share if is_one else None
        usable = action.usable_bytes
        whole = f"the chip's {byte_text(usable)}" if usable else "the largest memory"
        shares = _shares(own, "peak", action.memory_share, whole)
        parts.append(f"{byte_text(action.peak_bytes)} of peak memory ({shares})")
    bound = "at most " if action.is_at_most else ""
    basis = f", estimated for {action.basis}" if action.basis else ""
    return f"{bound}{' and '.join(parts)}{basis}"


def _shares(own: float | None, total: str, of_all: float | None, whole: str) -> str:
    """The share of the module, as lint tells it, and the one that actions are ranked by where that is another.

    `of_all` is None where the saving and the whole count different iterations.
    """
    mine, all_ = percent(own) if own is not None else "", percent(of_all) if of_all is not None else ""
    if not all_:
        return f"{mine} of its {total}" if mine else ""
    if mine == all_:
        return f"{mine} of the {total}"
    return f"{mine} of its {total}, {all_} of {whole}" if mine else f"{all_} of {whole}"


def _first_shares(action: triage.Action) -> str:
    """The shares that an action saves of the module where it saves most."""
    shares = (
        f"{percent(share)} of its {total}"
        for share, total in ((action.module_time_share, "step"), (action.module_peak_share, "peak"))
        if share
    )
    return ", ".join(shares)


def _command(action: triage.Action, chip: str) -> str:
    """The command that shows the action alone, on the chip that triage was told."""
    on = f" --chip {shlex.quote(chip)}" if chip else ""
    return f"hlotext lint {shlex.quote(_readable(action.modules[0]))} --select {action.code}{on}"


def _readable(place: str) -> str:
    """A path that commands take: of a text in a packed folder the folder."""
    archive, colon, _ = place.rpartition(":")
    return archive if colon and not os.path.exists(place) and os.path.exists(archive) else place


# ---- markdown


def _markdown(
    found: triage.Triage, ranked: Sequence[triage.Examined], limit: int, chip: str
) -> Iterator[str]:
    yield f"## {pluralize(len(found.modules), 'module')}"
    yield ""
    for name, value in _facts(found, chip):
        yield f"- **{name}**: {markdown(value)}"
    for table in (_modules(found, ranked, limit), _memory(found, min(limit or _ACTIONS, _ACTIONS))):
        if table.rows:
            yield f"\n### {markdown(table.title)}\n"
            yield "| " + " | ".join(markdown(column.title) for column in table.columns) + " |"
            yield "|" + "|".join("---:" if column.is_number else "---" for column in table.columns) + "|"
            for row in table.rows:
                yield "| " + " | ".join(map(markdown, row)) + " |"
            if table.left_out:
                yield f"\n{table.left_out:,} more."
    for title, actions in _chosen(found):
        for number, action in enumerate(actions, 1):
            yield f"\n### {title} {number}: {action.code} {markdown(action.rule)}\n"
            for name, value in _action_facts(action, chip):
                yield f"- **{name}**: {markdown(value)}"
    if left := _left_out(found):
        yield f"\n{left}"


# ---- JSON


def _json(found: triage.Triage, ranked: Sequence[triage.Examined], chip: str) -> dict[str, Any]:
    return {
        "seconds": _step(found),
        "modules": [_module_json(one) for one in ranked],
        "actions": [_action_json(one, chip) for one in found.actions],
        "suspects": [_action_json(one, chip) for one in found.suspects],
        "unpriced": [_action_json(one, chip) for one in found.unpriced],
        "repeated": [{"file": place, "same_as": same} for place, same in found.repeated],
        "unoptimized": [{"file": place, "optimized": final} for place, final in found.unoptimized],
        "recompiled": [_recompiled_json(one) for one in _recompiled(found)],
    }


def _recompiled_json(one: Recompiled) -> dict[str, Any]:
    platform, devices = one.machine
    return {
        "module": one.module,
        "platform": platform or None,
        "devices": devices,
        "compilations": one.compilations,
        "argument": one.argument,
        "shapes": list(one.shapes),
        "other_arguments": one.other_arguments,
    }


def _module_json(one: triage.Examined) -> dict[str, Any]:
    return {
        "file": one.place,
        "module": one.name,
        "platform": one.platform or None,
        "chip": one.chip,
        "is_chip_assumed": one.is_chip_assumed,
        "instructions": one.instructions,
        "seconds": one.seconds,
        "is_bound": one.is_bound,
        "is_at_least": one.is_at_least,
        "exposed_seconds": one.exposed_seconds,
        "stall": attrs.asdict(one.stall) if one.stall is not None else None,
        "peak_bytes": one.peak_bytes,
        "memory_problem": one.memory_problem or None,
        "excess": one.excess or None,
        "sent_bytes": one.sent.bytes,
        "unknown_sends": one.sent.unknown,
        "findings": len(one.findings),
        "contents": [{**attrs.asdict(content), "role": content.role.value} for content in one.contents],
        "layers": [attrs.asdict(layer) for layer in one.layers],
    }


def _action_json(action: triage.Action, chip: str) -> dict[str, Any]:
    return {**attrs.asdict(action), "command": _command(action, chip)}
