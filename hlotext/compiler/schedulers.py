"""The algorithms behind memory schedulers: each puts the instructions of one computation into an order.

After `ListScheduler`, `DFSMemoryScheduler`, `PostOrderScheduler` and `BFScheduler`
(`xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc`).
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence

from hlotext.ir.nodes.computation import Computation
from hlotext.ir.nodes.instruction import Instruction
from hlotext.ir.tables import traits
from hlotext.ir.values.shape import Shape
from hlotext.memory.dataflow import Dataflow

_HANDED_ON = traits.FORWARDS_BUFFER
"""Opcodes whose result is their operand's buffer (`TuplePointsToAnalysis`)."""
_IGNORED = ("constant", "parameter")
"""Opcodes whose memory does not count (`IgnoreInstruction`)."""
_FIRST = (1 << 62, 1 << 62)


class Sizes:
    """Bytes of shapes and of values, cached."""

    def __init__(self, flow: Dataflow, size_of: Callable[[Shape], int]) -> None:
        self.flow = flow
        self._size_of = size_of
        self._known: dict[Shape, int] = {}

    def of(self, shape: Shape) -> int:
        """Returns the bytes of an array, or of a tuple's pointer table."""
        size = self._known.get(shape)
        if size is None:
            size = self._known[shape] = self._size_of(shape)
        return size

    def written(self, i: Instruction) -> int:
        """Returns the bytes of the values that an instruction defines (`SumBufferSizes`)."""
        values = self.flow.at.get(i, ())
        return sum(
            self.of(v.shape) for v in values if v is not None and v.instruction is i and v.shape is not None
        )


def post_order(computation: Computation, sizes: Sizes) -> list[Instruction]:
    """Returns the instructions in post-order, the text order of an unscheduled module (`MakeInstructionPostOrder`)."""
    return list(computation)


# ---- breadth first


def breadth_first(computation: Computation, sizes: Sizes) -> list[Instruction]:
    """Returns the instructions in the order in which they become ready (`BFScheduler`)."""
    waits = {i: len(set(i.operands)) + len(i.control_predecessors) for i in computation}
    ready = deque(i for i in computation if not waits[i])
    order = []
    while ready:
        i = ready.popleft()
        order.append(i)
        for after in (*i.users, *i.control_successors):
            waits[after] -= 1
            if not waits[after]:
                ready.append(after)
    return order


# ---- depth first


def depth_first(computation: Computation, sizes: Sizes) -> list[Instruction]:
    """Returns the instructions depth first, operands with most fan-out, then most bytes, first (`DFSMemoryScheduler`)."""
    total = 0
    fan_out: dict[Instruction, int] = {}
    reached: dict[Instruction, int] = {}
    for i in computation:
        if i.opcode in _IGNORED:
            fan_out[i] = reached[i] = 0
            continue
        own = sizes.written(i)
        total += own
        operands = set(i.operands)
        extra = max(len(i.users) - 1, 0) + sum(fan_out[o] for o in operands)
        fan_out[i] = min(extra, len(computation))
        reached[i] = min(own + sum(reached[o] for o in operands), total)

    def rank(i: Instruction) -> tuple[int, int, str]:
        return -fan_out[i], -reached[i], i.name

    root = computation.root
    starts = [i for i in computation if not i.users and not i.control_successors and i is not root]
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    done: set[Instruction] = set()
    for start in (*starts, root):
        stack = [start]
        while stack:
            i = stack[-1]
            if i in done:
                stack.pop()
            elif i in seen:
                stack.pop()
                done.add(i)
                order.append(i)
            else:
                seen.add(i)
                children = dict.fromkeys((*i.operands, *i.control_predecessors))
                stack += sorted((c for c in children if c not in seen), key=rank, reverse=True)
    return order


# ---- list


def list_order(computation: Computation, sizes: Sizes) -> list[Instruction]:
    """Returns the order that always picks the ready instruction that frees most bytes, then with most users
    (`ListScheduler`).
    """
    return _ListScheduler(computation, sizes).run()


class _ListScheduler:
    def __init__(self, computation: Computation, sizes: Sizes) -> None:
        self.computation = computation
        points = _points_to(computation)
        self.size: dict[int, int] = {}
        """Bytes of each buffer that counts, by its number."""
        self.defined: dict[Instruction, int] = {}
        self.uses: dict[Instruction, Sequence[int]] = {}
        self.left: dict[int, int] = {}
        """Instructions that still use each buffer; of those that take the same tuple alone at most two count."""
        self.takers: dict[Instruction, int] = {}
        """By instruction how many take it and nothing else, and are still to come."""
        for i, (places, own) in points.items():
            assert i.shape is not None
            shapes = [part for _, part in i.shape.subshapes()]
            for place in own:
                buffer = places[place]
                self.left.setdefault(buffer, 0)
                if i.opcode not in _IGNORED:
                    self.size[buffer] = sizes.of(shapes[place])
            self.defined[i] = sum(self.size.get(places[place], 0) for place in own)
        buffers: dict[Instruction, tuple[int, ...]] = {}
        for i in computation:
            taken = _only_operand(i)
            if taken is None:
                self.uses[i] = tuple(dict.fromkeys(buffer for o in i.operands for buffer in points[o][0]))
            else:
                if taken not in self.takers:
                    buffers[taken] = tuple(dict.fromkeys(points[taken][0]))
                self.uses[i] = buffers[taken]
                self.takers[taken] = self.takers.get(taken, 0) + 1
                if self.takers[taken] > 2:
                    continue
            for buffer in self.uses[i]:
                self.left[buffer] += 1
        for buffer in set(points[computation.root][0]):
            self.left[buffer] += 1

    def priority(self, i: Instruction) -> tuple[int, int]:
        """Bytes freed and users; scalars before all (`GetPriority`)."""
        shape = i.shape
        if shape is not None and shape.is_array and all(size == 1 for size in shape.dimensions):
            return _FIRST
        if i.opcode == "outfeed" and i.attributes.get("outfeed_config"):
            return (1 << 31) - 1, len(i.users)
        if i.opcode == "infeed" and i.attributes.get("infeed_config"):
            return -(1 << 31), len(i.users)
        freed = 0
        if self._others(i) == 0:
            freed = sum(self.size.get(buffer, 0) for buffer in self.uses[i] if self.left[buffer] == 1)
        return freed - self.defined[i], len(i.users)

    def _others(self, i: Instruction) -> int:
        """Number of other unscheduled instructions with that same sole operand."""
        taken = _only_operand(i)
        return self.takers[taken] - 1 if taken is not None else 0

    def _use(self, i: Instruction) -> bool:
        """Counts the uses of an instruction as done; whether one use is left of one of its buffers."""
        taken, others = _only_operand(i), self._others(i)
        if taken is not None:
            self.takers[taken] = others
        if others > 1:
            return False
        is_near = False
        for buffer in self.uses[i]:
            self.left[buffer] -= 1
            is_near |= self.left[buffer] == 1
        return is_near

    def run(self) -> list[Instruction]:
        waits: dict[Instruction, int] = dict.fromkeys(self.computation, 0)
        for i in self.computation:
            for after in (*i.users, *i.control_successors):
                waits[after] += 1
        queue: list[tuple[int, int, int, Instruction]] = []
        ready: dict[Instruction, tuple[int, int, int]] = {}
        count = 0

        def add(i: Instruction) -> None:
            nonlocal count
            count += 1
            bytes_, users = self.priority(i)
            key = ready[i] = (-bytes_, -users, -count)
            heapq.heappush(queue, (*key, i))

        for i in self.computation:
            if not i.operands and not i.control_predecessors:
                add(i)
        order: list[Instruction] = []
        while queue:
            *key, best = heapq.heappop(queue)
            if ready.get(best) != tuple(key):
                continue  # its priority has changed since
            del ready[best]
            order.append(best)
            is_last_use_near = self._use(best)
            for after in (*best.users, *best.control_successors):
                waits[after] -= 1
                if not waits[after]:
                    add(after)
            if is_last_use_near:
                for other in dict.fromkeys(user for operand in best.operands for user in operand.users):
                    if other in ready:
                        bytes_, users = self.priority(other)
                        if ready[other][:2] != (-bytes_, -users):
                            add(other)
        return order


def _only_operand(i: Instruction) -> Instruction | None:
    """Sole operand of an instruction: many read parts of one wide tuple."""
    return i.operands[0] if len(i.operands) == 1 else None


def _points_to(computation: Computation) -> dict[Instruction, tuple[list[int], list[int]]]:
    """The buffers of each part of each result, and the parts that it defines itself (`TuplePointsToAnalysis`)."""
    found: dict[Instruction, tuple[list[int], list[int]]] = {}
    starts: dict[Instruction, list[int]] = {}
    count = 0

    def new(number: int) -> list[int]:
        nonlocal count
        count += number
        return list(range(count - number, count))

    def element(whole: Instruction, index: int) -> list[int]:
        """The buffers of one element of a tuple."""
        if whole not in starts:
            assert whole.shape is not None
            sizes = (_parts(part) for part in whole.shape.tuple_shapes)
            starts[whole] = list(itertools.accumulate(sizes, initial=1))
        places, at = found[whole][0], starts[whole]
        return places[at[index] : at[index + 1]] if index + 1 < len(at) else places[:1]

    for i in computation:
        assert i.shape is not None
        parts = _parts(i.shape)
        operands = i.operands
        if i.opcode == "tuple":
            places = new(1)
            for operand in operands:
                places += found[operand][0]
            found[i] = places, [0]
        elif i.opcode == "get-tuple-element" and operands:
            found[i] = element(operands[0], i.attributes["index"]), []
        elif i.opcode in _HANDED_ON and operands and len(found[operands[0]][0]) == parts:
            found[i] = list(found[operands[0]][0]), []
        elif (
            i.opcode in _GIVES_SECOND
            and operands
            and operands[0].shape is not None
            and operands[0].shape.is_tuple
        ):
            places = element(operands[0], 1)
            found[i] = (places, []) if len(places) == parts else (new(parts), list(range(parts)))
        else:
            found[i] = new(parts), list(range(parts))
    return found


_GIVES_SECOND = (traits.COLLECTIVE_DONES - {"all-reduce-done"}) | {"async-done"}
"""Ends of asynchronous operations that give the second element of what the start gave."""


def _parts(shape: Shape) -> int:
    """An array, or a tuple and all that lies in it."""
    return sum(1 for _ in shape.subshapes()) if shape.is_tuple else 1
