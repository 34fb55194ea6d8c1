"""Bytes that each device sends for one operation, given the shardings of its operands and results."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import attrs

import hlotext as hlo
from hlotext.dumps.collectives.arrays import Axes, Operation, Value
from hlotext.dumps.collectives.factors import SHIFTS, SUMS, WHOLE, Rule
from hlotext.dumps.collectives.fates import NO_PASSES, Passes
from hlotext.dumps.collectives.spreading import project
from hlotext.ir.tables import traits

_MOST_WAYS = 1024
"""Maximum number of ways to carry out one operation that are compared."""


@attrs.frozen
class Sent:
    """Bytes that an operation sends."""

    moves: dict[object, float]
    """Bytes to place operands otherwise, by array and sharding: who wants the same shares it."""
    own: float
    """Bytes that nothing else can share: sums, edges, and what places its result."""
    most: float | None = None
    """Bytes of the dearest way to carry it out, where several are possible."""
    parts: int = 1
    """Parts that the work is cut into, one for each device or for several that compute the same."""

    @property
    def total(self) -> float:
        return self.own + sum(self.moves.values())


class Volume:
    """Bytes sent by the operations of one module."""

    def __init__(self, sizes: Mapping[str, int], passes: Passes = NO_PASSES) -> None:
        self._sizes = dict(sizes)
        self._passes = passes
        self._moves: dict[object, float] = {}
        self._known: dict[tuple[int, tuple[Axes, ...]], Sent | None] = {}

    def _cut(self, axes: Sequence[str]) -> int:
        return math.prod(self._sizes[a] for a in axes)

    def local(self, value: Value, axes: Axes) -> float:
        """Returns the bytes of one shard of an array."""
        return value.width * math.prod(
            -(-size // self._cut(cut)) for size, cut in zip(value.dimensions, axes, strict=True)
        )

    def moved(self, value: Value, have: Axes, want: Axes) -> float:
        """Returns the bytes that a device sends to reshard an array."""
        if have == want or value.is_constant:
            return 0.0
        key = value.dimensions, value.width, have, want
        if key not in self._moves:
            self._moves[key] = self._moved(value, have, want)
        return self._moves[key] * self._passes.moved.get(id(value), 1.0)

    def _moved(self, value: Value, have: Axes, want: Axes) -> float:
        had, wants = [self._cut(cut) for cut in have], [self._cut(cut) for cut in want]
        local = self.local(value, have)
        if had == wants:
            return local  # a permute
        pairs = list(zip(have, want, had, wants, strict=True))
        if math.prod(had) == math.prod(wants):
            sent = 0.0
            for a, b in zip(had, wants, strict=True):
                if a > b:
                    sent += local * (a // b - 1) / (a // b) if not a % b else local
            aligned = all(
                one[: len(other)] == other if a >= b else other[: len(one)] == one
                for one, other, a, b in pairs
            )
            return sent if aligned else sent + local
        if all(not b % a for _, _, a, b in pairs):
            return (
                0.0
                if all(other[: len(one)] == one for one, other, _, _ in pairs)
                else self.local(value, want)
            )
        if all(not a % b for _, _, a, b in pairs):
            n = math.prod(had) // math.prod(wants)
            sent = self.local(value, want) * (n - 1) / n
            return sent if all(one[: len(other)] == other for one, other, _, _ in pairs) else sent + local
        same = [one == other for one, other, _, _ in pairs]
        rest = Value(
            tuple(
                -(-size // self._cut(cut)) if alike else size
                for size, cut, alike in zip(value.dimensions, have, same, strict=True)
            ),
            value.width,
            None,
        )
        left = tuple(() if alike else cut for alike, cut in zip(same, have, strict=True))
        n = self._cut([a for cut in left for a in cut])
        return self.local(rest, ((),) * len(left)) * (n - 1) / n

    def summed(self, size: float, axes: Sequence[str]) -> float:
        """Returns the bytes that a device sends in an all-reduce of `size` bytes."""
        n = self._cut(axes)
        return 2 * size * (n - 1) / n

    def of(self, one: Operation, spec: Mapping[int, Axes]) -> Sent | None:
        """Returns the bytes that an operation sends per run, or None if unknown."""
        specs = tuple([spec[n] for n in one.ids])
        key = one.number, specs
        if key not in self._known:
            self._known[key] = self._of(one, specs)
        return self._known[key]

    def _of(self, one: Operation, specs: Sequence[Axes]) -> Sent | None:
        rule, values, count = one.rule, one.values, one.operands
        if one.opcode == "custom-call" or rule is None or any(v.now is None for v in values):
            return None
        if not any(map(any, specs)):
            return Sent({}, 0.0)
        if one.is_elementwise and len(values) > count:
            want = specs[count]
            if len(set(specs[:count])) == 1 and count > 1:
                return Sent({}, self.moved(values[count], specs[0], want))
            return Sent(self._resharded(values[:count], specs, [want] * count), 0.0)
        if one.opcode == "fft":
            whole = any(
                cut and rule.factors[dims[0]].kind == WHOLE
                for cut, dims in zip(specs[1], rule.dims[1], strict=True)
            )
            return Sent(
                self._resharded(values[:count], specs, [((),) * len(specs[1]) if whole else specs[1]]), 0.0
            )
        if one.opcode == "concatenate":
            return self._joined(one, specs)
        if one.opcode == "slice" and one.node is not None and all(map(_rotated, one.node.user_view)):
            return Sent({}, 0.0)
        held = [project(rule, n, s, self._sizes) for n, s in enumerate(specs)]
        axes = list(dict.fromkeys(a for s in specs for cut in s for a in cut))
        choices, all_choices, is_clean = [], [], True
        free = one.opcode in traits.CONTRACTIONS or one.opcode in ("gather", "scatter")
        for a in axes:
            places = dict.fromkeys(f for each in held for f, cut in each.items() if a in cut)
            may: list[int | None] = [f for f in places if rule.factors[f].kind != WHOLE]
            all_choices.append([*may, None])
            mine = [f for each in held[:count] for f, cut in each.items() if a in cut]
            theirs = [f for each in held[count:] for f, cut in each.items() if a in cut]
            if one.opcode == "reduce":
                may = [mine[0]] if mine else [theirs[0]]
            elif one.opcode in traits.CONTRACTIONS and len(mine) == 2 and mine[0] == mine[1]:
                may = [mine[0]]
            elif free:
                may.append(None)
                having = [f for each in held[:count] for f in each if f in places]
                is_clean &= len(places) == 1 and (
                    rule.factors[next(iter(places))].kind != SUMS or len(having) == len(mine)
                )
            else:
                theirs = [f for f in theirs if rule.factors[f].kind != WHOLE]
                may = [theirs[0]] if theirs else [None]
            choices.append(may)
        if math.prod(map(len, all_choices)) > _MOST_WAYS:
            return None
        found = [self._carried_out(one, held, specs, axes, placed) for placed in itertools.product(*choices)]
        best = min(found, key=lambda each: each.total)
        if free and not is_clean:
            found = [
                self._carried_out(one, held, specs, axes, placed)
                for placed in itertools.product(*all_choices)
            ]
            best = attrs.evolve(best, most=max(each.total for each in found))
        if one.opcode == "dynamic-update-slice":
            best = attrs.evolve(best, own=best.own + self._updated(one, specs))
        return best

    def _updated(self, one: Operation, specs: Sequence[Axes]) -> float:
        """An update over several shards: all of the array is brought together for it."""
        whole, update = one.values[:2]
        cut = [
            d
            for d, (a, b) in enumerate(zip(whole.dimensions, update.dimensions, strict=True))
            if a != b and b > 1 and specs[0][d]
        ]
        want = tuple(() if d in cut else axes for d, axes in enumerate(specs[0]))
        return self.moved(whole, specs[0], want) if cut else 0.0

    def _joined(self, one: Operation, specs: Sequence[Axes]) -> Sent:
        """A concatenation: along a dimension that is cut, its axes cut another one meanwhile."""
        values, count = one.values, one.operands
        want = specs[count]
        along = one.node.attributes["dimensions"][0]  # type: ignore[union-attr]
        axes = want[along]
        if not axes:
            return Sent(self._resharded(values[:count], specs, [want] * count), 0.0)
        moves = self._resharded(values[:count], specs, [want] * count)
        if _rotated(one.node):
            rows = min(v.dimensions[along] for v in values[:count])
            return Sent(
                moves,
                self.local(values[count], want)
                / -(-values[count].dimensions[along] // self._cut(axes))
                * rows,
            )
        meanwhile = [list(cut) for cut in want]
        meanwhile[along] = []
        for d, size in enumerate(values[count].dimensions):
            if d != along and not size % (self._cut(want[d]) * self._cut(axes)):
                meanwhile[d] += axes
                break
        other = tuple(map(tuple, meanwhile))
        return Sent(
            self._resharded(values[:count], specs, [other] * count), self.moved(values[count], other, want)
        )

    def _resharded(
        self, values: Sequence[Value], have: Sequence[Axes], want: Sequence[Axes]
    ) -> dict[object, float]:
        moves: dict[object, float] = {}
        for value, a, b in zip(values, have, want, strict=False):
            sent = self.moved(value, a, b)
            if sent:
                moves[id(value), b] = sent
        return moves

    def _carried_out(
        self,
        one: Operation,
        held: Sequence[Mapping[int, tuple[str, ...]]],
        specs: Sequence[Axes],
        axes: Sequence[str],
        placed: Sequence[int | None],
    ) -> Sent:
        """Bytes sent if each axis cuts this factor."""
        rule, values, count = one.rule, one.values, one.operands
        assert rule is not None
        cut: dict[int, list[str]] = {}
        for a, f in zip(axes, placed, strict=True):
            if f is not None:
                cut.setdefault(f, []).append(a)
        for f, mine in cut.items():
            if len(mine) > 1:
                orders = [
                    each[f] for each in (*held[count:], *held[:count]) if set(mine) <= set(each.get(f, ()))
                ]
                if orders:
                    mine.sort(key=orders[0].index)
        want = [tuple(self._cut_of(rule, factors, cut) for factors in dims) for dims in rule.dims]
        moves = self._resharded(values[:count], specs, want)
        own = 0.0
        summing = [a for f, mine in cut.items() if rule.factors[f].kind == SUMS for a in mine]
        for n in range(count, len(values)):
            placed_so = self.moved(values[n], want[n], specs[n])
            if summing:
                summed = self.summed(self.local(values[n], want[n]), summing)
                is_cut = not placed_so and set(summing) <= {a for mine in specs[n] for a in mine}
                own += (
                    summed
                    * self._passes.summed.get(id(values[n]), 1.0)
                    / (2 if is_cut and self._passes.scatters else 1)
                )
            own += placed_so
        for d, factors in enumerate(rule.dims[0]):
            for f in factors:
                if cut.get(f) and rule.factors[f].kind == SHIFTS:
                    own += self._edges(one, values[0], want[0], d)
        return Sent(moves, own, parts=self._cut([a for mine in cut.values() for a in mine]))

    def _cut_of(self, rule: Rule, factors: tuple[int, ...], cut: Mapping[int, list[str]]) -> tuple[str, ...]:
        """The axes of a dimension with these factors: whole if a more major one is left whole, which no sharding says."""
        if len(factors) == 1:
            return tuple(cut.get(factors[0], ()))
        found: list[str] = []
        is_whole = True
        for f in factors:
            if cut.get(f):
                if not is_whole:
                    return ()
                found += cut[f]
            is_whole &= rule.factors[f].size == self._cut(cut.get(f, ()))
        return tuple(found)

    def _edges(self, one: Operation, value: Value, axes: Axes, dimension: int) -> float:
        """Bytes of what is read over the edges of a shard."""
        rows = -(-value.dimensions[dimension] // self._cut(axes[dimension]))
        reach = rows
        node = one.node
        window = node.attributes.get("window") if node is not None else None
        if window is not None:
            if one.opcode == "convolution":
                labels = node.attributes["dim_labels"]  # type: ignore[union-attr]
                spatial = labels.input_spatial_dimensions
                sizes = window.dimensions[spatial.index(dimension)]
            else:
                sizes = window.dimensions[dimension]
            reach = max(0, (sizes.size - 1) * sizes.window_dilation + 1 - sizes.stride)
        elif node is not None and node.opcode == "pad":
            padding = node.attributes["padding"].dimensions[dimension]
            reach = abs(padding.edge_padding_low) + abs(padding.edge_padding_high)
        elif node is not None and node.opcode == "slice":
            kept = -(-one.values[-1].dimensions[dimension] // self._cut(axes[dimension]))
            reach = min(rows, max(1, node.attributes["slice"].starts[dimension]), kept)
        return self.local(value, axes) / rows * min(reach, rows)


def _rotated(node: hlo.Instruction | None) -> bool:
    """True for a roll: slices of one array, joined the other way round."""
    if node is None or node.opcode != "concatenate" or len(node.operands) != 2:
        return False
    first, last = node.operands
    return first.opcode == last.opcode == "slice" and first.operands[0] is last.operands[0]
