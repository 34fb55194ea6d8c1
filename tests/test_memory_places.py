"""Places that are tried in many orders get the offsets that the structure for one order gives."""

from __future__ import annotations

import random

import pytest

from hlotext.memory.free_space import FreeSpace
from hlotext.memory.heap import Interval, Simulation, place_by_size, place_repaired
from hlotext.memory.slots import Slots
from hlotext.memory.values import Value


def one_by_one(
    times: list[list[tuple[int, int]]], sizes: list[int], taken: list[int], order: list[int], limit: int
) -> tuple[int, dict[int, int]] | int:
    """The same by `FreeSpace`."""
    occupancy = FreeSpace(1 + max(last for each in times for _, last in each))
    offsets: dict[int, int] = {}
    heap = 0
    for number in order:
        offset = occupancy.best_fit(times[number], sizes[number])
        heap = max(heap, offset + sizes[number])
        if heap >= limit:
            return number
        offsets[number] = offset
        for first, last in times[number]:
            occupancy.reserve(first, last, offset, offset + taken[number])
    return heap, offsets


@pytest.mark.parametrize("seed", range(40))
def test_both_structures_give_the_same_places(seed: int) -> None:
    """Of few and many places, of equal and of different sizes, of short and long lives, some of several, in any order and
    below any limit."""
    chance = random.Random(seed)
    moments, alignment = chance.choice((20, 300, 5_000)), chance.choice((1, 16))
    longest = chance.choice((moments, 10))
    times: list[list[tuple[int, int]]] = []
    for _ in range(chance.choice((1, 2, 30, 150))):
        firsts = [chance.randrange(moments) for _ in range(chance.choice((1, 1, 1, 3)))]
        times.append([(first, first + chance.randrange(longest)) for first in firsts])
    sizes = [chance.choice((1, 8, 16, 100, chance.randrange(1, 2_000))) for _ in times]
    taken = [-(-size // alignment) * alignment for size in sizes]
    known = Slots(times, sizes, taken)
    order = list(range(len(times)))
    for limit in (1 << 40, sum(sizes) // 2, 200):
        chance.shuffle(order)
        assert known.place(order, limit) == one_by_one(times, sizes, taken, order, limit)


def interval(name: str, size: int, start: int, stop: int) -> Interval:
    """The life of a value of that name."""
    found = Interval(Value(None, name, (), None), size, start)
    found.stop = stop
    return found


@pytest.mark.parametrize(("begin", "used"), [(3, 16), (4, 8)])
def test_a_place_that_is_free_for_a_tick_is_used(begin: int, used: int) -> None:
    """Two values share a place from tick 0 to 2 and from `begin`; a third lives at tick 3 alone."""
    first, between = interval("first", 8, 0, 2), interval("between", 8, 3, 3)
    first.members.append(interval("second", 8, begin, 5))
    assert place_by_size(Simulation([], [first, between], [], 6), 1).bytes == used


def recorded_orders(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The orders that are placed from now on."""
    orders: list[tuple[int, ...]] = []
    place = Slots.place

    def recorded(self: Slots, order: list[int], limit: int | None) -> tuple[int, dict[int, int]] | int:
        orders.append(tuple(order))
        return place(self, order, limit)

    monkeypatch.setattr(Slots, "place", recorded)
    return orders


@pytest.mark.parametrize("seed", range(8))
def test_no_order_is_placed_twice(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What did not fit in the order by size is known from its result when it is tried again."""
    chance = random.Random(seed)
    intervals = []
    for number in range(60):
        first, last = sorted(chance.sample(range(200), 2))
        found = interval(f"v{number}", chance.randrange(1, 500), first, last)
        found.value.number = number
        intervals.append(found)
    orders = recorded_orders(monkeypatch)
    simulation = Simulation([], intervals, [], 200)
    repaired = place_repaired(simulation, 1).bytes
    assert len(orders) > 2
    assert orders.count(orders[0]) == 1
    assert repaired <= place_by_size(simulation, 1).bytes


def test_what_needs_no_more_than_lives_at_once_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of one place that live at once take it once, and only the padding of 5 bytes is not needed."""
    first, small = interval("a", 8, 0, 3), interval("b", 5, 0, 6)
    first.members.append(interval("c", 8, 2, 5))
    orders = recorded_orders(monkeypatch)
    assert place_by_size(Simulation([], [first, small], [], 6), 8).bytes == 13
    assert len(orders) == 1


@pytest.mark.parametrize("seed", range(60))
def test_the_better_one_of_both_orders_is_taken(seed: int) -> None:
    chance = random.Random(seed)
    intervals = [
        interval(f"v{number}", chance.randrange(1, 40), *sorted(chance.sample(range(40), 2)))
        for number in range(12)
    ]
    for number, one in enumerate(intervals):
        one.value.number = number
    rows = [(one.size, one.stop - one.start) for one in intervals]
    times = [[(one.start, one.stop)] for one in intervals]
    sizes = [one.size for one in intervals]
    taken = [-(-size // 16) * 16 for size in sizes]
    by_size = sorted(range(12), key=lambda n: (-rows[n][0], -rows[n][1], n))
    by_length = sorted(range(12), key=lambda n: (-rows[n][1], -rows[n][0], n))
    needed = [one_by_one(times, sizes, taken, order, 1 << 40) for order in (by_size, by_length)]
    least = min(found[0] for found in needed if isinstance(found, tuple))
    assert place_by_size(Simulation([], intervals, [], 40), 16).bytes == least
