"""Tools for a compilation, two modules, or a profiler's trace."""

from __future__ import annotations

from typing import Any, Literal

import hlotext as hlo
from hlotext import compiler, cost, diff, dumps
from hlotext.analysis import choose_chip
from hlotext.mcp.answers import Answer, answer
from hlotext.mcp.module_tools import chip_text, line_of
from hlotext.mcp.store import Opened, RefusedError, Store
from hlotext.syntax.source.inputs import is_binary

_MOST_LINKS = 8
_UNREADABLE = (LookupError, hlo.InputError, hlo.HloSyntaxError)


def origin(compilation: dumps.Compilation, name: str, dump: str) -> Answer:
    """The pass that added an instruction, its cause, and the operations of the program that it comes from."""
    wanted = name.removeprefix("%")
    try:
        cause = compilation.why(wanted)
    except _UNREADABLE as error:
        raise RefusedError(f"{name!r}: {error}") from None
    try:
        links = compilation.trace(wanted)
    except _UNREADABLE:
        links = ()
    facts = {
        "name": wanted,
        "cause": cause.cause,
        "because": cause.because or "unknown: the texts do not show it",
        "confidence": cause.confidence,
        "step": cause.step.index if cause.step is not None else None,
        "pass": cause.step.name if cause.step is not None else None,
        "stage": cause.step.stage if cause.step is not None else None,
        "bytes": cause.bytes,
        "evidence": list(cause.evidence[:8]),
        "chain": cause.chain,
        "models": [
            f"{answered.model}: {decision.instruction}: {decision.because}"
            for answered in compiler.why(compilation, wanted)
            for decision in answered.decisions[:2]
        ][:6],
    }

    def row(link: Any) -> dict[str, Any]:
        metadata = link.instruction.metadata
        return {
            "comes_from": link.instruction.name,
            "opcode": link.instruction.opcode,
            "confidence": link.confidence,
            "rule": link.rule,
            "op_name": metadata.op_name if metadata is not None else None,
            "python_line": line_of(link.instruction),
        }

    following = []
    if cause.step is not None and cause.step.is_pass:
        following = [f"passes(dump={dump!r}, pass_name={cause.step.name!r})"]
    return answer(facts, items=links[:_MOST_LINKS], row=row, following=following)


def passes(
    compilation: dumps.Compilation, pass_name: str, limit: int, cursor: str | None, dump: str
) -> Answer:
    """Changes by pass; with a name those of that pass, in groups with reasons."""
    if pass_name:
        return _one_pass(compilation, pass_name, limit, cursor)
    rows = [row for row in compilation.timeline() if not row.is_quiet]

    def shown(row: dumps.TimelineEntry) -> dict[str, Any]:
        changes = row.changes
        return {
            "step": row.step.index,
            "pass": row.step.name,
            "pipeline": row.step.pipeline,
            "stage": row.step.stage,
            "added": len(changes.added) if changes is not None else None,
            "removed": len(changes.removed) if changes is not None else None,
            "changed": len(changes.changed) if changes is not None else None,
            "bytes_difference": changes.bytes if changes is not None else None,
            "milliseconds": row.milliseconds,
        }

    facts = {"name": compilation.name, "steps": len(compilation.steps), "steps_that_changed": len(rows)}
    following = [f"passes(dump={dump!r}, pass_name={rows[0].step.name!r})"] if rows else []
    return answer(
        facts, f"{compilation.name}/passes", rows, shown, limit=limit, cursor=cursor, following=following
    )


def _one_pass(compilation: dumps.Compilation, pass_name: str, limit: int, cursor: str | None) -> Answer:
    wanted = pass_name.removeprefix("after_")
    steps = [s for n, s in enumerate(compilation.steps) if n and s.name.removeprefix("after_") == wanted]
    if not steps:
        names = sorted({step.name for step in compilation.steps})
        near = [name for name in names if wanted.split("-")[0] in name] or names
        raise RefusedError(f"no step is called {pass_name!r}: {', '.join(near[:12])}")
    last: compiler.Explanation | None = None
    step = steps[0]
    for step in steps:
        try:
            last = compiler.explain(
                compiler.explaining.previous(step).module,
                step.module,
                step.name,
                platform=compilation.platform,
                age=compilation.age,
            )
        except (*_UNREADABLE, ValueError) as error:
            raise RefusedError(f"step {step.index} cannot be explained: {error}") from None
        if last.changes:
            break
    assert last is not None
    groups = last.groups

    def row(group: compiler.Group) -> dict[str, Any]:
        return {
            "group": group.title,
            "changes": len(group.changes),
            "examples": [f"{change.kind} {change.name}: {change.what}" for change in group.changes[:4]],
            "reasons": [f"{count} times {rule}: {one.because}" for rule, count, one in group.rules()[:3]],
        }

    facts = {
        "name": compilation.name,
        "step": step.index,
        "pass": step.name,
        "runs_of_this_pass": len(steps),
        "changes": len(last.changes),
        "counts": dict(last.counts()),
        "model_agrees": last.verdict,
        "notes": list(last.notes),
    }
    return answer(facts, f"{compilation.name}/{pass_name}", groups, row, limit=limit, cursor=cursor)


def compare(old: Opened, new: Opened, by: Literal["what", "scope"], limit: int, cursor: str | None) -> Answer:
    """Differences of two modules: totals, and changes in groups, the largest first."""
    found = diff.compare(old.module, new.module)
    totals = found.totals
    facts: dict[str, Any] = {"old": old.id, "new": new.id, "is_equal": found.is_equal}
    for name in ("flops", "bytes", "collectives", "collective_bytes", "peak_memory", "operations"):
        total = getattr(totals, name)
        facts[name] = {"old": total.old, "new": total.new, "difference": total.difference, "unit": total.unit}
    facts["opcodes"] = {
        name: {"old": total.old, "new": total.new}
        for name, total in totals.opcodes.items()
        if total.difference
    }
    changes = found.changes
    facts |= {"added": len(changes.added), "removed": len(changes.removed), "changed": len(changes.changed)}
    groups = (
        list(found.by_scope().items())
        if by == "scope"
        else [(f"{kind} {what}", list(members)) for (kind, what), members in changes.by_what()]
    )
    groups.sort(key=lambda group: -len(group[1]))

    def row(group: tuple[str, list[diff.Change]]) -> dict[str, Any]:
        title, members = group
        return {
            "group": title,
            "changes": len(members),
            "examples": [f"{one.kind} {one.name}: {one.what}" for one in members[:4]],
            "text_lines": [one.line for one in members[:4]],
        }

    return answer(facts, f"{old.id}/{new.id}/{by}", groups, row, limit=limit, cursor=cursor)


def measured(store: Store, trace: str, module: str | None, limit: int, cursor: str | None) -> Answer:
    """Measured times of a profiler's trace, joined with the instructions and, where the chip is known, their least times."""
    place = store.path(trace)
    data = store.data(place)
    try:
        if (
            isinstance(data, str)
            or not is_binary(data)
            or hlo.proto.kind_of(data, str(place)) != hlo.proto.TRACE
        ):
            raise RefusedError(f"{trace!r} is no profiler's trace (.xplane.pb)")
        read = hlo.proto.read_trace(data, store.shown(place))
    except (hlo.ProtoError, ImportError) as error:
        raise RefusedError(str(error)) from None
    ran = sorted(read.modules, key=lambda one: -sum(t.total_seconds for t in one.times.values()))
    if module is not None:
        ran = [one for one in ran if one.name == module.partition("@")[0]]
    if not ran:
        names = ", ".join(one.name for one in read.modules[:10]) or "none"
        raise RefusedError(f"no such module in this trace; with HLO there are: {names}")
    chosen = ran[0]
    choice = choose_chip(chosen.module)
    least = {}
    if choice is not None:
        least = {part.name: part for part in cost.estimate(chosen.module, choice.chip).instructions}
    times = sorted(chosen.times.items(), key=lambda item: (-item[1].total_seconds, item[0]))

    def row(item: tuple[str, Any]) -> dict[str, Any]:
        name, time = item
        node = chosen.module.find(name)
        known = node if isinstance(node, hlo.Instruction) else None
        bound = least.get(name)
        return {
            "name": name,
            "opcode": known.opcode if known is not None else None,
            "total_seconds": time.total_seconds,
            "count": time.count,
            "least_seconds_per_run": bound.least.seconds if bound is not None else None,
            "python_line": line_of(known) if known is not None else None,
        }

    facts = {
        "trace": store.shown(place),
        "module": chosen.name,
        "modules": [{"name": one.name, "runs": one.runs, "seconds": one.seconds} for one in ran[:10]],
        "runs": chosen.runs,
        "seconds": chosen.seconds,
        "devices": list(chosen.devices)[:16],
        "ran_without_hlo": list(read.others)[:10],
        "chip": chip_text(choice) if choice is not None else None,
    }
    return answer(facts, f"{store.shown(place)}/{chosen.name}", times, row, limit=limit, cursor=cursor)
