"""Pairs operations of the text after partitioning with the operations before of which they are shards."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import hlotext as hlo
from hlotext.dumps.collectives.keys import Key, Keys, Path, Text
from hlotext.dumps.collectives.shardings import sharding_of
from hlotext.ir.nodes.computation import Computation

Leaves = tuple[tuple[int, ...], ...]


def _arrays(computation: Computation) -> list[int]:
    """The number of arrays in each parameter and in the result."""
    return [len(leaves_of(node)) for node in (*computation.parameters, computation.root)]


def leaves_of(node: hlo.Instruction) -> Leaves:
    """Returns the dimension sizes of each array in a result."""
    shape = node.shape
    if shape is None:
        return ()
    return (
        tuple(tuple(leaf.dimensions) for _, leaf in shape.leaves())
        if shape.is_tuple
        else ((tuple(shape.dimensions),) if shape.is_array else ())
    )


class Sides:
    """The modules right before and right after partitioning, and the correspondence of their operations."""

    def __init__(self, before: hlo.Module, after: hlo.Module, keys: Keys) -> None:
        self.before = Text(before, keys)
        self.after = Text(after, keys)
        self._homes: dict[Path, list[Computation]] = defaultdict(list)
        for path, computation in self.before.computations:
            self._homes[path].append(computation)
        self._found: dict[hlo.Instruction, hlo.Instruction | None] = {}
        self._local: dict[hlo.Instruction, Leaves] = {}
        self._after_twins: dict[object, list[hlo.Instruction]] | None = None

    # ---- before

    def local(self, node: hlo.Instruction) -> Leaves:
        """Returns the per-device sizes of an operation before partitioning."""
        found = self._local.get(node)
        if found is None:
            shape = node.shape
            sharding = node.sharding
            if sharding is None and shape is not None and not shape.is_tuple:
                sharding = sharding_of(node)
            if shape is not None and sharding is not None:
                try:
                    shape = sharding.for_shape(shape).shard_shape(shape)
                except ValueError:
                    shape = node.shape
            if shape is None:
                found = ()
            elif shape.is_tuple:
                found = tuple(tuple(leaf.dimensions) for _, leaf in shape.leaves())
            else:
                found = (tuple(shape.dimensions),) if shape.is_array else ()
            self._local[node] = found
        return found

    # ---- across

    def counterpart(self, node: hlo.Instruction) -> hlo.Instruction | None:
        """Returns the operation before partitioning of which an operation after it is a shard, or None if unknown."""
        if node not in self._found:
            self._found[node] = None  # a cycle through tuples ends here
            self._found[node] = self._counterpart(node)
        return self._found[node]

    def _counterpart(self, node: hlo.Instruction) -> hlo.Instruction | None:
        home = self._home(node.computation)
        if node.opcode == "parameter":
            number = node.parameter_number
            return next((p for p in home.parameters if p.parameter_number == number), None) if home else None
        if node.opcode == "constant":
            return self._named(node)
        key = self.after.key_of(node)
        if key is not None:
            # What the partitioner added at an operation's end, such as the sum of partial products, stands for the operation.
            candidates = self.candidates(node, key) or self.narrowed(self.before.by_key.get(key, ()), node)
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                return self._ordinal(node, candidates)
        if node.opcode == "get-tuple-element" and node.operands:
            source = self.counterpart(node.operands[0])
            if source is not None:
                index = node.attributes.get("index")
                taken = [
                    user
                    for user in source.user_view
                    if user.opcode == "get-tuple-element" and user.attributes.get("index") == index
                ]
                return taken[0] if taken else None
        if key is None and home is not None:
            return self._unnamed(node, home)
        return None

    def _home(self, computation: Computation | None) -> Computation | None:
        """Computation before partitioning of one after it; of several called from equal places one with as many arrays."""
        found = self._homes.get(self.after.path(computation), ())
        if len(found) > 1 and computation is not None:
            arrays = _arrays(computation)
            found = [one for one in found if _arrays(one) == arrays] or found
        return found[0] if found else None

    def _named(self, node: hlo.Instruction) -> hlo.Instruction | None:
        found = self.before.module.find(node.name.removesuffix(".clone"))
        return found if isinstance(found, hlo.Instruction) and found.opcode == node.opcode else None

    def _unnamed(self, node: hlo.Instruction, home: Computation) -> hlo.Instruction | None:
        """An operation that says nothing of itself, by opcode, shape and what it depends on."""
        mine = leaves_of(node)
        wanted = self.after.reach(node)
        found = [
            one
            for one in home.instructions
            if one.opcode == node.opcode
            and self.before.key_of(one) is None
            and self.local(one) == mine
            and self.before.reach(one) == wanted
        ]
        return found[0] if len(found) == 1 else None

    def candidates(self, node: hlo.Instruction, key: Key | None = None) -> list[hlo.Instruction]:
        """Returns the operations before partitioning with the same opcode and key, narrowed by shape, path and
        dependencies.
        """
        key = self.after.key_of(node) if key is None else key
        return self.narrowed(
            [one for one in self.before.by_key.get(key, ()) if one.opcode == node.opcode], node
        )

    def narrowed(self, candidates: Sequence[hlo.Instruction], node: hlo.Instruction) -> list[hlo.Instruction]:
        """Narrows candidates before partitioning to those that best match an operation after it, test by test."""
        path, mine, reach = self.after.path(node.computation), leaves_of(node), self.after.reach(node)
        tests: tuple[Callable[[hlo.Instruction], bool], ...] = (
            lambda one: self.before.path(one.computation) == path,
            lambda one: self.before.reach(one) == reach,
            lambda one: self.local(one) == mine,
            lambda one: self.before.reach(one)[0] == reach[0],
            lambda one: self.before.reach(one)[1] == reach[1],
        )
        left = list(candidates)
        for test in tests:
            if len(left) < 2:
                break
            left = [one for one in left if test(one)] or left
        return left

    def _ordinal(
        self, node: hlo.Instruction, candidates: Sequence[hlo.Instruction]
    ) -> hlo.Instruction | None:
        """Of several that nothing tells apart the one in the same place, where there are as many on both sides."""
        if self._after_twins is None:
            self._after_twins = defaultdict(list)
            for one in self.after.module.instructions():
                if self.after.key_of(one) is not None:
                    self._after_twins[self._twin(one)].append(one)
        mine = self._after_twins[self._twin(node)]
        if len(mine) != len(candidates):
            return None
        return candidates[mine.index(node)]

    def _twin(self, node: hlo.Instruction) -> object:
        return (
            self.after.key_of(node),
            node.opcode,
            self.after.path(node.computation),
            self.after.reach(node),
            leaves_of(node),
        )
