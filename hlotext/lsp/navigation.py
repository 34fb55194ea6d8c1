"""Definitions, references, callers, symbols and folding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from lsprotocol import types

import hlotext as hlo
from hlotext.lsp.reading import Target, View, find_name
from hlotext.matchers import PatternError, parse_pattern

MOST_SYMBOLS = 200
"""Instructions in the answer to one query."""
MOST_REFERENCES = 10_000

Node = hlo.Instruction | hlo.Computation


def definition(view: View, target: Target) -> types.Location | None:
    """Returns the definition of the name under the cursor; None if there is none."""
    if not target.is_name or target.node is None:
        return None
    return types.Location(view.document.uri, view.name_range(target.node))


def references(view: View, target: Target, params: Any) -> list[types.Location]:
    """Returns the uses of the name under the cursor."""
    node = target.node
    if not target.is_name or node is None:
        return []
    found = [view.name_range(node)] if params.context.include_declaration else []
    for user in users_of(node):
        if len(found) >= MOST_REFERENCES:
            break
        start, end = user.bounds
        if start < 0:
            continue
        text = view.reading.text
        # Names of operands and callees follow the opcode; the name before it is the user's own.
        begin = max(start, text.find(f" {user.opcode}(", start, end) + len(user.opcode) + 1)
        place = find_name(text, node.name, begin, end) or (start, start)
        found.append(view.document.range(view.after(place[0]), view.after(place[1])))
    return [types.Location(view.document.uri, one) for one in found]


def users_of(node: Node) -> tuple[hlo.Instruction, ...]:
    """Returns the instructions that use a value, also by control dependencies, or call a computation."""
    if isinstance(node, hlo.Computation):
        return node.callers
    return tuple(dict.fromkeys((*node.users, *node.control_successors)))


# ---- callers and callees


def call_item(view: View, computation: hlo.Computation) -> types.CallHierarchyItem:
    """Returns a computation as an item of the call hierarchy."""
    return types.CallHierarchyItem(
        name=computation.name,
        kind=types.SymbolKind.Function,
        uri=view.document.uri,
        range=view.range(computation),
        selection_range=view.name_range(computation),
        detail=f"{len(computation):,} instructions",
        data=computation.name,
    )


def prepared_calls(view: View, params: Any) -> list[types.CallHierarchyItem]:
    """Returns the computation under the cursor, or those called by the instruction there, or else the enclosing one."""
    target = view.target(params.position)
    node = target.node if target is not None else None
    if isinstance(node, hlo.Computation):
        return [call_item(view, node)]
    called = [c for c in dict.fromkeys(node.called_computations if node else ()) if c.bounds[0] >= 0]
    if not called:
        home = view.reading.computation_at(view.before(view.document.offset(params.position)))
        called = [home] if home is not None else []
    return [call_item(view, computation) for computation in called]


def _grouped(
    view: View, calls: Iterable[tuple[hlo.Computation, hlo.Instruction]], kind: Callable[..., Any]
) -> list[Any]:
    """Computations, each with the places of the instructions that call."""
    ranges: dict[hlo.Computation, list[types.Range]] = {}
    for computation, caller in calls:
        if computation.bounds[0] >= 0 and caller.bounds[0] >= 0:
            ranges.setdefault(computation, []).append(view.name_range(caller))
    return [kind(call_item(view, computation), found) for computation, found in ranges.items()]


def incoming(view: View, computation: hlo.Computation) -> list[types.CallHierarchyIncomingCall]:
    """Returns the calls of a computation."""
    calls = ((caller.computation, caller) for caller in computation.callers if caller.computation is not None)
    return _grouped(view, calls, types.CallHierarchyIncomingCall)


def outgoing(view: View, computation: hlo.Computation) -> list[types.CallHierarchyOutgoingCall]:
    """Returns the calls that a computation makes."""
    calls = ((callee, one) for one in computation for callee in dict.fromkeys(one.called_computations))
    return _grouped(view, calls, types.CallHierarchyOutgoingCall)


# ---- symbols and folding


def document_symbols(view: View, _: Any) -> list[types.DocumentSymbol]:
    """Returns the computations of a document."""
    return [
        types.DocumentSymbol(
            name=computation.name or "(no name)",
            kind=types.SymbolKind.Class if computation.is_entry else types.SymbolKind.Function,
            range=view.range(computation),
            selection_range=view.name_range(computation),
            detail=f"{len(computation):,} instructions",
        )
        for computation in view.reading.computations
    ]


def workspace_symbols(view: View, query: str) -> Iterator[types.WorkspaceSymbol]:
    """Yields computations and instructions that match part of a name, or a pattern of `hlotext grep`."""
    for node in _matching(view, query.strip()):
        if node.bounds[0] < 0:
            continue
        is_computation = isinstance(node, hlo.Computation)
        home = None if is_computation else node.computation  # type: ignore[union-attr]
        yield types.WorkspaceSymbol(
            location=types.Location(view.document.uri, view.name_range(node)),
            name=node.name,
            kind=types.SymbolKind.Function if is_computation else types.SymbolKind.Variable,
            container_name=home.name if home is not None else None,
        )


def _matching(view: View, query: str) -> Iterator[Node]:
    if not query:
        return
    instructions = (i for computation in view.reading.computations for i in computation)
    if "(" in query or "[" in query:
        try:
            pattern = parse_pattern(query)
        except PatternError:
            return
        yield from (i for i in instructions if pattern.match(i) is not None)
        return
    word = query.removeprefix("%").lower()
    yield from (c for c in view.reading.computations if word in c.name.lower())
    yield from (i for i in instructions if word in i.name.lower())


def folding_ranges(view: View, _: Any) -> list[types.FoldingRange]:
    """Returns the ranges of computation bodies and of header tables."""
    document = view.document
    found = []
    for start, end in view.reading.bounds:
        first = document.line_of(view.after(start))
        last = document.line_of(max(view.after(start), view.after(end) - 1))
        if last > first:
            found.append(types.FoldingRange(first, last, kind=types.FoldingRangeKind.Region))
    return found
