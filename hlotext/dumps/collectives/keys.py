"""Marks that an operation keeps in all texts of a compilation: op_name and Python frames, its callers, its arguments."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator

import attrs

import hlotext as hlo
from hlotext.analysis.op_names import joined_names
from hlotext.ir.nodes.computation import Computation

Key = tuple[str, int]
"""An op_name and the number of a chain of frames; two texts have equal keys for what came of one operation."""
Path = tuple[object, ...]
"""Where a computation is called from, by keys of its callers."""


class Keys:
    """Numbers chains of stack frames, to compare them across modules with different stack-frame tables."""

    def __init__(self) -> None:
        self._chains: dict[tuple[object, ...], int] = {}
        self._known: dict[int, dict[int, int]] = {}
        self._modules: list[hlo.Module] = []  # keeps their ids from being used again

    def of(self, instruction: hlo.Instruction) -> Key | None:
        """Returns the key of an instruction, or None if it has no metadata."""
        metadata = instruction.metadata
        if metadata is None or joined_names(metadata.op_name):  # of several: the frame is that of one of them
            return None
        chain = 0
        if metadata.stack_frame_id:
            module = instruction.computation.module if instruction.computation is not None else None
            chain = self._chain(module, metadata.stack_frame_id) if module is not None else 0
        elif metadata.source_file:
            chain = self._number((metadata.source_file, metadata.source_line, 0))
        return (metadata.op_name, chain) if metadata.op_name or chain else None

    def _chain(self, module: hlo.Module, frame: int) -> int:
        known = self._known.get(id(module))
        if known is None:
            known = self._known[id(module)] = {}
            self._modules.append(module)
        if frame in known:
            return known[frame]
        tables = module.stack_frames
        rows = tables.stack_frames
        open_rows: list[int] = []
        at = frame
        while 0 < at <= len(rows) and at not in known and at not in set(open_rows[-1:]):
            open_rows.append(at)
            known[at] = 0  # a chain that runs into itself ends here
            at = rows[at - 1].parent_frame_id
        parent = known.get(at, 0)
        for row in reversed(open_rows):
            place = tables.innermost(row)
            parent = known[row] = self._number(
                (place.file, place.function, place.line, place.column, parent) if place else (parent,)
            )
        return known.get(frame, 0)

    def _number(self, chain: tuple[object, ...]) -> int:
        return self._chains.setdefault(chain, len(self._chains) + 1)


@attrs.frozen
class Reach:
    """Arguments of its computation that each operation depends on, and results that depend on it, as bit sets.

    Partitioning preserves both, so they distinguish layers that repeat the same lines.
    """

    arguments: dict[hlo.Instruction, int]
    results: dict[hlo.Instruction, int]

    def of(self, instruction: hlo.Instruction) -> tuple[int, int]:
        """Returns the bit sets of arguments and results of an instruction."""
        return self.arguments.get(instruction, 0), self.results.get(instruction, 0)


def reach_of(computation: Computation) -> Reach:
    """Computes the bit sets of all operations of a computation, in two passes."""
    arguments: dict[hlo.Instruction, int] = {}
    spans: dict[hlo.Instruction, tuple[int, int]] = {}  # first bit and number of leaves of tuple parameters
    bit = 0
    for parameter in computation.parameters:
        count = _leaves(parameter)
        spans[parameter] = (bit, count)
        bit += count
    for node in computation.instructions:
        if node in spans:
            first, count = spans[node]
            arguments[node] = ((1 << count) - 1) << first
        elif node.opcode == "get-tuple-element" and node.operands:
            source, index = node.operands[0], node.attributes.get("index")
            if source in spans and isinstance(index, int):
                arguments[node] = 1 << (spans[source][0] + _first_leaf(source, index))
            elif source.opcode == "tuple" and isinstance(index, int) and index < len(source.operands):
                arguments[node] = arguments.get(source.operands[index], 0)
            else:
                arguments[node] = arguments.get(source, 0)
        else:
            found = 0
            for operand in node.operands:
                found |= arguments.get(operand, 0)
            arguments[node] = found
    return Reach(arguments, _results(computation))


def _results(computation: Computation) -> dict[hlo.Instruction, int]:
    results: dict[hlo.Instruction, int] = {}
    if not len(computation):
        return results
    root = computation.root
    if root.opcode == "tuple":
        for number, operand in enumerate(root.operands):
            results[operand] = results.get(operand, 0) | 1 << number
    else:
        results[root] = 1
    for node in reversed(computation.instructions):
        found = results.get(node, 0)
        if not found or (node is root and root.opcode == "tuple"):
            continue
        operands = node.operands
        if node.opcode == "get-tuple-element" and operands and operands[0].opcode == "tuple":
            index = node.attributes.get("index")
            made = operands[0].operands
            operands = made[index : index + 1] if isinstance(index, int) else made
        for operand in operands:
            results[operand] = results.get(operand, 0) | found
    return results


def _leaves(node: hlo.Instruction) -> int:
    shape = node.shape
    return max(1, sum(1 for _ in shape.leaves())) if shape is not None and shape.is_tuple else 1


def _first_leaf(node: hlo.Instruction, index: int) -> int:
    shape = node.shape
    parts = shape.tuple_shapes if shape is not None else ()
    return sum(max(1, sum(1 for _ in part.leaves())) if part.is_tuple else 1 for part in parts[:index])


class Text:
    """A module of a compilation, with its operations by key and the data that distinguishes equal keys."""

    def __init__(self, module: hlo.Module, keys: Keys) -> None:
        self.module = module
        self.keys = keys
        self._key_of: dict[hlo.Instruction | None, Key | None] = {None: None}
        self._reach: dict[Computation, Reach] = {}
        self._paths: dict[Computation, Path] = {}

    def key_of(self, node: hlo.Instruction | None) -> Key | None:
        """Returns the key of an instruction of this module, or None if it has none."""
        try:
            return self._key_of[node]
        except KeyError:
            assert node is not None
        key = self.keys.of(node)
        if key is None and node.opcode == "get-tuple-element" and node.operands[0].opcode != "parameter":
            key = self.keys.of(node.operands[0])  # compact texts do not write elements out
        self._key_of[node] = key
        return key

    @functools.cached_property
    def by_key(self) -> dict[Key | None, list[hlo.Instruction]]:
        """Operations by key, in text order."""
        found: dict[Key | None, list[hlo.Instruction]] = defaultdict(list)
        for node in self.module.instructions():
            key = self.key_of(node)
            if key is not None:
                found[key].append(node)
        return found

    def reach(self, node: hlo.Instruction) -> tuple[int, int]:
        """Returns the bit sets of arguments that an operation depends on, and of results that depend on it."""
        home = node.computation
        if home is None:
            return 0, 0
        found = self._reach.get(home)
        if found is None:
            found = self._reach[home] = reach_of(home)
        return found.of(node)

    def path(self, computation: Computation | None) -> Path:
        """Returns the chain of calls that leads to a computation; empty for the entry."""
        if computation is None or computation.is_entry:
            return ()
        found = self._paths.get(computation)
        if found is None:
            self._paths[computation] = ("cycle",)
            caller = next(iter(computation.callers), None)
            if caller is None:
                found = ("uncalled",)
            else:
                role = next((n for n, (_, c) in enumerate(caller.callees()) if c is computation), 0)
                found = (self.path(caller.computation), self.keys.of(caller), caller.opcode, role)
            self._paths[computation] = found
        return found

    @property
    def computations(self) -> Iterator[tuple[Path, Computation]]:
        """All computations with their call paths."""
        return ((self.path(one), one) for one in self.module.computations)
