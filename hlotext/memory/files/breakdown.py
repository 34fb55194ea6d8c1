"""The tree at the end of the live-range file: bytes at the peak by call path and scope (`hlo_stack_trace.cc`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.memory.errors import MemoryModelError
from hlotext.memory.files.names import Names
from hlotext.memory.files.value_names import index_text
from hlotext.memory.values import Value

_VARIABLE = re.compile(r"[a-zA-Z_]\w*", re.ASCII)
_KEY = re.compile(r"\['([^']+)'\]")
_ATTRIBUTE = re.compile(r"\.(\w+)", re.ASCII)

_MOST_PATHS = 4096
"""Ways from the entry to one computation that are followed; XLA's call graphs have one when memory is assigned."""


class _Node:
    __slots__ = ("bytes", "children", "name", "total")

    def __init__(self, name: str) -> None:
        self.name = name
        self.bytes = 0
        self.total = 0
        self.children: dict[str, _Node] = {}


def breakdown_text(rows: Sequence[tuple[int, Value]], names: Names) -> str:
    """Returns the breakdown of peak memory by stack trace as text, for rows of (bytes, value)."""
    total = sum(size for size, _ in rows)
    root = _Node("")
    paths = _Paths(names)
    for size, value in rows:
        traces = paths.of_value(value)
        each, rest = divmod(size, len(traces))
        for number, trace in enumerate(traces):
            node = root
            for part in trace:
                node = node.children.setdefault(part, _Node(part))
            node.bytes += each + (number < rest)
    _sum_up(root)
    lines = [f"  Stack trace breakdown for peak usage: {_spaced(total)} bytes\n", *_lines(root, total)]
    return "".join(lines)


class _Paths:
    """The ways from the entry to each computation, found once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[Computation, list[tuple[str, ...]]] = {}

    def of_value(self, value: Value) -> list[tuple[str, ...]]:
        instruction = self._names.of(value)
        if instruction is None:
            parts: tuple[str, ...] = (value.name,)
            above: list[tuple[str, ...]] = [()]
        else:
            parts = split_scope(self._names.label(instruction))
            home = instruction.computation if value.instruction is not None else None
            above = self._to(home) if home is not None else [()]
        if value.index:
            parts = (*parts[:-1], parts[-1] + index_text(value.index))
        return [(*path, *parts) for path in above]

    def _to(self, computation: Computation) -> list[tuple[str, ...]]:
        """Every way to a computation, its own name last."""
        stack = [computation]
        while stack:
            current = stack[-1]
            if current in self._known:
                stack.pop()
                continue
            callers = self._callers(current)
            missing = [
                c.computation
                for c in callers
                if c.computation not in self._known and c.computation is not None
            ]
            if missing:
                if len(stack) > len(self._known) + _MOST_PATHS:
                    raise MemoryModelError(f"computation {computation.name} calls itself")
                stack.extend(missing)
                continue
            found: list[tuple[str, ...]] = []
            for caller in callers:
                if caller.computation is not None:
                    label = split_scope(self._names.label(caller))
                    found += [(*path, *label, current.name) for path in self._known[caller.computation]]
            if len(found) > _MOST_PATHS:
                raise MemoryModelError(
                    f"more than {_MOST_PATHS} paths lead to computation {computation.name}"
                )
            self._known[current] = found or [(current.name,)]
            stack.pop()
        return self._known[computation]

    @staticmethod
    def _callers(computation: Computation) -> tuple[Instruction, ...]:
        return computation.callers


def split_scope(text: str) -> tuple[str, ...]:
    """Splits a variable name: `params['layer/fc'].weight` into params, layer, fc, weight. Other text is returned whole."""
    match = _VARIABLE.match(text)
    if match is None:
        return (text,)
    parts, place, has_keys = [match[0]], match.end(), False
    while True:
        if (key := _KEY.match(text, place)) is not None:
            has_keys = True
            parts += key[1].split("/")
            place = key.end()
        elif (attribute := _ATTRIBUTE.match(text, place)) is not None:
            parts.append(attribute[1])
            place = attribute.end()
        else:
            break
    return tuple(parts) if has_keys and place == len(text) else (text,)


def _sum_up(root: _Node) -> None:
    order, stack = [], [root]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(node.children.values())
    for node in reversed(order):
        node.total = node.bytes + sum(child.total for child in node.children.values())


def _lines(root: _Node, total: int) -> Iterator[str]:
    remaining = total
    stack: list[tuple[_Node, str, bool]] = [(root, "  ", True)]
    while stack:
        node, prefix, is_last = stack.pop()
        if node.name:
            connector = "  " if prefix == "  " else ("└── " if is_last else "├── ")
            share = 100.0 * node.total / total if total > 0 else 0.0
            remaining -= node.bytes
            yield (
                f"{prefix}{connector}{node.name} ({share:.1f}%, total: {_spaced(node.total)} bytes, "
                f"current: {_spaced(node.bytes)} bytes, remaining: {_spaced(remaining)} bytes)\n"
            )
        children = sorted((c for c in node.children.values() if c.total), key=lambda c: (-c.total, c.name))
        below = prefix + (("    " if is_last else "│   ") if node.name else "")
        last = len(children) - 1
        stack.extend((child, below, number == last) for number, child in reversed(list(enumerate(children))))


def _spaced(number: int) -> str:
    """Digits in groups of three."""
    return f"{number:,}".replace(",", " ")
