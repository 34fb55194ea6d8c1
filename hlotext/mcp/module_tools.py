"""Tools for one module. Each answers with what the corresponding command shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

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
from hlotext.findings.finding import Finding
from hlotext.ir.spelling import did_you_mean
from hlotext.matchers import PatternError, parse_pattern
from hlotext.mcp.answers import Answer, ChipName, Cursor, Limit, ModuleId, Name, answer, clean
from hlotext.mcp.store import Opened, RefusedError, Store
from hlotext.memory.usage import LiveArray, live_arrays, space_usage

FindingKind = Literal["read", "verify", "lint", "all"]
_NEIGHBOURS = 10
_MOST_LINES = 80
_MOST_LINE, _MOST_TEXT = 1_000, 8_000
_PATTERN = "Part of a name, an opcode, or an instruction with wildcards: 'all-*(...)', 'bf16[*] dot(_, _)'."


def module_facts(store: Store, one: Opened) -> dict[str, Any]:
    """Returns basic facts about a module."""
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
    choice = _choice(one, None)
    facts["chip"] = chip_text(choice) if choice is not None else None
    return facts


def chip_text(choice: ChipChoice) -> str:
    """Returns the chip, and how it was determined."""
    return str(choice).replace("set --chip", "pass chip")


def neighbour(instruction: hlo.Instruction) -> tuple[Any, ...]:
    """Returns name, opcode, shape, bytes and computation of an instruction."""
    home, shape = instruction.computation, instruction.shape
    return (
        instruction.name,
        instruction.opcode,
        str(shape) if shape is not None else None,
        total_of(shape).allocated_bytes,
        home.name if home is not None else None,
    )


def find(
    store: Store,
    module: ModuleId,
    pattern: Annotated[str, Field(description=_PATTERN, max_length=1_000)] = "",
    sort: Literal["text", "bytes"] = "bytes",
    scope: Annotated[str, Field(description="Part of op_name.", max_length=500)] = "",
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """Find instructions by name, opcode, pattern or scope."""
    one = store.get(module)
    graph = call_graph(one.module)
    matches = _matcher(pattern) if pattern else lambda i: True
    found = [i for i in one.module.instructions() if _has_scope(i, scope) and matches(i)]
    if sort == "bytes":
        found.sort(key=lambda i: -total_of(i.shape).allocated_bytes)

    def row(i: hlo.Instruction) -> tuple[Any, ...]:
        assert i.computation is not None
        runs = graph.runs.get(i.computation, 0)
        return *neighbour(i), runs, i.span.line if i.span is not None else None, responsible_frame(i)

    total = sum(total_of(i.shape).allocated_bytes for i in found)
    facts = {"module": one.id, "matches": len(found), "result_bytes_of_all": total}
    following = [f"instruction(module={one.id!r}, name={found[0].name!r})"] if found else []
    source = f"{one.id}/find/{sort}/{scope}/{pattern}"
    return answer(facts, "mcp.find", found, row, source, (limit, cursor), following=following)


def _has_scope(instruction: hlo.Instruction, scope: str) -> bool:
    metadata = instruction.metadata
    return not scope or (metadata is not None and scope in metadata.op_name)


def _matcher(pattern: str) -> Callable[[hlo.Instruction], bool]:
    if any(mark in pattern for mark in "([=*"):
        try:
            wanted = parse_pattern(pattern)
        except PatternError as error:
            raise RefusedError(
                f"{pattern!r} is not a pattern: {error}; as 'all-*(...)', 'dot(_, _)'"
            ) from None
        return lambda i: wanted.match(i) is not None
    word = pattern.removeprefix("%")
    return lambda i: i.opcode == word or word in i.name


def instruction(store: Store, module: ModuleId, name: Name) -> Answer:
    """Show one instruction: text, layout in words, cost, Python lines; rows are operands and users."""
    one = store.get(module)
    node = one.module.find(name.removeprefix("%"))
    if isinstance(node, hlo.Computation):
        raise RefusedError(f"{name!r} is a computation; use text(module, computation={name!r})")
    if node is None:
        near = did_you_mean(name.removeprefix("%"), {i.name for i in one.module.instructions()})
        raise RefusedError(f"no instruction is named {name!r} in {one.id}{near and f'; {near}'}")
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
        "python_lines": [f"{f.file}:{f.line} {f.function}" for f in node.frames[:5]]
        or [responsible_frame(node)],
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
    rows = [("operand", i) for i in node.operands[:_NEIGHBOURS]]
    rows += [("user", i) for i in node.users[:_NEIGHBOURS]]
    following = [f"origin(dump={one.id!r}, name={node.name!r})"] if one.compilation is not None else []
    return answer(
        facts, "mcp.instruction", rows, lambda row: (row[0], *neighbour(row[1])), following=following
    )


def text(
    store: Store,
    module: ModuleId,
    computation: Annotated[str, Field(description="Its name; empty for the file.", max_length=500)] = "",
    start: Annotated[int, Field(description="First line, from 1.", ge=1)] = 1,
    count: Annotated[int, Field(ge=1, le=_MOST_LINES)] = 40,
) -> Answer:
    """Show source lines of a computation or of the file."""
    one = store.get(module)
    source = one.module.source
    if source is None:
        raise RefusedError(f"{one.id} was not read from text")
    first, last = 1, source.position(len(source.text))[0]
    if computation:
        found = next((c for c in one.module.computations if c.name == computation.removeprefix("%")), None)
        if found is None or found.span is None:
            raise RefusedError(f"no computation is named {computation!r} in {one.id}")
        first, last = found.span.line, found.span.end_line
    begin = first + start - 1
    lines: list[str] = []
    for number in range(begin, min(last, begin + count - 1) + 1):
        lines.append(f"{number}: {clean(source.text[slice(*source.bounds(number))], _MOST_LINE)}")
        if sum(map(len, lines)) > _MOST_TEXT and len(lines) > 1:
            lines.pop()
            break
    facts = {"module": one.id, "first_line": first, "last_line": last, "shown_from": begin}
    facts["text"] = "\n".join(lines)
    rest = f"text(module={one.id!r}, computation={computation!r}, start={start + len(lines)})"
    following = [rest] if begin + len(lines) <= last else []
    return answer(facts, following=following, most_text=_MOST_TEXT + 2_000)


def memory_of(
    store: Store, module: ModuleId, chip: ChipName = None, limit: Limit = 15, cursor: Cursor = None
) -> Answer:
    """Show the memory peak of a step and the arrays live at that time, the largest first."""
    one = store.get(module)
    try:
        found = memory.assign(one.module, chip=_chip(chip))
    except (memory.MemoryModelError, ValueError) as error:
        raise RefusedError(f"memory of {one.id} is unknown: {error}") from None
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

    def row(a: LiveArray) -> tuple[Any, ...]:
        return a.label, a.bytes, a.padding, a.kind, a.opcode, a.shape, a.first, a.last, a.place, a.op_name

    following = [f"instruction(module={one.id!r}, name={arrays[0].name!r})"] if arrays else []
    source = f"{one.id}/memory/{chip}"
    return answer(facts, "mcp.memory", arrays, row, source, (limit, cursor), following=following)


def _choice(one: Opened, name: str | None) -> ChipChoice | None:
    return choose_chip(one.module, _chip(name), one.compilation.chip if one.compilation is not None else None)


def _chip(name: str | None) -> Any:
    if name is None:
        return None
    try:
        return chip_named(name)
    except (KeyError, ValueError):
        raise RefusedError(f"no chip is named {name!r}: {', '.join(CHIPS)}") from None


def cost_of(
    store: Store,
    module: ModuleId,
    by: Literal["scope", "line", "opcode", "computation", "instruction"] = "opcode",
    chip: ChipName = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """Total the FLOPs and bytes of a step; by instruction, also the estimated time on the chip."""
    one = store.get(module)
    choice = _choice(one, chip)
    analysis = cost.analyze(one.module)
    run = analysis.run
    estimate = cost.estimate(one.module, choice.chip) if choice is not None else None
    facts: dict[str, Any] = {
        "module": one.id,
        "flops": run.flops,
        "bytes_accessed": run.bytes_accessed,
        "transcendentals": run.transcendentals,
        "is_exact": run.is_exact,
        "unknown_loops": [i.name for i in run.unknown_loops[:5]],
        "chip": chip_text(choice) if choice is not None else None,
        **dict.fromkeys(("estimated_seconds", "waiting_for_transfers_seconds", "bound_by_seconds")),
    }
    if estimate is not None:
        facts["estimated_seconds"] = estimate.seconds
        facts["waiting_for_transfers_seconds"] = estimate.exposed
        facts["bound_by_seconds"] = {bound.value: seconds for bound, seconds in estimate.by_bound.items()}
    source = f"{one.id}/cost/{by}/{chip}"
    if by == "instruction":
        if estimate is None:
            raise RefusedError(f"the module does not name its chip; pass chip, one of {', '.join(CHIPS)}")

        def row(part: cost.InstructionTime) -> tuple[Any, ...]:
            node, least = part.instruction, part.least
            run = part.runs, part.bound.value, least.flops, least.bytes
            return part.name, node.opcode, part.seconds, *run, responsible_frame(node)

        return answer(facts, "mcp.cost_times", estimate.instructions, row, source, (limit, cursor))
    parts = sorted(analysis.by(by).items(), key=lambda item: (-item[1].bytes_accessed, -item[1].flops))
    rows = [(name, part.flops, part.bytes_accessed) for name, part in parts]
    following = [f"cost(module={one.id!r}, by='instruction')"]
    return answer(facts, "mcp.cost", rows, tuple, source, (limit, cursor), following=following)


def communication_of(
    store: Store,
    module: ModuleId,
    mesh: Annotated[str | None, Field(description="Such as data=4,model=2.", max_length=200)] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """List collectives with the bytes that each device sends, by mesh axis, the most first."""
    one = store.get(module)
    try:
        found = cost.traffic(one.module, parse_mesh(mesh) if mesh is not None else None)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    flows = sorted(found.flows, key=lambda flow: -(flow.total or 0))

    def row(flow: cost.CollectiveTraffic) -> tuple[Any, ...]:
        part = flow.communication
        sent = part.operand_bytes, flow.sent, flow.runs, flow.total
        loop = part.loop.name if part.loop is not None else None
        return part.start.name, part.kind, flow.row, part.participants, *sent, loop, flow.place

    facts = {
        "module": one.id,
        "mesh": str(found.mesh) if found.mesh is not None else None,
        "sent_bytes_all_runs": sum(flow.total or 0 for flow in flows),
        "unknown_collectives": sum(flow.total is None for flow in flows),
        "sent_bytes_all_runs_by_axes_and_kind": {
            f"{axes} {kind}": s.bytes for (axes, kind), s in found.matrix().items()
        },
        "host_copy_bytes": found.host_copy_bytes,
    }
    following = []
    if flows and one.compilation is not None:
        following = [f"origin(dump={one.id!r}, name={flows[0].communication.start.name!r})"]
    source = f"{one.id}/communication/{mesh}"
    return answer(facts, "mcp.communication", flows, row, source, (limit, cursor), following=following)


def findings_of(
    store: Store, module: ModuleId, kind: FindingKind = "lint", limit: Limit = 20, cursor: Cursor = None
) -> Answer:
    """List what the linter (wasted time and memory), the verifier or the reader find, the costliest first."""
    one = store.get(module)
    found = list(_findings(one, kind))
    found.sort(key=lambda finding: -finding.share)
    counts = Counter(finding.code for finding in found)

    def row(f: Finding) -> tuple[Any, ...]:
        said = f.code, f.severity.value, f.message, f.help, f.name or None, f.line
        return *said, f.seconds, f.peak_bytes, f.share, f.basis or None, f.frame

    facts = {"module": one.id, "findings": len(found), "by_code": counts}
    following = [f"resource hlotext://rule/{found[0].code}"] if found else []
    source = f"{one.id}/findings/{kind}"
    return answer(facts, "mcp.findings", found, row, source, (limit, cursor), following=following)


def _findings(one: Opened, kind: FindingKind) -> Iterator[Finding]:
    if kind in ("read", "all") and one.module.source is not None:
        yield from hlo.parse_tolerant(one.module.source.text, name=one.module.source.name).diagnostics
    if kind in ("verify", "all"):
        yield from hlo.verify(one.module)
    if kind in ("lint", "all"):
        yield from lint.run(one.module)


def opened(
    store: Store,
    path: Annotated[
        str, Field(description="File or folder that the server may read; . lists them.", max_length=1_000)
    ],
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Answer:
    """Open a module's text or proto, or list the compilations of a dump folder, the largest first."""
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
        inside = [one for one in sorted(place.iterdir()) if not one.is_symlink()]
        paths = [(store.shown(one) + ("/" if one.is_dir() else ""),) for one in inside]
        note = "not an XLA dump; these are its files"
        facts = {"folder": store.shown(place), "compilations": 0, "note": note}
        return answer(facts, "mcp.open_files", paths, tuple, f"{place}", (limit, cursor))

    def row(one: Any) -> tuple[Any, ...]:
        ends: list[str | None] = [
            store.shown(Path(step.path).absolute()) for step in one.steps[:1] + one.steps[-1:]
        ]
        return one.name, one.platform, len(one.steps), *(ends or [None, None])

    ordered = sorted(folder.compilations, key=lambda one: -sum(file.size for file in one.files))
    last = ordered[0].last
    following = []
    if last is not None and last.file.archive is None:
        following = [f"open(path={store.shown(Path(last.path).absolute())!r})"]
    facts = {"folder": store.shown(place), "compilations": len(ordered)}
    return answer(facts, "mcp.open", ordered, row, f"{place}", (limit, cursor), following=following)
