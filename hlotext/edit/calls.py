"""Validates calls of computations."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from hlotext.edit import dirty_lines, graph_checks
from hlotext.edit.journal import Journal
from hlotext.ir.errors import EditError
from hlotext.ir.nodes.computation import Computation, post_order
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.tables import traits


def check(
    computation: Computation,
    instruction: Instruction,
    opcode: str,
    attributes: Mapping[str, Any],
    before: Mapping[str, Any] = MappingProxyType({}),
) -> list[Computation]:
    """Returns the computations that an instruction newly calls. Raises EditError if it must not call one of them.

    A callee must be in the module, must not be the entry (a module under construction has none yet), and must not lead
    to recursion. The body of a fusion or an async-start may have no other caller, and must be on the stated thread.
    """
    known = {callee for _, callee in _callees(before)}
    new = []
    thread = computation.execution_thread
    if opcode == "async-start":
        thread = attributes.get("async_execution_thread", "main")
        if thread != before.get("async_execution_thread", "main"):
            known.clear()
    for attribute, callee in _callees(attributes):
        if callee in known:
            continue
        what = f"{attribute} of {instruction.name} refers to {callee.name}"
        if callee.module is not computation.module:
            raise EditError(f"{what}, which is not in its module")
        if callee.is_entry and computation.module is not None and computation.module.source is not None:
            raise EditError(f"{what}, which is the entry")
        if _leads_to(callee, computation):
            raise EditError(f"{what}, which would call itself")
        if opcode in _ON_ONE_THREAD and callee.execution_thread != thread:
            raise EditError(f"{what}, which runs on {callee.execution_thread}, not on {thread}")
        # One of its callers tells: what an owner calls has no other.
        other = next((caller for caller in _callers(callee) if caller is not instruction), None)
        if other is not None and {opcode, other._head.opcode} & OWNERS:
            raise EditError(f"{what}, which {other.name} calls already")
        new.append(callee)
    return new


OWNERS = frozenset({"async-start", "fusion"})
"""Opcodes whose computation nothing else may call."""

_ON_ONE_THREAD = traits.CALLEE_ON_SAME_THREAD | {"async-start"}
"""Opcodes that say on which thread they run what they call, most of them by standing on it."""


def _callees(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Computation]]:
    for attribute, value in attributes.items():
        for item in value if type(value) is tuple else (value,):
            if isinstance(item, Computation):
                yield attribute, item


def _leads_to(callee: Computation, computation: Computation) -> bool:
    """True if one computation is another or calls it, directly or through others.

    Looked for from both sides in turn, since either may be few: callers of a long chain, or what a new copy calls. And among
    the callers of the one: where the other calls it already, as where an instruction is copied, one more call closes no ring.
    """
    if callee is computation:
        return True
    below = _below(callee)
    callers = iter(_callers(callee))
    for above in _above(computation):
        found, caller = next(below, None), next(callers, None)
        if found is None or (caller is not None and caller.computation is computation):
            return False
        if above is callee or found is computation:
            return True
    return False


def _above(computation: Computation) -> Iterator[Computation]:
    """Computations that call a computation, directly or through others, each once, the nearest first."""
    seen = {computation}
    pending = deque(seen)
    while pending:
        for caller in _callers(pending.popleft()):
            home = caller.computation
            if home is not None and home not in seen:
                seen.add(home)
                pending.append(home)
                yield home


def _below(computation: Computation) -> Iterator[Computation]:
    """Computations that a computation calls, directly or not, each at least once; yields the current one per instruction."""
    seen = {computation}
    pending = deque(seen)
    while pending:
        current = pending.popleft()
        for instruction in current:
            yield current
            for callee in instruction.called_computations:
                if callee not in seen:
                    seen.add(callee)
                    pending.append(callee)
                    yield callee


def _callers(computation: Computation) -> Collection[Instruction]:
    return computation.calls


def bring_before(
    journal: Journal, module: Module, computation: Computation, callees: Iterable[Computation]
) -> None:
    """Moves computations, with their callees, before the computation that calls them, as XLA's parser requires."""
    if computation._is_draft:
        return
    order = module.order
    callees = tuple(callees)
    if all(order[callee] < order[computation] for callee in callees):
        return  # and so does all that they call
    late = [c for c in post_order(callees) if order[c] > order[computation]]
    if not late:
        return
    graph_checks.know_entry(journal, module)
    for one in late:
        place = order.index(one)
        order.remove(one)
        journal.push_undo(order.insert, place, one)
        journal.note("modified", one)
    for place, one in enumerate(late, place_before(module, computation)):
        order.insert(place, one)
        journal.push_undo(order.remove, one)
    dirty_lines.mark_module_dirty(journal, module)


def place_before(module: Module, computation: Computation) -> int:
    """Returns the index in the module before a computation and before all bodies in its text."""
    place = module.order.index(computation)
    while place and module._computations[place - 1].is_printed_inline:
        place -= 1
    return place
