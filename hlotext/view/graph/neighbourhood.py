"""The operations around one, with tuples, get-tuple-elements, bitcasts and asynchronous copies folded into the edges.

The script of the graph page does the same; this is for static pictures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

import hlotext as hlo
from hlotext.analysis import shown_bytes
from hlotext.analysis.meant import names_meant
from hlotext.ir.tables import traits

MOST = 60
"""Maximum number of operations shown by default."""
_NEIGHBOURS = 12
"""Maximum number of operands and of users followed per operation, largest first."""
FOLDED = traits.TUPLES | traits.COPY_HALVES | {"bitcast"}
"""Opcodes that are folded into edges if something uses them."""
_MOST_STEPS = 5000
"""Maximum length of a chain of such operations."""


@attrs.frozen
class Edge:
    """A value that flows from one operation to another."""

    source: hlo.Instruction
    target: hlo.Instruction
    bytes: int
    """Allocated bytes, summed over several values."""
    labels: tuple[str, ...] = ()
    """Tuple elements selected along the path, such as `.0`."""
    is_copied: bool = False
    """True if the path includes an asynchronous copy."""


@attrs.frozen
class Rest:
    """Number of operands or users of an operation that are not shown."""

    instruction: hlo.Instruction
    way: str
    """`operands` or `users`."""
    count: int

    def __str__(self) -> str:
        return f"{self.count:,} more {self.way.removesuffix('s') if self.count == 1 else self.way}"


@attrs.frozen
class Neighbourhood:
    """Operations around one operation of a module, and the values between them."""

    focus: hlo.Instruction
    nodes: tuple[hlo.Instruction, ...]
    """The operations, in text order."""
    edges: tuple[Edge, ...]
    rest: tuple[Rest, ...]


@attrs.frozen
class _Source:
    instruction: hlo.Instruction
    path: tuple[int, ...]
    bytes: int
    is_copied: bool


def size_of(instruction: hlo.Instruction) -> int:
    """Returns the allocated bytes that an operation writes, or those of its result if it writes nothing. Unknown sizes
    are 0.
    """
    return shown_bytes(instruction)


def neighbourhood(
    module: hlo.Module, name: str | None = None, *, hops: int = 3, most: int = MOST, fold: bool = True
) -> Neighbourhood:
    """Finds the operations around one operation, along operands and users inside its computation.

    Args:
        module: The module.
        name: Name of the operation; None uses the root of the entry.
        hops: Maximum distance, in edges.
        most: Maximum number of operations; the nearest are kept.
        fold: Make tuples, bitcasts and asynchronous copies part of the edges (`FOLDED`).

    Raises:
        LookupError: The module has no operation with this name.
        ValueError: The module has no instructions.
    """
    focus = _found(module, name)
    walk = _Walk(focus, fold)
    shown: dict[hlo.Instruction, int] = {focus: 0}
    queue = deque([focus])
    met: list[tuple[hlo.Instruction, str, list[hlo.Instruction]]] = []
    while queue:
        node = queue.popleft()
        far = shown[node]
        both = (
            ("operands", list(dict.fromkeys(one.instruction for one in walk.sources(node)))),
            ("users", walk.targets(node)),
        )
        for way, others in both:
            if far < hops:
                nearest = others
                if len(others) > _NEIGHBOURS:
                    nearest = sorted(others, key=lambda one: -size_of(one))[:_NEIGHBOURS]
                for other in nearest:
                    if other not in shown and len(shown) < most:
                        shown[other] = far + 1
                        queue.append(other)
            met.append((node, way, others))
    order = {one: number for number, one in enumerate(focus.computation or ())}
    nodes = tuple(sorted(shown, key=lambda one: order.get(one, 0)))
    rest = tuple(
        Rest(node, way, left)
        for node, way, others in met
        if (left := sum(other not in shown for other in others))
    )
    return Neighbourhood(focus, nodes, tuple(_edges(walk, nodes)), rest)


def _found(module: hlo.Module, name: str | None) -> hlo.Instruction:
    if name is None:
        if not module.computations or not len(module.entry):
            raise ValueError(f"module {module.name} has no instructions")
        return module.entry.root
    wanted = name.removeprefix("%")
    for found in module.find_all(wanted):
        if isinstance(found, hlo.Instruction):
            return found
    raise LookupError(f"no instruction or computation {wanted} in {module.name}{names_meant(module, wanted)}")


def _edges(walk: _Walk, nodes: tuple[hlo.Instruction, ...]) -> Iterator[Edge]:
    shown = set(nodes)
    for node in nodes:
        joined: dict[hlo.Instruction, list[_Source]] = {}
        for one in walk.sources(node):
            if one.instruction in shown and one.instruction is not node:
                joined.setdefault(one.instruction, []).append(one)
        for source, parts in joined.items():
            labels = tuple("." + ".".join(map(str, reversed(p.path))) for p in parts if p.path)
            yield Edge(source, node, sum(p.bytes for p in parts), labels, any(p.is_copied for p in parts))


class _Walk:
    """Follows values through what is folded."""

    def __init__(self, focus: hlo.Instruction, fold: bool) -> None:
        self._focus, self._fold = focus, fold

    def _is_folded(self, one: hlo.Instruction) -> bool:
        return self._fold and one is not self._focus and one.opcode in FOLDED and bool(one.users)

    def sources(self, node: hlo.Instruction) -> list[_Source]:
        """Where the operands come from, in their order."""
        found: list[_Source] = []
        waiting = deque(_Source(operand, (), size_of(operand), False) for operand in node.operands)
        for _ in range(_MOST_STEPS):
            if not waiting:
                break
            at = waiting.popleft()
            one = at.instruction
            if not self._is_folded(one):
                found.append(at)
            elif one.opcode == "get-tuple-element":
                path = (*at.path, _element(one))
                waiting.extend(_Source(o, path, size_of(one), at.is_copied) for o in one.operands[:1])
            elif one.opcode == "tuple":
                wanted = one.operands if not at.path else one.operands[at.path[-1] :][:1]
                waiting.extend(_Source(o, at.path[:-1], size_of(o), at.is_copied) for o in wanted)
            else:
                copied = at.is_copied or one.opcode != "bitcast"
                waiting.extend(_Source(o, at.path, at.bytes, copied) for o in one.operands[:1])
        return found

    def targets(self, node: hlo.Instruction) -> list[hlo.Instruction]:
        """Final users of the result, in the order visited."""
        found: dict[hlo.Instruction, None] = {}
        waiting: deque[tuple[hlo.Instruction, tuple[int, ...]]] = deque([(node, ())])
        for _ in range(_MOST_STEPS):
            if not waiting:
                break
            at, path = waiting.popleft()
            for user in at.users:
                if not self._is_folded(user):
                    found[user] = None
                elif user.opcode == "tuple":
                    waiting.extend((user, (*path, n)) for n, o in enumerate(user.operands) if o is at)
                elif user.opcode != "get-tuple-element" or not path:
                    waiting.append((user, path))
                elif path[-1] == _element(user):
                    waiting.append((user, path[:-1]))
        return list(found)


def _element(one: hlo.Instruction) -> int:
    index = one.attributes.get("index")
    return index if isinstance(index, int) else 0
