"""A drawing of a graph in layers (Sugiyama): longest paths, few crossings by barycentres, places by least squares.

The page of a graph does the same in its script. Every part is linear or n log n but for the sweeps, whose number is fixed.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence

import attrs

_SWEEPS, _ROUNDS = 8, 10
_GAP_X, _GAP_Y = 20.0, 46.0
_DUMMY = 8.0
"""Width of an edge where it passes a layer."""
_LONG = 6
"""An edge that passes so many layers is led at its ends alone: else long edges outnumber the nodes a hundredfold."""


@attrs.frozen
class Drawing:
    """Positions of the nodes and edges of a graph."""

    centres: Sequence[tuple[float, float]]
    """The middle of each node."""
    paths: Sequence[Sequence[tuple[float, float]]]
    """The points that each edge goes through, its ends included."""
    width: float
    height: float


@attrs.define
class _Point:
    """A node, or the place where an edge passes a layer."""

    width: float
    height: float
    layer: int
    up: list[int] = attrs.field(factory=list)
    down: list[int] = attrs.field(factory=list)


def layered(sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]]) -> Drawing:
    """Lays out an acyclic graph in layers. Nodes are (width, height), edges are (from, to) node numbers."""
    layers = _layers(len(sizes), edges)
    points = [_Point(w, h, layer) for (w, h), layer in zip(sizes, layers, strict=True)]
    routes = []
    for a, b in edges:
        route = [a]
        first_layer, last_layer = layers[a] + 1, layers[b] - 1
        passed: Sequence[int] = range(first_layer, last_layer + 1)
        if len(passed) >= _LONG:
            passed = (first_layer, last_layer)
        for layer in passed:
            route.append(len(points))
            points.append(_Point(_DUMMY, 0.0, layer))
        route.append(b)
        for first, second in itertools.pairwise(route):
            points[first].down.append(second)
            points[second].up.append(first)
        routes.append(route)
    levels: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for number, point in enumerate(points):
        levels[point.layer].append(number)
    _order(points, levels)
    xs = _places(points, levels)
    return _drawn(points, levels, routes, xs, len(sizes))


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest path to each node; what nothing leads to stands just above what it leads to."""
    out: list[list[int]] = [[] for _ in range(count)]
    waits = [0] * count
    for a, b in edges:
        out[a].append(b)
        waits[b] += 1
    first = [not number for number in waits]
    layers = [0] * count
    ready = deque(n for n in range(count) if first[n])
    order = []
    while ready:
        n = ready.popleft()
        order.append(n)
        for b in out[n]:
            layers[b] = max(layers[b], layers[n] + 1)
            waits[b] -= 1
            if not waits[b]:
                ready.append(b)
    for n in reversed(order):
        if first[n] and out[n]:
            layers[n] = min(layers[b] for b in out[n]) - 1
    return layers


def _order(points: Sequence[_Point], levels: Sequence[list[int]]) -> None:
    """Sorts each layer by the places of the neighbours above, then below, several times."""
    place = [0.0] * len(points)
    for level in levels:
        for number, n in enumerate(level):
            place[n] = number
    for sweep in range(_SWEEPS):
        for level in levels if sweep % 2 == 0 else reversed(levels):
            wish = {}
            for n in level:
                near = points[n].up if sweep % 2 == 0 else points[n].down
                wish[n] = sum(place[other] for other in near) / len(near) if near else place[n]
            level.sort(key=lambda n: (wish[n], place[n]))
            for number, n in enumerate(level):
                place[n] = number


def _places(points: Sequence[_Point], levels: Sequence[Sequence[int]]) -> list[float]:
    """The middles of the points of each layer, in its order and apart, as near to their neighbours' as that allows."""
    xs = [0.0] * len(points)
    for level in levels:
        _arrange(points, level, [0.0] * len(level), xs)
    for turn in range(_ROUNDS):
        for level in levels if turn % 2 == 0 else reversed(levels):
            wishes = []
            for n in level:
                point = points[n]
                near = (
                    [*point.up, *point.down] if turn >= _ROUNDS - 2 else point.down if turn % 2 else point.up
                )
                wishes.append(sum(xs[other] for other in near) / len(near) if near else xs[n])
            _arrange(points, level, wishes, xs)
    return xs


def _arrange(
    points: Sequence[_Point], level: Sequence[int], wishes: Sequence[float], xs: list[float]
) -> None:
    """The nearest places to the wishes that keep order and distance: isotonic regression, blocks merged as they meet."""
    shift, offsets = 0.0, []
    blocks: list[tuple[float, int]] = []
    for number, n in enumerate(level):
        if number:
            before = points[level[number - 1]]
            gap = _GAP_X if before.height and points[n].height else _GAP_X / 2
            shift += before.width / 2 + points[n].width / 2 + gap
        offsets.append(shift)
        total, size = wishes[number] - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            other, count = blocks.pop()
            total, size = total + other, size + count
        blocks.append((total, size))
    number = 0
    for total, size in blocks:
        for _ in range(size):
            xs[level[number]] = total / size + offsets[number]
            number += 1


def _drawn(
    points: Sequence[_Point],
    levels: Sequence[Sequence[int]],
    routes: Sequence[Sequence[int]],
    xs: Sequence[float],
    nodes: int,
) -> Drawing:
    left = min((x - p.width / 2 for x, p in zip(xs, points, strict=True)), default=0.0)
    right = max((x + p.width / 2 for x, p in zip(xs, points, strict=True)), default=0.0)
    bands, y = [], 0.0
    for level in levels:
        height = max((points[n].height for n in level), default=0.0)
        bands.append((y, y + height))
        y += height + _GAP_Y
    at = [(x - left, sum(bands[p.layer]) / 2) for x, p in zip(xs, points, strict=True)]
    starts, ends = _ports(points, routes, at, 0), _ports(points, routes, at, -1)
    paths = []
    for number, route in enumerate(routes):
        first, last = route[0], route[-1]
        path = [(starts[number], at[first][1] + points[first].height / 2)]
        # Upright beside the boxes of a layer that it passes.
        path += [(at[n][0], y) for n in route[1:-1] for y in bands[points[n].layer]]
        path.append((ends[number], at[last][1] - points[last].height / 2))
        paths.append(path)
    return Drawing(at[:nodes], paths, right - left, max(0.0, y - _GAP_Y))


def _ports(
    points: Sequence[_Point],
    routes: Sequence[Sequence[int]],
    at: Sequence[tuple[float, float]],
    end: int,
) -> dict[int, float]:
    """Where edges meet their node, side by side in the order of where they lead."""
    groups: dict[int, list[int]] = {}
    for number, route in enumerate(routes):
        groups.setdefault(route[end], []).append(number)
    found = {}
    for n, numbers in groups.items():
        numbers.sort(key=lambda number: at[routes[number][1 if end == 0 else -2]][0])
        step = min(16.0, 0.8 * points[n].width / len(numbers))
        for place, number in enumerate(numbers):
            found[number] = at[n][0] + (place - (len(numbers) - 1) / 2) * step
    return found
