"""Are two modules the same? Node by node, with the first difference in words."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.nodes.module import Module
from hlotext.ir.values.literal import Literal
from hlotext.ir.values.types import ElementType


def difference(a: Module, b: Module, *, exact: bool = False) -> str | None:
    """Returns a description of the first difference between two modules, or None if they are equal.

    Compares names, order, opcodes, shapes with layouts, operands, attributes, threads, roots, entry, header and
    stack-frame tables; literals and floats by their bits, so a NaN equals itself and -0 differs from 0. References are
    equal if they lead to the same position. With `exact`, also compares what only the text determines: the order of
    attributes, the form of each line, and source positions.
    """
    return next(_Comparison(a, b, exact).differences(), None)


class _Comparison:
    """One comparison of two modules."""

    def __init__(self, a: Module, b: Module, exact: bool) -> None:
        self.a = a
        self.b = b
        self.exact = exact
        self.places = _places(a) | _places(b)

    def differences(self) -> Iterator[str]:
        """Every difference as a sentence."""
        a, b = self.a, self.b
        yield from self._values("module name", a.name, b.name)
        yield from self._mappings("header attribute", a.attributes, b.attributes)
        yield from self._values("stack-frame tables", a.stack_frames, b.stack_frames)
        if self.exact:
            yield from self._values(
                "header's place",
                (a._tables_start, a._header_end, a._end),
                (b._tables_start, b._header_end, b._end),
            )
        names = tuple(c.name for c in a.computations), tuple(c.name for c in b.computations)
        yield from self._values("computations", *names)
        for mine, theirs in zip(a.computations, b.computations, strict=False):
            yield from self._computation(mine, theirs)
        if a.computations and b.computations:
            yield from self._values("entry", self._place(a.entry), self._place(b.entry))

    def _computation(self, a: Computation, b: Computation) -> Iterator[str]:
        what = f"computation {a.name or '(inline)'}"
        names = tuple(i.name for i in a), tuple(i.name for i in b)
        yield from self._values(f"{what}: instructions", *names)
        for mine, theirs in zip(a, b, strict=False):
            yield from self._instruction(f"{what}: {mine.name}", mine, theirs)
        if len(a) and len(b):
            yield from self._values(f"{what}: root", self._place(a.root), self._place(b.root))
        for name in ("execution_thread", "backend_config", "is_sugared", "is_inline"):
            yield from self._values(f"{what}: {name}", getattr(a, name), getattr(b, name))
        if self.exact:
            yield from self._values(
                f"{what}: place", (a._start, a._brace, a._end), (b._start, b._brace, b._end)
            )

    def _instruction(self, what: str, a: Instruction, b: Instruction) -> Iterator[str]:
        yield from self._values(f"{what}: opcode", a.opcode, b.opcode)
        yield from self._values(f"{what}: shape", a.shape, b.shape)
        yield from self._values(f"{what}: operands", a.operands, b.operands)
        yield from self._values(f"{what}: parameter number", a.parameter_number, b.parameter_number)
        yield from self._values(f"{what}: literal", a.literal, b.literal)
        yield from self._mappings(f"{what}: attribute", a.attributes, b.attributes)
        if self.exact:
            yield from self._values(f"{what}: form", a.form, b.form)
            yield from self._values(f"{what}: place", (a._start, a._end), (b._start, b._end))

    def _mappings(self, what: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[str]:
        """Differences of named values."""
        names = (tuple(a), tuple(b)) if self.exact else (tuple(sorted(a)), tuple(sorted(b)))
        yield from self._values(f"{what}s", *names)
        for name in a:
            if name in b:
                yield from self._values(f"{what} {name}", a[name], b[name])

    def _values(self, what: str, a: object, b: object) -> Iterator[str]:
        """One sentence where two values differ."""
        if not self._same(a, b):
            yield f"{what}: {_shown(a)} and {_shown(b)}"

    def _same(self, a: object, b: object) -> bool:
        """True if two values are the same; follows their parts without recursion, since some nest deeply."""
        stack = [(a, b)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if type(a) is not type(b):
                return False
            if isinstance(a, Instruction | Computation):
                if self._place(a) != self._place(b):
                    return False
                continue
            parts = _parts(a)
            if parts is None:
                if a != b:
                    return False
                continue
            others = _parts(b) or []
            if len(parts) != len(others):
                return False
            stack.extend(zip(parts, others, strict=True))
        return True

    def _place(self, node: object) -> object:
        """Where a node stands in its module: the same numbers in both modules for the same node."""
        return self.places.get(node, getattr(node, "name", None))


def _places(module: Module) -> dict[object, tuple[int, ...]]:
    """Number of each computation, and of each instruction in it."""
    places: dict[object, tuple[int, ...]] = {}
    for i, computation in enumerate(module.computations):
        places[computation] = (i,)
        for j, instruction in enumerate(computation):
            places[instruction] = (i, j)
    return places


def _parts(value: Any) -> list[object] | None:
    """Parts of a value; None for one that is compared as a whole."""
    if isinstance(value, float):
        return [struct.pack("d", value)]
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, Literal | ElementType) or not attrs.has(type(value)):
        return None
    return [getattr(value, field.name) for field in attrs.fields(type(value)) if field.eq and field.init]


def _shown(value: object) -> str:
    """A value in a message, cut where it is long."""
    if isinstance(value, tuple):
        text = f"({', '.join(map(_shown, value))})"
    else:
        text = str(value.name if isinstance(value, Instruction | Computation) else value)
    return text if len(text) <= 200 else f"{text[:200]}..."


__all__ = ["difference"]
