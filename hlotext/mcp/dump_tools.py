"""Tools for a compilation, two modules, or a profiler's trace."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

import hlotext as hlo
from hlotext import compiler, cost, diff, dumps
from hlotext.analysis import choose_chip, responsible_frame
from hlotext.mcp.answers import Answer, Cursor, DumpId, Limit, ModuleId, Name, answer
from hlotext.mcp.module_tools import chip_text
from hlotext.mcp.store import RefusedError, Store
from hlotext.syntax.source.inputs import is_binary
from hlotext.thunks import with_kernels_named

_MOST_LINKS = 8
_UNREADABLE = (LookupError, hlo.InputError, hlo.HloSyntaxError)


def origin(store: Store, dump: DumpId, name: Name) -> Answer:
    """Explain why an instruction is there: the pass that added it, its cause, the operations it comes from."""
    compilation = store.compilation(dump)
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
        "because": cause.because or "unknown: the dumps do not show it",
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

    def row(link: Any) -> tuple[Any, ...]:
        node = link.instruction
        op_name = node.metadata.op_name if node.metadata is not None else None
        return node.name, node.opcode, link.confidence, link.rule, op_name, responsible_frame(node)

    following = []
    if cause.step is not None and cause.step.is_pass:
        following = [f"passes(dump={dump!r}, pass_name={cause.step.name!r})"]
    return answer(facts, "mcp.origin", links[:_MOST_LINKS], row, following=following)


def passes(
    store: Store,
    dump: DumpId,
    pass_name: Annotated[str, Field(description="One pass, explained; empty for all.", max_length=200)] = "",
    limit: Limit = 30,
    cursor: Cursor = None,
) -> Answer:
    """List what each pass of a compilation changed, or explain one pass."""
    compilation = store.compilation(dump)
    if pass_name:
        return _one_pass(compilation, pass_name, limit, cursor)
    rows = [row for row in compilation.timeline() if not row.is_quiet]

    def shown(row: dumps.TimelineEntry) -> tuple[Any, ...]:
        step, found = row.step, row.changes
        counts = (None,) * 3 if found is None else (len(found.added), len(found.removed), len(found.changed))
        difference = found.bytes if found is not None else None
        return step.index, step.name, step.pipeline, step.stage, *counts, difference, row.milliseconds

    facts = {"name": compilation.name, "steps": len(compilation.steps), "steps_that_changed": len(rows)}
    following = [f"passes(dump={dump!r}, pass_name={rows[0].step.name!r})"] if rows else []
    source = f"{compilation.name}/passes"
    return answer(facts, "mcp.passes", rows, shown, source, (limit, cursor), following=following)


def _one_pass(compilation: dumps.Compilation, pass_name: str, limit: int, cursor: str | None) -> Answer:
    wanted = pass_name.removeprefix("after_")
    steps = [s for n, s in enumerate(compilation.steps) if n and s.name.removeprefix("after_") == wanted]
    if not steps:
        names = sorted({step.name for step in compilation.steps})
        near = [name for name in names if wanted.split("-")[0] in name] or names
        raise RefusedError(f"no step is named {pass_name!r}: {', '.join(near[:12])}")
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

    def row(group: compiler.Group) -> tuple[Any, ...]:
        examples = [f"{change.kind} {change.name}: {change.what}" for change in group.changes[:4]]
        reasons = [f"{count} times {rule}: {one.because}" for rule, count, one in group.rules()[:3]]
        return group.title, len(group.changes), examples, reasons

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
    return answer(facts, "mcp.passes_one", groups, row, f"{compilation.name}/{pass_name}", (limit, cursor))


def compare(
    store: Store,
    old: ModuleId,
    new: ModuleId,
    by: Literal["what", "scope"] = "what",
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """Compare two modules: totals that differ, and changes in groups."""
    before, after = store.get(old), store.get(new)
    found = diff.compare(before.module, after.module)
    totals = found.totals
    facts: dict[str, Any] = {"old": before.id, "new": after.id, "is_equal": found.is_equal}
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

    def row(group: tuple[str, list[diff.Change]]) -> tuple[Any, ...]:
        title, members = group
        examples = [f"{one.kind} {one.name}: {one.what}" for one in members[:4]]
        return title, len(members), examples, [one.line for one in members[:4]]

    source = f"{before.id}/{after.id}/{by}"
    return answer(facts, "mcp.compare", groups, row, source, (limit, cursor))


def measured(
    store: Store,
    trace: Annotated[str, Field(description="Path of a .xplane.pb.", max_length=1_000)],
    module: Annotated[str | None, Field(description="Name of a module in it.", max_length=500)] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """Join measured times of a profiler trace with instructions and their estimated times."""
    place = store.path(trace)
    data = store.data(place)
    try:
        if (
            isinstance(data, str)
            or not is_binary(data)
            or hlo.proto.kind_of(data, str(place)) != hlo.proto.TRACE
        ):
            raise RefusedError(f"{trace!r} is not a profiler trace (.xplane.pb)")
        read = with_kernels_named(hlo.proto.read_trace(data, store.shown(place)))
    except (hlo.ProtoError, ImportError) as error:
        raise RefusedError(str(error)) from None
    ran = sorted(read.modules, key=lambda one: -sum(t.total_seconds for t in one.times.values()))
    if module is not None:
        ran = [one for one in ran if one.name == module.partition("@")[0]]
    if not ran:
        names = ", ".join(one.name for one in read.modules[:10]) or "none"
        raise RefusedError(f"no such module in this trace; modules with HLO: {names}")
    chosen = ran[0]
    choice = choose_chip(chosen.module)
    least = {}
    if choice is not None:
        estimate = cost.estimate(chosen.module, choice.chip)
        least = {part.name: part for part in (*estimate.instructions, *estimate.beside)}
    times = sorted(chosen.times.items(), key=lambda item: (-item[1].total_seconds, item[0]))

    def row(item: tuple[str, Any]) -> tuple[Any, ...]:
        name, time = item
        node, bound = chosen.module.find(name), least.get(name)
        known = node if isinstance(node, hlo.Instruction) else None
        return (
            *(name, known.opcode if known is not None else None, time.total_seconds, time.count),
            bound.least.seconds if bound is not None else None,
            responsible_frame(known) if known is not None else None,
        )

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
    return answer(facts, "mcp.measured", times, row, f"{store.shown(place)}/{chosen.name}", (limit, cursor))
