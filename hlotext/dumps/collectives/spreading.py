"""Spreads the shardings of annotations over the text before partitioning, as Shardy does.

Shardy (`shardy/dialect/sdy/transforms/propagation`) gives each operation factors, and lets the axes that cut a factor in
one array cut it in the others: first through operations that compute element by element, last through broadcasts forward.
Annotated arrays keep theirs. Here an annotation can be changed, and what follows from it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

from hlotext.dumps.collectives.arrays import EDGE, RESULT, Arrays, Axes, Operation, Value
from hlotext.dumps.collectives.factors import PASSES, Rule
from hlotext.ir.tables import opcodes, traits

BOTH, BACK, FORTH, NEITHER = 3, 2, 1, 0
_STAGES = 5
_MOST_VISITS = 40
"""Maximum number of visits per operation and stage: shardings only grow, so that few are needed."""
_THROUGH = traits.REARRANGES_ELEMENTS | {EDGE, RESULT}


class Spreading:
    """Predicts the shardings of a module's arrays with one annotation changed."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._sizes = arrays.sizes
        self._begun = [
            [one.number for one in arrays.operations if self._opens(one, stage)] for stage in range(_STAGES)
        ]
        """The operations that let more through from a stage on."""
        self._known: dict[object, list[tuple[Value, Axes]]] = {}
        """Steps taken before: with one annotation changed most are the same."""

    def spread(self, changed: Mapping[int, Axes] = {}) -> dict[int, Axes]:
        """Propagates shardings with these annotations replaced. Returns the sharding of every array, by array id."""
        spec: dict[int, Axes] = {}
        closed: set[int] = set()
        for value in self._arrays.values:
            fixed = changed.get(id(value), value.fixed)
            spec[id(value)] = fixed if fixed is not None else ((),) * len(value.dimensions)
            if fixed is not None or value.now is None:
                closed.add(id(value))
        self._settle(spec, closed)
        return spec

    def _settle(self, spec: dict[int, Axes], closed: set[int]) -> None:
        """Spreads, stage by stage, until nothing changes.

        In the order of the text; what changes behind is visited before going on, the last first, as MLIR's greedy driver
        does: where several shardings are possible, the first wins.
        """
        for stage, begun in enumerate(self._begun):
            ahead = list(begun)  # in order, which makes it a heap
            behind: list[int] = []
            waiting = set(begun)
            place = -1
            left = _MOST_VISITS * len(self._arrays.operations)
            while left and (behind or ahead):
                left -= 1
                if behind:
                    number = behind.pop()
                else:
                    number = place = heappop(ahead)
                waiting.discard(number)
                for value in self._step(self._arrays.operations[number], stage, spec, closed):
                    for other in value.operations:
                        if other.number in waiting:
                            continue
                        waiting.add(other.number)
                        if other.number > place:
                            heappush(ahead, other.number)
                        else:
                            behind.append(other.number)

    def _opens(self, one: Operation, stage: int) -> bool:
        """True if an operation lets more through from this stage on."""
        if one.rule is None:
            return False
        kinds = {factor.kind for factor in one.rule.factors}
        return any(
            self._direction(one, stage, kind) != (self._direction(one, stage - 1, kind) if stage else NEITHER)
            for kind in kinds
        )

    def _direction(self, one: Operation, stage: int, kind: str) -> int:
        is_single = stage >= 1 or one.opcode == RESULT or all(v.uses == 1 for v in one.values[: one.operands])
        if is_single and (one.opcode in opcodes.ELEMENTWISE or one.opcode in _THROUGH):
            return BOTH
        if stage >= 4:
            return BOTH
        if one.opcode == "broadcast":
            return BACK if stage >= 2 else NEITHER
        if is_single and one.opcode in ("dynamic-slice", "dynamic-update-slice") and stage < 2:
            return FORTH
        if stage >= 3:
            return BOTH
        return BOTH if stage >= 2 and kind == PASSES else NEITHER

    def _step(self, one: Operation, stage: int, spec: dict[int, Axes], closed: set[int]) -> list[Value]:
        """Spreads along one operation. Returns the arrays that changed."""
        specs = tuple([spec[n] for n in one.ids])
        if one.rule is None or not any(map(any, specs)) or (one.is_elementwise and len(set(specs)) == 1):
            return []
        key = one.number, stage, specs, tuple([n in closed for n in one.ids])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._extended(one, one.rule, stage, specs, key[3])
        for value, new in found:
            spec[id(value)] = new
        return [value for value, _ in found]

    def _extended(
        self, one: Operation, rule: Rule, stage: int, specs: tuple[Axes, ...], closed: tuple[bool, ...]
    ) -> list[tuple[Value, Axes]]:
        """The arrays of an operation that get more axes, with their new shardings."""
        if all(closed):
            return []
        values = one.values
        held = [project(rule, n, each, self._sizes) for n, each in enumerate(specs)]
        if not any(any(each.values()) for each in held):
            return []
        found: list[tuple[str, ...]] = []
        order = []
        for f, factor in enumerate(rule.factors):
            direction = NEITHER if factor.is_blocked else self._direction(one, stage, factor.kind)
            axes = _common(held, f, one.operands, direction)
            found.append(axes)
            if axes:
                size, source = -1, -1
                for n, each in enumerate(held):
                    if f in each and each[f][: len(axes)] == axes:
                        elements = math.prod(values[n].dimensions)
                        if elements > size:
                            size, source = elements, n
                cut = math.prod(self._sizes[a] for a in axes) if one.is_elementwise else 0
                order.append((-size, -cut, source, f))
        if not order:
            return []
        order.sort()
        changed = []
        for n in (*range(one.operands, len(values)), *range(one.operands)):
            value = values[n]
            if closed[n]:
                continue
            each = held[n]
            is_changed = False
            for _, _, _, f in order:
                if f not in each:
                    continue
                axes = found[f]
                if len(axes) <= len(each[f]) or axes[: len(each[f])] != each[f]:
                    continue
                if n < one.operands and one.is_elementwise:
                    for m in range(one.operands, len(values)):
                        got = held[m].get(f, ())
                        if len(got) < len(axes) and axes[: len(got)] == got:
                            axes = got
                axes = self._fitting(rule, n, f, each, axes, value)
                if len(axes) > len(each[f]):
                    each[f] = axes
                    is_changed = True
            if is_changed:
                new = tuple(sum((each[f] for f in factors), ()) for factors in rule.dims[n])
                if new != specs[n]:
                    changed.append((value, new))
        return changed

    def _fitting(
        self,
        rule: Rule,
        n: int,
        f: int,
        each: dict[int, tuple[str, ...]],
        axes: tuple[str, ...],
        value: Value,
    ) -> tuple[str, ...]:
        """These axes as far as the dimension takes them and no other factor of the array has them."""
        others = {a for g, cut in each.items() if g != f for a in cut}
        factors = next(one for one in rule.dims[n] if f in one)
        is_last = factors[-1] == f or all(rule.factors[g].size == 1 for g in factors[factors.index(f) + 1 :])
        before = 1
        kept = []
        for a in axes:
            if a in others:
                break
            before *= self._sizes[a]
            if not is_last and rule.factors[f].size % before and a not in each[f]:
                break
            kept.append(a)
        if any(each[g] for g in factors[factors.index(f) + 1 :]):
            return each[f]
        place = factors.index(f)
        for g in factors[:place]:  # what is more major is to be cut whole before
            if rule.factors[g].size != math.prod(self._sizes[a] for a in each[g]):
                return each[f] if kept else ()
        return tuple(kept)


def project(rule: Rule, n: int, axes: Axes, sizes: Mapping[str, int]) -> dict[int, tuple[str, ...]]:
    """Returns the axes of each factor of operand or result `n`, given its sharding."""
    found: dict[int, tuple[str, ...]] = {}
    for factors, cut in zip(rule.dims[n], axes, strict=True):
        if len(factors) == 1:
            found[factors[0]] = cut
            continue
        left = list(cut)
        for place, f in enumerate(factors):
            taken: list[str] = []
            size = rule.factors[f].size
            is_last = place == len(factors) - 1
            while left and (is_last or size % sizes[left[0]] == 0) and (size > 1 or is_last):
                axis = left.pop(0)
                taken.append(axis)
                size //= sizes[axis]
            found[f] = tuple(taken)
            if size > 1:
                for g in factors[place + 1 :]:
                    found[g] = ()
                break
    return found


def _common(
    held: Sequence[dict[int, tuple[str, ...]]], f: int, operands: int, direction: int
) -> tuple[str, ...]:
    """The axes of a factor that its arrays agree on."""
    if direction == NEITHER:
        return ()
    first, second = held[:operands], held[operands:]
    if direction == BACK:
        first, second = second, first
    axes: tuple[str, ...] = ()
    may = True
    for group in (first, second):
        for each in group:
            got = each.get(f)
            if got is None:
                continue
            same = 0
            while same < len(axes) and same < len(got) and axes[same] == got[same]:
                same += 1
            if same == len(got):
                continue
            if same == len(axes):
                if may:
                    axes = got
            else:
                axes, may = axes[:same], False
        if direction != BOTH:
            may = False
    return axes
