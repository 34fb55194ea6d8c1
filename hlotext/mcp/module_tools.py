"""Tools for one module. Each returns the output of the corresponding command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import hlotext as hlo
from hlotext import cost, layout, lint, memory
from hlotext.analysis import (
    ChipChoice,
    backend_of,
    call_graph,
    choose_chip,
    devices_of,
    parse_mesh,
    responsible_frame,
    total_of,
)
from hlotext.analysis.chips import CHIPS
from hlotext.analysis.chips import chip as chip_named
from hlotext.findings import escape
from hlotext.findings.finding import Finding
from hlotext.matchers import PatternError, parse_pattern
from hlotext.mcp.answers import Answer, answer
from hlotext.mcp.store import Opened, RefusedError, Store
from hlotext.memory.usage import LiveArray, live_arrays, space_usage

FindingKind = Literal["read", "verify", "lint", "all"]
_NEIGHBOURS = 10
_MOST_LINES = 80
_MOST_TEXT = 8_000


def module_facts(store: Store, one: Opened) -> dict[str, Any]:
    """The first things to know of a module."""
    module = one.module
    graph = call_graph(module)
    backend, devices = backend_of(module), devices_of(module)
    facts: dict[str, Any] = {
        "module": one.id,
        "file": store.shown(one.place.path),
        "name": module.name,
        "reading_errors": one.errors,
        "computations": len(module.computations),
        "instructions": sum(map(len, module.computations)),
        "entry_instructions": len(module.entry),
        "loops": sum(1 for _ in graph.loops()),
        "is_scheduled": module.is_scheduled,
        "platform": backend.value if backend is not None else None,
        "argument_bytes": sum(total_of(p.shape).allocated_bytes for p in module.entry.parameters),
        "result_bytes": total_of(module.entry.root.shape).allocated_bytes,
        "devices": devices.total,
    }
    choice = choose_chip(module, None, one.compilation.chip if one.compilation is not None else None)
    facts["chip"] = chip_text(choice) if choice is not None else None
    return facts


def chip_text(choice: ChipChoice) -> str:
    """The chip, and how it is known."""
    return str(choice).replace("set --chip", "pass chip")


def line_of(instruction: hlo.Instruction) -> str | None:
    """The Python line responsible for an instruction."""
    frame = responsible_frame(instruction)
    return f"{frame.file}:{frame.line}" if frame is not None else None


def neighbour(instruction: hlo.Instruction) -> dict[str, Any]:
    """One instruction in a row."""
    home = instruction.computation
    return {
        "name": instruction.name,
        "opcode": instruction.opcode,
        "shape": str(instruction.shape) if instruction.shape is not None else None,
        "bytes": total_of(instruction.shape).allocated_bytes,
        "computation": home.name if home is not None else None,
    }


def find(one: Opened, pattern: str, sort: str, scope: str, limit: int, cursor: str | None) -> Answer:
    """Instructions by a pattern, a part of their name or an opcode."""
    graph = call_graph(one.module)
    instructions = [i for i in one.module.instructions() if _has_scope(i, scope)]
    found = [i for i in instructions if _matcher(pattern)(i)] if pattern else instructions
    if sort == "bytes":
        found.sort(key=lambda i: -total_of(i.shape).allocated_bytes)

    def row(i: hlo.Instruction) -> dict[str, Any]:
        assert i.computation is not None
        return {
            **neighbour(i),
            "runs": graph.runs.get(i.computation, 0),
            "text_line": i.span.line if i.span is not None else None,
            "python_line": line_of(i),
        }

    facts = {
        "module": one.id,
        "matches": len(found),
        "result_bytes_of_all": sum(total_of(i.shape).allocated_bytes for i in found),
    }
    following = [f"instruction(module={one.id!r}, name={found[0].name!r})"] if found else []
    return answer(
        facts,
        f"{one.id}/find/{sort}/{scope}/{pattern}",
        found,
        row,
        limit=limit,
        cursor=cursor,
        following=following,
    )


def _has_scope(instruction: hlo.Instruction, scope: str) -> bool:
    metadata = instruction.metadata
    return not scope or (metadata is not None and scope in metadata.op_name)


def _matcher(pattern: str) -> Callable[[hlo.Instruction], bool]:
    if any(mark in pattern for mark in "([=*"):
        try:
            wanted = parse_pattern(pattern)
        except PatternError as error:
            raise RefusedError(
                f"{pattern!r} is no pattern: {error}; such as 'all-*(...)' or 'dot(_, _)'"
            ) from None
        return lambda i: wanted.match(i) is not None
    word = pattern.removeprefix("%")
    return lambda i: i.opcode == word or word in i.name


def instruction(one: Opened, name: str) -> Answer:
    """One instruction with operands and users as rows."""
    node = one.module.find(name.removeprefix("%"))
    if isinstance(node, hlo.Computation):
        raise RefusedError(f"{name!r} is a computation: text(module, computation={name!r}) shows it")
    if node is None:
        word = name.removeprefix("%").rstrip("0123456789").rstrip(".")
        near = [i.name for i in one.module.instructions() if word and word in i.name][:5]
        raise RefusedError(
            f"no instruction is called {name!r} in {one.id}"
            + (f"; there are {', '.join(near)}" if near else "")
        )
    home = node.computation
    assert home is not None
    graph, size = call_graph(one.module), total_of(node.shape)
    found = cost.analyze(one.module).of(node)
    facts: dict[str, Any] = {
        "name": node.name,
        "opcode": node.opcode,
        "shape": str(node.shape),
        "bytes": size.allocated_bytes,
        "padding_bytes": size.allocated_bytes - size.unpadded_bytes,
        "computation": home.name,
        "computation_use": graph.use(home),
        "runs": graph.runs.get(home, 0),
        "flops_per_run": found.flops,
        "bytes_accessed_per_run": found.bytes_accessed,
        "text_line": node.span.line if node.span is not None else None,
        "python_lines": [f"{f.file}:{f.line} {f.function}" for f in node.frames[:5]] or [line_of(node)],
        "op_name": node.metadata.op_name if node.metadata is not None else None,
        "called_computations": [c.name for c in node.called_computations[:_NEIGHBOURS]],
        "operand_count": len(node.operands),
        "user_count": len(node.users),
        "text": str(node),
    }
    if node.shape is not None and not node.shape.is_tuple:
        try:
            facts["layout_in_words"] = [f"{a}: {b}" for a, b in layout.explain(node.shape).rows()][:12]
        except layout.LayoutError as error:
            facts["layout_in_words"] = [str(error)]
    rows = [{"role": "operand", "instruction": i} for i in node.operands[:_NEIGHBOURS]]
    rows += [{"role": "user", "instruction": i} for i in node.users[:_NEIGHBOURS]]
    following = [f"origin(dump={one.id!r}, name={node.name!r})"] if one.compilation is not None else []
    return answer(
        facts,
        items=rows,
        row=lambda row: {"role": row["role"], **neighbour(row["instruction"])},  # type: ignore[arg-type]
        following=following,
    )


def text(one: Opened, computation: str, start: int, count: int) -> Answer:
    """Lines of the source text, of one computation or from a line on."""
    source = one.module.source
    if source is None:
        raise RefusedError(f"{one.id} was not read from text")
    first, last = 1, source.position(len(source.text))[0]
    if computation:
        found = next((c for c in one.module.computations if c.name == computation.removeprefix("%")), None)
        span = found.span if found is not None else None
        if span is None:
            raise RefusedError(f"no computation is called {computation!r} in {one.id}")
        first, last = span.line, span.end_line
    begin = max(first, first + start - 1 if computation else start)
    lines: list[str] = []
    size = 0
    for number in range(begin, min(last, begin + min(count, _MOST_LINES) - 1) + 1):
        bounds = source.bounds(number)
        length = bounds[1] - bounds[0]
        line = source.text[bounds[0] : min(bounds[1], bounds[0] + 1_000)]
        line = escape.line(line) + (f" ... ({length:,} characters)" if length > 1_000 else "")
        size += len(line)
        if size > _MOST_TEXT and lines:
            break
        lines.append(f"{number}: {line}")
    facts = {
        "module": one.id,
        "first_line": first,
        "last_line": last,
        "shown_from": begin,
        "text": "\n".join(lines),
    }
    after = begin + len(lines)
    offset = after - first + 1 if computation else after
    following = (
        [f"text(module={one.id!r}, computation={computation!r}, start={offset})"] if after <= last else []
    )
    return answer(facts, following=following, most_text=_MOST_TEXT + 2_000)


def memory_of(one: Opened, chip: str | None, limit: int, cursor: str | None) -> Answer:
    """The peak of the main memory, and the arrays that are live then."""
    row = _chip(chip)
    try:
        found = memory.assign(one.module, chip=row)
    except (memory.MemoryModelError, ValueError) as error:
        raise RefusedError(f"memory of {one.id} is not known: {error}") from None
    usage = space_usage(found, 0)
    arrays = live_arrays(found, 0, usage.peak_time)
    facts = {
        "module": one.id,
        "memory": usage.name,
        "peak_bytes": usage.peak,
        "peak_at": usage.peak_instruction,
        "argument_bytes": usage.arguments,
        "result_bytes": usage.results,
        "heap_bytes": usage.heap,
        "padding_bytes": usage.padding,
        "capacity_bytes": usage.capacity,
        "needed_bytes": usage.needed,
        "is_estimated": usage.is_estimated,
        "notes": list(found.notes),
    }

    def shown(array: LiveArray) -> dict[str, Any]:
        return {
            "name": array.label,
            "bytes": array.bytes,
            "padding_bytes": array.padding,
            "kind": array.kind,
            "opcode": array.opcode,
            "shape": array.shape,
            "live_from": array.first,
            "live_to": array.last,
            "python_line": f"{array.place.file}:{array.place.line}" if array.place is not None else None,
            "op_name": array.op_name,
        }

    following = [f"instruction(module={one.id!r}, name={arrays[0].name!r})"] if arrays else []
    return answer(facts, f"{one.id}/memory", arrays, shown, limit=limit, cursor=cursor, following=following)


def _chip(name: str | None) -> Any:
    if name is None:
        return None
    try:
        return chip_named(name)
    except (KeyError, ValueError):
        raise RefusedError(f"no chip is called {name!r}: {', '.join(CHIPS)}") from None


def cost_of(
    one: Opened, by: cost.Key | Literal["instruction"], chip: str | None, limit: int, cursor: str | None
) -> Answer:
    """FLOPs and bytes of a run, or with `instruction` the time of each on a chip."""
    module = one.module
    choice = choose_chip(module, _chip(chip), one.compilation.chip if one.compilation is not None else None)
    analysis = cost.analyze(module)
    run = analysis.run
    estimate = cost.estimate(module, choice.chip) if choice is not None else None
    facts: dict[str, Any] = {
        "module": one.id,
        "flops": run.flops,
        "bytes_accessed": run.bytes_accessed,
        "transcendentals": run.transcendentals,
        "is_exact": run.is_exact,
        "unknown_loops": [i.name for i in run.unknown_loops[:5]],
        "chip": chip_text(choice) if choice is not None else None,
        "estimated_seconds": estimate.seconds if estimate is not None else None,
        "waiting_for_transfers_seconds": estimate.exposed if estimate is not None else None,
        "bound_by_seconds": {b.value: s for b, s in estimate.by_bound.items()}
        if estimate is not None
        else None,
    }
    source = f"{one.id}/cost/{by}/{chip}"
    if by == "instruction":
        if estimate is None:
            raise RefusedError(f"the text does not name the chip: pass chip, one of {', '.join(CHIPS)}")

        def timed(part: cost.InstructionTime) -> dict[str, Any]:
            return {
                "name": part.name,
                "opcode": part.instruction.opcode,
                "seconds_all_runs": part.seconds,
                "runs": part.runs,
                "bound": part.bound.value,
                "flops_per_run": part.least.flops,
                "bytes_per_run": part.least.bytes,
                "python_line": line_of(part.instruction),
            }

        return answer(facts, source, estimate.instructions, timed, limit=limit, cursor=cursor)
    parts = sorted(analysis.by(by).items(), key=lambda item: (-item[1].bytes_accessed, -item[1].flops))

    def summed(part: tuple[str, cost.Cost]) -> dict[str, Any]:
        name, amount = part
        return {by: name, "flops": amount.flops, "bytes_accessed": amount.bytes_accessed}

    following = [f"cost(module={one.id!r}, by='instruction')"]
    return answer(facts, source, parts, summed, limit=limit, cursor=cursor, following=following)


def communication_of(one: Opened, mesh: str | None, limit: int, cursor: str | None) -> Answer:
    """Bytes that each device sends in a run, the most first."""
    try:
        found = cost.traffic(one.module, parse_mesh(mesh) if mesh is not None else None)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    flows = sorted(found.flows, key=lambda flow: -(flow.total or 0))

    def row(flow: cost.CollectiveTraffic) -> dict[str, Any]:
        part = flow.communication
        return {
            "name": part.start.name,
            "kind": part.kind,
            "axes": flow.row,
            "devices_together": part.participants,
            "operand_bytes": part.operand_bytes,
            "sent_bytes_per_run": flow.sent,
            "runs": flow.runs,
            "sent_bytes": flow.total,
            "in_loop": part.loop.name if part.loop is not None else None,
            "python_line": f"{flow.place.file}:{flow.place.line}" if flow.place is not None else None,
        }

    facts = {
        "module": one.id,
        "mesh": str(found.mesh) if found.mesh is not None else None,
        "sent_bytes": sum(flow.total or 0 for flow in flows),
        "sent_bytes_unknown": sum(flow.total is None for flow in flows),
        "sent_bytes_by_axes_and_kind": {
            f"{axes} {kind}": s.bytes for (axes, kind), s in found.matrix().items()
        },
        "host_copy_bytes": found.host_copy_bytes,
    }
    following = []
    if flows and one.compilation is not None:
        following = [f"origin(dump={one.id!r}, name={flows[0].communication.start.name!r})"]
    return answer(
        facts, f"{one.id}/communication/{mesh}", flows, row, limit=limit, cursor=cursor, following=following
    )


def findings_of(one: Opened, kind: FindingKind, limit: int, cursor: str | None) -> Answer:
    """Findings of reading, the verifier and the linter, the costliest first."""
    found = list(_findings(one, kind))
    found.sort(key=lambda finding: -finding.share)
    counts: dict[str, int] = {}
    for finding in found:
        counts[finding.code] = counts.get(finding.code, 0) + 1

    def row(finding: Finding) -> dict[str, Any]:
        return {
            "code": finding.code,
            "severity": finding.severity.value,
            "message": finding.message,
            "help": finding.help,
            "instruction": finding.name or None,
            "text_line": finding.line,
            "saves_seconds": finding.seconds,
            "saves_peak_bytes": finding.peak_bytes,
            "share_of_step_or_peak": finding.share,
            "basis": finding.basis or None,
            "python_line": f"{finding.frame.file}:{finding.frame.line}"
            if finding.frame is not None
            else None,
        }

    facts = {"module": one.id, "findings": len(found), "by_code": counts}
    following = [f"resource hlotext://rule/{found[0].code}"] if found else []
    return answer(
        facts, f"{one.id}/findings/{kind}", found, row, limit=limit, cursor=cursor, following=following
    )


def _findings(one: Opened, kind: FindingKind) -> Iterator[Finding]:
    if kind in ("read", "all") and one.module.source is not None:
        yield from hlo.parse_tolerant(one.module.source.text, name=one.module.source.name).diagnostics
    if kind in ("verify", "all"):
        yield from hlo.verify(one.module)
    if kind in ("lint", "all"):
        yield from lint.run(one.module)


def opened(store: Store, path: str, limit: int, cursor: str | None) -> Answer:
    """A file's module, or the compilations of a folder."""
    place = store.path(path)
    if place.is_dir():
        return _folder(store, place, limit, cursor)
    found = store.open(place)
    facts = module_facts(store, found[0])
    if len(found) > 1:
        facts["modules"] = [one.id for one in found[:30]]
    name = found[0].id
    following = [f"memory(module={name!r})", f"cost(module={name!r})", f"findings(module={name!r})"]
    return answer(facts, following=following)


def _folder(store: Store, place: Path, limit: int, cursor: str | None) -> Answer:
    folder = store.folder(place)
    if not folder.compilations:
        names = sorted(
            one.name + ("/" if one.is_dir() else "") for one in place.iterdir() if not one.is_symlink()
        )
        facts = {
            "folder": store.shown(place),
            "compilations": 0,
            "note": "no dump of XLA; these are its files",
        }
        return answer(
            facts,
            f"{place}",
            names,
            lambda name: {"path": str(Path(store.shown(place)) / name)},
            limit=limit,
            cursor=cursor,
        )

    def row(one: Any) -> dict[str, Any]:
        steps: Sequence[Any] = one.steps
        files = [store.shown(Path(step.path).absolute()) for step in (steps[0], steps[-1])] if steps else []
        return {
            "name": one.name,
            "platform": one.platform,
            "steps": len(steps),
            "first_text": files[0] if files else None,
            "last_text": files[-1] if files else None,
        }

    ordered = sorted(folder.compilations, key=lambda one: -sum(file.size for file in one.files))
    last = ordered[0].last
    following = []
    if last is not None and last.file.archive is None:
        following = [f"open(path={store.shown(Path(last.path).absolute())!r})"]
    facts = {"folder": store.shown(place), "compilations": len(ordered)}
    return answer(facts, f"{place}", ordered, row, limit=limit, cursor=cursor, following=following)
